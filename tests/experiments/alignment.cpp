// RFC 5044 section 5.1: how many segments begin and end with FPDUs, in bursts after pauses.

#include "experiments.hpp"

namespace rnic::experiment {

namespace {

struct Case {
  const char* name;
  uint32_t message;
  uint32_t window;  // that the receiver offers
  double loss;
};

struct Ratio {
  uint64_t segments = 0;
  uint64_t aligned = 0;
  uint64_t cut = 0;  // records
  bool complete = false;
  [[nodiscard]] double share() const {
    return segments == 0 ? 0 : static_cast<double>(aligned) / static_cast<double>(segments);
  }
};

Ratio measure(const Case& one, Framing framing, uint32_t bursts) {
  RigConfig config;
  config.path.tcp = plain_tcp();
  config.path.tcp.receive_window = one.window;
  config.path.loss = one.loss;
  config.framing = framing;
  config.message_octets = one.message;
  config.receive_window = one.window;
  Rig rig(config);
  Ratio ratio;
  if (!rig.start()) return ratio;
  const tcp::Counters before = rig.tcp(kInitiator);
  ratio.complete = true;
  const uint64_t burst = std::max(1u, 256 * 1024 / std::max(one.message, 256u));
  for (uint32_t i = 0; i < bursts; ++i) {
    rig.send(burst);
    ratio.complete = rig.finish() && ratio.complete;
    rig.path().run_for(std::chrono::seconds(2));  // longer than the RTO: the window starts again
  }
  const tcp::Counters& after = rig.tcp(kInitiator);
  ratio.segments = after.data_segments_out - before.data_segments_out;
  ratio.aligned = after.aligned_segments_out - before.aligned_segments_out;
  ratio.cut = after.resegmented_records - before.resegmented_records;
  ratio.complete = ratio.complete && rig.wrong() == 0;
  return ratio;
}

}  // namespace

Experiment alignment(const Options& options) {
  Experiment e;
  e.name = "alignment";
  e.title = "Alignment of bursts after pauses";
  e.requirements = "MPA-5.1-02";
  e.draft =
      "RFC 5044 section 5.1 wants every means used to start segments at FPDU boundaries; the "
      "analysis draft (section 7.1) builds on aligned segments being the common case.";
  e.setup =
      "Bursts of 256 KB with pauses of two seconds, longer than the RTO, so that each begins with "
      "the initial window again. Aligned: a segment, first transmission, that begins and ends at "
      "FPDU boundaries (counters tcp.aligned_segments_out, tcp.data_segments_out). A window below "
      "one FPDU is the one thing that forces a cut.";
  const Case cases[] = {{"64 KB messages", 65536, 4u << 20, 0},
                        {"4 KB messages", 4096, 4u << 20, 0},
                        {"1,000-octet messages", 1000, 4u << 20, 0},
                        {"1-octet messages", 1, 4u << 20, 0},
                        {"64 KB messages, 1 % loss", 65536, 4u << 20, 0.01},
                        {"64 KB messages, window of 8 KB", 65536, 8192, 0},
                        {"64 KB messages, window of 2 KB", 65536, 2048, 0},
                        {"64 KB messages, window of 1,000 octets", 65536, 1000, 0}};
  Table table{"alignment",
              "Segments that begin and end with FPDUs",
              {"workload", "framing", "segments", "aligned", "share", "FPDUs cut", "complete"},
              {}};
  uint64_t segments = 0;
  uint64_t aligned = 0;
  const uint32_t bursts = options.extent == Extent::Quick ? 2 : 8;
  for (const Case& one : cases) {
    for (const Framing framing : {Framing::Mpa, Framing::MpaMarkers, Framing::TufKey}) {
      const Ratio ratio = measure(one, framing, bursts);
      if (one.window > 4096) segments += ratio.segments, aligned += ratio.aligned;
      table.rows.push_back({one.name, to_string(framing), number(ratio.segments),
                            number(ratio.aligned), number(ratio.share() * 100, 2) + " %",
                            number(ratio.cut), ratio.complete ? "yes" : "NO"});
    }
  }
  e.findings.push_back(number(aligned) + " of " + number(segments) +
                       " segments were aligned where the window had room for an FPDU.");
  e.tables.push_back(std::move(table));
  return e;
}

}  // namespace rnic::experiment
