/// \file
/// Finds ACKs of one end of a connection that say what the segment before them has said, and answer
/// nothing: to the peer each of them is a duplicate (RFC 5681 s.2), three are a loss.
#pragma once

#include <cstdint>
#include <vector>

#include "wire/tcp_options.hpp"

namespace rnic::simulation {

/// What a segment says beside its text: ACK field, window, ECN-Echo, SACK blocks.
struct SaidBySegment {
  uint32_t ack = 0;
  uint16_t window = 0;
  bool ece = false;
  std::vector<uint64_t> sack;  // both edges of a block each

  SaidBySegment() = default;
  SaidBySegment(uint32_t ack_field, uint16_t window_field, uint8_t flags,
                const wire::TcpOptions& options);
  friend bool operator==(const SaidBySegment&, const SaidBySegment&) = default;
};

class IdleAcks {
 public:
  /// Something came that is to be answered. \param news it brought the order forward: one ACK that
  /// moves answers many such
  void asked(bool news) { ++(news ? asked_by_news_ : asked_); }
  /// The end sends a segment.
  /// \param pure an ACK and nothing else, behind all that was sent
  /// \param whole it acknowledges all that has come: nothing is left that a further one would tell
  /// \return whether it is an idle one
  [[nodiscard]] bool idle(SaidBySegment says, bool pure, bool whole);

 private:
  SaidBySegment said_;
  bool spoken_ = false;
  uint32_t asked_by_news_ = 0;
  uint32_t asked_ = 0;
};

}  // namespace rnic::simulation
