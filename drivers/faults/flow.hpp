/// \file
/// Flow: what one side of a connection has sent, followed from its SYN on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/bytes.hpp"
#include "base/endian.hpp"
#include "base/seq32.hpp"
#include "faults/fpdu_walk.hpp"
#include "offload/offload.hpp"
#include "rnic/address.hpp"
#include "wire/mpa.hpp"
#include "wire/tcp.hpp"

namespace rnic::faults {

/// The two ends of a TCP segment.
struct FlowEnds {
  Endpoint sender;
  Endpoint receiver;

  [[nodiscard]] static FlowEnds of(base::ByteView frame, const offload::TcpLayout& at) {
    const uint8_t* ip = frame.data() + at.ip;
    const uint8_t* tcp = frame.data() + at.tcp;
    const auto address = [&](uint32_t v4, uint32_t v6) {
      return at.v4 ? IpAddress::v4(base::load_be32(ip + v4))
                   : IpAddress{base::load_be64(ip + v6), base::load_be64(ip + v6 + 8)};
    };
    return {{address(12, 8), base::load_be16(tcp + wire::kTcpSourcePortAt)},
            {address(16, 24), base::load_be16(tcp + wire::kTcpDestinationPortAt)}};
  }
  [[nodiscard]] FlowEnds reversed() const { return {receiver, sender}; }
  friend bool operator==(const FlowEnds&, const FlowEnds&) = default;
};

/// Reads the start frame, and then walks from FPDU to FPDU.
class Flow {
 public:
  /// The most CRCs of one flow that are to be wrong.
  static constexpr uint32_t kMostSpoiled = 16;

  Flow() = default;
  /// \param isn the sequence number of the SYN
  Flow(const FlowEnds& ends, base::Seq32 isn) : ends_(ends), isn_(isn), next_(isn + 1) {}

  [[nodiscard]] const FlowEnds& ends() const { return ends_; }
  [[nodiscard]] base::Seq32 isn() const { return isn_; }
  [[nodiscard]] bool is_followed() const { return stage_ != Stage::Foreign; }
  /// \return whether nothing more comes of it
  [[nodiscard]] bool is_over() const { return over_; }
  void set_over() { over_ = true; }

  /// Octets that the peer has sent: its start frame, which comes before this side's first FPDU,
  /// says whether it wants markers.
  void peer_sent(base::ByteView octets) {
    if (peer_known_ || octets.size() <= wire::kMpaFlagsAt || !is_start_frame(octets)) return;
    peer_known_ = true;
    walk_.set_markers((octets[wire::kMpaFlagsAt] & wire::kMpaFlagMarkers) != 0);
  }
  /// Octets that this side sends. Calls `visit(part)` for the FPDUs of which it brings octets that
  /// were never sent before; offsets are those in `octets`. \return false: octets in front of them
  /// have not passed, so that from here on nothing is known
  template <typename F>
  [[nodiscard]] bool sent(base::Seq32 seq, base::ByteView octets, F&& visit) {
    if (base::before(next_, seq)) {
      const bool was_followed = is_followed();
      stage_ = Stage::Foreign;
      return !was_followed;
    }
    const uint32_t known = next_ - seq;
    if (known >= octets.size()) return true;
    base::ByteView fresh = octets.subspan(known);
    next_ += static_cast<uint32_t>(fresh.size());
    if (stage_ == Stage::Start) fresh = fresh.subspan(take_start(fresh));
    if (stage_ != Stage::Fpdus) return true;
    const auto at = static_cast<uint32_t>(octets.size() - fresh.size());
    walk_.take(fresh, [&](FpduPart part) {
      part.begin += at;
      part.end += at;
      visit(part);
    });
    return true;
  }

  /// The octet with that number is changed each time that it is sent.
  void spoil(base::Seq32 seq) { spoiled_[spoiled_count_++ % kMostSpoiled] = seq; }
  /// Calls `visit(offset)` for each such octet of a segment.
  template <typename F>
  void for_each_spoiled(base::Seq32 seq, uint32_t octets, F&& visit) const {
    for (uint32_t i = 0; i < std::min(spoiled_count_, kMostSpoiled); ++i) {
      // Sequence numbers come again after 4 GB: an octet so far back has long been acknowledged.
      const bool recent = next_ - spoiled_[i] < kRecent;
      if (recent && base::within(spoiled_[i], seq, seq + octets)) visit(spoiled_[i] - seq);
    }
  }

 private:
  enum class Stage : uint8_t {
    Start,  // octets of the start frame are to come
    Fpdus,
    Foreign,  // it is no MPA, or octets have gone past
  };
  static constexpr uint32_t kRecent = 1u << 30;

  [[nodiscard]] static bool is_start_frame(base::ByteView octets) {
    const auto begins = [&](const wire::MpaKey& key) {
      return std::equal(key.begin(), key.end(), octets.begin());
    };
    return begins(wire::kMpaRequestKey) || begins(wire::kMpaReplyKey);
  }
  /// \return how many of the octets belong to the start frame
  size_t take_start(base::ByteView octets) {
    const size_t head = std::min(octets.size(), start_.size() - start_have_);
    std::copy_n(octets.begin(), head, start_.begin() + start_have_);
    start_have_ += static_cast<uint32_t>(head);
    if (start_have_ != start_.size()) return head;
    if (head != 0) begin_private_data();
    const size_t data = std::min<size_t>(octets.size() - head, start_left_);
    start_left_ -= static_cast<uint32_t>(data);
    if (start_left_ == 0 && stage_ == Stage::Start) stage_ = Stage::Fpdus;
    return head + data;
  }
  void begin_private_data() {
    const auto header = wire::parse_mpa_start_header(start_);
    start_left_ = header->pd_length;
    if (!is_start_frame(start_) || header->reject) stage_ = Stage::Foreign;
  }

  FlowEnds ends_;
  base::Seq32 isn_;
  base::Seq32 next_;  // behind all octets that were sent
  Stage stage_ = Stage::Start;
  bool over_ = false;
  bool peer_known_ = false;  // its start frame has come
  std::array<uint8_t, wire::kMpaStartHeaderSize> start_{};
  uint32_t start_have_ = 0;
  uint32_t start_left_ = 0;  // octets of private data that are to come
  FpduWalk walk_;
  std::array<base::Seq32, kMostSpoiled> spoiled_{};
  uint32_t spoiled_count_ = 0;
};

}  // namespace rnic::faults
