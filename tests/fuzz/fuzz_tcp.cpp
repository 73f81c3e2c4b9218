// Frames for a host with a streaming connection that is established. Numbers of what is injected
// count from where the connection stands, so that most of it is near enough to be looked at.
// Input: an octet with what the connection is like (Setup), then steps: an octet that chooses one
// of World::kSteps, and its arguments. Invariants are checked after every step.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/endian.hpp"
#include "base/log.hpp"
#include "device/egress.hpp"
#include "device/error_relay.hpp"
#include "llp/pseudo_header.hpp"
#include "net/addresses.hpp"
#include "net/net.hpp"
#include "sim/sim.hpp"
#include "support/plain_reassembler.hpp"
#include "tcp/byte_stream.hpp"
#include "wire/arp.hpp"
#include "wire/ether.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/ipv6.hpp"
#include "wire/nd.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace {

namespace base = rnic::base;
namespace llp = rnic::llp;
namespace net = rnic::net;
namespace device = rnic::device;
namespace port = rnic::port;
namespace sim = rnic::sim;
namespace tcp = rnic::tcp;
namespace wire = rnic::wire;
namespace flag = rnic::wire::tcp_flag;

constexpr uint32_t kHeaders4 = wire::kEtherHeader + wire::kIpv4Header;
constexpr uint32_t kHeaders6 = wire::kEtherHeader + wire::kIpv6Header;
constexpr uint32_t kPeerIss = 0xfffff000;  // wraps soon
constexpr uint16_t kOurPort = 7;
constexpr uint16_t kPeerPort = 1000;
constexpr port::MacAddress kOurMac{0x02, 0, 0, 0, 0, 0x0b};
constexpr port::MacAddress kPeerMac{0x02, 0, 0, 0, 0, 0x0a};
const rnic::IpAddress kOurs4 = rnic::IpAddress::v4(0x0a000002);
const rnic::IpAddress kPeer4 = rnic::IpAddress::v4(0x0a000001);
const rnic::IpAddress kOurs6(0xfd00'0000'0000'0000, 2);
const rnic::IpAddress kPeer6(0xfd00'0000'0000'0000, 1);

using Octets = std::vector<uint8_t>;

/// The rest of the input; zeros when there is no more.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : data_(data), left_(size) {}
  [[nodiscard]] bool empty() const { return left_ == 0; }
  uint8_t u8() {
    if (left_ == 0) return 0;
    --left_;
    return *data_++;
  }
  uint16_t u16() {
    const uint8_t high = u8();
    return static_cast<uint16_t>(high << 8 | u8());
  }
  /// Near zero, or anywhere in 16 bits.
  int32_t delta() {
    const auto small = static_cast<int8_t>(u8());
    return small == -128 ? static_cast<int16_t>(u16()) : small;
  }
  Octets octets(size_t most) {
    Octets out(std::min(most, left_));
    for (uint8_t& octet : out) octet = u8();
    return out;
  }

 private:
  const uint8_t* data_;
  size_t left_;
};

/// What the first octet says.
struct Setup {
  explicit Setup(uint8_t bits)
      : v4((bits & 1) == 0),
        timestamps((bits & 2) != 0),
        sack((bits & 4) != 0),
        scale((bits & 8) != 0),
        ecn((bits & 16) != 0),
        control(static_cast<rnic::CongestionControl>((bits >> 5) % 3)) {}
  bool v4;
  bool timestamps;
  bool sack;
  bool scale;
  bool ecn;
  rnic::CongestionControl control;
};

net::Config net_config() {
  net::Config config;
  config.address = kOurs4;
  config.addresses = {{kOurs6, 64}};
  config.neighbours = 8;
  config.reassembly_datagrams = 4;
  return config;
}

tcp::Config tcp_config(const Setup& setup) {
  tcp::Config config;
  config.ecn = rnic::Ecn::Accept;
  config.congestion_control = setup.control;
  config.keep_alive = true;
  config.keep_alive_idle = std::chrono::seconds(20);
  config.max_connections = 16;
  config.max_records = 512;
  config.max_records_per_connection = 256;
  config.max_saved_octets = 16 * 2048;
  config.max_half_open = 4;
  config.max_time_wait = 16;
  config.max_range_sets = 8;
  config.receive_window = 256u << 10;
  return config;
}

sim::LinkConfig link_config() {
  sim::LinkConfig config;
  config.slots = 128;
  config.checksum = port::ChecksumMode::Trusted;
  config.mac_a = kPeerMac;
  config.mac_b = kOurMac;
  return config;
}

class Acceptor final : public llp::Acceptor {
 public:
  llp::StreamUser* accept(llp::Stream& stream, const rnic::Endpoint&, const rnic::Endpoint&,
                          base::Now) override {
    if (streams.size() == 8) return nullptr;
    streams.push_back(std::make_unique<tcp::ByteStream>(32u << 10));
    streams.back()->attach(stream);
    return streams.back().get();
  }
  std::vector<std::unique_ptr<tcp::ByteStream>> streams;
};

class World {
 public:
  explicit World(uint8_t bits)
      : setup_(bits),
        link_(link_config()),
        interface_(net_config(), link_.b(), now_, &reassembler_),
        egress_(interface_),
        stack_(tcp_config(setup_), egress_, {1, 2}, 3, now_),
        relay_(stack_) {
    base::set_log_level(base::LogLevel::Off);
    interface_.set_error_user(&relay_);
    const rnic::IpAddress ours = setup_.v4 ? kOurs4 : kOurs6;
    tcp::ConnectionOptions options = stack_.default_options();
    options.half_close = true;
    static_cast<void>(stack_.listen({ours, kOurPort}, acceptor_, options));
    teach();
    open();
  }
  ~World() {
    for (const auto& stream : acceptor_.streams) stream->abort();
    turn(base::Duration(0));
  }

  void step(Input& in) {
    switch (in.u8() % kSteps) {
      case 0: turn(base::Duration(int64_t{1000} << in.u8() % 26)); break;  // up to 33 s
      case 1:
      case 2:
      case 3: inject(packet(wire::kProtocolTcp, segment(in), in.u8() & 3)); break;
      case 4: fragments(in); break;
      case 5: icmp_error(in); break;
      case 6: neighbour(in); break;
      case 7: raw(in); break;
      case 8: application(in); break;
      case 9: acknowledge_all(); break;
    }
    stack_.validate();
  }

 private:
  static constexpr uint8_t kSteps = 10;

  void teach() {
    Octets frame(wire::kEtherHeader + wire::kArpPacket);
    ether(frame, wire::kEtherTypeArp);
    wire::write_arp(&frame[wire::kEtherHeader],
                    {wire::kArpRequest, kPeerMac, kPeer4.as_v4(), {}, kOurs4.as_v4()});
    inject(frame);
    inject(solicitation(kPeer6, kPeerMac));
  }

  void open() {
    Octets options{2, 4, 5, 0xb4};
    if (setup_.sack) options.insert(options.end(), {4, 2, 1, 1});
    if (setup_.scale) options.insert(options.end(), {3, 3, 2, 1});
    if (setup_.timestamps) append_timestamps(options);
    const uint8_t ask = setup_.ecn ? flag::kEce | flag::kCwr : 0;
    inject(packet(wire::kProtocolTcp,
                  build(kPeerIss, 0, static_cast<uint8_t>(flag::kSyn | ask), 65535, options, 0),
                  0));
    inject(packet(wire::kProtocolTcp, plain_ack(0), 0));
    if (!acceptor_.streams.empty()) write(20000);
  }

  void append_timestamps(Octets& options) const {
    const size_t at = options.size();
    options.resize(at + 12);
    options[at] = options[at + 1] = 1;
    options[at + 2] = 8;
    options[at + 3] = 10;
    base::store_be32(&options[at + 4], clock());
    base::store_be32(&options[at + 8], their_stamp_);
  }
  [[nodiscard]] uint32_t clock() const {
    return static_cast<uint32_t>(base::nanos(now_) / 1'000'000);
  }

  static Octets build(uint32_t seq, uint32_t ack, uint8_t flags, uint16_t window, Octets options,
                      size_t payload) {
    options.resize((options.size() + 3) / 4 * 4);
    options.resize(std::min<size_t>(options.size(), 40));
    Octets out(20 + options.size() + payload);
    wire::write_tcp(out.data(), {.source_port = kPeerPort,
                                 .destination_port = kOurPort,
                                 .sequence = base::Seq32(seq),
                                 .acknowledgment = base::Seq32(ack),
                                 .flags = flags,
                                 .window = window,
                                 .header_length = static_cast<uint32_t>(20 + options.size())});
    std::copy(options.begin(), options.end(), out.begin() + 20);
    for (size_t i = 20 + options.size(); i < out.size(); ++i) {
      out[i] = static_cast<uint8_t>(seq + i - 20 - options.size());
    }
    return out;
  }

  [[nodiscard]] Octets plain_ack(size_t payload) const {
    Octets options;
    if (setup_.timestamps) append_timestamps(options);
    return build(rcv_nxt_, snd_nxt_, flag::kAck, 65535, options, payload);
  }

  /// One near what the connection expects.
  Octets segment(Input& in) {
    const auto seq = static_cast<uint32_t>(static_cast<int64_t>(rcv_nxt_) + in.delta() * 64);
    const auto ack = static_cast<uint32_t>(static_cast<int64_t>(snd_nxt_) - in.delta() * 256);
    const uint8_t flags = in.u8();
    const uint8_t kind = in.u8();
    const uint16_t window = (kind & 1) != 0 ? in.u16() : uint16_t{8192};
    Octets options;
    if ((kind & 2) == 0 && setup_.timestamps) append_timestamps(options);
    if ((kind & 4) != 0) append_sack(options, in);
    if ((kind & 8) != 0) {
      const Octets more = in.octets(in.u8() % 12);
      options.insert(options.end(), more.begin(), more.end());
    }
    const size_t payload = (kind & 16) != 0 ? in.u8() * 8u % 1400 : 0;
    Octets out =
        build(seq, ack, (kind & 32) != 0 ? flags : flags | flag::kAck, window, options, payload);
    if ((kind & 64) != 0) base::store_be16(&out[wire::kTcpUrgentPointerAt], in.u16());
    if ((kind & 128) != 0) out[in.u8() % out.size()] ^= in.u8();
    return out;
  }

  void append_sack(Octets& options, Input& in) const {
    const size_t count = in.u8() % 4 + 1u;
    options.insert(options.end(), {1, 1, 5, static_cast<uint8_t>(2 + 8 * count)});
    for (size_t i = 0; i < count; ++i) {
      const uint32_t left = snd_nxt_ - in.u8() * 256u;
      const size_t at = options.size();
      options.resize(at + 8);
      base::store_be32(&options[at], left);
      base::store_be32(&options[at + 4], left + in.u8() * 256u);
    }
  }

  static void ether(Octets& frame, uint16_t type) {
    wire::store_mac(&frame[wire::kEtherDestinationAt], kOurMac);
    wire::store_mac(&frame[wire::kEtherSourceAt], kPeerMac);
    base::store_be16(&frame[wire::kEtherHeader - 2], type);
  }

  [[nodiscard]] Octets packet(uint8_t protocol, const Octets& payload, uint8_t ecn,
                              uint16_t fragment = 0) const {
    return setup_.v4 ? packet4(protocol, payload, ecn, fragment)
                     : packet6(protocol, payload, ecn, 64);
  }

  static Octets packet4(uint8_t protocol, const Octets& payload, uint8_t ecn, uint16_t fragment) {
    Octets frame(kHeaders4 + payload.size());
    ether(frame, wire::kEtherTypeIpv4);
    uint8_t* ip = &frame[wire::kEtherHeader];
    ip[0] = 0x45;
    ip[1] = ecn;
    base::store_be16(ip + 2, static_cast<uint16_t>(frame.size() - wire::kEtherHeader));
    base::store_be16(ip + 4, 77);
    base::store_be16(ip + 6, fragment);
    ip[8] = 64;
    ip[9] = protocol;
    base::store_be32(ip + 12, kPeer4.as_v4());
    base::store_be32(ip + 16, kOurs4.as_v4());
    base::store_be16(ip + 10, wire::checksum_fold(wire::checksum_add(0, {ip, wire::kIpv4Header})));
    std::copy(payload.begin(), payload.end(), frame.begin() + kHeaders4);
    return frame;
  }

  static Octets packet6(uint8_t next, const Octets& payload, uint8_t ecn, uint8_t hops,
                        const rnic::IpAddress& source = kPeer6) {
    Octets frame(kHeaders6 + payload.size());
    ether(frame, wire::kEtherTypeIpv6);
    uint8_t* ip = &frame[wire::kEtherHeader];
    ip[0] = 0x60;
    ip[1] = static_cast<uint8_t>(ecn << 4);
    base::store_be16(ip + 4, static_cast<uint16_t>(payload.size()));
    ip[6] = next;
    ip[7] = hops;
    wire::store_ipv6_address(ip + 8, net::to_wire(source));
    wire::store_ipv6_address(ip + 24, net::to_wire(kOurs6));
    std::copy(payload.begin(), payload.end(), frame.begin() + kHeaders6);
    return frame;
  }

  /// A segment in two pieces, which may overlap, miss octets, or be told in any order.
  void fragments(Input& in) {
    const Octets whole = segment(in);
    const size_t cut = std::min<size_t>(in.u8() % 32 * 8u + 8, whole.size());
    const int32_t shift = in.delta() % 4;
    const uint8_t how = in.u8();
    const auto offset = static_cast<uint16_t>(static_cast<int32_t>(cut / 8) + shift);
    const Octets first(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(cut));
    const Octets second(whole.begin() + static_cast<ptrdiff_t>(cut), whole.end());
    std::array<Octets, 2> frames;
    if (setup_.v4) {
      frames[0] = packet4(wire::kProtocolTcp, first, how & 3, 0x2000);
      frames[1] = packet4(wire::kProtocolTcp, second, how >> 2 & 3, offset & 0x1fff);
    } else {
      const auto piece = [how](const Octets& octets, uint16_t field, uint8_t ecn) {
        Octets out{wire::kProtocolTcp, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(how >> 6)};
        base::store_be16(&out[2], field);
        out.insert(out.end(), octets.begin(), octets.end());
        return packet6(wire::kNextFragment, out, ecn, 64);
      };
      frames[0] = piece(first, 1, how & 3);
      frames[1] = piece(second, static_cast<uint16_t>(offset << 3), how >> 2 & 3);
    }
    inject(frames[how >> 4 & 1]);
    inject(frames[how >> 5 & 1]);
  }

  Octets icmp6(Octets message, uint8_t hops, const rnic::IpAddress& source = kPeer6) const {
    base::store_be16(&message[2], 0);
    const uint32_t pseudo = llp::pseudo_header_sum(source, kOurs6, wire::kNextIcmpv6,
                                                   static_cast<uint32_t>(message.size()));
    base::store_be16(&message[2], wire::checksum_fold(wire::checksum_add(pseudo, message)));
    return packet6(wire::kNextIcmpv6, message, 0, hops, source);
  }

  /// An error about what is, or might be, in flight.
  void icmp_error(Input& in) {
    Octets message(8);
    message[0] = in.u8();
    message[1] = in.u8() % 16;
    base::store_be32(&message[4], in.u16());
    const Octets quoted =
        build(snd_nxt_ - in.u8() * 64u, rcv_nxt_, flag::kAck, 0, {}, in.u8() % 32);
    Octets tcp_header = quoted;
    base::store_be16(&tcp_header[0], kOurPort);
    base::store_be16(&tcp_header[2], kPeerPort);
    const uint16_t length = static_cast<uint16_t>(1500 - in.u8() * 4);
    Octets ip = setup_.v4 ? packet4(wire::kProtocolTcp, tcp_header, 0, 0)
                          : packet6(wire::kProtocolTcp, tcp_header, 0, 64);
    ip.erase(ip.begin(), ip.begin() + wire::kEtherHeader);
    if (setup_.v4) {
      base::store_be16(&ip[2], length);
      std::swap_ranges(ip.begin() + 12, ip.begin() + 16, ip.begin() + 16);
    } else {
      base::store_be16(&ip[4], static_cast<uint16_t>(length - 40));
      std::swap_ranges(ip.begin() + 8, ip.begin() + 24, ip.begin() + 24);
    }
    message.insert(message.end(), ip.begin(), ip.end());
    if (!setup_.v4) return inject(icmp6(message, 64));
    base::store_be16(&message[2], wire::checksum_fold(wire::checksum_add(0, message)));
    inject(packet4(wire::kProtocolIcmp, message, 0, 0));
  }

  Octets solicitation(const rnic::IpAddress& source, const port::MacAddress& mac) const {
    Octets message(wire::kNdMessage);
    wire::NeighbourMessage m;
    m.type = wire::kIcmpv6NeighbourSolicitation;
    m.target = net::to_wire(kOurs6);
    m.link = mac;
    wire::write_neighbour_message(message.data(), m);
    return icmp6(message, 255, source);
  }

  /// ARP or neighbour discovery, of the peer or of somebody near.
  void neighbour(Input& in) {
    const uint8_t how = in.u8();
    port::MacAddress mac = kPeerMac;
    if ((how & 2) != 0) mac[5] = in.u8();
    const uint8_t who = (how & 4) != 0 ? in.u8() : uint8_t{1};
    if ((how & 1) != 0) {
      Octets frame(wire::kEtherHeader + wire::kArpPacket);
      ether(frame, wire::kEtherTypeArp);
      wire::write_arp(&frame[wire::kEtherHeader], {static_cast<uint16_t>(1 + (how >> 3 & 1)), mac,
                                                   0x0a000000u + who, kOurMac, kOurs4.as_v4()});
      return inject(frame);
    }
    const rnic::IpAddress source(kPeer6.high(), who);
    if ((how & 8) != 0) return inject(solicitation(source, mac));
    Octets message(wire::kNdMessage);
    wire::NeighbourMessage m;
    m.type = wire::kIcmpv6NeighbourAdvertisement;
    m.flags = in.u8();
    m.target = net::to_wire(source);
    if ((how & 16) != 0) m.link = mac;
    message.resize(wire::write_neighbour_message(message.data(), m));
    if ((how & 32) != 0) message[in.u8() % message.size()] ^= in.u8();
    inject(icmp6(message, 255, source));
  }

  void raw(Input& in) {
    static constexpr std::array<uint16_t, 4> kTypes{wire::kEtherTypeIpv4, wire::kEtherTypeIpv6,
                                                    wire::kEtherTypeArp, 0x8100};
    const uint8_t how = in.u8();
    Octets frame(wire::kEtherHeader);
    ether(frame, kTypes[how & 3]);
    const Octets rest = in.octets(in.u8());
    frame.insert(frame.end(), rest.begin(), rest.end());
    inject(frame);
  }

  void write(uint32_t octets) {
    const Octets text(octets, 0x5a);
    static_cast<void>(acceptor_.streams.front()->write(text));
  }

  void application(Input& in) {
    if (acceptor_.streams.empty()) return;
    tcp::ByteStream& stream = *acceptor_.streams.front();
    const uint8_t how = in.u8();
    if (how < 128) {
      if (stream.stream() != nullptr) write(how * 128u);
    } else if (how < 250) {
      Octets out((how - 128u) * 128);
      static_cast<void>(stream.read(out));
    } else if (how < 254) {
      stream.close();
    } else if (how == 255) {
      stream.abort();
    }
    turn(base::Duration(0));
  }

  /// As a peer does that has got everything.
  void acknowledge_all() { inject(packet(wire::kProtocolTcp, plain_ack(0), 0)); }

  void inject(const Octets& octets) {
    port::Packet packet;
    if (!link_.a().alloc({&packet, 1})) return;
    packet.length = std::min<uint32_t>(packet.room, static_cast<uint32_t>(octets.size()));
    std::memcpy(packet.data, octets.data(), packet.length);
    packet.l4_checksum = port::Checksum::Open;
    if (link_.a().tx_burst({&packet, 1}, now_) == 0) link_.a().free({&packet, 1});
    turn(std::chrono::microseconds(1));
  }

  void turn(base::Duration time) {
    const base::Now end = now_ + time;
    for (int events = 0; events < 1000; ++events) {
      work();
      const base::Now next = base::earlier(stack_.next_deadline(), interface_.next_deadline());
      if (next > end) break;
      now_ = std::max(now_ + std::chrono::microseconds(1), next);
    }
    now_ = std::max(now_, end);
    work();
  }

  void work() {
    port::Packet packet;
    while (link_.b().rx_burst({&packet, 1}, now_) == 1) {
      if (const auto ip = interface_.input(packet, now_)) {
        stack_.input({ip->source, ip->destination, ip->payload, ip->l4_checksum_good, ip->ecn},
                     now_);
      }
      link_.b().free({&packet, 1});
    }
    interface_.on_timers(now_);
    stack_.on_timers(now_);
    stack_.output(now_);
    interface_.flush(now_);
    while (link_.a().rx_burst({&packet, 1}, now_) == 1) {
      look(packet.view());
      link_.a().free({&packet, 1});
    }
  }

  /// Follows what the host says of its numbers.
  void look(base::ByteView frame) {
    const uint32_t headers = setup_.v4 ? kHeaders4 : kHeaders6;
    const uint32_t protocol_at = wire::kEtherHeader + (setup_.v4 ? 9u : 6u);
    const uint16_t type = setup_.v4 ? wire::kEtherTypeIpv4 : wire::kEtherTypeIpv6;
    if (frame.size() <= headers || base::load_be16(&frame[wire::kEtherHeader - 2]) != type ||
        frame[protocol_at] != wire::kProtocolTcp) {
      return;
    }
    base::ByteView octets = frame.subspan(headers);
    if (setup_.v4) {  // without the padding of a short frame
      octets = octets.first(base::load_be16(&frame[wire::kEtherHeader + 2]) - wire::kIpv4Header);
    } else {
      octets = octets.first(base::load_be16(&frame[wire::kEtherHeader + 4]));
    }
    const auto view = wire::TcpView::parse(octets);
    if (!view || view->has(flag::kRst) || view->source_port() != kOurPort ||
        view->destination_port() != kPeerPort) {
      return;
    }
    uint32_t end = view->sequence().value + static_cast<uint32_t>(view->payload().size());
    if (view->has(flag::kSyn)) snd_nxt_ = ++end;
    if (view->has(flag::kFin)) ++end;
    if (static_cast<int32_t>(end - snd_nxt_) > 0) snd_nxt_ = end;
    if (view->has(flag::kAck)) rcv_nxt_ = view->acknowledgment().value;
    wire::TcpOptions options;
    if (options.parse(view->options()) && options.timestamps) {
      their_stamp_ = options.timestamps->value;
    }
  }

  const Setup setup_;
  base::Now now_ = base::from_nanos(1'000'000'000);
  sim::Link link_;
  rnic::test::PlainReassembler reassembler_;
  net::Interface interface_;
  device::Egress egress_;
  Acceptor acceptor_;
  tcp::Stack stack_;
  device::ErrorRelay relay_;
  uint32_t rcv_nxt_ = kPeerIss + 1;  // what the host expects
  uint32_t snd_nxt_ = 0;             // the end of what it has sent
  uint32_t their_stamp_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Input input(data + 1, std::min<size_t>(size - 1, 4096));
  World world(data[0]);
  while (!input.empty()) world.step(input);
  return 0;
}
