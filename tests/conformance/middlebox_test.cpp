// Boxes on the way that join segments, shrink the window that the receiver offers, or make the path
// narrower: whole devices, with and without markers and CRC.

#include <gtest/gtest.h>

#include <algorithm>

#include "offload/offload.hpp"
#include "support/fake_nic.hpp"
#include "unit/device/device_pair.hpp"
#include "wire/icmp.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/tcp.hpp"

namespace rnic::conformance {
namespace {

using device::Host;
using device::QueuePair;
using Frame = std::vector<uint8_t>;

constexpr uint32_t kMtu = 1500;  // of the ports
constexpr uint32_t kMessages = 40;
constexpr uint32_t kSlot = 20'000;

class Middlebox : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static bool markers() { return (GetParam() & 1) != 0; }
  [[nodiscard]] static bool crc() { return (GetParam() & 2) != 0; }

  /// \param mtu of the devices, up to that of the ports
  void start(uint32_t mtu) {
    base::set_log_level(base::LogLevel::Off);
    nics_ = test::connected_nics(kMtu);
    for (uint32_t i = 0; i < 2; ++i) {
      nics_[i]->passes = [this, i](const Frame& frame) {
        if (on_wire_[i].empty()) idle_ = false;
        on_wire_[i].push_back(frame);
        return false;
      };
      device::DeviceConfig config;
      config.net.address = IpAddress::v4(0x0a000001u + i);
      config.net.mtu = mtu;
      config.seed = i + 1;
      config.tcp.max_connections = 8;
      config.tcp.pack_records = false;
      config.mpa.markers_receive = markers();
      config.mpa.crc = crc();
      config.limits.hold_octets = 1u << 20;
      hosts_.push_back(std::make_unique<Host>(config, nics_[i]->queue(0), now_));
    }
  }
  void TearDown() override { hosts_.clear(); }

  /// The box: frames on their way to a device, all that came in one turn.
  virtual void carry(uint32_t to, std::vector<Frame> frames) {
    for (Frame& frame : frames) nics_[to]->receive({std::move(frame)});
  }

  bool run_until(const std::function<bool()>& done,
                 base::Duration limit = std::chrono::seconds(600)) {
    for (const base::Now end = now_ + limit; now_ < end && !HasFailure();) {
      if (done()) return true;
      idle_ = true;
      const uint32_t work = hosts_[0]->device->poll(now_) + hosts_[1]->device->poll(now_);
      for (uint32_t to = 0; to < 2; ++to) {
        if (!on_wire_[to].empty()) carry(to, std::exchange(on_wire_[to], {}));
      }
      const bool busy = work != 0 || !idle_ || hosts_[0]->device->doorbell_ringing();
      const base::Now next =
          base::earlier(hosts_[0]->device->next_deadline(), hosts_[1]->device->next_deadline());
      now_ += std::chrono::microseconds(50);
      if (!busy && next != base::kNever) now_ = std::max(now_, next);
    }
    return done();
  }

