#include "settings/settings.hpp"

#include <toml++/toml.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "settings/checks.hpp"
#include "settings/findings.hpp"
#include "settings/renamed.hpp"
#include "settings/table.hpp"

namespace rnic::settings {
namespace {

constexpr size_t kMostTables = 256;        // of wires, and of devices
constexpr size_t kMostOctets = 1u << 20;   // of a file
constexpr uint32_t kOverrides = 1u << 30;  // their order begins behind the last line of any file

/// The target of the keys of one table.
struct Group {
  std::string section;  ///< in the table of keys: "device.impair"
  std::string id;       ///< in Places: "device#0.impair"
  std::string shown;    ///< to the user: "device.rnic0.impair"
  Scope scope;

  /// The name of the device that the table belongs to; empty: the table is for all devices.
  [[nodiscard]] std::string device_name() const {
    return id.starts_with("device#") ? scope.device->config.name : std::string();
  }
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

std::string did_you_mean(const std::string& what) {
  return what.empty() ? "; docs/settings.md lists all" : "; did you mean " + what + "?";
}

/// The full name of the only key that is called `name`, in any section.
std::string path_of(std::string_view name) {
  std::string path;
  for (const Key& key : all_keys()) {
    if (key.name != name) continue;
    if (!path.empty()) return {};
    path = key.path();
  }
  return path;
}

std::string nearest_key(const Group& group, std::string_view name) {
  std::vector<std::string> names;
  for (const Key& key : all_keys()) {
    if (key.section == group.section) names.emplace_back(key.name);
  }
  const std::string meant = nearest(name, names);
  return meant.empty() ? path_of(name) : group.shown + "." + meant;
}

/// The names of the sections below a device, or of those that stand by themselves.
std::vector<std::string> section_names(bool below_device) {
  std::vector<std::string> names;
  for (const Section& section : all_sections()) {
    const bool only_device = section.name.starts_with("device.");
    if (below_device ? section.per_device || only_device : !only_device) {
      names.emplace_back(only_device ? section.name.substr(7) : section.name);
    }
  }
  return names;
}

/// The section behind `[device.NAME]`.
std::string device_section(std::string_view name) {
  const Section* section = find_section(name);
  if (section != nullptr && section->per_device) return std::string(name);
  const std::string own = "device." + std::string(name);
  return find_section(own) != nullptr ? own : std::string();
}

std::optional<Raw> to_raw(const toml::node& node) {
  if (const auto* flag = node.as_boolean()) return Raw{flag->get()};
  if (const auto* whole = node.as_integer()) return Raw{whole->get()};
  if (const auto* number = node.as_floating_point()) return Raw{number->get()};
  if (const auto* text = node.as_string()) return Raw{text->get()};
  const auto* array = node.as_array();
  if (array == nullptr) return {};
  std::vector<Raw> list;
  for (const toml::node& element : *array) {
    auto raw = to_raw(element);
    if (!raw) return {};
    list.push_back(std::move(*raw));
  }
  return Raw{std::move(list)};
}

class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file), places_(file) {
    shared_.config.net.address = {};
  }

  Result<Settings> read(std::string_view text, std::span<const std::string> overrides) {
    toml::table root;
    try {
      // The parser is not given the file's name: it would allocate for it where it must not throw.
      root = toml::parse(text);
    } catch (const toml::parse_error& error) {
      findings_.add(line(error.source()), "", std::string(error.description()));
      return tl::unexpected(findings_.error());
    }
    read_shared(root);
    // The sections for all devices are complete before the first device copies them.
    for (size_t i = 0; i < overrides.size(); ++i) override_one(overrides[i], i, true);
    read_wires(root);
    read_devices(root);
    for (size_t i = 0; i < overrides.size(); ++i) override_one(overrides[i], i, false);
    if (findings_.empty()) {
      complete(settings_, places_);
      check(settings_, places_, findings_);
    }
    if (!findings_.empty()) return tl::unexpected(findings_.error());
    return std::move(settings_);
  }

 private:
  [[nodiscard]] Place line(const toml::source_region& source) const {
    return {source.begin.line, file_ + ":" + std::to_string(source.begin.line)};
  }

  Group shared_group(const std::string& section) {
    return {section, section, section, {&settings_.eal, &settings_.worker, nullptr, &shared_}};
  }
  Group wire_group(size_t index) {
    WireSettings& wire = settings_.wires[index];
    return {"wire",
            "wire#" + std::to_string(index),
            "wire" + (wire.name.empty() ? "" : "." + wire.name),
            {nullptr, nullptr, &wire, nullptr}};
  }
  Group device_group(size_t index) {
    DeviceSettings& device = settings_.devices[index];
    return {"device",
            "device#" + std::to_string(index),
            "device." + device.config.name,
            {nullptr, nullptr, nullptr, &device}};
  }
  static Group below(const Group& device, const std::string& section, const std::string& name) {
    return {section, device.id + "." + name, device.shown + "." + name, device.scope};
  }

