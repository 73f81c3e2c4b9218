#include "device/burst_order.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/endian.hpp"
#include "wire/ether.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/tcp.hpp"

namespace rnic::device {

namespace {

using base::Seq32;

constexpr uint32_t kStamped = wire::kTcpHeaderMin + 12;  // header with timestamps, padded
constexpr uint32_t kTimestampsHead = 0x0101080a;         // NOP NOP TSopt (RFC 7323 appendix A)

/// Where the TCP segment of a packet stands.
struct TcpPart {
  const uint8_t* tcp = nullptr;
  uint32_t octets = 0;
  const uint8_t* flow = nullptr;  // the addresses, with the ports behind them
};

bool open4(const uint8_t* ip, uint32_t room, TcpPart& part) {
  constexpr uint16_t kFragment = wire::kIpv4MoreFragments | wire::kIpv4OffsetMask;
  if (room < wire::kIpv4Header || ip[0] != 0x45) return false;
  const uint32_t length = base::load_be16(ip + wire::kIpv4LengthAt);
  if (ip[wire::kIpv4ProtocolAt] != wire::kProtocolTcp || length > room) return false;
  if ((base::load_be16(ip + wire::kIpv4FragmentAt) & kFragment) != 0) return false;
  if (length < wire::kIpv4Header + wire::kTcpHeaderMin) return false;
  part = {ip + wire::kIpv4Header, length - wire::kIpv4Header, ip + wire::kIpv4SourceAt};
  return true;
}

bool open6(const uint8_t* ip, uint32_t room, TcpPart& part) {
  if (room < wire::kIpv6Header || ip[0] >> 4 != 6) return false;
  const uint32_t length = base::load_be16(ip + wire::kIpv6LengthAt);
  if (ip[wire::kIpv6NextHeaderAt] != wire::kProtocolTcp) return false;
  if (length > room - wire::kIpv6Header || length < wire::kTcpHeaderMin) return false;
  part = {ip + wire::kIpv6Header, length, ip + wire::kIpv6SourceAt};
  return true;
}

}  // namespace

/// \return false: no segment, one whose lengths are wrong, or an ACK alone, which no order is asked
/// of
bool BurstOrder::read(const port::Packet& frame, Segment& segment) {
  namespace flag = wire::tcp_flag;
  uint32_t at = wire::kEtherHeader;
  if (frame.length < at + wire::kVlanTag) return false;
  uint16_t type = base::load_be16(frame.data + wire::kEtherTypeAt);
  if (type == wire::kEtherTypeVlan) {
    type = base::load_be16(frame.data + wire::kVlanTypeAt);
    at += wire::kVlanTag;
  }
  TcpPart part;
  if (type == wire::kEtherTypeIpv4) {
    if (!open4(frame.data + at, frame.length - at, part)) return false;
    segment.flow_octets = kFlow4;
  } else {
    if (type != wire::kEtherTypeIpv6) return false;
    if (!open6(frame.data + at, frame.length - at, part)) return false;
    segment.flow_octets = kFlow6;
  }
  const uint32_t header = (part.tcp[wire::kTcpDataOffsetAt] >> 4) * 4;
  if (header < wire::kTcpHeaderMin || header > part.octets) return false;
  const uint32_t text = part.octets - header;
  const uint8_t flags = part.tcp[wire::kTcpFlagsAt];
  if (text == 0 && flags == flag::kAck) return false;
  segment.flow = part.flow;
  segment.begin = Seq32(base::load_be32(part.tcp + wire::kTcpSequenceAt));
  segment.end = segment.begin + text;
  const uint8_t* const options = part.tcp + wire::kTcpOptionsAt;
  const bool stamped = header == kStamped && base::load_be32(options) == kTimestampsHead;
  if (stamped) segment.stamp = base::load_be32(options + 4);
  segment.plain = text != 0 && (flags & ~flag::kPsh) == flag::kAck &&
                  (stamped || header == wire::kTcpHeaderMin);
  return true;
}

void BurstOrder::Lane::begin(const Segment& segment) {
  std::copy_n(segment.flow, segment.flow_octets, flow.data());
  flow_octets = segment.flow_octets;
  knows_end = false;
}

bool BurstOrder::Lane::add(const Segment& segment, uint32_t index) {
  if (!segment.plain) plain = false;
  const Seq32 stamp(segment.stamp);
  uint32_t at = count++;
  // What bears a later timestamp was sent again. Put before an older one it would make that one
  // look like a duplicate from long ago (RFC 7323 s.5.3, R1).
  for (; at != 0; --at) {
    const Place& before = places[at - 1];
    if (!base::before(segment.begin, before.begin) || base::after(stamp, before.stamp)) break;
    places[at] = before;
  }
  places[at] = {segment.begin, segment.end, stamp, index};
  return plain && at + 1 != count;
}

uint32_t BurstOrder::Lane::settle(uint32_t waited, uint32_t room) {
  constexpr uint32_t kFar = 1u << 26;  // no peer has so much under way
  taken = count;
  if (!plain) knows_end = false;
  if (!plain || count == 0) return 0;
  // The number may also be of a frame that was damaged, since nothing has been checked.
  const Seq32 first = places[0].begin;
  if (!knows_end || (base::before(first, end) && end - first > kFar)) end = first;
  knows_end = true;
  uint32_t at = 0;
  for (; at != count && !base::after(places[at].begin, end); ++at) {
    if (base::after(places[at].end, end)) end = places[at].end;
  }
  const uint32_t behind = count - at;
  const auto has_waited = [&](const Place& place) { return place.index < waited; };
  if (behind <= room && std::none_of(&places[at], &places[count], has_waited)) {
    taken = at;
    return behind;
  }
  for (; at != count; ++at) {
    if (base::after(places[at].end, end)) end = places[at].end;
  }
  return 0;
}

void BurstOrder::begin_to_look() {
  if (rest_ != 0) {
    --rest_;
    return;
  }
  left_ = kLooks;
  most_fresh_ = kMostFresh;
  disorder_ = 0;
  for (Lane& lane : lanes_) lane.flow_octets = 0;  // what they know is from long ago
}

uint8_t BurstOrder::lane_of(const Segment& segment) {
  if (lanes_[last_lane_].is_of(segment)) return last_lane_;
  for (uint8_t i = 0; i != kLanes; ++i) {
    if (lanes_[i].is_of(segment)) return last_lane_ = i;
  }
  for (uint8_t tried = 0; tried != kLanes; ++tried) {
    const uint8_t next = next_lane_++ % kLanes;
    if (lanes_[next].count != 0) continue;
    lanes_[next].begin(segment);
    return last_lane_ = next;
  }
  return kNoLane;
}

uint8_t BurstOrder::enter(const port::Packet& frame, uint32_t index) {
  Segment segment;
  if (!read(frame, segment)) return kNoLane;
  const uint8_t lane = lane_of(segment);
  if (lane == kNoLane || !lanes_[lane].add(segment, index)) return lane;
  overtaken_ = true;
  ++counters_.overtaken_in;
  return lane;
}

uint32_t BurstOrder::arrange(std::span<port::Packet> burst) {
  RNIC_DCHECK(on() && held_ <= burst.size() && burst.size() <= kMost);
  --left_;
  overtaken_ = false;
  for (Lane& lane : lanes_) lane.plain = true;
  const auto frames = static_cast<uint32_t>(burst.size());
  for (uint32_t i = held_; i != frames; ++i) lane_of_frame_[i] = enter(burst[i], i);
  const bool waited = held_ != 0;
  settle();
  if (overtaken_ || waited || held_ != 0) move(burst);
  keep_held();
  if (!on()) {
    rest_ = kRest;
    most_fresh_ = kBurst;
  }
  return frames - held_;
}

void BurstOrder::settle() {
  if (overtaken_) {
    disorder_ = std::min(disorder_ + kDisorder, kMostDisorder);
  } else if (disorder_ != 0) {
    --disorder_;
  }
  const bool high = disorder_ >= kHighDisorder;
  if (high) left_ = kLooks;
  const uint32_t most = high ? kMostHeld : 0;
  held_ = 0;
  for (Lane& lane : lanes_) held_ += lane.settle(waited_, most - held_);
  waited_ = 0;
  counters_.waited_in += held_;
}

void BurstOrder::move(std::span<port::Packet> burst) {
  std::copy(burst.begin(), burst.end(), came_.begin());
  std::array<uint32_t, kLanes> next{};
  port::Packet* out = burst.data();
  for (uint32_t i = 0; i != burst.size(); ++i) {
    const uint8_t number = lane_of_frame_[i];
    if (number == kNoLane || !lanes_[number].plain) {
      *out++ = came_[i];
      continue;
    }
    const Lane& lane = lanes_[number];
    const uint32_t place = next[number]++;
    if (place < lane.taken) *out++ = came_[lane.places[place].index];
  }
  for (const Lane& lane : lanes_) {
    for (uint32_t i = lane.taken; i != lane.count; ++i) *out++ = came_[lane.places[i].index];
  }
}

/// What waits comes first in the next burst, in the order in which move() has put it.
void BurstOrder::keep_held() {
  uint32_t frame = 0;
  for (uint8_t number = 0; number != kLanes; ++number) {
    Lane& lane = lanes_[number];
    const uint32_t behind = lane.count - lane.taken;
    for (uint32_t i = 0; i != behind; ++i) {
      lane.places[i] = lane.places[lane.taken + i];
      lane.places[i].index = frame;
      lane_of_frame_[frame++] = number;
    }
    lane.count = behind;
    lane.taken = 0;
  }
}

void BurstOrder::validate() const {
  RNIC_CHECK(held_ <= kMostHeld);
  RNIC_CHECK(held_ == 0 || on());
  RNIC_CHECK(waited_ <= held_);
  RNIC_CHECK(disorder_ <= kMostDisorder);
  RNIC_CHECK(rest_ == 0 || !on());
  RNIC_CHECK(most_fresh_ == (on() ? kMostFresh : kBurst));
  RNIC_CHECK(enabled_ || !on());
  uint32_t waiting = 0;
  for (const Lane& lane : lanes_) waiting += lane.count;
  RNIC_CHECK(waiting == held_);
}

}  // namespace rnic::device
