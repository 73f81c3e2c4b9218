// Section 6: "no packing" against packing.

#include <algorithm>

#include "experiments.hpp"

namespace rnic::experiment {

namespace {

RigConfig rig_for(uint32_t emss, bool markers, bool packing) {
  RigConfig config;
  config.path.mtu = emss + 40;
  config.path.tcp = plain_tcp();
  config.framing = markers ? Framing::MpaMarkers : Framing::Mpa;
  config.packing = packing;
  config.message_octets = 1;
  return config;
}

std::string ratio(uint64_t a, uint64_t b) {
  return b == 0 ? "" : number(static_cast<double>(a) / static_cast<double>(b), 1);
}

/// The worst cases, and how the ratio falls with the size of a message.
void worst_cases(Experiment& e, uint64_t messages) {
  Table table{
      "packing-worst-cases",
      "One-octet tagged messages (24-octet FPDUs), on and off",
      {"EMSS", "markers", "draft's ratio", "segments packed", "segments unpacked",
       "ratio of segments", "FPDUs in a segment", "ACKs packed", "ACKs unpacked", "ratio of ACKs",
       "wire octets packed", "wire octets unpacked", "ratio of octets", "ms packed", "ms unpacked"},
      {}};
  for (const uint32_t emss : {1460u, 536u}) {
    for (const bool markers : {true, false}) {
      const Transfer on = transfer(rig_for(emss, markers, true), messages);
      const Transfer off = transfer(rig_for(emss, markers, false), messages);
      table.rows.push_back({number(emss), markers ? "on" : "off", emss == 1460 ? "60" : "22",
                            number(on.segments), number(off.segments),
                            ratio(off.segments, on.segments), number(on.fpdus_per_segment(), 1),
                            number(on.acks), number(off.acks), ratio(off.acks, on.acks),
                            number(on.wire_octets), number(off.wire_octets),
                            ratio(off.wire_octets, on.wire_octets), number(on.seconds * 1e3),
                            number(off.seconds * 1e3)});
      if (!markers) continue;
      e.findings.push_back(
          "EMSS " + number(emss) + " with markers: " + ratio(off.segments, on.segments) +
          " times as many segments (" + number(off.segments) + " against " + number(on.segments) +
          "), " + ratio(off.acks, on.acks) + " times as many ACKs; the draft says about " +
          (emss == 1460 ? "60." : "22."));
    }
  }
  e.findings.push_back(
      "Each of these segments ends a message and carries PSH, which this receiver acknowledges at "
      "once: 60 times the ACKs, where the draft's example of every second segment has as many.");
  e.tables.push_back(std::move(table));
}

void by_size(Experiment& e, uint64_t messages) {
  Figure figure{"Segments without packing for each one with it (no markers)",
                "message size, octets",
                "ratio of segments",
                true,
                true,
                {}};
  Table table{"packing-by-size",
              "The ratio by message size, no markers",
              {"message octets", "EMSS 1460", "EMSS 536"},
              {}};
  for (const uint32_t emss : {1460u, 536u}) figure.series.push_back({"EMSS " + number(emss), {}});
  for (const uint32_t size : {1u, 8u, 32u, 64u, 128u, 256u, 512u, 1024u, 4096u}) {
    std::vector<std::string> row{number(size)};
    for (size_t i = 0; i < 2; ++i) {
      uint64_t segments[2];
      for (const bool packing : {false, true}) {
        RigConfig config = rig_for(i == 0 ? 1460 : 536, false, packing);
        config.message_octets = size;
        segments[packing] = transfer(config, messages).segments;
      }
      const double value = static_cast<double>(segments[0]) / static_cast<double>(segments[1]);
      row.push_back(number(value, 2));
      figure.series[i].points.emplace_back(size, value);
    }
    table.rows.push_back(std::move(row));
  }
  e.figures.push_back(std::move(figure));
  e.tables.push_back(std::move(table));
}

/// Long round trips, so that only the windows matter.
RigConfig slow_start_rig(uint32_t emss, bool packing, uint32_t message = 1) {
  RigConfig config = rig_for(emss, false, packing);
  config.message_octets = message;
  config.path.delay = std::chrono::milliseconds(25);
  config.path.queue_frames = 1u << 20;
  return config;
}

void slow_start(Experiment& e, uint32_t rounds) {
  struct Line {
    const char* name;
    RigConfig config;
    std::vector<uint64_t> payload{};
    uint64_t lost = 0;
  };
  // An FPDU of 64 octets in an MSS of 64: ten segments are the initial window, and an ACK of two
  // segments opens it by two. So a stack counts that counts segments.
  constexpr uint32_t kSmall = 44;
  std::vector<Line> lines{
      {"44 octets, packed", slow_start_rig(1460, true, kSmall)},
      {"44 octets, unpacked, windows count octets", slow_start_rig(1460, false, kSmall)},
      {"44 octets, unpacked, windows count segments", slow_start_rig(1460, false, kSmall)},
      {"1 octet, packed, router's queue of 64", slow_start_rig(1460, true)},
      {"1 octet, unpacked, router's queue of 64", slow_start_rig(1460, false)}};
  lines[2].config.max_segment = 64;
  for (size_t i = 3; i < lines.size(); ++i) {
    lines[i].config.path.router_frames = 64;
    lines[i].config.path.bits_per_second = 100'000'000;
  }
  Figure figure{"Slow start: payload delivered by the end of each round trip",
                "round trip",
                "payload, octets",
                false,
                true,
                {}};
  Table table{"packing-slow-start",
              "Payload octets delivered by the end of each round trip",
              {"round trip"},
              {}};
  for (Line& line : lines) {
    line.payload = payload_by_round(line.config, 60'000, rounds, &line.lost);
    line.payload.resize(rounds);
    figure.series.push_back({line.name, {}});
    table.columns.emplace_back(line.name);
  }
  for (uint32_t round = 0; round < rounds; ++round) {
    std::vector<std::string> row{number(round + 1)};
    for (size_t i = 0; i < lines.size(); ++i) {
      const uint64_t payload = round < lines[i].payload.size() ? lines[i].payload[round] : 0;
      row.push_back(number(payload));
      figure.series[i].points.emplace_back(round + 1, payload);
    }
    table.rows.push_back(std::move(row));
  }
  e.findings.push_back(
      "Slow start, messages of 44 octets (FPDUs of 64), five round trips of 50 ms: " +
      number(lines[0].payload[4]) + " octets of payload packed, " + number(lines[2].payload[4]) +
      " unpacked where the windows count segments, as the draft takes it: a factor of " +
      ratio(lines[0].payload[4], lines[2].payload[4]) +
      ". (Measured with an MSS of one FPDU, so that the initial window is ten segments.)");
  e.findings.push_back(
      "This stack's windows count octets (RFC 5681, RFC 3465): unpacked it delivers " +
      number(lines[1].payload[4]) +
      " octets in the same five round trips, and pays in segments instead. With messages of one "
      "octet its first burst has 608 segments, not 10: through a router with a queue of 64 frames "
      "at 100 Mb/s " +
      number(lines[4].lost) + " frames are lost (packed: " + number(lines[3].lost) + ") and " +
      number(lines[4].payload.back()) + " octets have arrived after " + number(rounds) +
      " round trips (packed: " + number(lines[3].payload.back()) + ").");
  e.figures.push_back(std::move(figure));
  e.tables.push_back(std::move(table));
}

}  // namespace

Experiment packing(const Options& options) {
  const bool quick = options.extent == Extent::Quick;
  Experiment e;
  e.name = "packing";
  e.title = "Packing against no packing";
  e.requirements = "MPAA-6-01, MPAA-6-02, MPAA-6-03, MPAA-6-04, MPAA-6-05";
  e.draft =
      "Section 6: in the worst case, one-octet tagged ULPDUs in FPDUs of 24 octets, forbidding "
      "packing makes about 60 times as many packets on Ethernet (EMSS 1460) and 22 times as many "
      "in default IP packets (536), with the ACKs in proportion: 120 segments and as many as 60 "
      "ACKs where packing needs two and one. The payload carried in slow start shrinks likewise.";
  e.setup =
      "One connection, 10 Gb/s, round trip 1 ms, NewReno from an initial window of 10 SMSS; all "
      "messages are posted at once; CRC on. Packing is switched by tcp.pack_records or, for one "
      "connection, ConnectOptions::packing.";
  worst_cases(e, quick ? 1200 : 12'000);
  by_size(e, quick ? 300 : 2000);
  slow_start(e, 6);
  return e;
}

}  // namespace rnic::experiment
