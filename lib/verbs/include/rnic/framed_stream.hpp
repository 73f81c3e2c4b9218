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
/// Each direction has a mode of its own, and the receiver has to expect the sender's mode. The ends
/// agree on modes, keys and intervals by their own means: beforehand, or in Plain mode over the
/// stream itself, after which set_send_mode() and set_receive_mode() enable framing.
///
/// Nothing blocks. Frames wait in two rings of memory that a stream has (`limits.framed_buffer`;
/// at most `limits.max_framed_streams` streams); the device moves them while it is polled (inline)
/// or by its worker (threaded).
///
/// Threads: one thread at a time for each FramedStream and for each FramedStreamListener. In a
/// threaded context send(), receive(), the queries, finish_sending(), close(), abort() and accept()
/// take no lock and never wait for the worker; the calls named set_... wait for it.
///
/// Ownership: the objects are handles. Destroying a FramedStream closes it; destroying a
/// FramedStreamListener stops listening and aborts connections that were not accepted. They may be
/// destroyed in any order, before and after the context (stream.hpp).
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
  /// Connections that wait for accept(), 1 to limits.max_framed_streams; more are refused (RST).
  /// Nothing: 16, or limits.max_framed_streams if that is less.
  std::optional<uint32_t> backlog{};
  FramingOptions framing{};
  StreamOptions stream{};  ///< of the connections accepted
};

/// One TCP connection that carries frames.
class FramedStream : public TcpHandle {
 public:
  FramedStream() = default;

  /// Queues one whole frame, or nothing of it. \return its octets; 0: not now, because the
  /// handshake is under way or the ring is full, see writable(). MessageSize: the frame is longer
  /// than frame_limit(). InvalidArgument: it is empty, or its length field does not tell its
  /// length. WrongState: after finish_sending(). The error of the stream when it has ended.
  Result<size_t> send(std::span<const uint8_t> frame);
  /// Takes the next whole frame; in Plain mode the octets that are there. \return its octets; 0: no
  /// whole frame is there now, or at_end(). MessageSize: the buffer is smaller than the frame,
  /// which stays (readable() tells its length). Protocol: the stream is not framed as agreed, or
  /// ended inside a frame; nothing can follow: abort(). Frames that came before the stream ended
  /// can still be taken; after them the error of the stream is returned, unless it ended Closed.
  Result<size_t> receive(std::span<uint8_t> buffer);
  /// Takes octets of frames without regard to their boundaries; headers and markers are removed
  /// (appendix A). \return how many octets; otherwise as receive().
  Result<size_t> read(std::span<uint8_t> octets);

  /// Octets of the next whole frame, in Plain mode of all that has come; 0: there is none.
  [[nodiscard]] size_t readable() const;
  /// \return whether send() would take a frame of so many octets
  [[nodiscard]] bool writable(size_t octets) const;

  /// The longest frame that send() takes now, octets. In Atomic and Align it follows the path MTU;
  /// 0 before the stream is open, and with an EMSS that has no room for a frame.
  [[nodiscard]] uint32_t frame_limit() const;
  /// Octets of frames that one segment carries now: EMSS without the octets that the mode adds
  /// (appendix A.3).
  [[nodiscard]] uint32_t usable_emss() const;
  /// How often usable_emss() has changed. A new value is the notice of a change (s.3).
  [[nodiscard]] uint32_t emss_changes() const;
  /// \return whether something on the way seems to resegment the peer's stream (s.5.2). If so, stop
  /// framing, or use markers.
  [[nodiscard]] bool is_middlebox_suspected() const;

  [[nodiscard]] bool supports(FramedSendMode mode) const;
  [[nodiscard]] bool supports(FramedReceiveMode mode) const;
  [[nodiscard]] FramedSendMode send_mode() const;
  [[nodiscard]] FramedReceiveMode receive_mode() const;
  [[nodiscard]] uint16_t send_interval() const;
  [[nodiscard]] uint16_t receive_interval() const;
  [[nodiscard]] bool packing() const;

  // Appendix A: these may be called at any time, connected or not. WrongState when the stream has
  // ended.

  /// Sets the mode from the next frame on. Unsupported: see supports(). WrongState: the mode is
  /// Markers, and frames of the former mode are not sent yet. InvalidArgument: the mode has no
  /// name, or the key is not valid or differs from the one set before.
  Status set_send_mode(FramedSendMode mode, uint64_t key = 0);
  /// Sets the mode from the next octet on that receive() would return.
  Status set_receive_mode(FramedReceiveMode mode, uint64_t key = 0);
  /// Sets the interval of marker mode from the next marker on; the peer has to change at the same
  /// marker. WrongState: an earlier change has not taken effect yet.
  Status set_send_interval(uint16_t octets);
  Status set_receive_interval(uint16_t octets);
  Status set_packing(bool on);
  Status set_emergency(bool on);
  /// Marker mode, both directions. InvalidArgument: above 65528, or too short for the frame to tell
  /// its length.
  Status set_max_frame(uint32_t octets);

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
