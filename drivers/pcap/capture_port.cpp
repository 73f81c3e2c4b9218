#include "pcap/capture_port.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "offload/offload.hpp"

namespace rnic::pcap {
namespace {

constexpr size_t kLongestFrame = 65535 + port::kLinkHeader;

}  // namespace

Result<std::unique_ptr<CapturePort>> CapturePort::open(port::Port& inner, const std::string& path,
                                                       const WriterOptions& options) {
  auto writer = Writer::open(path, options);
  if (!writer) return tl::unexpected(writer.error());
  return std::make_unique<CapturePort>(inner, std::move(*writer));
}

CapturePort::CapturePort(port::Port& inner, std::shared_ptr<Writer> writer)
    : inner_(inner), writer_(std::move(writer)), copy_(kLongestFrame) {}

base::ByteView CapturePort::wire_copy(const port::Packet& packet) {
  port::Packet copy = packet;
  copy.data = copy_.data();
  copy.length = static_cast<uint32_t>(std::min<size_t>(packet.length, copy_.size()));
  std::memcpy(copy.data, packet.data, copy.length);
  offload::complete_checksums(copy);
  return copy.view();
}

void CapturePort::append(base::Now now, base::ByteView frame, Way way) {
  writer_->append(now, frame, way);
  flush_at_ = base::earlier(flush_at_, now + kDelay);
}

uint32_t CapturePort::rx_burst(std::span<port::Packet> out, base::Now now) {
  if (now >= flush_at_) flush();
  const uint32_t count = inner_.rx_burst(out, now);
  // On a trusted medium the sender left the checksums open, whatever the port vouches for.
  const bool open = inner_.info().checksum == port::ChecksumMode::Trusted;
  for (port::Packet packet : out.first(count)) {
    if (open) packet.ip_checksum = packet.l4_checksum = port::Checksum::Open;
    append(now, open ? wire_copy(packet) : packet.view(), Way::Inbound);
  }
  return count;
}

uint32_t CapturePort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  uint32_t taken = 0;
  // Frames are sent one by one, since a frame that was taken is no longer ours to read, and one
  // that was refused is offered again.
  for (; taken < packets.size(); ++taken) {
    const base::ByteView copy = wire_copy(packets[taken]);
    if (inner_.tx_burst(packets.subspan(taken, 1), now) == 0) break;
    append(now, copy, Way::Outbound);
  }
  return taken;
}

}  // namespace rnic::pcap
