#include <set>
#include <span>

#include "settings/derived.hpp"
#include "settings/settings.hpp"
#include "settings/table.hpp"

namespace rnic::settings {
namespace {

/// Default-constructed settings to read the defaults from.
struct Defaults {
  EalSettings eal;
  WorkerSettings worker;
  WireSettings wire;
  DeviceSettings device;
};

constexpr std::string_view kHead =
    R"(# Settings

<!-- Generated from the table in lib/settings/table.cpp; a test compares the two. -->

A configuration is a TOML file. Every key has a default unless the table says `required`. An unknown
key or a bad value is an error that names file, line and remedy; all of them are reported at once:

    nic.toml:7: tcp.rto_mim: unknown key; did you mean tcp.rto_min?

The keys stand in three parts: [basic](#basic-keys), [advanced](#advanced-keys) and
[conformance](#conformance-keys).

- **Durations** are strings with a unit: `"200ms"`, `"5us"`, `"1.5s"`, `"2min"`
  (ns, us, ms, s, min, h).
- **Octets** are numbers or strings with a unit: `65536`, `"64KB"`, `"4MB"`, `"1GB"`. The units are
  binary: 1 KB is 1024 octets.
- **Shares** are numbers from 0 to 1.
- `[tcp]`, `[framing]`, `[mpa]`, `[tuf]`, `[net]`, `[socket]` and `[limits]` hold for all devices.
  `[device.tcp]`, `[device.limits]` and so on behind a `[[device]]` hold for that device and win.
- **Defaults with a rule**, `1024` = limits.max_connections, follow from another key unless they are
  given. A file that says `limits.max_connections = 4096` and nothing else has queue pairs, queues,
  records and hold space for so many. A rule never leaves the range of its key.
- **Overrides** are applied after the file, in order, each to one key: `tcp.rto_min=5ms`,
  `mpa.markers=true`, `wire.loop.mtu=9000`, `device.rnic0.port=wire:loop:0`,
  `device.rnic0.tcp.rto_min=5ms`. `*` stands for every name: `device.*.mtu=1500`. Strings need no
  quotes; a list is written in brackets: `worker.cores=[0,1]`. An override of `tcp.rto_min` does not
  change a device that has its own; `device.*.tcp.rto_min` does.
)";

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string code(const std::string& text) { return "`" + text + "`"; }

struct Part {
  std::string_view heading;
  std::string_view help;
};

/// The part of the page for a tier.
Part part_of(Tier tier) {
  switch (tier) {
    case Tier::Basic: return {"Basic keys", "What sets up a device. Most files need no others."};
    case Tier::Advanced:
      return {"Advanced keys",
              "For who has measured, or was told by a message to raise or lower one."};
    case Tier::Conformance: break;
  }
  return {"Conformance keys",
          "Choices that specifications leave open, and means of tests. Nobody who runs an "
          "application needs them."};
}

/// The table of one section, with its keys of the tier. Empty: there are none.
std::string rows(const Section& section, Tier tier, std::span<const KeyDoc> docs) {
  std::string out;
  const auto keys = all_keys();
  for (size_t i = 0; i < docs.size(); ++i) {
    if (keys[i].section != section.name || keys[i].tier != tier) continue;
    const bool literal = keys[i].default_note.empty();
    out += "| " + code(std::string(keys[i].name)) + " | " + cell(docs[i].unit) + " | " +
           (literal ? code(docs[i].default_text) : cell(docs[i].default_text)) +
           (docs[i].rule.empty() ? "" : " = " + docs[i].rule) + " | " + cell(docs[i].range) +
           " | " + cell(docs[i].help) + " |\n";
  }
  return out;
}

std::string head(const Section& section, bool first) {
  std::string out = "\n### " + code(std::string(section.heading)) + "\n";
  if (!first) return out;
  out += "\n" + std::string(section.help);
  if (section.per_device) {
    out += " One device's own: " + code("[device." + std::string(section.name) + "]") + ".";
  }
  return out + "\n";
}

}  // namespace

std::vector<KeyDoc> documented_keys() {
  Defaults defaults;
  Scope scope{&defaults.eal, &defaults.worker, &defaults.wire, &defaults.device};
  std::vector<KeyDoc> out;
  for (const Key& key : all_keys()) {
    const Target target = key.target(scope);
    KeyDoc doc;
    doc.key = key.path();
    doc.tier = key.tier;
    doc.unit = key.unit;
    doc.default_text = key.default_note.empty() ? value_text(target, key.accepted())
                                                : std::string(key.default_note);
    if (const Rule* rule = find_rule(doc.key)) doc.rule = rule_text(*rule);
    doc.range =
        key.range_note.empty() ? range_text(target, key.accepted()) : std::string(key.range_note);
    doc.help = key.help;
    out.push_back(std::move(doc));
  }
  return out;
}

std::string settings_markdown() {
  const auto docs = documented_keys();
  std::string out(kHead);
  std::set<std::string_view> told;  // sections whose help stands further up
  for (const Tier tier : kTiers) {
    const Part part = part_of(tier);
    out += "\n## " + std::string(part.heading) + "\n\n" + std::string(part.help) + "\n";
    for (const Section& section : all_sections()) {
      const std::string keys = rows(section, tier, docs);
      if (keys.empty()) continue;
      out += head(section, told.insert(section.name).second);
      out += "\n| key | unit | default | range | meaning |\n|---|---|---|---|---|\n" + keys;
    }
  }
  return out;
}

}  // namespace rnic::settings
