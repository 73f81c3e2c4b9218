#include "stream/host.hpp"

#include <algorithm>
#include <array>

#include "wire/icmp.hpp"

namespace rnic::simulation {

namespace {

constexpr size_t kInboxPackets = 2048;  // more are lost, as in a NIC's ring
constexpr uint32_t kBurst = 32;
constexpr base::Duration kNapGap = std::chrono::milliseconds(100);
constexpr base::Duration kRetryGap = std::chrono::microseconds(20);

net::Config net_config(const HostPlan& plan) {
  net::Config config;
  config.address = plan.address;
  config.prefix_length = plan.address.is_v4() ? 24 : 64;
  config.gateway = IpAddress::v4(0x0a0000fe);
  if (!plan.address.is_v4()) config.gateway = {};
  config.mtu = plan.mtu;
  config.icmp_errors_per_second = 0;
  config.seed = plan.seed;
  return config;
}

struct IcmpType {
  uint8_t type;
  uint8_t code;
};
IcmpType icmp_type(llp::IcmpError::Kind kind, bool v4) {
  using Kind = llp::IcmpError::Kind;
  switch (kind) {
    case Kind::PacketTooBig:
      if (!v4) return {wire::kIcmpv6PacketTooBig, 0};
      return {wire::kIcmpUnreachable, wire::kIcmpFragmentationNeeded};
    case Kind::Hard:
      if (!v4) return {wire::kIcmpv6Unreachable, wire::kIcmpv6PortUnreachable};
      return {wire::kIcmpUnreachable, wire::kIcmpPortUnreachable};
    case Kind::SourceQuench:
      if (v4) return {wire::kIcmpSourceQuench, 0};
      break;
    case Kind::Soft: break;
  }
  if (v4) return {wire::kIcmpTimeExceeded, 0};
  return {wire::kIcmpv6TimeExceeded, 0};
}

}  // namespace

Host::Host(const HostPlan& plan, Verdict& verdict, base::Now now, Send send, Arriving arriving,
           Delivered delivered)
    : plan_(plan),
      verdict_(verdict),
      send_(std::move(send)),
      arriving_(std::move(arriving)),
      delivered_(std::move(delivered)),
      prng_(plan.seed),
      mtu_(plan.mtu),
      frame_(65'536),
      network_(plan.network ? std::make_unique<Network>(plan, verdict, send_, now) : nullptr),
      peer_(plan.peer),
      stack_(plan.tcp, *this, {prng_.next(), prng_.next()}, prng_.next(), now),
      relay_(stack_) {
  if (network_ != nullptr) network_->interface.set_error_user(&relay_);
}

Host::Network::Network(const HostPlan& plan, Verdict& verdict, const Send& send, base::Now now)
    : port(plan.mtu, verdict, send), interface(net_config(plan), port, now), egress(interface) {}

void Host::icmp(const llp::IcmpError& error, base::Now now) {
  if (network_ == nullptr) return stack_.icmp_error(error, now);
  const auto [type, code] = icmp_type(error.kind, error.source.is_v4());
  network_->port.receive(icmp_frame(type, code, error.mtu, error.source, error.destination,
                                    error.quoted_length, error.tcp));
  take_frames(now);
}

/// Gives lib/net what the port has, and the stack what comes of it.
void Host::take_frames(base::Now now) {
  std::array<port::Packet, kBurst> burst;
  while (const uint32_t n = network_->port.rx_burst(burst, now)) {
    for (uint32_t i = 0; i < n; ++i) {
      const auto in = network_->interface.input(burst[i], now);
      if (!in) continue;
      stack_.input({in->source, in->destination, in->payload, in->l4_checksum_good, in->ecn}, now);
    }
    network_->port.free(std::span(burst).first(n));
  }
}

void Host::listen(uint16_t port) {
  const auto status = stack_.listen({plan_.address, port}, *this);
  if (!status) verdict_.fail("resources", status.error().message);
}

void Host::connect(const Endpoint& local, const Endpoint& remote, Application& application,
                   base::Now now) {
  const auto stream = stack_.connect(local, remote, application.user(), now);
  if (!stream) return verdict_.fail("resources", stream.error().message);
  application.attach(**stream);
}

llp::StreamUser* Host::accept(llp::Stream& stream, const Endpoint&, const Endpoint& remote,
                              base::Now) {
  const auto it = expected_.find(remote.port);
  if (it == expected_.end()) {
    verdict_.fail("accept", "a connection from " + to_string(remote) + " that nobody opened");
    return nullptr;
  }
  Application* application = it->second;
  expected_.erase(it);
  application->attach(stream);
  return &application->user();
}

uint32_t Host::first_room(const Endpoint& remote) const {
  const auto it = expected_.find(remote.port);
  return it != expected_.end() ? it->second->user().receive_room() : UINT32_MAX;
}

bool Host::begin(const IpAddress& source, const IpAddress& destination, tcp::TxSlot& slot,
                 base::Now now) {
  if (frame_open_) verdict_.fail("egress", "a second frame begun");
  if (source != plan_.address) verdict_.fail("egress", "not our address");
  if (prng_.chance(plan_.port_full)) {
    refused_ = true;
    return false;
  }
  if (network_ != nullptr) {
    if (!network_->egress.begin(source, destination, slot, now)) {
      refused_ = true;
      return false;
    }
    frame_open_ = true;
    return true;
  }
  frame_open_ = true;
  destination_ = destination;
  slot = {.tcp = frame_.data(), .room = plan_.mtu - (source.is_v4() ? 20 : 40), .frame = this};
  return true;
}

void Host::send(tcp::TxSlot& slot, uint32_t length, base::Now now) {
  if (!frame_open_ || length > slot.room) verdict_.fail("egress", "beyond the frame's room");
  frame_open_ = false;
  if (network_ != nullptr) return network_->egress.send(slot, length, now);
  send_({plan_.address, destination_, {slot.tcp, slot.tcp + length}, slot.traffic_class}, now);
}

void Host::cancel(tcp::TxSlot& slot) {
  if (!frame_open_) verdict_.fail("egress", "cancelled what was not begun");
  frame_open_ = false;
  if (network_ != nullptr) network_->egress.cancel(slot);
}

void Host::receive(Datagram&& d) {
  if (inbox_.size() < kInboxPackets) inbox_.push_back(std::move(d));
}

void Host::inject(const Datagram& d, base::Now now) {
  if (network_ != nullptr) {
    network_->port.receive(ethernet_frame(d));
    return take_frames(now);
  }
  stack_.input({.source = d.source,
                .destination = d.destination,
                .tcp = d.tcp,
                .checksum_verified = false,
                .ecn = static_cast<uint8_t>(d.traffic_class & 3)},
               now);
}

Host::Fates Host::fates() const {
  const tcp::Counters& c = stack_.counters();
  return {.came = c.segments_in,
          // For no connection, too: the ACK that makes one of a cookie may come late.
          .dropped = c.inspect_drops + c.commit_full + c.range_sets_exhausted +
                     c.challenge_acks_limited + c.no_connection + c.not_at_home + c.syn_dropped +
                     c.syn_cookies_rejected,
          .refused = c.paws_rejected + c.unacceptable + c.challenge_acks};
}

Fate Host::offer(const Datagram& d, base::Now now) {
  const Fates before = fates();
  inject(d, now);
  const Fates after = fates();
  if (after.refused != before.refused) return Fate::Refused;
  return after.came == before.came || after.dropped != before.dropped ? Fate::Dropped : Fate::Taken;
}

void Host::sleep_maybe(base::Now now) {
  if (plan_.pause == 0 || now < next_nap_) return;
  next_nap_ = now + kNapGap;
  if (!prng_.chance(plan_.pause)) return;
  asleep_until_ = now + base::Duration(static_cast<int64_t>(
                            prng_.below(static_cast<uint64_t>(plan_.pause_max.count()) + 1)));
}

bool Host::run(base::Now now) {
  sleep_maybe(now);
  if (now < asleep_until_ || now < next_poll_) return false;
  uint32_t taken = 0;
  for (; taken < kBurst && !inbox_.empty(); ++taken) {
    const Datagram d = std::move(inbox_.front());
    inbox_.pop_front();
    arriving_(d, now);
    const Fate fate = offer(d, now);
    delivered_(d, fate, now);
    validate();
  }
  if (network_ != nullptr) {
    take_frames(now);  // answers for neighbours
    network_->interface.on_timers(now);
    network_->interface.flush(now);
  }
  stack_.on_timers(now);
  validate();
  for (Application* application : applications_) application->run(now);
  refused_ = false;
  stack_.output(now);
  if (network_ != nullptr) network_->interface.flush(now);
  validate();
  // What output has ended may have something to read yet.
  for (Application* application : applications_) application->run(now);
  validate();
  if (plan_.poll_gap.count() != 0) {
    next_poll_ = now + base::Duration(static_cast<int64_t>(
                           prng_.below(static_cast<uint64_t>(plan_.poll_gap.count()) + 1)));
  }
  return taken != 0;
}

base::Now Host::next_deadline(base::Now now) const {
  base::Now next = inbox_.empty() ? stack_.next_deadline() : now;
  for (const Application* application : applications_) {
    next = base::earlier(next, application->next_deadline());
  }
  if (network_ != nullptr) {
    next = base::earlier(next, network_->interface.next_deadline());
    if (network_->port.waiting()) next = now;
  }
  // A full port is asked again a little later.
  if (refused_) next = base::earlier(next, now + kRetryGap);
  return std::max({next, asleep_until_, next_poll_});
}

}  // namespace rnic::simulation
