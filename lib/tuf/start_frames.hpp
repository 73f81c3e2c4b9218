/// \file
/// The start frames of a session as octets: makes ours and collects the peer's. Nothing here has a
/// stream or calls anybody: the session asks and acts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// Makes a Request or a Reply. When this throws (there is no memory), nothing has changed.
// If this is inlined, GCC 12 takes the vector for empty and warns of the writes to it.
[[nodiscard, gnu::noinline]] inline std::vector<uint8_t> make_start_frame(
    const wire::TufMagic& magic, const wire::TufStart& start, base::ByteView private_data) {
  std::vector<uint8_t> octets(wire::kTufStartSize + private_data.size());
  wire::TufStart frame = start;
  frame.private_data = static_cast<uint16_t>(private_data.size());
  wire::write_tuf_start(octets.data(), magic, frame);
  std::copy(private_data.begin(), private_data.end(), octets.begin() + wire::kTufStartSize);
  return octets;
}
/// Makes Go, which has nothing but its magic.
[[nodiscard]] inline std::vector<uint8_t> make_go() {
  return {wire::kTufGoMagic.begin(), wire::kTufGoMagic.end()};
}

/// The start frame that is being received, and the stream offset that has been reached.
class StartFrameReader {
 public:
  /// Takes the next octets of the stream, which belong to the frame.
  void take(base::ByteView piece) {
    octets_.insert(octets_.end(), piece.begin(), piece.end());
    received_ += piece.size();
  }
  /// Stream offset behind the octets that were taken.
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] base::ByteView view() const { return octets_; }
  /// The header of a Request or Reply; its octets must be there.
  [[nodiscard]] wire::TufStart header() const { return *wire::parse_tuf_start(octets_); }
  /// Gives away the octets of a whole frame, so that the next frame may come.
  [[nodiscard]] std::vector<uint8_t> release() { return std::exchange(octets_, {}); }

  /// The number of octets needed for the next decision; 0: the frame is whole. \param go the frame
  /// is a Go
  [[nodiscard]] size_t wanted(bool go) const {
    if (go) return wire::kTufGoSize - octets_.size();
    if (octets_.size() < wire::kTufStartSize) return wire::kTufStartSize - octets_.size();
    return wire::kTufStartSize + header().private_data - octets_.size();
  }
  /// The octets so far can be those of a frame with this magic.
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
