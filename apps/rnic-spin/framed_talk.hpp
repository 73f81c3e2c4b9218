/// \file
/// What the two ends of a framed stream have said to each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>

#include "rnic-spin/conversation.hpp"

namespace rnic::spin {

/// A Conversation whose octets go in frames, each behind two octets that tell how many follow. A
/// frame that was lost, repeated, cut or put together with another shows.
class FramedTalk {
 public:
  static constexpr size_t kHead = 2;  ///< octets of a frame in front of those of the conversation

  /// \param number differs between streams
  explicit FramedTalk(uint64_t number) : talk_(number) {}

  [[nodiscard]] Conversation& talk() { return talk_; }
  [[nodiscard]] const Conversation& talk() const { return talk_; }

  /// Makes the next frame that an end sends. \param frame at least kHead octets
  void fill(StreamRole sender, std::span<uint8_t> frame) const;
  /// A frame of that length was taken by send().
  void sent(StreamRole sender, size_t length);
  /// Takes what an end has received as one frame. \return what is wrong with it
  [[nodiscard]] std::optional<std::string> receive(StreamRole receiver,
                                                   std::span<const uint8_t> frame);
  /// The length of the frame that comes next; 0: there is none.
  [[nodiscard]] size_t next_for(StreamRole receiver) const;

 private:
  Conversation talk_;
  std::array<std::deque<size_t>, 2> coming_;  // lengths of frames, by who sends them
};

}  // namespace rnic::spin
