/// \file
/// The start frames of a session as octets: ours until they are acknowledged, the peer's until it
/// is whole. They know no events and no stream: the session asks and acts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "llp/frame.hpp"
#include "wire/tuf.hpp"

namespace rnic::tuf {

/// The start frame that this side sends. It stays until the next one is set, for retransmission.
class StartFrameSender {
 public:
  /// A Request or a Reply. When it throws (there is no memory), nothing has changed.
  void set(const wire::TufMagic& magic, const wire::TufStart& start, base::ByteView private_data) {
    octets_.resize(wire::kTufStartSize + private_data.size());
    wire::TufStart frame = start;
    frame.private_data = static_cast<uint16_t>(private_data.size());
    wire::write_tuf_start(octets_.data(), magic, frame);
    std::copy(private_data.begin(), private_data.end(), octets_.begin() + wire::kTufStartSize);
    sent_ = 0;
  }
  /// Go, which has nothing but its magic.
  void set_go() {
    octets_.assign(wire::kTufGoMagic.begin(), wire::kTufGoMagic.end());
    sent_ = 0;
  }

  [[nodiscard]] bool is_sent() const { return sent_ == octets_.size(); }

  /// Writes what fits; the first call fixes the frame's place in the stream. \return octets.
  uint32_t emit(uint32_t n, uint64_t offset, llp::Frame& out) {
    if (sent_ == 0) begin_ = offset;
    const auto length =
        static_cast<uint32_t>(std::min<size_t>({n, out.room_left(), octets_.size() - sent_}));
    if (length == 0) return 0;
    std::copy_n(octets_.begin() + static_cast<long>(sent_), length, out.append(length));
    sent_ += length;
    return length;
  }
  bool rebuild(uint64_t offset, uint32_t length, llp::Frame& out) const {
    if (offset < begin_ || offset - begin_ + length > octets_.size()) return false;
    std::copy_n(octets_.begin() + static_cast<long>(offset - begin_), length, out.append(length));
    return true;
  }

 private:
  std::vector<uint8_t> octets_;
  uint64_t begin_ = 0;  // stream offset of octets_[0]
  size_t sent_ = 0;     // Invariant: <= octets_.size()
};

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

 private:
  std::vector<uint8_t> octets_;
  uint64_t received_ = 0;
};

}  // namespace rnic::tuf
