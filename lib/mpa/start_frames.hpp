/// \file
/// The start frames of a session as octets (RFC 5044 s.7.1): collects the peer's frame and makes
/// ours. Nothing here has a stream or calls anybody: the session asks and acts.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "framing/start.hpp"
#include "mpa/config.hpp"
#include "mpa/negotiation.hpp"
#include "wire/mpa.hpp"

namespace rnic::mpa {

/// Collects one start frame from pieces of any size, and finds an error at the first wrong octet.
class StartFrameParser {
 public:
  /// `most`: the highest revision that is understood.
  StartFrameParser(framing::Role role, const Config& config, uint8_t most);

  /// Takes octets up to the end of the frame. \return how many.
  size_t feed(base::ByteView octets);

  /// Octets until the next decision; 0 when the frame is complete or wrong.
  [[nodiscard]] size_t wanted() const {
    if (failure_ || complete()) return 0;
    return (header_ ? frame_size() : wire::kMpaStartHeaderSize) - have_;
  }
  /// The number of octets of `octets`, which come next, that belong to the frame, as far as its
  /// header is among them.
  [[nodiscard]] size_t frame_part(base::ByteView octets) const;
  [[nodiscard]] bool empty() const { return have_ == 0; }
  [[nodiscard]] bool complete() const { return header_ && have_ == frame_size(); }
  [[nodiscard]] std::optional<framing::StartFailure> failure() const { return failure_; }
  [[nodiscard]] const wire::MpaStartHeader& header() const { return *header_; }
  /// The private data, including the prefix that read_offer() takes off.
  [[nodiscard]] base::ByteView private_data() const;
  /// Gives the buffer back once nobody reads the private data any more.
  void release() { buffer_.reset(); }
  /// Checks that no more was taken than the frame has.
  void validate() const {
    RNIC_CHECK(have_ <= (header_ && !failure_ ? frame_size() : kFrameMax));
    RNIC_CHECK(!header_ || have_ >= wire::kMpaStartHeaderSize);
  }

 private:
  static constexpr size_t kFrameMax = wire::kMpaStartHeaderSize + wire::kMpaPrivateDataMax;

  [[nodiscard]] size_t frame_size() const { return wire::kMpaStartHeaderSize + header_->pd_length; }
  void check_key(size_t from);
  void check_header();

  const Config& config_;
  std::unique_ptr<uint8_t[]> buffer_;
  size_t have_ = 0;  // Invariant: <= kFrameMax; for a frame of revision 0 <= its size
  std::optional<wire::MpaStartHeader> header_;
  std::optional<framing::StartFailure> failure_;
  framing::Role role_;
  uint8_t most_;
  bool other_key_ = false;  // initiator: the octets so far are those of the Request's key
};

/// The octets of a Request or Reply.
[[nodiscard]] std::vector<uint8_t> make_start_frame(const wire::MpaKey& key, const StartPlan& plan,
                                                    base::ByteView private_data);

}  // namespace rnic::mpa
