/// \file
/// The start frames of a session as octets: ours as they are made, the peer's until it is whole.
/// They know no events and no stream: the session asks and acts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// A Request or a Reply. When it throws (there is no memory), nothing has changed.
// Where it is inlined GCC 12 takes the vector for empty and warns of what is written to it.
[[nodiscard, gnu::noinline]] inline std::vector<uint8_t> make_start_frame(
    const wire::TufMagic& magic, const wire::TufStart& start, base::ByteView private_data) {
  std::vector<uint8_t> octets(wire::kTufStartSize + private_data.size());
  wire::TufStart frame = start;
  frame.private_data = static_cast<uint16_t>(private_data.size());
  wire::write_tuf_start(octets.data(), magic, frame);
  std::copy(private_data.begin(), private_data.end(), octets.begin() + wire::kTufStartSize);
  return octets;
}
/// Go, which has nothing but its magic.
[[nodiscard]] inline std::vector<uint8_t> make_go() {
  return {wire::kTufGoMagic.begin(), wire::kTufGoMagic.end()};
}

/// The start frame that is being received, and how far into the stream it has come.
class StartFrameReader {
 public:
  /// The next octets of the stream, which belong to the frame.
  void take(base::ByteView piece) {
    octets_.insert(octets_.end(), piece.begin(), piece.end());
    received_ += piece.size();
  }
  /// Stream offset behind the octets that were taken.
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] base::ByteView view() const { return octets_; }
  /// A Request's or Reply's header, once its octets are there.
  [[nodiscard]] wire::TufStart header() const { return *wire::parse_tuf_start(octets_); }
  /// Gives the octets of a frame that was acted on away; the next frame may come.
  [[nodiscard]] std::vector<uint8_t> release() { return std::exchange(octets_, {}); }

  /// Octets until the next decision; 0: the frame is whole. \param go the frame is a Go
  [[nodiscard]] size_t wanted(bool go) const {
    if (go) return wire::kTufGoSize - octets_.size();
    if (octets_.size() < wire::kTufStartSize) return wire::kTufStartSize - octets_.size();
    return wire::kTufStartSize + header().private_data - octets_.size();
  }
  /// Whether the octets so far can be those of a frame with this magic.
  [[nodiscard]] bool is_right(const wire::TufMagic& magic) const {
    const size_t n = std::min(octets_.size(), magic.size());
    if (!std::equal(octets_.begin(), octets_.begin() + static_cast<long>(n), magic.begin())) {
      return false;
    }
    if (&magic == &wire::kTufGoMagic || octets_.size() < wire::kTufStartSize) return true;
    const wire::TufStart start = header();
    return start.version == wire::kTufVersion && start.private_data <= wire::kTufPrivateDataMax;
  }
  void validate() const {
    RNIC_CHECK(octets_.size() <= received_);
    RNIC_CHECK(octets_.size() <= wire::kTufStartSize + wire::kTufPrivateDataMax);
  }

 private:
  std::vector<uint8_t> octets_;
  uint64_t received_ = 0;
};

}  // namespace rnic::tuf
