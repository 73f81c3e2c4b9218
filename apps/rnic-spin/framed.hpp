/// \file
/// Framed streams between the two devices.
#pragma once

#include <memory>
#include <string>

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Listens for framed streams, connects them, sends frames, and ends the streams. Each frame comes
/// whole, once and in its turn, in every mode. Over sockets of the system all of that is refused.
class Framed {
 public:
  explicit Framed(World& world) : world_(world) {}

  void listen(Side& side);
  void stop_listening(Side& side);
  void connect(Side& side);
  void accept(Side& side);
  void send(Side& side);
  void send_bad(Side& side);
  void receive(Side& side);
  void change(Side& side);
  void finish(Side& side);
  void close(Side& side);
  void abort(Side& side);
  /// Both ends finish, and take all frames of each other.
  void hear_out(Side& side);
  /// Ends a stream or a listener.
  void end_any(Side& side);

 private:
  [[nodiscard]] FramingOptions any_framing(Side& side);
  void begun(Side& side, FramedStream handle);
  void take(FramedEnd& end, size_t room);
  void finish(FramedEnd& end);
  void judge_end(const FramedEnd& end);
  /// The other end of the same stream; nullptr: nobody has it, or no more.
  [[nodiscard]] std::shared_ptr<FramedEnd> peer_of(const Side& side, const FramedEnd& end) const;
  /// Gives up what nobody needs any more of the streams that there were.
  void forget_talks();

  World& world_;
};

}  // namespace rnic::spin
