#include "dpdk/packet_ring.hpp"

#include <linux/if_ether.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#include "base/endian.hpp"
#include "dpdk/adoption.hpp"
#include "dpdk/kernel_link.hpp"

namespace rnic::dpdk {
namespace {

constexpr uint32_t kShort = 60;  // octets of the least Ethernet frame
constexpr base::Duration kAskAgain = std::chrono::milliseconds(100);
constexpr uint16_t kNoProtocol = 0x88b5;  // IEEE 802 s.9.2: local experimental, nobody's

size_t ring_octets(const PacketRingShape& shape) {
  return size_t{shape.frames} / (shape.block / shape.frame) * shape.block;
}

/// Asks for the link of the interface that the socket is bound to. An interface that is gone counts
/// as down.
bool link_is_down(int packet_socket) {
  sockaddr_ll bound{};
  socklen_t length = sizeof bound;
  if (getsockname(packet_socket, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return false;
  return link_of_interface(packet_socket, bound.sll_ifindex) != port::LinkState::Up;
}

uint32_t status_of(tpacket2_hdr& header) {
  return std::atomic_ref<uint32_t>(header.tp_status).load(std::memory_order_acquire);
}

}  // namespace

std::unique_ptr<PacketRing> PacketRing::find(const std::vector<int>& before,
                                             const PacketRingShape& shape) {
  if (shape.frame == 0 || shape.block % shape.frame != 0 || shape.block == 0) return nullptr;
  std::vector<int> fresh;
  const std::vector<int> all = PortDescriptors::list(PortDescriptors::Kind::PacketSocket);
  std::set_difference(all.begin(), all.end(), before.begin(), before.end(),
                      std::back_inserter(fresh));
  if (fresh.size() != 1) return nullptr;
  void* memory =
      mmap(nullptr, 2 * ring_octets(shape), PROT_READ | PROT_WRITE, MAP_SHARED, fresh.front(), 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<PacketRing>(
      new PacketRing(fresh.front(), shape, static_cast<uint8_t*>(memory)));
}

PacketRing::PacketRing(int socket, const PacketRingShape& shape, uint8_t* memory)
    : socket_(socket), shape_(shape), memory_(memory) {
  const uint32_t per_block = shape_.block / shape_.frame;
  shape_.frames = shape_.frames / per_block * per_block;
}

PacketRing::~PacketRing() { munmap(memory_, 2 * ring_octets(shape_)); }

tpacket2_hdr& PacketRing::frame(uint32_t index) {
  uint8_t* at = memory_ + ring_octets(shape_) + size_t{index} * shape_.frame;
  return *reinterpret_cast<tpacket2_hdr*>(at);
}

bool PacketRing::oldest_left() {
  // A frame above the interface's own MTU has the wrong format; the kernel waits at it, too.
  constexpr uint32_t kStays = TP_STATUS_SEND_REQUEST | TP_STATUS_WRONG_FORMAT;
  return (status_of(frame(oldest_)) & kStays) == 0;
}

bool PacketRing::in_flight() {
  const uint32_t before = (oldest_ + shape_.frames - 1) % shape_.frames;
  return (status_of(frame(before)) & TP_STATUS_SENDING) != 0;
}

bool PacketRing::advance() {
  const uint32_t before = pending_;
  while (pending_ != 0 && oldest_left()) {
    oldest_ = (oldest_ + 1) % shape_.frames;
    --pending_;
  }
  return pending_ != before;
}

void PacketRing::kick() const {
  // The result of the call says nothing about single frames: their states in the ring do.
  static_cast<void>(sendto(socket_, nullptr, 0, MSG_DONTWAIT, nullptr, 0));
}

void PacketRing::ask_for_link(base::Now now) {
  down_ = link_is_down(socket_);
  asked_ = now;
}

void PacketRing::drop_oldest(Look& seen) {
  tpacket2_hdr& oldest = frame(oldest_);
  seen.longest = std::max(seen.longest, oldest.tp_len);
  ++seen.dropped;
  uint8_t* octets = reinterpret_cast<uint8_t*>(&oldest) + TPACKET2_HDRLEN - sizeof(sockaddr_ll);
  base::store_be16(octets + ETH_ALEN * 2, kNoProtocol);
  std::memset(octets + ETH_HLEN, 0, kShort - ETH_HLEN);
  oldest.tp_len = kShort;
  std::atomic_ref<uint32_t>(oldest.tp_status)
      .store(TP_STATUS_SEND_REQUEST, std::memory_order_release);
}

int PacketRing::arm() const {
  // A link that went down leaves an error, which would keep the socket ready.
  int error = 0;
  socklen_t length = sizeof error;
  static_cast<void>(getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length));
  return socket_;
}

PacketRing::Look PacketRing::look(uint32_t taken, base::Now now) {
  Look seen;
  pending_ = std::min(pending_ + taken, shape_.frames);
  seen.left = advance();
  if (down_ || now - asked_ >= kAskAgain) ask_for_link(now);
  while (pending_ != 0) {
    // The kernel sends as long as it has memory, which earlier frames still use: then the oldest
    // frame only waits for it.
    if (in_flight()) break;
    kick();
    if (advance()) {
      seen.left = true;
      continue;
    }
    ask_for_link(now);
    // Only if the link is up and the frame is not short, its size has kept it in the ring.
    if (down_ || frame(oldest_).tp_len <= kShort) break;
    drop_oldest(seen);
  }
  seen.waiting = pending_ != 0;
  seen.down = down_;
  return seen;
}

}  // namespace rnic::dpdk
