/// \file
/// Streams of plain octets between the two devices.
#pragma once

#include <memory>
#include <string>

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Listens for streams, connects them, speaks and ends them. What an end receives has to be what
/// the other one has sent, and a stream ends only as its two ends have ended it. Over sockets of
/// the system all of that is refused.
class Streaming {
 public:
  explicit Streaming(World& world) : world_(world) {}

  void listen(Side& side);
  void listen_reserved(Side& side);
  void stop_listening(Side& side);
  void connect(Side& side);
  void accept(Side& side);
  void send(Side& side);
  void receive(Side& side);
  void choose_tcp(Side& side);
  void finish(Side& side);
  void close(Side& side);
  void abort(Side& side);
  /// Both ends finish, and hear each other out.
  void hear_out(Side& side);
  /// Ends a stream or a listener.
  void end_any(Side& side);

  // For who has other plans with a stream.

  /// Takes what has come.
  void take(Speaking& speaking);
  /// A handle was closed.
  void forget(const Speaking& speaking);

 private:
  void begun(Side& side, Stream handle);
  void listening(Side& side, StreamListener listener, const Endpoint& asked);
  void take(Speaking& speaking, size_t most);
  void finish(Speaking& speaking);
  void judge_end(const Speaking& speaking);
  /// The other end of the same stream; nullptr: nobody has it, or no more.
  [[nodiscard]] std::shared_ptr<Speaking> peer_of(const Side& side, const Speaking& speaking) const;

  World& world_;
};

}  // namespace rnic::spin
