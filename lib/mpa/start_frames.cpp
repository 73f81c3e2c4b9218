#include "mpa/start_frames.hpp"

#include <algorithm>
#include <cstring>

namespace rnic::mpa {

StartFrameParser::StartFrameParser(framing::Role role, const Config& config, uint8_t most)
    : config_(config), buffer_(std::make_unique<uint8_t[]>(kFrameMax)), role_(role), most_(most) {}

size_t StartFrameParser::feed(base::ByteView octets) {
  size_t used = 0;
  while (used < octets.size() && wanted() != 0) {
    const size_t n = std::min(wanted(), octets.size() - used);
    std::memcpy(buffer_.get() + have_, octets.data() + used, n);
    const size_t from = have_;
    have_ += n;
    used += n;
    if (from < wire::kMpaKeySize) check_key(from);
    if (!failure_ && !header_ && have_ == wire::kMpaStartHeaderSize) check_header();
  }
  return used;
}

size_t StartFrameParser::frame_part(base::ByteView octets) const {
  if (wanted() == 0) return 0;
  if (header_) return std::min(octets.size(), wanted());
  if (have_ + octets.size() < wire::kMpaStartHeaderSize) return octets.size();
  const auto at = [&](size_t i) { return i < have_ ? buffer_[i] : octets[i - have_]; };
  constexpr size_t kLengthAt = wire::kMpaStartHeaderSize - 2;
  const size_t length = size_t{at(kLengthAt)} << 8 | at(kLengthAt + 1);
  return std::min(octets.size(), wire::kMpaStartHeaderSize + length - have_);
}

base::ByteView StartFrameParser::private_data() const {
  return {buffer_.get() + wire::kMpaStartHeaderSize, header_->pd_length};
}

// RFC 5044 s.7.1.2 rules 5 and 8.
void StartFrameParser::check_key(size_t from) {
  const bool initiator = role_ == framing::Role::Initiator;
  const wire::MpaKey& wanted = initiator ? wire::kMpaReplyKey : wire::kMpaRequestKey;
  const size_t end = std::min(have_, wire::kMpaKeySize);
  for (size_t i = from; i < end; ++i) {
    const uint8_t octet = buffer_[i];
    if (octet == wanted[i] && !(other_key_ && wire::kMpaRequestKey[i] != octet)) continue;
    const bool request_so_far = initiator && octet == wire::kMpaRequestKey[i];
    if (!request_so_far) {
      failure_ = framing::StartFailure::BadKey;
      return;
    }
    other_key_ = true;
  }
  if (other_key_ && have_ >= wire::kMpaKeySize) failure_ = framing::StartFailure::BothInitiators;
}

void StartFrameParser::check_header() {
  header_ = wire::parse_mpa_start_header({buffer_.get(), have_});
  if (!revision_fits(config_, most_, header_->revision)) {
    failure_ = framing::StartFailure::BadRevision;
  } else if (header_->revision == 0) {
    if (header_->pd_length <= wire::kMpaPrivateDataMax) return;
    // draft-ietf-rddp-mpa-00 s.8.1.1: up to 65535 octets.
    auto longer = std::make_unique<uint8_t[]>(frame_size());
    std::memcpy(longer.get(), buffer_.get(), have_);
    buffer_ = std::move(longer);
  } else if (header_->pd_length > wire::kMpaPrivateDataMax ||
             (header_->enhanced && header_->pd_length < wire::kMpaEnhancedSize)) {
    failure_ = framing::StartFailure::BadLength;
  }
}

std::vector<uint8_t> make_start_frame(const wire::MpaKey& key, const StartPlan& plan,
                                      base::ByteView private_data) {
  wire::MpaStartHeader header = plan.header;
  const size_t prefix = prefix_size(plan);
  header.pd_length = static_cast<uint16_t>(prefix + private_data.size());
  std::vector<uint8_t> frame(wire::kMpaStartHeaderSize + header.pd_length);
  write_mpa_start_header(frame.data(), key, header);
  uint8_t* data = frame.data() + wire::kMpaStartHeaderSize;
  emit_prefix(plan, data);
  std::copy(private_data.begin(), private_data.end(), data + prefix);
  return frame;
}

}  // namespace rnic::mpa
