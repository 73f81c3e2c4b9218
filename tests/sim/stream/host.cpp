#include "stream/host.hpp"

#include <algorithm>

namespace rnic::simulation {

namespace {

constexpr size_t kInboxPackets = 2048;  // more are lost, as in a NIC's ring
constexpr uint32_t kBurst = 32;
constexpr base::Duration kNapGap = std::chrono::milliseconds(100);
constexpr base::Duration kRetryGap = std::chrono::microseconds(20);

}  // namespace

Host::Host(const HostPlan& plan, Verdict& verdict, base::Now now, Send send, Delivered delivered)
    : plan_(plan),
      verdict_(verdict),
      send_(std::move(send)),
      delivered_(std::move(delivered)),
      prng_(plan.seed),
      mtu_(plan.mtu),
      frame_(65'536),
      stack_(plan.tcp, *this, {prng_.next(), prng_.next()}, prng_.next(), now) {}

void Host::listen(uint16_t port) {
  const auto status = stack_.listen({plan_.address, port}, *this);
  if (!status) verdict_.fail("resources", status.error().message);
}

void Host::connect(const llp::Endpoint& local, const llp::Endpoint& remote,
                   Application& application, base::Now now) {
  const auto stream = stack_.connect(local, remote, application.user(), now);
  if (!stream) return verdict_.fail("resources", stream.error().message);
  application.attach(**stream);
}

llp::StreamUser* Host::accept(llp::Stream& stream, const llp::Endpoint&,
                              const llp::Endpoint& remote, base::Now) {
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

bool Host::begin(llp::IpAddress source, llp::IpAddress destination, tcp::TxSlot& slot) {
  if (frame_open_) verdict_.fail("egress", "a second frame begun");
  if (source != plan_.address) verdict_.fail("egress", "not our address");
  if (prng_.chance(plan_.port_full)) {
    refused_ = true;
    return false;
  }
  frame_open_ = true;
  destination_ = destination;
  slot = {.tcp = frame_.data(), .room = mtu_ - (source.is_v4() ? 20 : 40), .frame = this};
  return true;
}

void Host::send(tcp::TxSlot& slot, uint32_t length, base::Now now) {
  if (!frame_open_ || length > slot.room) verdict_.fail("egress", "beyond the frame's room");
  frame_open_ = false;
  send_({plan_.address, destination_, {slot.tcp, slot.tcp + length}, slot.traffic_class}, now);
}

void Host::cancel(tcp::TxSlot&) {
  if (!frame_open_) verdict_.fail("egress", "cancelled what was not begun");
  frame_open_ = false;
}

void Host::receive(Datagram&& d) {
  if (inbox_.size() < kInboxPackets) inbox_.push_back(std::move(d));
}

void Host::inject(const Datagram& d, base::Now now) {
  stack_.input({.source = d.source,
                .destination = d.destination,
                .tcp = d.tcp,
                .checksum_verified = false,
                .ecn = static_cast<uint8_t>(d.traffic_class & 3)},
               now);
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
    delivered_(d, now);
    inject(d, now);
    stack_.validate();
  }
  stack_.on_timers(now);
  stack_.validate();
  for (Application* application : applications_) application->run(now);
  refused_ = false;
  stack_.output(now);
  stack_.validate();
  // What output has ended may have something to read yet.
  for (Application* application : applications_) application->run(now);
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
  // A full port is asked again a little later.
  if (refused_) next = base::earlier(next, now + kRetryGap);
  return std::max({next, asleep_until_, next_poll_});
}

}  // namespace rnic::simulation
