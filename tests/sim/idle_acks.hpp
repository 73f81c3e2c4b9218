/// \file
/// Finds ACKs of one end of a connection that say what the segment before them has said, and answer
/// nothing: to the peer each of them is a duplicate (RFC 5681 s.2), three are a loss.
#pragma once

#include <cstdint>
#include <deque>
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

/// What a segment that came asks of the end that got it.
enum class Question : uint8_t {
  News,        ///< it brought the order forward: one ACK that moves answers many such
  BehindHole,  ///< without SACK each is owed an ACK while the hole is there (RFC 5681 s.4.2)
  Refused,     ///< it was dropped, and its sender is to be told so: any one ACK tells
};

class IdleAcks {
 public:
  /// Something came that is to be answered.
  /// \param sack SACK is agreed on
  /// \param end the sequence number behind it; what was refused needs none
  void asked(Question question, bool sack, uint32_t end = 0);
  /// The end sends a segment.
  /// \param pure an ACK and nothing else, behind all that was sent
  /// \param sack SACK is agreed on: each duplicate is reported (RFC 2883), in blocks that may be
  /// alike
  /// \return whether it is an idle one
  [[nodiscard]] bool idle(SaidBySegment says, bool pure, bool sack);

 private:
  SaidBySegment said_;
  bool spoken_ = false;
  uint32_t news_ = 0;
  std::deque<uint32_t> behind_hole_;  // their ends
  bool hole_seen_ = false;            // with SACK: the path may have lost an ACK, too, and ...
  uint32_t repeatable_ = 0;           // ... one that moves may be said so often again (AckPolicy)
  uint32_t refused_ = 0;
};

}  // namespace rnic::simulation
