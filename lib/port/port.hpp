/// \file
/// Layer `port`: the interface of what carries frames below a device. A port sends and receives
/// Ethernet frames in bursts: a DPDK ethdev (`drivers/dpdk`), a simulated link (`drivers/sim`), or
/// a decorator around another port (`drivers/impair`, `drivers/pcap`).
///
/// An ethdev with several queues becomes several ports with one MAC address, one port per queue; a
/// port may free a frame of another one. One worker owns a port; nothing here is thread-safe. Time
/// comes in as an
/// argument. A frame handed up is one contiguous run of octets: a port that receives chains makes
/// them contiguous first (and counts).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/time.hpp"

namespace rnic::port {

/// The most octets in front of an IP packet: an Ethernet header with one 802.1Q tag.
inline constexpr uint32_t kLinkHeader = 18;

/// Opaque owner of a frame's octets: an mbuf, a slot of the simulator's pool.
struct Buffer;

/// The state of a frame's checksums: of the IPv4 header, and of TCP over IPv4 or IPv6. The field of
/// an open checksum is meaningless: the port writes into it what its device needs (for a NIC the
/// sum of the pseudo header).
///
/// It is so large that a Packet has no padding at its end: GCC 12 copies one that has some by a
/// read that spans two writes, and waits for both.
enum class Checksum : uint32_t {
  Unknown,  ///< rx: software must check. tx: complete in the frame
  Good,     ///< rx: the port vouches for it (hardware, or a trusted medium)
  Bad,      ///< rx: the port found it wrong
  Open,     ///< tx: left open; the port completes it (offload) or the medium is trusted
};

/// One frame, as a value. Its last holder returns `buffer` to its port by free() or tx_burst().
struct Packet {
  uint8_t* data = nullptr;   ///< first octet of the Ethernet header
  uint32_t length = 0;       ///< octets from `data`, without FCS
  uint32_t room = 0;         ///< octets writable from `data` (transmit buffers); >= length
  Buffer* buffer = nullptr;  ///< owner
  Checksum ip_checksum = Checksum::Unknown;
  Checksum l4_checksum = Checksum::Unknown;

  [[nodiscard]] base::ByteView view() const { return {data, length}; }
};

using MacAddress = std::array<uint8_t, 6>;

/// How the checksums of this port's frames are made and checked (design, section 5).
enum class ChecksumMode : uint8_t {
  Offload,   ///< the device completes and checks them
  Trusted,   ///< the medium is memory: they stay open, nobody checks
  Software,  ///< we complete and check them
};

[[nodiscard]] const char* to_string(ChecksumMode mode);

/// The state of the link of a port: frames cross it while it is up.
enum class LinkState : uint8_t {
  Up,
  Down,
  Gone,  ///< the device was taken away: there is no link any more, and there will be none
};

[[nodiscard]] const char* to_string(LinkState state);

/// How an ethdev chooses the receive queue of a TCP segment (receive-side scaling): the Toeplitz
/// hash of addresses and ports under `key` selects an entry of `table`, which names the queue. All
/// other frames come to one queue of the ethdev's choice.
struct ReceiveSpread {
  static constexpr uint32_t kKeyOctets = 40;
  std::array<uint8_t, kKeyOctets> key{};
  std::vector<uint16_t> table;  ///< queue of each place, a power of two of them; empty: one queue
  uint16_t queue = 0;           ///< the queue of this port
  uint16_t queues = 1;          ///< queues of the ethdev, each a port
};

/// Fixed facts of a port.
struct PortInfo {
  std::string name;
  MacAddress mac{};
  uint32_t mtu = 1500;  ///< octets of the largest IP packet
  ChecksumMode checksum = ChecksumMode::Software;
  ReceiveSpread spread{};
};

/// Plain numbers of a port; each port keeps its own and shows them by name.
struct PortCounters {
  uint64_t rx_frames = 0;
  uint64_t rx_octets = 0;
  uint64_t tx_frames = 0;
  uint64_t tx_octets = 0;
  uint64_t tx_refused = 0;     ///< frames the device did not take at once; the caller keeps them
  uint64_t tx_stalled = 0;     ///< times that the device took nothing for a second
  uint64_t tx_discarded = 0;   ///< frames dropped because the device refused them for good
  uint64_t alloc_failed = 0;   ///< times the pool had no buffer
  uint64_t rx_linearised = 0;  ///< received chains made contiguous
  uint64_t rx_dropped = 0;     ///< frames the port could not hand up (too long, no buffer)
  uint64_t rx_shared = 0;      ///< copies given to the device's other queues (net::QueueExchange)
  uint64_t rx_share_lost = 0;  ///< copies not given: no buffer, or the other queue is behind
};

/// A port of Ethernet frames.
class Port {
 public:
  virtual ~Port() = default;

  [[nodiscard]] virtual const PortInfo& info() const = 0;
  [[nodiscard]] virtual const PortCounters& counters() const = 0;

  /// Fills `out` with received frames, oldest first. \return how many. The caller frees them.
  virtual uint32_t rx_burst(std::span<Packet> out, base::Now now) = 0;

  /// Fills `out` with empty transmit buffers: length 0, room >= mtu + kLinkHeader.
  /// All or nothing: \return false when the pool cannot give that many.
  virtual bool alloc(std::span<Packet> out) = 0;

  /// Hands frames to the device in order. \return how many were taken; the rest stay the caller's.
  virtual uint32_t tx_burst(std::span<Packet> packets, base::Now now) = 0;

  /// Returns frames (received ones, or allocated and unsent ones) to their pool.
  virtual void free(std::span<const Packet> packets) = 0;

  /// The time at which rx_burst() or tx_burst() should be called even if nothing arrived, as for a
  /// decorator that holds frames back or a simulated link. kNever for a real device, which is
  /// polled anyway.
  [[nodiscard]] virtual base::Now next_deadline() const { return base::kNever; }

  /// For a thread that sleeps until frames come: a descriptor that from this call on is readable
  /// for poll() as soon as rx_burst() has frames to give, including frames that it has by now. It
  /// is the same one at each call; nobody reads or closes it. Nothing: this port can only be
  /// polled.
  virtual std::optional<int> arm() { return std::nullopt; }

  /// Asks for the state of the link. It may take a call of the system: a caller asks now and then,
  /// and not with each frame. \return nothing: the port cannot tell, and will not be able to later
  virtual std::optional<LinkState> link() { return std::nullopt; }
};

}  // namespace rnic::port
