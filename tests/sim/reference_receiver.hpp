/// \file
/// The slow, obvious receiver: one direction of one connection, from the segments that arrived, in
/// order, without any of the device's code. It keeps every segment until the stream has passed it,
/// walks FPDUs word by word, and says what a correct receiver delivers and when it can at the
/// earliest.
///
/// Named tolerance: it never drops for lack of space and knows nothing of windows, so it may be
/// ahead of the device. The device must never be ahead of it.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

/// One RDMAP message as it came over the wire.
struct WireMessage {
  uint8_t opcode = 0;
  bool tagged = false;
  uint32_t stag = 0;  ///< tagged; for untagged the Invalidate STag field
  uint64_t to = 0;    ///< tagged: of the first octet
  uint32_t qn = 0;
  uint32_t msn = 0;
  std::vector<uint8_t> payload;
};

/// What an MPA Request or Reply frame says, or one of ULP framing.
struct StartFrame {
  bool reply = false;
  bool markers = false;
  bool crc = false;
  bool rejected = false;
  // ULP framing (decision 6, layer tuf).
  bool tuf = false;
  bool packing = false;
  uint8_t chosen_send = 0;     // reply: of its sender; 1: alignment mode, 2: marker mode
  uint8_t chosen_receive = 0;  // reply: of its receiver
  uint32_t interval = 0;       // of the markers that the opposite direction has
  uint64_t key = 0;
};

class ReferenceReceiver {
 public:
  using Deliver = std::function<void(const WireMessage&)>;

  ReferenceReceiver(std::string name, Verdict& verdict, Deliver deliver)
      : name_(std::move(name)), verdict_(verdict), deliver_(std::move(deliver)) {}

  /// The opposite direction: its start frame says how this one's FPDUs look.
  void pair_with(const ReferenceReceiver& opposite) { opposite_ = &opposite; }

  /// Payload of a segment with a correct TCP checksum, at a stream offset (0: behind the SYN).
  void segment(uint64_t offset, base::ByteView octets);

  [[nodiscard]] const std::optional<StartFrame>& start() const { return start_; }
  [[nodiscard]] uint64_t fpdus() const { return fpdus_; }
  /// Stream offset of the first FPDU; empty: the start frame is not complete, or the opposite one.
  [[nodiscard]] std::optional<uint64_t> full_operation() const {
    if (!start_ || opposite_ == nullptr || !opposite_->start_) return std::nullopt;
    return full_operation_;
  }
  /// The stream has MPA's markers; with full_operation().
  [[nodiscard]] bool has_markers() const { return opposite_->start_->markers; }
  /// Stream offset of the first octet not yet delivered.
  [[nodiscard]] uint64_t position() const { return next_; }

 private:
  struct Segment {
    uint64_t begin;
    std::vector<uint8_t> octets;
    [[nodiscard]] uint64_t end() const { return begin + octets.size(); }
  };
  enum class Attempt : uint8_t { Done, Incomplete, Broken };
  using Excluded = std::vector<const Segment*>;

  bool advance();
  bool take_start_frame();
  bool take_fpdu();
  bool believe_one(const Excluded& suspects);
  // reference_tuf.cpp
  bool take_tuf_start();
  bool take_tuf();
  bool take_framing_pdu(bool prefixed);
  bool take_marked_pdu(uint64_t interval);
  Attempt try_fpdu(const Excluded& without);
  /// The stream from `next_` on, at most `limit` octets, first arrival wins.
  void assemble(const Excluded& without, uint64_t limit);
  void consume(uint64_t octets);
  void ulpdu(base::ByteView ulpdu);
  void tagged_segment(base::ByteView ulpdu);
  void untagged_segment(base::ByteView ulpdu);
  void finish(WireMessage& message);

  std::string name_;
  Verdict& verdict_;
  Deliver deliver_;
  const ReferenceReceiver* opposite_ = nullptr;
  std::list<Segment> segments_;  // in order of arrival
  std::vector<uint8_t> assembled_;
  std::vector<uint8_t> content_;  // of the FPDU that is tried: without markers
  std::vector<uint8_t> covered_;  // what its CRC covers
  uint64_t attempted_ = 0;        // octets of the FPDU at `next_`, as its length says
  uint64_t next_ = 0;
  std::optional<StartFrame> start_;
  uint64_t full_operation_ = 0;  // stream offset of the first FPDU's first octet
  uint64_t fpdus_ = 0;
  bool awaits_go_ = false;   // ULP framing
  uint64_t frame_left_ = 0;  // ULP framing: of the framing PDU in hand
  bool dead_ = false;        // a Terminate has passed: nothing behind it counts
  WireMessage tagged_;       // being put together
  bool tagged_open_ = false;
  WireMessage untagged_;
  bool untagged_open_ = false;
};

/// CRC32C, one octet at a time.
[[nodiscard]] uint32_t plain_crc32c(base::ByteView octets);

}  // namespace rnic::simulation
