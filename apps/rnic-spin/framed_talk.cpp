#include "rnic-spin/framed_talk.hpp"

namespace rnic::spin {

void FramedTalk::fill(StreamRole sender, std::span<uint8_t> frame) const {
  const size_t behind = frame.size() - kHead;
  frame[0] = static_cast<uint8_t>(behind >> 8);
  frame[1] = static_cast<uint8_t>(behind);
  talk_.fill(sender, frame.subspan(kHead));
}

void FramedTalk::sent(StreamRole sender, size_t length) {
  talk_.at(sender).sent += length - kHead;
  coming_[static_cast<size_t>(sender)].push_back(length);
}

std::optional<std::string> FramedTalk::receive(StreamRole receiver,
                                               std::span<const uint8_t> frame) {
  if (talk_.is_doubtful()) return std::nullopt;
  auto& coming = coming_[static_cast<size_t>(other(receiver))];
  if (coming.empty()) return "a frame that nobody has sent";
  const size_t length = coming.front();
  coming.pop_front();
  if (frame.size() != length) {
    return "a frame of " + std::to_string(frame.size()) + " octets, and " +
           std::to_string(length) + " were sent";
  }
  if (frame[0] * 256u + frame[1] != length - kHead) return "a frame that does not tell its length";
  return talk_.receive(receiver, frame.subspan(kHead));
}

size_t FramedTalk::next_for(StreamRole receiver) const {
  const auto& coming = coming_[static_cast<size_t>(other(receiver))];
  return coming.empty() ? 0 : coming.front();
}

}  // namespace rnic::spin
