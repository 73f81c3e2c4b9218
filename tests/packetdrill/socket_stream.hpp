/// \file
/// The octets of one socket: the engine's own ByteStream, with what Linux's socket calls add to it:
/// buffer limits, TCP_CORK, MSG_MORE and MSG_EOR. Nagle's rule is the engine's.
#pragma once

#include <cstdint>
#include <deque>

#include "tcp/byte_stream.hpp"

namespace rnic::packetdrill {

class SocketStream final : public tcp::ByteStream {
 public:
  /// \param ring_octets the most that either limit may be
  explicit SocketStream(uint32_t ring_octets) : ByteStream(ring_octets) {}

  /// Octets that may be queued and not acknowledged; octets that may wait unread.
  uint32_t send_limit = 256 << 10;
  uint32_t receive_limit = 540000;
  bool corked = false;  ///< TCP_CORK, MSG_MORE: a short segment waits

  /// Queues octets; \return how many there was room for. \param more further ones are to come.
  uint32_t enqueue(base::ByteView octets, bool end_of_record, bool more);
  /// What is queued goes out now, whatever waits for more.
  void push();
  /// Half close behind what was written.
  void finish();

  /// Octets wait for more, and no ACK is to come that would move them.
  [[nodiscard]] bool is_held() const {
    return is_established() && unsent() != 0 && unsent() == queued() && !pushed();
  }
  [[nodiscard]] uint32_t queued() const { return static_cast<uint32_t>(unacknowledged()); }
  [[nodiscard]] uint32_t unsent() const { return ByteStream::pending(); }
  /// A writer that waits goes on when a third is free.
  [[nodiscard]] bool has_room() const { return queued() < send_limit - send_limit / 3; }
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] uint64_t acknowledged() const { return written_ - queued(); }
  [[nodiscard]] bool is_closing() const { return closing_; }
  [[nodiscard]] base::Now last_received() const { return last_received_; }
  [[nodiscard]] base::Now established_at() const { return established_at_; }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  [[nodiscard]] uint32_t receive_room() const override;
  [[nodiscard]] uint32_t pending() const override;
  [[nodiscard]] bool all_fits(uint32_t octets) const override { return unsent() <= octets; }

 private:
  [[nodiscard]] bool pushed() const { return written_ <= push_end_; }

  std::deque<uint64_t> record_ends_;  // MSG_EOR, beyond what was pulled: a segment ends there
  uint64_t written_ = 0;
  uint64_t push_end_ = 0;   // no waiting below
  uint64_t more_from_ = 0;  // octets beyond were written with MSG_MORE: no PSH
  uint64_t received_ = 0;
  bool closing_ = false;
  base::Now last_received_{};
  base::Now established_at_{};
};

}  // namespace rnic::packetdrill
