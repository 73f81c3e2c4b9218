/// \file
/// A NIC with several queues in memory: it spreads what it receives as a real one does, TCP by its
/// hash and the rest to queue 0.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "net/rss.hpp"
#include "support/fake_port.hpp"
#include "wire/ether.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"

namespace rnic::test {

/// Two of them are connected; a frame sent on any queue of one is received by a queue of the other.
class FakeNic {
 public:
  /// \param told what the ports say of their spread; a NIC that says something else than it does is
  /// a negative twin
  FakeNic(const port::PortInfo& info, uint16_t queues, const port::ReceiveSpread& told)
      : spread_(net::even_spread(queues, 128)), pool_(info, 4096) {
    for (uint16_t i = 0; i < queues; ++i) {
      port::PortInfo mine = info;
      mine.spread = told;
      if (told.queues > 1) mine.spread.queue = i;
      queues_.push_back(std::make_unique<Queue>(*this, mine));
    }
  }

  ~FakeNic() {
    if (peer_ != nullptr) peer_->peer_ = nullptr;
  }
  FakeNic(const FakeNic&) = delete;
  FakeNic& operator=(const FakeNic&) = delete;

  static void connect(FakeNic& a, FakeNic& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }

  [[nodiscard]] port::Port& queue(uint32_t i) { return *queues_[i]; }
  [[nodiscard]] uint32_t outstanding() const { return pool_.outstanding(); }
  [[nodiscard]] uint32_t queues() const { return static_cast<uint32_t>(queues_.size()); }

  /// A frame comes from the wire.
  void receive(SentFrame frame) {
    queues_[queue_for(frame.octets)]->received.push_back(std::move(frame));
  }

  /// Receives a frame on that queue, whatever the hash says.
  void receive_on(uint32_t queue, SentFrame frame) {
    queues_[queue]->received.push_back(std::move(frame));
  }

  /// Asked about each frame that comes from the other NIC: false, and it is lost on the way.
  std::function<bool(const std::vector<uint8_t>&)> passes;

  /// Frames with an IP packet that are longer are cut by the network; 0: none.
  uint32_t fragment_over = 0;

 private:
  struct Queue final : port::Port {
    Queue(FakeNic& owner, port::PortInfo what) : nic(owner), facts(std::move(what)) {}

    const port::PortInfo& info() const override { return facts; }
    const port::PortCounters& counters() const override { return numbers; }
    uint32_t rx_burst(std::span<port::Packet> out, base::Now) override {
      uint32_t n = 0;
      for (; n < out.size() && !received.empty() && nic.pool_.alloc(out.subspan(n, 1)); ++n) {
        const std::vector<uint8_t>& octets = received.front().octets;
        out[n].length = static_cast<uint32_t>(octets.size());
        std::copy(octets.begin(), octets.end(), out[n].data);
        received.pop_front();
        ++numbers.rx_frames;
      }
      return n;
    }
    bool alloc(std::span<port::Packet> out) override { return nic.pool_.alloc(out); }
    uint32_t tx_burst(std::span<port::Packet> packets, base::Now) override {
      for (port::Packet& packet : packets) {
        if (nic.peer_ != nullptr) nic.peer_->from_wire({packet.data, packet.data + packet.length});
        nic.pool_.free({&packet, 1});
      }
      return static_cast<uint32_t>(packets.size());
    }
    void free(std::span<const port::Packet> packets) override { nic.pool_.free(packets); }
    base::Now next_deadline() const override {
      return received.empty() ? base::kNever : base::Now{};
    }

    FakeNic& nic;
    port::PortInfo facts;
    port::PortCounters numbers;
    std::deque<SentFrame> received;
  };

