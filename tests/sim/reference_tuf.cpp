// ULP framing (draft-ietf-tsvwg-tcp-ulp-frame-00), octet by octet. There is no CRC: what arrives is
// right, or this says so.
#include "reference_receiver.hpp"

namespace rnic::simulation {

namespace {

constexpr uint64_t kStart = 32;
constexpr uint64_t kGo = 8;
constexpr uint8_t kAlign = 1;

uint32_t two(const uint8_t* p) { return uint32_t{p[0]} << 8 | p[1]; }
uint64_t six(const uint8_t* p) {
  uint64_t value = 0;
  for (int i = 0; i < 6; ++i) value = value << 8 | p[i];
  return value;
}

}  // namespace

bool ReferenceReceiver::take_tuf_start() {
  assemble({}, kStart);
  if (assembled_.size() < kStart) return false;
  const uint64_t length = kStart + two(&assembled_[24]);
  assemble({}, length);
  if (assembled_.size() < length) return false;
  StartFrame frame;
  frame.tuf = true;
  frame.reply = assembled_[6] == 'p';
  frame.rejected = (assembled_[9] & 0x80) != 0;
  frame.packing = (assembled_[9] & 0x40) != 0;
  frame.chosen_send = assembled_[12];
  frame.chosen_receive = assembled_[13];
  frame.interval = two(&assembled_[14]);
  frame.key = six(&assembled_[18]);
  start_ = frame;
  consume(length);
  awaits_go_ = !frame.reply;
  full_operation_ = next_;
  return true;
}

bool ReferenceReceiver::take_tuf() {
  const StartFrame& own = *start_;
  const StartFrame& other = *opposite_->start();
  if (awaits_go_) {
    assemble({}, kGo);
    if (assembled_.size() < kGo) return false;
    if (!std::equal(assembled_.begin(), assembled_.end(), "TUF Go  ")) {
      verdict_.fail("reference", name_ + ": framed octets before Go");
      return false;
    }
    consume(kGo);
    awaits_go_ = false;
    full_operation_ = next_;
    return true;
  }
  const uint8_t mode = own.reply ? own.chosen_send : other.chosen_receive;
  if (mode == kAlign) return take_framing_pdu(own.packing && other.packing);
  return take_marked_pdu(other.interval);
}

bool ReferenceReceiver::take_framing_pdu(bool prefixed) {
  if (frame_left_ == 0) {
    assemble({}, 8);
    if (assembled_.size() < 8) return false;
    frame_left_ = two(assembled_.data());
    if (six(&assembled_[2]) != start_->key || frame_left_ == 0) {
      verdict_.fail("reference", name_ + ": no framing PDU of this direction at stream octet " +
                                     std::to_string(next_));
      return false;
    }
    consume(8);
    return true;
  }
  // A PDU counts when it is there, its framing PDU need not be.
  uint64_t length = frame_left_;
  if (prefixed) {
    assemble({}, 2);
    if (assembled_.size() < 2) return false;
    length = 2 + two(assembled_.data());
  }
  if (length > frame_left_) {
    verdict_.fail("reference", name_ + ": PDUs that do not fill their framing PDU");
    return false;
  }
  assemble({}, length);
  if (assembled_.size() < length) return false;
  const std::vector<uint8_t> pdu(assembled_.begin() + (prefixed ? 2 : 0), assembled_.end());
  consume(length);
  frame_left_ -= length;
  ++fpdus_;
  ulpdu(pdu);
  return true;
}

bool ReferenceReceiver::take_marked_pdu(uint64_t interval) {
  assemble({}, 70'000);
  std::vector<uint8_t> content;
  std::vector<std::pair<uint64_t, uint64_t>> markers;  // stream offset of the end, what it says
  size_t at = 0;
  while (content.size() < 2 || content.size() < 2 + two(content.data())) {
    if ((next_ + at - full_operation_) % interval == 0) {
      if (at + 4 > assembled_.size()) return false;
      const uint32_t pointer = two(&assembled_[at]);
      const bool front = content.empty();
      if (pointer != two(&assembled_[at + 2]) || (front && pointer != 0)) {
        verdict_.fail("reference", name_ + ": a marker that contradicts itself");
        return false;
      }
      at += 4;
      if (!front) markers.emplace_back(next_ + at, pointer);
      continue;
    }
    if (at == assembled_.size()) return false;
    content.push_back(assembled_[at++]);
  }
  const uint64_t end = next_ + at;
  const uint64_t next_pdu = (end - full_operation_) % interval == 0 ? end + 4 : end;
  for (const auto& [behind, pointer] : markers) {
    if (behind + pointer == next_pdu) continue;
    verdict_.fail("reference", name_ + ": a marker does not point to the next PDU");
    return false;
  }
  consume(at);
  ++fpdus_;
  ulpdu(base::ByteView(content).subspan(2));
  return true;
}

}  // namespace rnic::simulation
