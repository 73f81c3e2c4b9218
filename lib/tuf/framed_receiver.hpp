/// \file
/// FramedReceiver: the receiving half of a FramedStream.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/octet_ring.hpp"
#include "llp/stream.hpp"
#include "rnic/error.hpp"
#include "tuf/alignment_watch.hpp"
#include "tuf/counters.hpp"
#include "tuf/parser.hpp"
#include "tuf/stream_config.hpp"

namespace rnic::tuf {

enum class ReceiveKind : uint8_t {
  Pdu,      ///< `length` octets were taken
  Nothing,  ///< no whole PDU is there now
  NoRoom,   ///< the PDU has `length` octets; nothing was taken
  Broken,   ///< the stream is broken: error() tells the reason, and nothing follows
};
struct Received {
  ReceiveKind kind = ReceiveKind::Nothing;
  uint32_t length = 0;
};

/// Keeps the raw octets in a ring by their stream offset and takes PDUs out of it in order. The
/// owner's side puts octets in, and the application side takes them out. Calls that change the
/// layout (mode, interval, limit) are made on the owner's side while the application side makes no
/// calls.
class FramedReceiver {
 public:
  /// \param ring memory of config.ring_octets octets; outlives the receiver
  FramedReceiver(const StreamConfig& config, uint8_t* ring, Counters& counters);
  FramedReceiver(const FramedReceiver&) = delete;
  FramedReceiver& operator=(const FramedReceiver&) = delete;

  // --- Layout: owner's side, while the application side makes no calls ---

  /// Changes the mode from the next octet on that receive() would give. WrongState: read() has
  /// given a part of a PDU.
  Status set_mode(FramedReceiveMode mode, wire::TufKey key);
  /// Changes the marker interval. WrongState: the marker at which an earlier change takes effect
  /// was not read yet.
  Status set_interval(uint16_t octets);
  void set_max_pdu(uint32_t octets) { layout_.max_pdu = octets; }
  [[nodiscard]] FramedReceiveMode mode() const { return layout_.mode; }
  [[nodiscard]] uint16_t interval() const { return interval_; }

  // --- Application side ---

  Received receive(base::ByteSpan out);
  uint32_t read(base::ByteSpan out);
  [[nodiscard]] framing::PduError error() const { return error_; }
  /// Enough was taken that the owner should be told of it (take_room_news()).
  [[nodiscard]] bool room_is_news() const;

  // --- Owner's side ---

  /// \return octets were taken since the last call
  bool take_room_news();
  // These calls are those of llp::StreamUser.
  void clipped(base::Range range) { clipped_ = range; }
  llp::InspectVerdict inspect(base::Range range);
  /// \return this segment raises the suspicion that something resegments the stream
  bool place(base::Range range, base::ByteView octets, bool in_order);
  void ordered(uint64_t offset);
  [[nodiscard]] uint32_t receive_room() const { return ring_.size() - unread(); }
  void validate() const;
  [[nodiscard]] uint32_t unread() const {
    return static_cast<uint32_t>(ordered_.load(std::memory_order_relaxed) -
                                 read_.load(std::memory_order_acquire));
  }

 private:
  bool fetch(uint64_t offset, uint8_t* dst, uint32_t n) const;
  /// fetch() in the form that the parser needs.
  [[nodiscard]] auto fetcher() const {
    return [this](uint64_t offset, uint8_t* dst, uint32_t n) { return fetch(offset, dst, n); };
  }
  [[nodiscard]] bool next_unit(Unit& unit);
  void take(const Unit& unit);
  void break_off(framing::PduError error);
  void follow_boundaries(uint64_t offset);

  Counters& counters_;
  base::OctetRing ring_;
  ReceiveLayout layout_;
  uint16_t interval_;  // interval of marker mode, also for the next time that this mode begins

  // Application.
  framing::PduError error_ = framing::PduError::None;
  uint64_t frame_end_ = 0;  // alignment mode: end of the framing PDU being read; >= read_
  uint32_t part_read_ = 0;  // octets of the next PDU that read() has given; < its length

  // Owner.
  base::Range clipped_;
  AlignmentWatch watch_;
  uint64_t boundary_ = 0;  // begin of the next framing PDU; UINT64_MAX: not known

  // Invariant: told_ <= read_ <= ordered_ <= read_ + ring_.size().
  alignas(64) std::atomic<uint64_t> ordered_{0};  // stream offset; written by the owner
  std::atomic<uint64_t> told_{0};  // read_ at the last take_room_news(); written by the owner
  alignas(64) std::atomic<uint64_t> read_{0};  // stream offset; written by the application
};

}  // namespace rnic::tuf
