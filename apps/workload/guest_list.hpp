/// \file
/// The guests that are served, for how long each has been silent, which gives way to a newcomer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rnic::workload {

/// The host of "10.0.0.2:7471"; of an IPv6 address its /64, which one host has for itself.
[[nodiscard]] std::string host_of(const std::string& endpoint);

/// Names and times only; nobody is let go here. Times are nanoseconds on one time line.
class GuestList {
 public:
  struct Limits {
    uint32_t most = 200;               ///< guests at once
    int64_t silence_ns = 0;            ///< who has said nothing for so long is let go; 0: never
    int64_t grace_ns = 1'000'000'000;  ///< silence after which one that has spoken gives way, too
  };

  explicit GuestList(const Limits& limits) : limits_(limits) {}

  [[nodiscard]] const Limits& limits() const { return limits_; }
  [[nodiscard]] size_t size() const { return guests_.size(); }
  [[nodiscard]] bool full() const { return guests_.size() >= limits_.most; }

  void enter(uint32_t id, const std::string& endpoint, int64_t now_ns);
  void leave(uint32_t id);
  /// It has asked for something.
  void heard(uint32_t id, int64_t now_ns);

  /// The guest that makes room for a newcomer: of those that have never spoken, or else of those
  /// that have been silent for longer than the grace, the one of the host that has most of them,
  /// the longest silent one. Nothing: all are at work.
  [[nodiscard]] std::optional<uint32_t> gives_way(const std::string& newcomer,
                                                  int64_t now_ns) const;
  /// One that has been silent for too long.
  [[nodiscard]] std::optional<uint32_t> too_silent(int64_t now_ns) const;

 private:
  struct Guest {
    uint32_t id = 0;
    std::string host;
    bool spoke = false;
    int64_t heard_ns = 0;
  };

  Limits limits_;
  std::vector<Guest> guests_;
};

}  // namespace rnic::workload
