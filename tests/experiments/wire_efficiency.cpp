// What reaches the application, of what the wire carries, by message size.

#include <algorithm>

#include "experiments.hpp"

namespace rnic::experiment {

namespace {

struct Sender {
  const char* name;
  Framing framing;
  bool crc;
  bool packing;
  uint16_t interval;
};
constexpr Sender kSenders[] = {
    {"MPA", Framing::Mpa, true, true, 0},
    {"MPA, CRC off", Framing::Mpa, false, true, 0},
    {"MPA, markers", Framing::MpaMarkers, true, true, 0},
    {"MPA, markers, no packing", Framing::MpaMarkers, true, false, 0},
    {"TUF, key", Framing::TufKey, true, true, 0},
    {"TUF, key, no packing", Framing::TufKey, true, false, 0},
    {"TUF, markers every 512", Framing::TufMarkers, true, true, 512},
    {"TUF, markers every 2048", Framing::TufMarkers, true, true, 2048},
};

}  // namespace

Experiment wire_efficiency(const Options& options) {
  Experiment e;
  e.name = "wire-efficiency";
  e.title = "Wire efficiency by message size";
  e.requirements = "MPAA-7.2-01";
  e.draft =
      "Section 7.2: aligned framing is not expected to have a measurable effect on the wire: large "
      "messages fill their segments, small ones are packed.";
  e.setup =
      "One connection, EMSS 1460, nothing lost, all messages of a run posted at once; payload over "
      "the wire octets of the sending direction.";
  Figure figure{"Payload of all octets on the wire, EMSS 1460",
                "message size, octets",
                "share, %",
                true,
                false,
                {}};
  Table table{"wire-efficiency", "Payload of all octets on the wire, %", {"message octets"}, {}};
  for (const Sender& sender : kSenders) {
    table.columns.emplace_back(sender.name);
    figure.series.push_back({sender.name, {}});
  }
  std::vector<uint32_t> sizes;
  for (uint32_t size = 1; size <= 65536; size *= 2) {
    sizes.push_back(size);
    if (options.extent == Extent::Full && size > 2) sizes.push_back(size + size / 2);
  }
  const uint64_t total = options.extent == Extent::Quick ? 128u << 10 : 512u << 10;
  for (const uint32_t size : sizes) {
    std::vector<std::string> row{number(size)};
    for (size_t i = 0; i < std::size(kSenders); ++i) {
      const Sender& sender = kSenders[i];
      RigConfig config;
      config.path.tcp = plain_tcp();
      config.framing = sender.framing;
      config.crc = sender.crc;
      config.packing = sender.packing;
      if (sender.interval != 0) config.tuf_interval = sender.interval;
      config.message_octets = size;
      const uint64_t messages = std::clamp<uint64_t>(total / size, 8, 2000);
      const Transfer run = transfer(config, messages);
      const double share = run.complete ? run.efficiency() * 100 : 0;
      row.push_back(number(share, 2));
      figure.series[i].points.emplace_back(size, share);
      if (size == 65536 || size == 1) {
        e.findings.push_back(std::string(sender.name) + ", messages of " + number(size) +
                             (size == 1 ? " octet: " : " octets: ") + number(share, 2) + " %.");
      }
    }
    table.rows.push_back(std::move(row));
  }
  e.findings.push_back(
      "CRC off saves no octet: the field stays (RFC 5044 section 4.4). MPA's markers cost 4 octets "
      "of 512, 0.8 %.");
  e.figures.push_back(std::move(figure));
  e.tables.push_back(std::move(table));
  return e;
}

}  // namespace rnic::experiment