  const Key* key_of(const Group& group, std::string_view name, const Place& place) {
    const Key* key = find_key(group.section, name);
    if (key != nullptr) return key;
    const std::string shown = group.shown + "." + std::string(name);
    if (const Renamed* renamed = find_renamed(group.section, name)) {
      findings_.add(place, shown,
                    renamed_text(*renamed, group.device_name(), place.order >= kOverrides));
    } else {
      findings_.add(place, shown, "unknown key" + did_you_mean(nearest_key(group, name)));
    }
    return nullptr;
  }

  void store(const Group& group, const Key& key, const Raw& raw, const Place& place) {
    Scope scope = group.scope;
    const std::string name(key.name);
    places_.set(group.id + "." + name, place);
    if (auto wrong = assign(key.target(scope), key.accepted(), raw)) {
      findings_.add(place, group.shown + "." + name, *wrong);
    }
  }

  void read_key(const Group& group, const toml::key& name, const toml::node& node) {
    const Place place = line(name.source());
    const Key* key = key_of(group, name.str(), place);
    if (key == nullptr) return;
    if (const auto raw = to_raw(node)) {
      store(group, *key, *raw, place);
    } else {
      findings_.add(place, group.shown + "." + std::string(name.str()),
                    node.is_table() ? "is one key, not a section" : "takes no dates and no tables");
    }
  }

  void read_keys(const Group& group, const toml::table& table) {
    for (const auto& [name, node] : table) read_key(group, name, node);
  }

  void read_shared(const toml::table& root) {
    for (const auto& [name, node] : root) {
      const std::string section(name.str());
      const Place place = line(name.source());
      if (section == "wire" || section == "device") {
        if (!node.is_array_of_tables()) {
          findings_.add(place, section, "there can be several: write [[" + section + "]]");
        }
      } else if (!node.is_table() && find_section(section) == nullptr) {
        findings_.add(place, section, "a key outside any section" + did_you_mean(path_of(section)));
      } else if (find_section(section) == nullptr) {
        unknown_section(section, place);
      } else if (!node.is_table()) {
        findings_.add(place, section, "there is only one: write [" + section + "]");
      } else {
        read_keys(shared_group(section), *node.as_table());
      }
    }
  }

  /// The tables of `[[name]]`. Anything else of that name has been reported by read_shared().
  std::vector<const toml::table*> tables(const toml::table& root, const std::string& name) {
    std::vector<const toml::table*> out;
    const toml::array* array = root[name].as_array();
    if (array == nullptr || !array->is_array_of_tables()) return out;
    for (const toml::node& node : *array) {
      const Place place = line(node.source());
      if (out.size() == kMostTables) {
        findings_.add(place, name, "more than " + std::to_string(kMostTables) + " of them");
        break;
      }
      places_.set(name + "#" + std::to_string(out.size()), place);
      out.push_back(node.as_table());
    }
    return out;
  }

  void read_wires(const toml::table& root) {
    const auto found = tables(root, "wire");
    settings_.wires.resize(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      // The name comes first: it stands in the messages about the other keys.
      if (const auto name = (*found[i])["name"].value<std::string>()) {
        settings_.wires[i].name = *name;
      }
      read_keys(wire_group(i), *found[i]);
    }
  }

  void read_devices(const toml::table& root) {
    const auto found = tables(root, "device");
    settings_.devices.assign(found.size(), shared_);
    for (size_t i = 0; i < found.size(); ++i) {
      std::string& own_name = settings_.devices[i].config.name;
      own_name = "rnic" + std::to_string(i);
      if (const auto name = (*found[i])["name"].value<std::string>()) own_name = *name;
      read_device(device_group(i), *found[i]);
    }
  }

  void read_device(const Group& device, const toml::table& table) {
    for (const auto& [name, node] : table) {
      const std::string word(name.str());
      const std::string section = device_section(word);
      if (!section.empty() && node.is_table()) {
        read_keys(below(device, section, word), *node.as_table());
      } else if (!section.empty() && find_renamed("device", word) == nullptr) {
        findings_.add(line(name.source()), device.shown + "." + word,
                      "is a section: write [device." + word + "]");
      } else if (node.is_table() && find_key("device", word) == nullptr) {
        unknown_device_section(device, word, line(name.source()));
      } else {
        read_key(device, name, node);
      }
    }
  }

  void unknown_section(const std::string& word, const Place& place) {
    std::string meant = nearest(word, section_names(false));
    if (meant.empty() && !device_section(word).empty()) meant = "device." + word;
    findings_.add(place, word, "unknown section" + did_you_mean(meant));
  }

  void unknown_device_section(const Group& device, const std::string& word, const Place& place) {
    const std::string meant = nearest(word, section_names(true));
    findings_.add(place, device.shown + "." + word,
                  "unknown section" + did_you_mean(meant.empty() ? "" : "device." + meant));
  }

