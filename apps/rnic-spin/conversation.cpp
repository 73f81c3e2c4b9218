#include "rnic-spin/conversation.hpp"

namespace rnic::spin {

uint8_t Conversation::octet(StreamRole sender, uint64_t at) const {
  const uint64_t stream = 2 * number_ + static_cast<uint64_t>(sender);
  const uint64_t mixed = (at + 1) * 0x9e3779b97f4a7c15 ^ (stream + 1) * 0xbf58476d1ce4e5b9;
  return static_cast<uint8_t>(mixed >> 56 ^ mixed >> 24);
}

void Conversation::fill(StreamRole sender, std::span<uint8_t> octets) const {
  uint64_t place = at(sender).sent;
  for (uint8_t& one : octets) one = octet(sender, place++);
}

std::optional<std::string> Conversation::receive(StreamRole receiver,
                                                 std::span<const uint8_t> octets) {
  Speaker& self = at(receiver);
  const StreamRole sender = other(receiver);
  const uint64_t from = self.received;
  self.received += octets.size();
  if (doubtful_) return std::nullopt;
  if (self.received > at(sender).sent) {
    return std::to_string(self.received) + " octets have come of " +
           std::to_string(at(sender).sent) + " that were sent";
  }
  for (size_t i = 0; i < octets.size(); ++i) {
    if (octets[i] == octet(sender, from + i)) continue;
    return "a wrong octet of a stream, at " + std::to_string(from + i);
  }
  return std::nullopt;
}

std::optional<std::string> Conversation::check_at_end(StreamRole role) const {
  const Speaker& peer = at(other(role));
  if (doubtful_) return std::nullopt;
  if (!peer.finished && !peer.closed) return "a stream is at its end that the peer has not ended";
  if (at(role).received == peer.sent) return std::nullopt;
  return "a stream is at its end after " + std::to_string(at(role).received) + " of " +
         std::to_string(peer.sent) + " octets";
}

std::optional<std::string> Conversation::check_ended(StreamRole role, StreamEnd how) const {
  const Speaker& self = at(role);
  const Speaker& peer = at(other(role));
  bool may = doubtful_;
  switch (how) {
    case StreamEnd::Closed: may |= self.finished && (peer.finished || peer.closed); break;
    // Where nobody has accepted it the listener has, because it was full or has ended.
    case StreamEnd::PeerReset: may |= peer.closed || peer.aborted || !accepted_; break;
    case StreamEnd::Refused: may |= role == StreamRole::Initiator && !accepted_; break;
    case StreamEnd::Aborted: may |= self.aborted; break;
    case StreamEnd::TimedOut:
    case StreamEnd::Unreachable: break;
  }
  if (may) return std::nullopt;
  return std::string("a stream has ended that must not so: ") + to_string(how);
}

ErrorCode code_of(StreamEnd how) {
  switch (how) {
    case StreamEnd::Closed: return ErrorCode::WrongState;
    case StreamEnd::TimedOut: return ErrorCode::TimedOut;
    case StreamEnd::Refused:
    case StreamEnd::Unreachable: return ErrorCode::Unreachable;
    case StreamEnd::PeerReset:
    case StreamEnd::Aborted: break;
  }
  return ErrorCode::Reset;
}

}  // namespace rnic::spin
