/// \file
/// The two ends above the framing: a source of tagged DDP messages, and a sink that checks every
/// octet of what is placed.
#pragma once

#include <cstdint>
#include <vector>

#include "llp/framing.hpp"

namespace rnic::experiment {

/// DDP's header of a tagged message (RFC 5041 s.4.1): the draft's DDPHdrSize.
inline constexpr uint32_t kTaggedHeader = 14;

/// Sends messages of one size as tagged ULPDUs, as many as it is given.
class Source final : public llp::FramingUser {
 public:
  explicit Source(uint32_t message_octets) : size_(message_octets) {}

  /// Another `count` messages may go out.
  void add(uint64_t count) { wanted_ += count * size_; }
  /// No ULPDU is longer than this, with its header; 0: the MULPDU is the limit.
  void limit_ulpdu(uint32_t octets) { limit_ = octets; }

  [[nodiscard]] bool may_send_now() const { return may_send_; }
  /// Payload that the peer's TCP has.
  [[nodiscard]] uint64_t acknowledged() const { return acknowledged_; }
  [[nodiscard]] uint64_t given() const { return given_; }
  [[nodiscard]] uint64_t wanted() const { return wanted_; }

  // llp::FramingUser
  llp::PulledUlpdu pull_ulpdu(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                              base::Now now) override;
  bool rebuild_ulpdu(const llp::RecordTag& tag, llp::UlpduWriter& out) override;
  void released_ulpdu(const llp::RecordTag& tag) override { acknowledged_ += tag.b; }
  llp::PlaceVerdict place_ulpdu(const llp::UlpduView&, bool, base::Now) override {
    return llp::PlaceVerdict::Fault;
  }
  void deliver_ulpdu(base::ByteView, uint32_t, base::Now) override {}
  void may_send() override { may_send_ = true; }
  void mulpdu_changed(uint32_t) override {}
  void framing_error(llp::FramingError, base::Now) override {}
  void peer_finished(bool, base::Now) override {}
  void ended(StreamEnd, base::Now) override {}

 private:
  uint32_t size_;
  uint32_t limit_ = 0;
  uint64_t wanted_ = 0;  // octets, of all messages
  uint64_t given_ = 0;   // octets pulled
  uint64_t acknowledged_ = 0;
  bool may_send_ = false;
};

/// Takes what a Source sends.
class Sink final : public llp::FramingUser {
 public:
  [[nodiscard]] uint64_t placed() const { return placed_; }  ///< payload octets
  [[nodiscard]] uint64_t early() const { return early_; }    ///< of these: ahead of the order
  [[nodiscard]] uint64_t delivered() const { return delivered_; }
  /// ULPDUs whose header or octets were not those that were sent.
  [[nodiscard]] uint64_t wrong() const { return wrong_; }
  [[nodiscard]] llp::FramingError error() const { return error_; }

  // llp::FramingUser
  llp::PulledUlpdu pull_ulpdu(uint32_t, bool, llp::UlpduWriter&, base::Now) override { return {}; }
  bool rebuild_ulpdu(const llp::RecordTag&, llp::UlpduWriter&) override { return false; }
  void released_ulpdu(const llp::RecordTag&) override {}
  llp::PlaceVerdict place_ulpdu(const llp::UlpduView& ulpdu, bool in_order, base::Now) override;
  void deliver_ulpdu(base::ByteView, uint32_t ulpdu_length, base::Now) override {
    delivered_ += ulpdu_length - kTaggedHeader;
  }
  void may_send() override {}
  void mulpdu_changed(uint32_t) override {}
  void framing_error(llp::FramingError error, base::Now) override { error_ = error; }
  void peer_finished(bool, base::Now) override {}
  void ended(StreamEnd, base::Now) override {}

 private:
  uint64_t placed_ = 0;
  uint64_t early_ = 0;
  uint64_t delivered_ = 0;
  uint64_t wrong_ = 0;
  llp::FramingError error_ = llp::FramingError::None;
};

}  // namespace rnic::experiment
