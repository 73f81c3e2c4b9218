/// \file
/// FramedStream: the interface of ULP framing to its user. It sends and receives whole PDUs over
/// one Stream, and plain octets before framing is enabled and in a direction where it never is.
///
/// A FramedSender and a FramedReceiver do the work. FramedStream connects them with the transport:
/// it knows what the transport can do, whether the connection is established, and whom to tell.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "llp/end_word.hpp"
#include "llp/peer_half.hpp"
#include "llp/stream.hpp"
#include "rnic/error.hpp"
#include "tuf/counters.hpp"
#include "tuf/framed_receiver.hpp"
#include "tuf/framed_sender.hpp"
#include "tuf/stream_config.hpp"

namespace rnic::tuf {

/// The calls of a framed stream to its owner, made on the owner's thread.
class FramedStreamEvents {
 public:
  virtual ~FramedStreamEvents() = default;
  /// usable_emss() has changed (s.3, s.5.1).
  virtual void emss_changed(uint32_t usable_emss) { (void)usable_emss; }
  /// A long run of segments had no whole framing PDU (s.5.2): the owner may stop framing, or use
  /// markers.
  virtual void middlebox_suspected() {}
};

/// As with tcp::ByteStream, two sides use it, which may be two threads: the application side, which
/// tells the owner to call serve(), and the owner's side. They share only atomics. Calls that
/// change modes, intervals and limits are made on the owner's side while the application side makes
/// no calls.
class FramedStream : public llp::StreamUser {
 public:
  /// \param counters with two threads only framed streams may use them, since the application side
  /// counts atomically and the owner's side does not. \param rings if they are null, the stream
  /// takes memory of its own
  FramedStream(const StreamConfig& config, Counters& counters, FramedStreamEvents* events = nullptr,
               StreamRings rings = {});
  FramedStream(const FramedStream&) = delete;
  FramedStream& operator=(const FramedStream&) = delete;

  /// Sets the stream. Called once, before anything is sent.
  void attach(llp::Stream& stream) { stream_ = &stream; }

  // --- Modes (appendix A.1), before or after the connection is established ---

  /// Changes the mode from the next PDU on. Unsupported: this transport does not keep records whole
  /// (Atomic, Align). WrongState: PDUs submitted in the mode before are not sent yet.
  Status set_send_mode(FramedSendMode mode, wire::TufKey key = 0);
  /// Changes the mode from the next octet on that receive() would give. Unsupported: this transport
  /// does not show segments (Align).
  Status set_receive_mode(FramedReceiveMode mode, wire::TufKey key = 0);
  /// set_send_mode() or set_receive_mode() can succeed with this mode.
  [[nodiscard]] bool supports(FramedSendMode mode) const;
  [[nodiscard]] bool supports(FramedReceiveMode mode) const;
  [[nodiscard]] FramedSendMode send_mode() const { return sender_.mode(); }
  [[nodiscard]] FramedReceiveMode receive_mode() const { return receiver_.mode(); }

  void set_packing(bool on) { sender_.set_packing(on); }
  void set_emergency(bool on) { sender_.set_emergency(on); }
  /// Changes the marker interval at any time. In marker mode the change takes effect at the next
  /// marker, and the peer has to make it at the same one. WrongState: an earlier change is not
  /// acknowledged yet.
  Status set_send_interval(uint16_t octets);
  Status set_receive_interval(uint16_t octets) { return receiver_.set_interval(octets); }
  [[nodiscard]] uint16_t send_interval() const { return sender_.interval(); }
  [[nodiscard]] uint16_t receive_interval() const { return receiver_.interval(); }
  [[nodiscard]] bool packing() const { return sender_.packing(); }
  /// Sets the longest PDU, in octets, that is sent or taken in marker mode.
  void set_max_pdu(uint32_t octets) {
    sender_.set_max_pdu(octets);
    receiver_.set_max_pdu(octets);
  }

  // --- Application side ---

  /// Submits one sending operation: a whole PDU, or any octets in the modes without PDUs.
  SendResult send(base::ByteView pdu);
  /// Takes the next whole PDU, or plain octets.
  Received receive(base::ByteSpan out) { return receiver_.receive(out); }
  /// Takes octets of PDUs without regard to their boundaries, without framing headers and markers.
  uint32_t read(base::ByteSpan out) { return receiver_.read(out); }
  /// A send() of `pdu` octets finds room in the ring.
  [[nodiscard]] bool has_room(size_t pdu) const { return sender_.has_room(pdu); }
  /// The most octets that can be submitted in the present mode without being fragmented (appendix
  /// A.3).
  [[nodiscard]] uint32_t usable_emss() const { return sender_.usable_emss(); }
  /// The longest PDU that send() takes now.
  [[nodiscard]] uint32_t pdu_limit() const { return sender_.pdu_limit(); }
  /// Octets that were submitted and that the peer's TCP has not acknowledged, plus 4 for each
  /// submission.
  [[nodiscard]] uint64_t unacknowledged() const { return sender_.unacknowledged(); }
  [[nodiscard]] framing::PduError error() const { return receiver_.error(); }
  [[nodiscard]] bool is_established() const { return peer_half_.is_established(); }
  [[nodiscard]] bool peer_has_finished() const { return peer_half_.has_finished(); }
  [[nodiscard]] std::optional<StreamEnd> how_ended() const { return end_.get(); }
  /// receive() has taken enough that the owner should be told of it, by serve().
  [[nodiscard]] bool room_is_news() const { return receiver_.room_is_news(); }

  // --- Owner's side ---

  /// Checks the invariants. The application side may go on meanwhile.
  void validate() const {
    sender_.validate();
    receiver_.validate();
    RNIC_CHECK(stream_ == nullptr || !how_ended());
  }
  /// Tells the stream what the application has submitted and taken since the last call.
  void serve();
  /// Closes the sending half behind the submitted octets.
  void close();
  void abort() {
    if (stream_ != nullptr) stream_->abort();
  }
  [[nodiscard]] llp::Stream* stream() { return stream_; }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  [[nodiscard]] uint32_t cut(base::ByteView piece) override { return sender_.cut(piece); }
  void released(const llp::RecordTag& tag, uint64_t end_offset) override {
    sender_.released(tag, end_offset);
  }
  void clipped(base::Range range) override { receiver_.clipped(range); }
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now) override { receiver_.ordered(offset); }
  void emss_changed(uint32_t emss) override;
  [[nodiscard]] uint32_t receive_room() const override { return receiver_.receive_room(); }
  [[nodiscard]] uint32_t pending() const override { return sender_.pending(); }
  [[nodiscard]] uint32_t unread() const override { return receiver_.unread(); }
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  void tell_emss();

  Counters& counters_;
  FramedStreamEvents* events_;
  llp::Stream* stream_ = nullptr;  // owner; nullptr once ended
  uint32_t told_emss_ = 0;         // owner: usable_emss() as last told to the events
  std::unique_ptr<uint8_t[]> own_rings_;
  FramedSender sender_;
  FramedReceiver receiver_;

  // Written by the owner, read by the application. Our half and the peer's close independently.
  llp::PeerHalfWord peer_half_;
  std::atomic<bool> closed_{false};
  llp::EndWord end_;
};

}  // namespace rnic::tuf
