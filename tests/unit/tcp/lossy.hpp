// A recovery and the detector that judges it, without a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "tcp/recovery.hpp"
#include "tcp/spurious_detector.hpp"

namespace rnic::tcp {

/// Ten segments in flight, lost or thought to be.
struct Lossy {
  static constexpr uint32_t kSegment = 1000;

  Lossy() {
    cc.set_smss(kSegment);
    cc.start(0);
    for (uint32_t i = 0; i < 10; ++i) {
      Record r;
      r.length = kSegment;
      r.flags = record_flag::kSegmentStart;
      board.push(r);
      tcb.snd_nxt += kSegment;
    }
  }
  ~Lossy() {
    board.validate();
    recovery.validate();
    detector.validate();
  }
  SpuriousDetector::Verdict ack(uint64_t octets, bool new_data,
                                std::optional<uint32_t> echo = std::nullopt) {
    while (!board.empty() && board.front().end() <= tcb.snd_una + octets) board.pop_front();
    board.advance(tcb.snd_una + octets);
    tcb.snd_una += octets;
    AckResult result;
    result.acked = octets;
    result.duplicate = octets == 0;
    result.echo = echo;
    return detector.detect(result, recovery.point(), board.fack(), new_data);
  }
  /// As ack(), and undoes what was for nothing.
  void judge(uint64_t octets, bool new_data, std::optional<uint32_t> echo = std::nullopt) {
    if (ack(octets, new_data, echo) == SpuriousDetector::Verdict::None) return;
    detector.undone(true, prediction);
  }
  void time_out() {
    detector.watch(true, now);
    recovery.time_out();
    board.lose_all();
  }

  base::Now now = base::Now{} + std::chrono::seconds(1);
  Config config;
  RecordPool pool{256, 4, 128};
  RangePool ranges{4};
  Tcb tcb;
  RtoEstimator rto{config};
  Congestion cc{config};
  Prediction prediction;
  Scoreboard board{tcb, pool, ranges, prediction};
  Recovery recovery{board, cc};
  SpuriousDetector detector{tcb, rto, cc, config};
};

}  // namespace rnic::tcp
