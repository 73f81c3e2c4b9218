/// \file
/// The octets of one socket: a StreamUser with a send queue that knows where writes ended, and a
/// receive queue.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "llp/stream.hpp"

namespace rnic::packetdrill {

class SocketStream final : public llp::StreamUser {
 public:
  /// How a write ends.
  struct Mark {
    uint64_t offset = 0;
    bool end_of_record = false;  ///< MSG_EOR: later octets begin a segment of their own
  };

  void attach(llp::Stream& stream) { stream_ = &stream; }
  /// nullptr once ended, or before there is a connection.
  [[nodiscard]] llp::Stream* stream() { return stream_; }

  /// Octets that may be queued and not acknowledged; octets that may wait unread.
  uint32_t send_limit = 256 << 10;
  uint32_t receive_limit = 540000;
  bool nagle = true;           ///< a short segment waits while one is not acknowledged (RFC 896)
  bool corked = false;         ///< TCP_CORK, MSG_MORE: a short segment waits
  bool refuse_octets = false;  ///< nobody will read: what arrives is answered with RST

  /// Queues octets; \return how many there was room for. \param more further ones are to come.
  uint32_t write(base::ByteView octets, bool end_of_record, bool more);
  /// Takes what arrived in order, or only looks at it.
  uint32_t read(base::ByteSpan out, bool peek);
  /// What is queued goes out now, whatever waits for more.
  void push();
  /// Half close behind what was written.
  void close();
  void abort();

  /// Octets wait for more, and no ACK is to come that would move them.
  [[nodiscard]] bool is_held() const {
    return established_ && unsent() != 0 && pulled_ == released_ && !pushed();
  }
  [[nodiscard]] uint32_t readable() const { return static_cast<uint32_t>(ordered_ - read_); }
  [[nodiscard]] uint32_t queued() const { return static_cast<uint32_t>(written_ - released_); }
  [[nodiscard]] uint32_t unsent() const { return static_cast<uint32_t>(written_ - pulled_); }
  /// A writer that waits goes on when a third is free.
  [[nodiscard]] bool has_room() const { return queued() < send_limit - send_limit / 3; }
  [[nodiscard]] uint64_t received() const { return ordered_; }
  [[nodiscard]] uint64_t acknowledged() const { return released_; }
  [[nodiscard]] bool is_established() const { return established_; }
  [[nodiscard]] bool peer_has_finished() const { return peer_finished_; }
  [[nodiscard]] bool is_closing() const { return closing_; }
  [[nodiscard]] std::optional<llp::StreamEnd> how_ended() const { return ended_; }
  [[nodiscard]] base::Now last_received() const { return last_received_; }
  [[nodiscard]] base::Now established_at() const { return established_at_; }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override;
  void peer_finished(base::Now) override { peer_finished_ = true; }
  void ended(llp::StreamEnd how, base::Now now) override;

 private:
  [[nodiscard]] bool short_segment_waits() const;
  [[nodiscard]] bool pushed() const { return written_ <= push_end_; }

  llp::Stream* stream_ = nullptr;
  std::deque<uint8_t> send_;     // [released_, written_)
  std::deque<uint8_t> receive_;  // from read_ on; holes between what was placed
  std::deque<Mark> marks_;       // ends of writes beyond pulled_
  uint64_t written_ = 0;
  uint64_t pulled_ = 0;
  uint64_t released_ = 0;
  uint64_t push_end_ = 0;   // no waiting below
  uint64_t short_end_ = 0;  // end of the last segment that was not full
  uint64_t ordered_ = 0;
  uint64_t read_ = 0;
  bool established_ = false;
  bool peer_finished_ = false;
  bool closing_ = false;
  std::optional<llp::StreamEnd> ended_;
  base::Now last_received_{};
  base::Now established_at_{};
};

}  // namespace rnic::packetdrill
