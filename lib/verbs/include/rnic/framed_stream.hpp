/// \file
/// Framed streams of a Device: whole frames in, whole frames out, over TCP on the device's own
/// stack (ULP framing, draft-ietf-tsvwg-tcp-ulp-frame-00; docs/tuf.md).
///
///     FramingOptions framing;
///     framing.send_key = framing.receive_key = key;   // both ends: device.new_framing_key()
///     auto stream = device.connect_framed(*parse_endpoint("10.0.0.2:7000"), framing);
///     context.wait_until([&] { return stream->state() == StreamState::Open; });
///     stream->send(frame);                            // at most frame_limit() octets
///     while (!stream->readable()) context.poll();
///     auto octets = stream->receive(buffer);          // one whole frame
///
/// Each direction has a mode of its own, and the sender's has to be what the receiver expects: the
/// ends agree on modes, keys and intervals by their own means, beforehand, or in Plain mode over
/// the stream itself, after which set_send_mode() and set_receive_mode() enable framing.
///
/// Nothing blocks. Frames wait in two rings of memory that a stream has (`limits.framed_buffer`;
/// at most `limits.max_framed_streams` streams); the device moves them while it is polled (inline)
/// or by its worker (threaded).
///
/// Threads: one thread at a time for each FramedStream and for each FramedStreamListener. In a
/// threaded context send(), receive(), the queries, finish_sending(), close(), abort() and accept()
/// take no lock and never wait for the worker; what is named set_... waits for it.
///
/// Ownership: handles; destroying a FramedStream closes it, destroying a FramedStreamListener stops
/// listening and aborts what was not accepted. Destroy them before the context.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "rnic/error.hpp"
#include "rnic/framing_options.hpp"
#include "rnic/stream.hpp"

namespace rnic {

namespace device {
class FramedSocket;
}  // namespace device

struct FramedListenerOptions {
  uint32_t backlog = 16;  ///< connections that wait for accept(); more are refused (RST)
  FramingOptions framing;
  StreamOptions stream;  ///< of the connections accepted
};

/// One TCP connection that carries frames.
class FramedStream : public TcpHandle {
 public:
  FramedStream() = default;

  /// Queues one whole frame, or nothing of it. \return its octets; 0: not now, the handshake is
  /// under way or the ring is full, see writable(). MessageSize: longer than frame_limit();
  /// InvalidArgument: empty, or its length field does not tell its length; WrongState after
  /// finish_sending(); the error of the stream when it has ended.
  Result<size_t> send(std::span<const uint8_t> frame);
  /// Takes the next whole frame; in Plain mode what octets there are. \return its octets; 0 when
  /// nothing whole is there now, or at_end(). MessageSize: the buffer is smaller than the frame,
  /// which stays (readable() tells its length). Protocol: what came is not framed as agreed, or
  /// ended inside a frame; nothing can follow: abort(). What came before a stream ended is still
  /// given; then the error of the stream, unless it ended Closed.
  Result<size_t> receive(std::span<uint8_t> buffer);
  /// Octets of frames without regard to their boundaries, headers and markers removed
  /// (appendix A). \return how many; otherwise as receive().
  Result<size_t> read(std::span<uint8_t> octets);

  /// Octets of the next whole frame, in Plain mode all that there are; 0: none.
  [[nodiscard]] size_t readable() const;
  /// send() would take a frame of so many octets.
  [[nodiscard]] bool writable(size_t octets) const;

  /// The longest frame that send() takes now, octets. In Atomic and Align it follows the path MTU;
  /// 0 before the stream is open, and with an EMSS that has no room for a frame.
  [[nodiscard]] uint32_t frame_limit() const;
  /// What one segment carries of a frame now, octets: EMSS without what the mode adds (appendix
  /// A.3).
  [[nodiscard]] uint32_t usable_emss() const;
  /// How often usable_emss() has changed: another value than before is the notice (s.3).
  [[nodiscard]] uint32_t emss_changes() const;
  /// Something on the way cuts the segments of the peer anew (s.5.2): stop framing, or use markers.
  [[nodiscard]] bool is_middlebox_suspected() const;

  [[nodiscard]] bool supports(FramedSendMode mode) const;
  [[nodiscard]] bool supports(FramedReceiveMode mode) const;
  [[nodiscard]] FramedSendMode send_mode() const;
  [[nodiscard]] FramedReceiveMode receive_mode() const;
  [[nodiscard]] uint16_t send_interval() const;
  [[nodiscard]] uint16_t receive_interval() const;
  [[nodiscard]] bool packing() const;

  // Appendix A: at any time, connected or not. WrongState when the stream has ended.

  /// From the next frame on. Unsupported: see supports(). WrongState: Markers, while frames of the
  /// mode before are not sent. InvalidArgument: a key that cannot be, or another one than before.
  Status set_send_mode(FramedSendMode mode, uint64_t key = 0);
  /// From the next octet on that receive() would give.
  Status set_receive_mode(FramedReceiveMode mode, uint64_t key = 0);
  /// Counts in marker mode, from the next marker on: the peer changes at the same one. WrongState:
  /// an earlier change is not through yet.
  Status set_send_interval(uint16_t octets);
  Status set_receive_interval(uint16_t octets);
  Status set_packing(bool on);
  Status set_emergency(bool on);
  Status set_max_frame(uint32_t octets);  ///< marker mode, either way

 private:
  friend class Device;
  friend class FramedStreamListener;
  FramedStream(std::shared_ptr<verbs::DeviceRuntime> device, device::FramedSocket* socket);
  [[nodiscard]] device::FramedSocket& socket() const;
  Result<size_t> taken(size_t octets, bool over, std::optional<StreamEnd> end);
  template <typename Change>
  Status change(Change&& make);
};

/// Accepts connections to one port.
class FramedStreamListener : public TcpListener {
 public:
  FramedStreamListener() = default;

  /// The oldest connection that waits, if there is one. It may have ended in the meantime.
  std::optional<FramedStream> accept();

 private:
  friend class Device;
  using TcpListener::TcpListener;
};

}  // namespace rnic