  void override_one(const std::string& text, size_t index, bool shared) {
    const Place place{kOverrides + static_cast<uint32_t>(index), "override \"" + text + "\""};
    const size_t equals = text.find('=');
    std::vector<std::string> path(1);
    for (const char c : text.substr(0, equals)) {
      if (c == '.') {
        path.emplace_back();
      } else if (c != ' ') {
        path.back() += c;
      }
    }
    const bool named = path[0] == "device" || path[0] == "wire";
    // Each override is processed twice, but its mistakes are reported once.
    if (named == shared) return;
    if (equals == std::string::npos) {
      findings_.add(place, "", "has no value: write KEY=VALUE, as in tcp.rto_min=5ms");
      return;
    }
    const std::string_view value = std::string_view(text).substr(equals + 1);
    if (named) {
      override_named(path, value, place);
    } else {
      override_shared(path, value, place);
    }
  }

  void override_key(const Group& group, const std::string& name, std::string_view value,
                    const Place& place) {
    const Key* key = key_of(group, name, place);
    if (key == nullptr) return;
    Scope scope = group.scope;
    store(group, *key, raw_from_text(key->target(scope), value), place);
  }

  void override_shared(const std::vector<std::string>& path, std::string_view value,
                       const Place& place) {
    if (path.size() == 1) {
      findings_.add(place, path[0], "names no section" + did_you_mean(path_of(path[0])));
    } else if (find_section(path[0]) == nullptr) {
      unknown_section(path[0], place);
    } else if (path.size() > 2) {
      findings_.add(place, path[0], "write SECTION.KEY=VALUE, as in tcp.rto_min=5ms");
    } else {
      override_key(shared_group(path[0]), path[1], value, place);
    }
  }

  void override_named(const std::vector<std::string>& path, std::string_view value,
                      const Place& place) {
    const std::string& kind = path[0];
    const bool device = kind == "device";
    if (path.size() < 3 || path.size() > (device ? 4 : 3)) {
      findings_.add(place, kind,
                    device ? "write device.NAME.KEY=VALUE or device.NAME.SECTION.KEY=VALUE; * is "
                             "every device"
                           : "write wire.NAME.KEY=VALUE; * is every wire");
      return;
    }
    const size_t count = device ? settings_.devices.size() : settings_.wires.size();
    std::vector<std::string> names;
    bool matched = false;
    for (size_t i = 0; i < count; ++i) {
      names.push_back(device ? settings_.devices[i].config.name : settings_.wires[i].name);
      if (path[1] != "*" && path[1] != names.back()) continue;
      matched = true;
      override_in(device ? device_group(i) : wire_group(i), path, value, place);
    }
    if (matched) return;
    const std::string meant = nearest(path[1], names);
    findings_.add(place, kind + "." + path[1],
                  "there is no such " + kind +
                      (names.empty()   ? " in the file"
                       : meant.empty() ? ": the file has " + joined(names)
                                       : did_you_mean(kind + "." + meant)));
  }

  void override_in(const Group& group, const std::vector<std::string>& path, std::string_view value,
                   const Place& place) {
    if (path.size() == 3) {
      override_key(group, path[2], value, place);
      return;
    }
    const std::string section = device_section(path[2]);
    if (section.empty()) {
      unknown_device_section(group, path[2], place);
    } else {
      override_key(below(group, section, path[2]), path[3], value, place);
    }
  }

  std::string file_;
  Places places_;
  Findings findings_;
  Settings settings_;
  DeviceSettings shared_;  ///< what every device begins with
};

}  // namespace

Result<Settings> parse_settings(std::string_view toml_text, const std::string& file_name,
                                std::span<const std::string> overrides) {
  return Reader(file_name).read(toml_text, overrides);
}

Result<std::string> read_file(const std::string& path) {
  // The system would see only the octets before a zero.
  if (path.find('\0') != std::string::npos) {
    return base::fail(ErrorCode::InvalidArgument,
                      path + ": has an octet of 0 in it: name a TOML file");
  }
  const auto exhausted = [] { return errno == ENOMEM || errno == EMFILE || errno == ENFILE; };
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return base::fail(exhausted() ? ErrorCode::ResourceExhausted : ErrorCode::NotFound,
                      path + ": cannot be opened (" + std::generic_category().message(errno) +
                          "): name a TOML file; config/loopback.toml is one");
  }
  std::string text(kMostOctets + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (file.fail() && !file.eof())) {
    return base::fail(
        exhausted() ? ErrorCode::ResourceExhausted : ErrorCode::Environment,
        path + ": cannot be read (" + std::generic_category().message(errno) + "): is it a file?");
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() > kMostOctets) {
    return base::fail(ErrorCode::InvalidArgument,
                      path + ": is larger than 1 MB; a configuration is not");
  }
  return text;
}

}  // namespace rnic::settings