  /// A Write and then a Send for each slot, the Reads back, on a connection of their own.
  void expect_traffic() {
    ASSERT_TRUE(hosts_[1]->device->listen(device::kPort).has_value());
    QueuePair* a = hosts_[0]->make_qp(256, 1024);
    QueuePair* b = hosts_[1]->make_qp(256, 1024);
    ASSERT_TRUE(hosts_[0]
                    ->device->connect(*a, {IpAddress::v4(0x0a000002u), device::kPort}, {}, now_)
                    .has_value());
    ASSERT_TRUE(run_until([&] { return hosts_[1]->has<event::ConnectRequest>(); }));
    const auto request = hosts_[1]->take<event::ConnectRequest>();
    ASSERT_TRUE(hosts_[1]->device->accept(request->request, *b, {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return hosts_[0]->has<event::Established>(); }));
    source_.resize(kMessages * kSlot);
    for (size_t i = 0; i < source_.size(); ++i) source_[i] = static_cast<uint8_t>(i * 7 + i / 251);
    target_.assign(source_.size(), 0);
    sink_.assign(source_.size(), 0);
    const mem::Stag from = hosts_[0]->add(source_, a->spec().pd, {});
    const mem::Stag into = hosts_[0]->add(sink_, a->spec().pd, Access::LocalWrite);
    const mem::Stag to = hosts_[1]->add(
        target_, b->spec().pd, Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead);
    for (uint32_t i = 0; i < kMessages; ++i) {
      ASSERT_EQ(b->post_receive({.id = i}), device::PostResult::Ok);
      ASSERT_EQ(a->post_send(work(Opcode::Write, i, source_, from, to)), device::PostResult::Ok);
      SendRequest notice{.id = i, .opcode = Opcode::Send};
      ASSERT_EQ(a->post_send(notice), device::PostResult::Ok);
      ASSERT_EQ(a->post_send(work(Opcode::Read, i, sink_, into, to)), device::PostResult::Ok);
    }
    uint32_t sends = 0, notices = 0;
    EXPECT_TRUE(run_until([&] {
      for (const auto& c : hosts_[1]->completions(b->spec().receive_cq)) {
        EXPECT_EQ(c.status, CompletionStatus::Success);
        EXPECT_EQ(c.id, notices++);
        expect_slot(target_, static_cast<uint32_t>(c.id));
      }
      for (const auto& c : hosts_[0]->completions(a->spec().send_cq)) {
        EXPECT_EQ(c.status, CompletionStatus::Success);
        if (sends++ % 3 == 2) expect_slot(sink_, static_cast<uint32_t>(c.id));
      }
      return sends == 3 * kMessages && notices == kMessages;
    }));
    EXPECT_EQ(target_, source_);
    EXPECT_EQ(sink_, source_);
    for (auto& host : hosts_) {
      EXPECT_FALSE(host->has<event::TerminateSent>() || host->has<event::Disconnected>());
    }
  }
  SendRequest work(Opcode opcode, uint32_t i, const std::vector<uint8_t>& local, mem::Stag stag,
                   mem::Stag remote) const {
    SendRequest w{.id = i, .opcode = opcode};
    w.remote = {remote.value, reinterpret_cast<uint64_t>(target_.data()) + uint64_t{i} * kSlot};
    w.sges = {{reinterpret_cast<uint64_t>(local.data()) + uint64_t{i} * kSlot, kSlot, stag.value}};
    return w;
  }
  void expect_slot(const std::vector<uint8_t>& memory, uint32_t i) {
    const auto at = static_cast<long>(i) * kSlot;
    EXPECT_TRUE(std::equal(memory.begin() + at, memory.begin() + at + kSlot, source_.begin() + at))
        << "a completion before its data: " << i;
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  std::vector<std::unique_ptr<test::FakeNic>> nics_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::array<std::vector<Frame>, 2> on_wire_;  // by receiver
  bool idle_ = true;
  Frame source_, target_, sink_;
};

/// Joins what lies together, as far as it fits a frame.
class Joining : public Middlebox {
 protected:
  void carry(uint32_t to, std::vector<Frame> frames) override {
    std::vector<Frame> out;
    for (Frame& frame : frames) {
      if (out.empty() || !join(out.back(), frame)) out.push_back(std::move(frame));
    }
    Middlebox::carry(to, std::move(out));
  }
  bool join(Frame& first, const Frame& second) {
    const auto a = offload::locate_tcp(first), b = offload::locate_tcp(second);
    if (!a || !b || a->payload != b->payload || a->payload_size() == 0 || b->payload_size() == 0 ||
        a->end + b->payload_size() > kMtu + offload::kEthernetHeader) {
      return false;
    }
    constexpr uint8_t kPlain = wire::tcp_flag::kAck | wire::tcp_flag::kPsh;
    const auto flags = [](const Frame& f, uint32_t tcp) { return f[tcp + wire::kTcpFlagsAt]; };
    if (((flags(first, a->tcp) | flags(second, b->tcp)) & ~kPlain) != 0) return false;
    const auto sequence = [](const Frame& f, uint32_t tcp) {
      return base::load_be32(&f[tcp + wire::kTcpSequenceAt]);
    };
    if (base::load_be32(&first[a->tcp]) != base::load_be32(&second[b->tcp]) ||  // both ports
        sequence(first, a->tcp) + a->payload_size() != sequence(second, b->tcp)) {
      return false;
    }
    auto at = *a;
    first.resize(a->end);
    first.insert(first.end(), second.begin() + b->payload, second.begin() + b->end);
    at.end = static_cast<uint32_t>(first.size());
    offload::write_ip_length(first, at);
    offload::write_tcp_checksum(first, at);
    ++joined_;
    return true;
  }
  uint32_t joined_ = 0;
};

TEST_P(Joining, Segments_UNH_IMP_08) {
  for (const bool small : {true, false}) {  // segments that fit twice into a frame, and full ones
    hosts_.clear();
    nics_.clear();
    on_wire_ = {};
    joined_ = 0;
    start(small ? 600 : kMtu);
    expect_traffic();
    if (small) {
      EXPECT_GT(joined_, 200u);
      EXPECT_GT(hosts_[1]->device->mpa_counters().fpdus_in,
                hosts_[1]->device->tcp_counters().segments_in);
    }
  }
}

/// Says less of a window than the receiver offered, in phases: its right edge moves to the left.
class Shrinking : public Middlebox {
 protected:
  void carry(uint32_t to, std::vector<Frame> frames) override {
    for (Frame& frame : frames) {
      const auto at = offload::locate_tcp(frame);
      if (!shrinks_ || to != 0 || !at ||
          (frame[at->tcp + wire::kTcpFlagsAt] & wire::tcp_flag::kSyn) != 0) {
        continue;
      }
      const uint64_t phase = acks_++ / 15 % 4;
      uint8_t* window = &frame[at->tcp + wire::kTcpWindowAt];
      const uint16_t offered = base::load_be16(window);
      // Whole; a sixteenth; a few segments; shut.
      const uint32_t now = phase == 0       ? offered
                           : phase == 1     ? offered / 16
                           : phase == 2     ? std::min<uint32_t>(offered, 64)
                           : acks_ % 15 < 3 ? 0
                                            : offered;
      if (now < last_) ++shrunk_;
      last_ = now;
      base::store_be16(window, static_cast<uint16_t>(now));
      offload::write_tcp_checksum(frame, *at);
    }
    Middlebox::carry(to, std::move(frames));
  }
  bool shrinks_ = true;
  uint64_t acks_ = 0;
  uint32_t last_ = 0;
  uint32_t shrunk_ = 0;
};

TEST_P(Shrinking, Windows_UNH_IMP_09) {
  start(kMtu);
  const base::Now begin = now_;
  expect_traffic();
  EXPECT_GT(shrunk_, 5u);
  EXPECT_LT(now_ - begin, std::chrono::seconds(300));
}

/// A router that knows how wide the path is, and tells.
class Narrowing : public Middlebox {
 protected:
  void carry(uint32_t to, std::vector<Frame> frames) override {
    std::vector<Frame> pass;
    for (Frame& frame : frames) {
      // Another width every 60 kilobytes.
      const uint32_t path = kWidths[carried_ / 60'000 % kWidths.size()];
      if (frame.size() <= path + wire::kEtherHeader) {
        carried_ += frame.size();
        pass.push_back(std::move(frame));
        continue;
      }
      ++lost_;
      nics_[1 - to]->receive({too_big(frame, 1 - to, path)});
    }
    Middlebox::carry(to, std::move(pass));
  }
  static Frame too_big(const Frame& lost, uint32_t to, uint32_t path) {
    constexpr uint32_t kQuoted = wire::kIpv4Header + 8;
    Frame frame(wire::kEtherHeader + wire::kIpv4Header + wire::kIcmpHeader + kQuoted);
    wire::write_ether(frame.data(), test::nic_mac(to), test::nic_mac(1 - to), wire::kEtherTypeIpv4);
    uint8_t* icmp = frame.data() + wire::kEtherHeader + wire::kIpv4Header;
    std::copy_n(lost.begin() + wire::kEtherHeader, kQuoted, icmp + wire::kIcmpHeader);
    icmp[0] = wire::kIcmpUnreachable;
    icmp[1] = wire::kIcmpFragmentationNeeded;
    base::store_be16(icmp + wire::kIcmpMtuAt, static_cast<uint16_t>(path));
    wire::Ipv4 ip;
    ip.source = 0x0a000001u + (1 - to);
    ip.destination = 0x0a000001u + to;
    ip.protocol = wire::kProtocolIcmp;
    ip.ttl = 64;
    ip.total_length = wire::kIpv4Header + wire::kIcmpHeader + kQuoted;
    wire::write_ipv4(frame.data() + wire::kEtherHeader, ip);
    base::store_be16(icmp + wire::kIcmpChecksumAt, wire::checksum_fold(wire::checksum_add(
                                                       0, {icmp, wire::kIcmpHeader + kQuoted})));
    return frame;
  }

  static constexpr std::array<uint32_t, 5> kWidths{1500, 1300, 900, 1500, 576};
  uint64_t carried_ = 0;
  uint32_t lost_ = 0;
};

TEST_P(Narrowing, Paths_UNH_IMP_10) {
  start(kMtu);
  const base::Now begin = now_;
  expect_traffic();
  EXPECT_GT(lost_, 3u);
  EXPECT_LT(now_ - begin, std::chrono::seconds(120));
}

/// Nothing between them: the twin of all three.
using Straight = Middlebox;
TEST_P(Straight, UNH_IMP_08_UNH_IMP_09_UNH_IMP_10) {
  start(kMtu);
  const base::Now begin = now_;
  expect_traffic();
  EXPECT_LT(now_ - begin, std::chrono::seconds(1));
}

const auto name_of = [](const ::testing::TestParamInfo<int>& p) {
  return std::string((p.param & 1) != 0 ? "Markers" : "NoMarkers") +
         ((p.param & 2) != 0 ? "Crc" : "NoCrc");
};
INSTANTIATE_TEST_SUITE_P(MarkersAndCrc, Straight, ::testing::Range(0, 4), name_of);
INSTANTIATE_TEST_SUITE_P(MarkersAndCrc, Joining, ::testing::Range(0, 4), name_of);
INSTANTIATE_TEST_SUITE_P(MarkersAndCrc, Shrinking, ::testing::Range(0, 4), name_of);
INSTANTIATE_TEST_SUITE_P(MarkersAndCrc, Narrowing, ::testing::Range(0, 4), name_of);

}  // namespace
}  // namespace rnic::conformance