  void from_wire(std::vector<uint8_t> octets) {
    if (passes && !passes(octets)) return;
    const uint16_t type = base::load_be16(octets.data() + wire::kEtherTypeAt);
    const bool v4 = type == wire::kEtherTypeIpv4;
    const auto length = static_cast<uint32_t>(octets.size());
    if ((!v4 && type != wire::kEtherTypeIpv6) || fragment_over == 0 || length <= fragment_over) {
      return receive({std::move(octets)});
    }
    const uint32_t at = wire::kEtherHeader + (v4 ? wire::kIpv4Header : wire::kIpv6Header);
    const uint32_t first = (length - at) / 2 / 8 * 8;
    ++id_;
    receive({fragment_of(octets, v4, at, at + first, 0, true)});
    receive({fragment_of(octets, v4, at + first, length, first, false)});
  }

  [[nodiscard]] std::vector<uint8_t> fragment_of(const std::vector<uint8_t>& whole, bool v4,
                                                 uint32_t begin, uint32_t end, uint32_t offset,
                                                 bool more) const {
    const uint32_t header = v4 ? wire::kIpv4Header : wire::kIpv6Header;
    std::vector<uint8_t> part(whole.begin(), whole.begin() + wire::kEtherHeader + header);
    uint8_t* ip = part.data() + wire::kEtherHeader;
    if (v4) {
      wire::Ipv4 fields = *wire::parse_ipv4(base::ByteView(whole).subspan(wire::kEtherHeader));
      fields.id = static_cast<uint16_t>(id_);
      fields.total_length = header + end - begin;
      fields.fragment =
          static_cast<uint16_t>(offset / 8 | (more ? wire::kIpv4MoreFragments : uint16_t{0}));
      wire::write_ipv4(ip, fields);
    } else {
      std::array<uint8_t, 8> extension{ip[wire::kIpv6NextHeaderAt]};
      base::store_be16(&extension[2], static_cast<uint16_t>(offset | (more ? 1 : 0)));
      base::store_be32(&extension[4], id_);
      ip[wire::kIpv6NextHeaderAt] = 44;
      base::store_be16(ip + wire::kIpv6LengthAt, static_cast<uint16_t>(8 + end - begin));
      part.insert(part.end(), extension.begin(), extension.end());
    }
    part.insert(part.end(), whole.begin() + begin, whole.begin() + end);
    return part;
  }

  [[nodiscard]] uint32_t queue_for(const std::vector<uint8_t>& octets) const {
    const base::ByteView packet = base::ByteView(octets).subspan(wire::kEtherHeader);
    Endpoint from, to;
    uint32_t tcp = 0;
    if (const auto v4 = wire::parse_ipv4(packet);
        v4 && v4->protocol == wire::kProtocolTcp && !v4->is_fragment()) {
      from.address = IpAddress::v4(v4->source);
      to.address = IpAddress::v4(v4->destination);
      tcp = v4->header_length;
    } else if (const auto v6 = wire::parse_ipv6(packet);
               v6 && v6->next_header == wire::kProtocolTcp) {
      from.address = {v6->source.high, v6->source.low};
      to.address = {v6->destination.high, v6->destination.low};
      tcp = wire::kIpv6Header;
    } else {
      return 0;
    }
    from.port = base::load_be16(&packet[tcp]);
    to.port = base::load_be16(&packet[tcp + 2]);
    return net::queue_of(spread_, to, from);
  }

  port::ReceiveSpread spread_;  // what it does
  FakePort pool_;
  std::vector<std::unique_ptr<Queue>> queues_;
  FakeNic* peer_ = nullptr;
  uint32_t id_ = 0;
};

/// That of the i-th of connected_nics().
inline port::MacAddress nic_mac(uint32_t i) {
  return {2, 0, 0, 0, 0, static_cast<uint8_t>(1 + i)};
}

/// Two of one queue each, on one wire.
inline std::vector<std::unique_ptr<FakeNic>> connected_nics(uint32_t mtu) {
  std::vector<std::unique_ptr<FakeNic>> nics;
  for (uint32_t i = 0; i < 2; ++i) {
    nics.push_back(std::make_unique<FakeNic>(
        port::PortInfo{"nic", nic_mac(i), mtu, port::ChecksumMode::Software, {}}, 1,
        port::ReceiveSpread{}));
  }
  FakeNic::connect(*nics[0], *nics[1]);
  return nics;
}

}  // namespace rnic::test
