// One stream over a rig, and what it cost.

#include "experiments.hpp"

namespace rnic::experiment {

Transfer transfer(const RigConfig& config, uint64_t messages) {
  Rig rig(config);
  Transfer result;
  if (!rig.start()) return result;
  const tcp::Counters tcp = rig.tcp(kInitiator);
  const tcp::Counters tcp_in = rig.tcp(kResponder);
  const Tally out = rig.path().tally(kInitiator);
  const Tally back = rig.path().tally(kResponder);
  const base::Now begin = rig.path().now();
  rig.send(messages);
  const bool finished = rig.finish();
  const Tally& out_end = rig.path().tally(kInitiator);
  const tcp::Counters& tcp_end = rig.tcp(kInitiator);
  result.segments = tcp_end.data_segments_out - tcp.data_segments_out +
                    tcp_end.retransmitted_segments - tcp.retransmitted_segments;
  result.retransmitted = tcp_end.retransmitted_segments - tcp.retransmitted_segments;
  result.acks = rig.path().tally(kResponder).acks - back.acks;
  const bool is_tuf = config.framing == Framing::TufKey || config.framing == Framing::TufMarkers;
  result.fpdus = is_tuf ? rig.tuf(kInitiator).pdus_out : rig.mpa(kInitiator).fpdus_out;
  result.stream_octets = tcp_end.octets_out - tcp.octets_out;
  result.wire_octets = out_end.wire_octets - out.wire_octets;
  result.payload = rig.delivered();
  result.early =
      is_tuf ? rig.tuf(kResponder).placed_early_octets : rig.mpa(kResponder).placed_early_octets;
  result.out_of_order = rig.tcp(kResponder).out_of_order_octets_in - tcp_in.out_of_order_octets_in;
  result.held = is_tuf ? rig.tuf(kResponder).held_octets : rig.mpa(kResponder).held_octets;
  result.held_peak = framing::held_octets_peak(rig.hold());
  result.seconds = static_cast<double>((rig.path().now() - begin).count()) * 1e-9;
  result.complete = finished && rig.wrong() == 0;
  return result;
}

std::vector<uint64_t> payload_by_round(const RigConfig& config, uint64_t messages, uint32_t rounds,
                                       uint64_t* lost) {
  Rig rig(config);
  std::vector<uint64_t> all;
  if (!rig.start()) return all;
  rig.send(messages);
  rig.path().run_for(config.path.delay * 3 / 2);  // half way: what was sent has come, no ACK has
  for (uint32_t i = 0; i < rounds; ++i) {
    all.push_back(rig.delivered());
    rig.path().run_for(2 * config.path.delay);
  }
  if (lost != nullptr) *lost = rig.path().tally(kInitiator).queue_lost;
  return all;
}

}  // namespace rnic::experiment
