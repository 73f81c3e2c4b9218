#include "tuf/framed_stream.hpp"

#include "base/check.hpp"
#include "base/fail.hpp"

namespace rnic::tuf {

using base::fail;

FramedStream::FramedStream(const StreamConfig& config, Counters& counters,
                           FramedStreamEvents* events, StreamRings rings)
    : counters_(counters),
      events_(events),
      own_rings_(rings.send == nullptr ? std::make_unique<uint8_t[]>(2 * size_t{config.ring_octets})
                                       : nullptr),
      sender_(config, own_rings_ ? own_rings_.get() : rings.send, counters),
      receiver_(config, own_rings_ ? own_rings_.get() + config.ring_octets : rings.receive,
                counters) {
  RNIC_CHECK(config.ring_octets >= kRingMin && config.framing.format.head() <= kPduHeadMax);
}

// --- modes ---

bool FramedStream::supports(FramedSendMode mode) const {
  return !begins_segment(mode) || stream_ == nullptr || stream_->traits().atomic_records;
}

bool FramedStream::supports(FramedReceiveMode mode) const {
  return mode != FramedReceiveMode::Align || stream_ == nullptr || stream_->traits().shows_segments;
}

Status FramedStream::set_send_mode(FramedSendMode mode, wire::TufKey key) {
  if (!supports(mode)) {
    return fail(ErrorCode::Unsupported,
                std::string("send mode ") + to_string(mode) +
                    ": the transport does not keep records whole; use markers");
  }
  Status status = sender_.set_mode(mode, key);
  if (status) tell_emss();
  return status;
}

Status FramedStream::set_receive_mode(FramedReceiveMode mode, wire::TufKey key) {
  if (!supports(mode)) {
    return fail(ErrorCode::Unsupported, std::string("receive mode ") + to_string(mode) +
                                            ": the transport does not show segments; use markers");
  }
  return receiver_.set_mode(mode, key);
}

Status FramedStream::set_send_interval(uint16_t octets) {
  Status status = sender_.set_interval(octets);
  if (status) tell_emss();
  return status;
}

// --- application side ---

SendResult FramedStream::send(base::ByteView pdu) {
  if (closed_.load(std::memory_order_acquire) || how_ended()) return SendResult::Closed;
  return sender_.send(pdu);
}

// --- owner's side ---

void FramedStream::serve() {
  if (stream_ == nullptr) return;
  if (sender_.has_unsent()) stream_->ready();
  if (receiver_.take_room_news()) stream_->room_grew();
}

void FramedStream::close() {
  closed_.store(true, std::memory_order_release);
  if (stream_ != nullptr) stream_->close();
}

/// Tells the ULP of each change of the size that it can submit without being fragmented (s.3).
void FramedStream::tell_emss() {
  const uint32_t usable = usable_emss();
  if (usable == told_emss_) return;
  told_emss_ = usable;
  ++counters_.emss_notices;
  if (events_ != nullptr) events_->emss_changed(usable);
}

// --- llp::StreamUser ---

void FramedStream::established(uint32_t emss, base::Now) {
  sender_.established(emss);
  tell_emss();
  peer_half_.set(llp::PeerHalf::Open);
  serve();
}

llp::Pulled FramedStream::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now) {
  return sender_.pull(n, offset, out);
}

bool FramedStream::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                           llp::Frame& out) {
  sender_.rebuild(tag, offset, length, out);
  return true;
}

llp::InspectVerdict FramedStream::inspect(base::Range range, base::ByteView, base::Now) {
  return receiver_.inspect(range);
}

void FramedStream::place(base::Range range, base::ByteView octets, bool in_order, base::Now) {
  if (receiver_.place(range, octets, in_order) && events_ != nullptr) {
    events_->middlebox_suspected();
  }
}

void FramedStream::emss_changed(uint32_t emss) {
  sender_.emss_changed(emss);
  tell_emss();
}

void FramedStream::peer_finished(base::Now) { peer_half_.set(llp::PeerHalf::Finished); }

void FramedStream::ended(StreamEnd how, base::Now) {
  stream_ = nullptr;
  end_.set(how);
}

}  // namespace rnic::tuf
