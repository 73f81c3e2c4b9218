// Section 7: what a receiver has to buffer, with header alignment and without.

#include <algorithm>

#include "experiments.hpp"

namespace rnic::experiment {

namespace {

constexpr uint32_t kBurst = 32;  // frames that a device takes at once

struct Receiver {
  Framing framing;
  const char* name;
};
constexpr Receiver kReceivers[] = {
    {Framing::MpaMarkers, "aligned, markers"}, {Framing::Mpa, "aligned, no markers"},
    {Framing::TufKey, "aligned, TUF key"},     {Framing::MpaUnalignedMarkers, "markers only"},
    {Framing::MpaUnaligned, "neither"},
};

RigConfig rig_for(Framing framing, uint32_t connections, double loss, uint64_t seed) {
  RigConfig config;
  config.path.tcp = plain_tcp();
  config.path.tcp.max_records_per_connection = 1024;
  config.path.loss = loss;
  config.path.seed = seed;
  config.framing = framing;
  config.connections = connections;
  config.message_octets = 64 * 1024;
  config.receive_window = 256 * 1024;
  config.hold_octets =
      std::clamp<uint64_t>(uint64_t{connections} * 16 * 1024, 8u << 20, 192u << 20);
  return config;
}

/// Messages of 64 KB that each of so many connections sends: the whole stays bounded.
uint64_t messages_for(uint32_t connections, Extent extent) {
  const uint64_t total = extent == Extent::Quick ? 32 : extent == Extent::Normal ? 256 : 2048;
  return std::max<uint64_t>(1, total / connections);
}

/// All receivers at all numbers of connections.
class Sweep {
 public:
  Sweep(Experiment& experiment, Extent extent, uint64_t seed)
      : e_(experiment), extent_(extent), seed_(seed) {
    if (extent != Extent::Quick) counts_.push_back(10'000);
    for (const uint32_t n : counts_) peaks_.columns.push_back(number(n));
    all_.detail = true;
  }

  void run(double loss);
  void finish();

 private:
  void measure(const Receiver& receiver, uint32_t connections, double loss, Series& series,
               std::vector<std::string>& row);

  Experiment& e_;
  Extent extent_;
  uint64_t seed_;
  std::vector<uint32_t> counts_{1, 10, 100, 1000};
  Table peaks_{"receive-buffer-peak",
               "Most octets held at one time, by number of connections",
               {"receiver", "loss of segments"},
               {}};
  Table all_{"receive-buffer",
             "All that was measured of held octets",
             {"receiver", "connections", "loss of segments", "peak octets", "mean octets",
              "peak memory, octets", "peak of one connection", "K1 = peak / (EMSS * connections)",
              "refused segments"},
             {}};
  uint64_t most_by_markers_ = 0;
  uint64_t most_by_key_ = 0;
};

void Sweep::measure(const Receiver& receiver, uint32_t connections, double loss, Series& series,
                    std::vector<std::string>& row) {
  const HoldRun run = hold_run(rig_for(receiver.framing, connections, loss, seed_ + connections),
                               messages_for(connections, extent_));
  const double k1 = static_cast<double>(run.peak) / (double{kEmss} * connections);
  all_.rows.push_back({receiver.name, number(connections), percent(loss, 2), number(run.peak),
                       number(run.mean, 0), number(run.memory_peak), number(run.connection_peak),
                       number(k1, 2), run.complete ? number(run.refused) : "incomplete"});
  series.points.emplace_back(connections, run.peak);
  row.push_back(number(run.peak));
  if (receiver.framing == Framing::MpaMarkers) {
    most_by_markers_ = std::max(most_by_markers_, run.peak);
  }
  if (receiver.framing == Framing::TufKey) most_by_key_ = std::max(most_by_key_, run.peak);
  if (connections != counts_.back() || (loss != 0 && loss != 0.01)) return;
  e_.findings.push_back(percent(loss, 2) + " loss, " + number(connections) + " connections, " +
                        receiver.name + ": " + number(run.peak) + " octets held at most (" +
                        number(k1, 2) + " * EMSS * connections), in " + number(run.memory_peak) +
                        " octets of pages.");
}

void Sweep::run(double loss) {
  Figure figure{"Peak of held octets, " + percent(loss, 2) + " of the segments lost",
                "connections",
                "octets held",
                true,
                true,
                {}};
  for (const Receiver& receiver : kReceivers) {
    Series series{receiver.name, {}};
    std::vector<std::string> row{receiver.name, percent(loss, 2)};
    for (const uint32_t n : counts_) measure(receiver, n, loss, series, row);
    figure.series.push_back(std::move(series));
    peaks_.rows.push_back(std::move(row));
  }
  Series formula{"draft: EMSS * connections + 32 * EMSS", {}};
  for (const uint32_t n : counts_) formula.points.emplace_back(n, kEmss * (n + double{kBurst}));
  figure.series.push_back(std::move(formula));
  e_.figures.push_back(std::move(figure));
}

void Sweep::finish() {
  e_.findings.push_back(
      "Without alignment each connection holds half a segment on average: half of the draft's K1 = "
      "1 is in use at any time, and all of it has to be there for the worst moment of each. The "
      "pages of this receiver, 2 KB each, take more: a piece of an FPDU lies in one or two.");
  e_.findings.push_back(
      "Alignment alone is not enough behind a hole: without markers (or the key) nothing says that "
      "a segment there begins with an FPDU, and it is held until the hole is filled. Over all runs "
      "at most " +
      number(most_by_markers_) + " octets were held with markers and " + number(most_by_key_) +
      " with the key, so that BufferSizeAF is K2 * EMSS = " + number(uint64_t{kBurst} * kEmss) +
      " octets, whatever the number of connections.");
  e_.tables.push_back(std::move(peaks_));
  e_.tables.push_back(std::move(all_));
}

}  // namespace

HoldRun hold_run(const RigConfig& config, uint64_t messages) {
  Rig rig(config);
  HoldRun run;
  if (!rig.start()) return run;
  base::Now last = rig.path().now();
  const base::Now begin = last;
  double area = 0;
  uint64_t held = 0;
  rig.path().received = [&](const Frame& frame) {
    const base::Now now = rig.path().now();
    area += static_cast<double>(held) * static_cast<double>((now - last).count());
    last = now;
    held = framing::held_octets(rig.hold());
    run.memory_peak = std::max(run.memory_peak, framing::held_memory(rig.hold()));
    const uint32_t connection = rig.connection_of(frame);
    if (connection == rig.connections()) return;
    run.connection_peak = std::max(run.connection_peak, rig.held(connection));
  };
  rig.send(messages);
  run.complete = rig.finish() && rig.wrong() == 0;
  rig.path().received = nullptr;
  run.peak = framing::held_octets_peak(rig.hold());
  const auto span = static_cast<double>((last - begin).count());
  run.mean = span > 0 ? area / span : 0;
  run.refused = rig.mpa(kResponder).hold_refused + rig.tuf(kResponder).hold_refused;
  return run;
}

Experiment receive_buffer(const Options& options) {
  Experiment e;
  e.name = "receive-buffer";
  e.title = "Receive buffer: BufferSizeAF against BufferSizeNAF";
  e.requirements = "MPAA-7-01, MPAA-7-02";
  e.draft =
      "Section 7: without alignment a receiver needs BufferSizeNAF = K1 * EMSS * connections + "
      "K2 * EMSS (10,000 connections at an EMSS of 1500: 15 MB), with alignment BufferSizeAF = K2 "
      "* "
      "EMSS, whatever the number of connections.";
  e.setup =
      "EMSS 1460, 10 Gb/s, round trip 1 ms, all connections send messages of 64 KB at the same "
      "time. \"Neither\" and \"markers only\" are a sender that hands its FPDUs to TCP as plain "
      "octets, so that segments begin anywhere. Held octets are those that TCP has committed and "
      "the framing could not place yet (counters hold.in_use, hold.peak, hold.memory; of one "
      "connection StartSession::held(), Device::held_octets()); the TCP engine itself keeps no "
      "payload. K2 * EMSS, what is being worked on, is one burst of the device: 32 frames.";
  Sweep sweep(e, options.extent, options.seed);
  std::vector<double> losses{0, 0.001, 0.01, 0.03};
  if (options.extent == Extent::Quick) losses = {0, 0.01};
  for (const double loss : losses) sweep.run(loss);
  sweep.finish();
  return e;
}

}  // namespace rnic::experiment
