/// \file
/// The bad network as a port.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/prng.hpp"
#include "impair/config.hpp"
#include "impair/counters.hpp"
#include "port/port.hpp"

namespace rnic::impair {

/// Decorates a port, which must outlive it. Acts on sent frames only.
class ImpairedPort final : public port::Port {
 public:
  /// The most frames held in all stages; beyond that tx_burst() refuses.
  static constexpr uint32_t kCapacity = 4096;

  ImpairedPort(port::Port& inner, const Config& config, uint64_t seed);
  ~ImpairedPort() override;
  ImpairedPort(const ImpairedPort&) = delete;
  ImpairedPort& operator=(const ImpairedPort&) = delete;

  [[nodiscard]] const port::PortInfo& info() const override { return info_; }
  [[nodiscard]] const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override;
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  /// The end of the earliest hold, the next retry, or the inner port's deadline.
  [[nodiscard]] base::Now next_deadline() const override;
  std::optional<int> arm() override { return inner_.arm(); }
  std::optional<port::LinkState> link() override { return inner_.link(); }

  /// Changes the faults from the next frame on; frames that are held are not affected. `config`
  /// must pass check().
  void set_config(const Config& config);
  [[nodiscard]] const ImpairCounters& impair_counters() const { return impair_counters_; }
  /// Frames held now.
  [[nodiscard]] uint32_t held() const;

 private:
  /// A frame on its way through the delay.
  struct Delayed {
    port::Packet packet;
    base::Now due;
    uint32_t let_pass = 0;  // later frames to wait for; 0: keeps its place
  };
  /// A frame that lets others pass.
  struct Overtaken {
    port::Packet packet;
    uint64_t since = 0;    // passed_ when it began to wait
    uint64_t release = 0;  // passed_ at which it goes on
    base::Now limit;
  };

  /// A queue in a vector allocated once; the caller keeps count.
  template <typename T>
  class Queue {
   public:
    explicit Queue(size_t capacity) : items_(capacity) {}
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] uint32_t size() const { return size_; }
    [[nodiscard]] T& front() { return items_[first_]; }
    [[nodiscard]] const T& front() const { return items_[first_]; }
    void push(const T& item) { items_[(first_ + size_++) % items_.size()] = item; }
    void pop(uint32_t count = 1) {
      first_ = (first_ + count) % items_.size();
      size_ -= count;
    }
    /// The oldest items, as far as they are contiguous.
    [[nodiscard]] std::span<T> head() {
      return std::span<T>(items_).subspan(first_, std::min<size_t>(size_, items_.size() - first_));
    }

   private:
    std::vector<T> items_;
    size_t first_ = 0;
    uint32_t size_ = 0;
  };

  void take(port::Packet packet, base::Now now);
  [[nodiscard]] bool lost();
  void enqueue(port::Packet packet, base::Now now);
  void duplicate_and_enqueue(const port::Packet& packet, base::Now now);
  /// Moves frames on as far as `now` lets them, down to the inner port.
  void advance(base::Now now);
  void hold_overtaken(const Overtaken& waiting);
  [[nodiscard]] bool frees_overtaken(base::Now now) const {
    return passed_ >= next_release_ || now >= next_limit_;
  }
  void release_overtaken(base::Now now);
  void send_ready(base::Now now);

  port::Port& inner_;
  port::PortInfo info_;
  port::PortCounters counters_;
  ImpairCounters impair_counters_;
  Config config_;
  base::Prng prng_;
  bool in_burst_ = false;
  base::Now last_due_{};
  uint64_t passed_ = 0;  // frames that kept their place, so far
  Queue<Delayed> delayed_;
  std::vector<Overtaken> overtaken_;  // never more than kCapacity
  // The least of their release and limit: before these none of them goes on.
  uint64_t next_release_ = UINT64_MAX;
  base::Now next_limit_ = base::kNever;
  Queue<port::Packet> ready_;
  base::Now retry_at_ = base::kNever;
};

}  // namespace rnic::impair
