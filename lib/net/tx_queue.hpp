/// \file
/// The one unsent burst of a port, and a few spare transmit buffers.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/check.hpp"
#include "net/counters.hpp"
#include "port/port.hpp"

namespace rnic::net {

/// Takes buffers from the port, and hands frames to it, in bulk.
class TxQueue {
 public:
  static constexpr uint32_t kBurst = 32;

  TxQueue(port::Port& port, Counters& counters);
  ~TxQueue();
  TxQueue(const TxQueue&) = delete;
  TxQueue& operator=(const TxQueue&) = delete;

  /// Takes a buffer together with a place in the burst; push() or cancel() gives both back. False:
  /// the burst stays full, or the pool is empty (counted).
  bool open(port::Packet& packet, base::Now now) {
    if (unsent_count_ + open_ >= kBurst && !make_room(now)) return false;
    if (spare_count_ == 0 && !refill(1)) return false;
    packet = take_spare();
    ++open_;
    return true;
  }

  /// Does the same for as many buffers of `packets` as there are without another look at the port,
  /// but at least for one. \return how many; 0: as open() says false
  uint32_t open(std::span<port::Packet> packets, base::Now now);

  /// Queues an opened frame.
  void push(const port::Packet& packet, base::Now now) {
    --open_;
    append(packet, now);
  }

  /// Queues opened frames.
  void push(std::span<const port::Packet> packets, base::Now now);

  /// Takes back the buffer and the place.
  void cancel(port::Packet& packet);

  /// Gives up the place of a frame that is kept elsewhere.
  void release_place() { --open_; }

  /// Queues a frame that holds no place. False: there is no room, and the caller keeps the frame.
  bool push_late(const port::Packet& packet, base::Now now) {
    if (unsent_count_ + open_ >= kBurst && !make_room(now)) return false;
    append(packet, now);
    return true;
  }

  /// Hands the burst to the port. \return nothing is left unsent
  bool flush(base::Now now);
  /// Does the first part of flush(), for frames that somebody waits for. The other part, which is
  /// done for frames to come, is left to the next flush().
  void hand_over(base::Now now);
  [[nodiscard]] uint32_t unsent() const { return unsent_count_; }
  /// Checks the bounds, and that each packet has its memory.
  void validate() const {
    RNIC_CHECK(unsent_count_ + open_ <= kBurst && spare_count_ <= kBurst);
    for (uint32_t i = 0; i < unsent_count_; ++i) {
      RNIC_CHECK(unsent_[i].data != nullptr && unsent_[i].length != 0);
    }
    RNIC_CHECK(first_spare_ < kBurst);
    for (uint32_t i = 0; i < spare_count_; ++i) {
      const port::Packet& spare = spare_[(first_spare_ + i) % kBurst];
      RNIC_CHECK(spare.data != nullptr);
    }
  }

 private:
  static constexpr uint32_t kFew = 8;         // buffers that are taken behind a burst
  static constexpr uint32_t kFirstLines = 3;  // of a frame: all headers, and a small message
  static constexpr uint32_t kLine = 64;
  // Buffers that were used last are used next, while the caches have them. Spare ones come between,
  // so they are few where they are large (decision 82).
  static constexpr uint32_t kKeptOctets = 64 * 1024;

  void append(const port::Packet& packet, base::Now now) {
    // Each member by itself: a copy of all would wait for those that have just been written.
    const auto& [data, length, room, buffer, ip_checksum, l4_checksum] = packet;
    port::Packet& place = unsent_[unsent_count_++];
    place.data = data;
    place.length = length;
    place.room = room;
    place.buffer = buffer;
    place.ip_checksum = ip_checksum;
    place.l4_checksum = l4_checksum;
    ++counters_.frames_out;
    if (unsent_count_ == kBurst) flush(now);
  }

  /// The one that has been here longest: what replace() has asked for has come by then.
  port::Packet take_spare() {
    --spare_count_;
    const port::Packet& oldest = spare_[first_spare_];
    first_spare_ = (first_spare_ + 1) % kBurst;
    return oldest;
  }
  void keep_spare(const port::Packet& packet) {
    spare_[(first_spare_ + spare_count_++) % kBurst] = packet;
  }
  bool make_room(base::Now now);
  bool refill(uint32_t wanted);
  void replace();

  port::Port& port_;
  Counters& counters_;
  const uint32_t kept_;  // spare buffers that are taken ahead of need
  uint32_t unsent_count_ = 0;
  uint32_t spare_count_ = 0;
  uint32_t first_spare_ = 0;  // place of the oldest spare buffer
  bool owes_buffers_ = false;  // a burst has left, and its buffers were not replaced
  uint32_t open_ = 0;  // Invariant: unsent_count_ + open_ <= kBurst
  std::array<port::Packet, kBurst> unsent_;
  std::array<port::Packet, kBurst> spare_;
};

}  // namespace rnic::net
