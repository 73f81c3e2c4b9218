/// \file
/// What one end of a connection takes and drops, judged octet by octet: the wire says which octets
/// of each segment were damaged behind a right TCP checksum, the trace says which of them were
/// committed. With silent drop on, nobody commits a damaged octet but by one of three exceptions,
/// and nobody drops more than five good segments on suspicion.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/interval_set.hpp"
#include "base/trace.hpp"
#include "mpa/mpa.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

class DropJudge {
 public:
  /// The FPDU that a stream octet belongs to, as its sender made it; empty: not known or not made.
  using FpduAt = std::function<std::optional<base::Range>(uint64_t offset)>;

  /// \param config of the receiving end
  DropJudge(std::string name, Verdict& verdict, const mpa::Config& config, FpduAt fpdu_at)
      : name_(std::move(name)), verdict_(verdict), config_(config), fpdu_at_(std::move(fpdu_at)) {}

  /// The device is polled: what arrives from here on belongs to this poll.
  void begin_poll() { arrivals_.clear(); }
  /// A segment with a right checksum is handed to the device. \param damaged its octets that are
  /// not as they were sent
  void arrived(base::Range range, std::vector<uint64_t> damaged);
  /// What the device has done.
  void record(TraceKind kind, base::Range range);

  /// The connection may die of a damage: empty, or by which exception.
  [[nodiscard]] const std::string& excuse() const { return excuse_; }
  /// A damaged octet was committed: TCP has acknowledged what will never be delivered.
  [[nodiscard]] bool took_damage() const { return took_damage_; }
  [[nodiscard]] uint64_t good_suspected() const { return good_suspected_; }

 private:
  struct Arrival {
    base::Range range;
    std::vector<uint64_t> damaged;
    [[nodiscard]] bool damaged_in(base::Range part) const;
  };

  void committed(base::Range range);
  void judge_octet(uint64_t octet, const Arrival& arrival);
  [[nodiscard]] bool only_good_arrived(base::Range range) const;
  [[nodiscard]] bool known_to_cut() const;
  [[nodiscard]] bool placed(base::Range range) const;

  std::string name_;
  Verdict& verdict_;
  const mpa::Config& config_;
  FpduAt fpdu_at_;
  std::vector<Arrival> arrivals_;  // of this poll
  base::IntervalSet<4096> committed_;
  std::map<uint64_t, uint32_t> damages_;  // of a range, by its first octet
  uint64_t good_suspected_ = 0;
  std::vector<base::Range> damaged_suspected_;
  base::IntervalSet<4096> placed_;  // as the trace tells it
  uint64_t delivered_ = 0;          // up to here
  uint64_t good_taken_for_bad_ = 0;
  std::string excuse_;
  bool took_damage_ = false;
};

}  // namespace rnic::simulation
