#include "cutting_port.hpp"

#include <algorithm>
#include <cstring>

#include "base/endian.hpp"

namespace rnic::simulation {

namespace {

constexpr uint32_t kSequence = 4;  // of the TCP header
constexpr uint32_t kFlags = 13;
constexpr uint8_t kPsh = 0x08;
constexpr uint8_t kAckOnly = 0x10;
constexpr size_t kJoinedMax = 65'000;
constexpr base::Duration kJoinTime{2'000};
constexpr uint32_t kTaggedHeader = 16;  // ULPDU_Length, DDP's and RDMAP's control, STag, offset
constexpr uint32_t kPage = 4096;
constexpr uint8_t kReadResponse = 2;  // RFC 5040 s.4.1

/// Data of an established connection, and nothing else.
bool plain_data(const port::Packet& packet, const offload::TcpLayout& at) {
  const uint8_t flags = packet.data[at.tcp + kFlags];
  return at.payload_size() != 0 && (flags & ~kPsh) == kAckOnly;
}

}  // namespace

uint32_t CuttingPort::rx_burst(std::span<port::Packet> out, base::Now now) {
  if (!joined_.empty() && now >= flush_at_) flush(now);
  return inner_.rx_burst(out, now);
}

uint32_t CuttingPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  for (uint32_t i = 0; i < packets.size(); ++i) {
    port::Packet& packet = packets[i];
    const auto at = offload::locate_tcp(packet.view());
    const bool data = at && plain_data(packet, *at);
    if (cutter_ == Cutter::Gro && !joined_.empty() && !(data && continues(packet, *at))) flush(now);
    if (!data) {
      if (inner_.tx_burst({&packet, 1}, now) == 0) return i;
      continue;
    }
    cutter_ == Cutter::Gro ? join(packet, *at, now) : cut_as_siw(packet, *at, now);
    inner_.free({&packet, 1});
  }
  return static_cast<uint32_t>(packets.size());
}

/// FPDUs without markers, as siw has none.
void CuttingPort::cut_as_siw(const port::Packet& packet, const offload::TcpLayout& at,
                             base::Now now) {
  const base::ByteView header = packet.view().first(at.payload);
  const base::ByteView payload = packet.view().subspan(at.payload, at.payload_size());
  const uint32_t sequence = base::load_be32(packet.data + at.tcp + kSequence);
  size_t sent = 0;
  const auto send_up_to = [&](size_t end) {
    if (end == sent) return;
    send(header, at, sequence + static_cast<uint32_t>(sent), payload.subspan(sent, end - sent),
         end == payload.size(), now);
    sent = end;
  };
  const bool start_frame = payload.size() >= 4 && std::memcmp(payload.data(), "MPA ", 4) == 0;
  for (size_t begin = 0; !start_frame && begin + kTaggedHeader < payload.size();) {
    const uint8_t* fpdu = payload.data() + begin;
    const size_t length = base::load_be16(fpdu);
    const size_t end = begin + (2 + length + 3) / 4 * 4 + 4;
    if (end > payload.size()) break;
    const bool tagged = (fpdu[2] & 0x80) != 0;
    if (tagged && (fpdu[3] & 0x0f) == kReadResponse && length > kTaggedHeader) {
      ++cuts_;
      send_up_to(begin);
      send_up_to(begin + kTaggedHeader);
      const uint64_t memory = base::load_be64(fpdu + 8);
      const size_t to_page = kPage - memory % kPage;
      if (begin + kTaggedHeader + to_page < end - 4) send_up_to(begin + kTaggedHeader + to_page);
      send_up_to(end - 4);
      send_up_to(end);
    }
    begin = end;
  }
  send_up_to(payload.size());
}

bool CuttingPort::continues(const port::Packet& packet, const offload::TcpLayout& at) const {
  if (header_.size() < at.tcp + 4 || layout_.tcp != at.tcp || layout_.payload != at.payload) {
    return false;
  }
  const bool same = std::memcmp(header_.data() + at.tcp, packet.data + at.tcp, 4) == 0;
  const uint32_t sequence = base::load_be32(packet.data + at.tcp + kSequence);
  return same && sequence == sequence_ + static_cast<uint32_t>(joined_.size()) &&
         joined_.size() + at.payload_size() <= kJoinedMax;
}

void CuttingPort::join(const port::Packet& packet, const offload::TcpLayout& at, base::Now now) {
  if (joined_.empty()) {
    sequence_ = base::load_be32(packet.data + at.tcp + kSequence);
    flush_at_ = now + kJoinTime;
  }
  header_.assign(packet.data, packet.data + at.payload);
  layout_ = at;
  joined_.insert(joined_.end(), packet.data + at.payload, packet.data + at.end);
}

void CuttingPort::flush(base::Now now) {
  const size_t full = inner_.info().mtu - (layout_.payload - layout_.ip);
  if (joined_.size() > full) ++cuts_;
  for (size_t from = 0; from < joined_.size(); from += full) {
    const size_t n = std::min(full, joined_.size() - from);
    send(header_, layout_, sequence_ + static_cast<uint32_t>(from),
         base::ByteView(joined_).subspan(from, n), from + n == joined_.size(), now);
  }
  joined_.clear();
}

/// A segment with the headers of another. What finds no buffer is lost, as on any wire.
void CuttingPort::send(base::ByteView header, const offload::TcpLayout& at, uint32_t sequence,
                       base::ByteView payload, bool last, base::Now now) {
  port::Packet piece;
  if (!inner_.alloc({&piece, 1})) return;
  std::memcpy(piece.data, header.data(), header.size());
  std::memcpy(piece.data + at.payload, payload.data(), payload.size());
  base::store_be32(piece.data + at.tcp + kSequence, sequence);
  if (!last) piece.data[at.tcp + kFlags] &= static_cast<uint8_t>(~kPsh);
  piece.length = static_cast<uint32_t>(header.size() + payload.size());
  offload::TcpLayout layout = at;
  layout.end = piece.length;
  const base::ByteSpan frame{piece.data, piece.length};
  offload::write_ip_length(frame, layout);
  offload::write_tcp_checksum(frame, layout);
  if (inner_.tx_burst({&piece, 1}, now) == 0) inner_.free({&piece, 1});
}

}  // namespace rnic::simulation
