// Section 7.2: what whole FPDUs cost in segments, and retransmission behind a middlebox.

#include <set>

#include "experiments.hpp"

namespace rnic::experiment {

namespace {

constexpr uint32_t kOverhead = 2 + kTaggedHeader + 4;  // of an FPDU without pad and markers

struct Point {
  uint32_t fpdu;
  double ratio;  // of segments, to the fewest
  Transfer run;
};

Point measure(Framing framing, uint32_t fpdu, uint64_t messages) {
  RigConfig config;
  config.path.tcp = plain_tcp();
  config.framing = framing;
  config.message_octets = fpdu - kOverhead;
  Point point{fpdu, 0, transfer(config, messages)};
  const uint64_t fewest = (point.run.stream_octets + kEmss - 1) / kEmss;
  point.ratio = static_cast<double>(point.run.segments) / static_cast<double>(fewest);
  return point;
}

/// FPDU sizes: the steps of the ratio (728 and 732 are next to EMSS/2 + 1), and what lies between.
std::set<uint32_t> sizes_of(Extent extent) {
  std::set<uint32_t> sizes{364, 368, 484, 488, 724, 728, 732, 736, 1452};
  const uint32_t step = extent == Extent::Full ? 4 : 36;
  for (uint32_t size = 24; size < 1440; size += step) sizes.insert(size);
  return sizes;
}

void segments_by_size(Experiment& e, const Options& options) {
  const uint64_t messages = options.extent == Extent::Quick ? 200 : 2000;
  Figure figure{
      "Segments for each segment of the least possible", "FPDU, octets", "ratio", false, false, {}};
  Table table{"half-segments",
              "Segments by FPDU size",
              {"FPDU octets", "framing", "segments", "least possible", "ratio"},
              {}};
  for (const Framing framing : {Framing::Mpa, Framing::MpaMarkers, Framing::MpaUnaligned}) {
    Series series{to_string(framing), {}};
    double worst = 0;
    uint32_t worst_at = 0;
    for (const uint32_t size : sizes_of(options.extent)) {
      const Point point = measure(framing, size, messages);
      series.points.emplace_back(size, point.ratio);
      if (point.ratio > worst) worst = point.ratio, worst_at = size;
      if (size == 732 || size == 728 || size == 24 || size == 488 || size == 1452) {
        table.rows.push_back({number(size), to_string(framing), number(point.run.segments),
                              number((point.run.stream_octets + kEmss - 1) / kEmss),
                              number(point.ratio, 3)});
      }
    }
    e.findings.push_back(std::string(to_string(framing)) + ": at most " + number(worst, 3) +
                         " times the least possible, with FPDUs of " + number(worst_at) +
                         " octets.");
    figure.series.push_back(std::move(series));
  }
  e.figures.push_back(std::move(figure));
  e.tables.push_back(std::move(table));
}

/// Retransmission of whole records where segments arrive cut.
void middlebox(Experiment& e, const Options& options) {
  Table cuts{"middlebox-retransmission",
             "4 MB through a middlebox, 1 % loss",
             {"framing", "segments cut", "complete", "segments sent", "sent again",
              "stream octets sent", "wire octets"},
             {}};
  for (const Framing framing : {Framing::Mpa, Framing::MpaMarkers, Framing::TufKey}) {
    for (const double split : {0.0, 0.1, 1.0}) {
      const Transfer run = transfer(hard_path(framing, 0.01, split, options.seed + 6), 64);
      if (split == 0.1) {
        e.findings.push_back(std::string(to_string(framing)) +
                             ", a tenth of the segments cut, 1 % lost: complete, " +
                             number(run.retransmitted) + " of " + number(run.segments) +
                             " segments were sent again.");
      }
      cuts.rows.push_back({to_string(framing), number(split * 100, 0) + " %",
                           run.complete ? "yes" : "NO", number(run.segments),
                           number(run.retransmitted), number(run.stream_octets),
                           number(run.wire_octets)});
    }
  }
  e.findings.push_back(
      "MPA's receiver takes an FPDU that is cut for one with a damaged length: it drops the "
      "segment before TCP commits it (mpa.suspicious_drops), until the same octets come again. A "
      "middlebox that cuts costs five retransmissions a connection at most.");
  e.tables.push_back(std::move(cuts));
}

}  // namespace

Experiment half_segments(const Options& options) {
  Experiment e;
  e.name = "half-segments";
  e.title = "FPDUs of EMSS/2 + 1, and segments cut on the way";
  e.requirements = "MPAA-7.2-01, MPAA-7.2-02, MPA-A.1-04";
  e.draft =
      "Section 7.2: whole FPDUs may leave segments partly filled. In the worst case, FPDUs of "
      "EMSS/2 + 1, the number of segments approaches twice the least possible and never exceeds "
      "it. Retransmitting complete FPDUs, when a middlebox has cut a segment and a part of it is "
      "acknowledged, may waste a little bandwidth.";
  e.setup =
      "EMSS 1460, packing on, all messages posted at once, one FPDU a message. The least possible "
      "is the octets of the stream divided by EMSS. Then messages of 64 KB through a middlebox "
      "that cuts a share of the segments anywhere, with 1 % of the segments lost.";
  segments_by_size(e, options);
  middlebox(e, options);
  return e;
}

}  // namespace rnic::experiment
