// RDMA where the network cuts every IP packet: MPA and its users see nothing of it.

#include "device_pair.hpp"
#include "support/fake_nic.hpp"
#include "support/plain_reassembler.hpp"

namespace rnic::device {
namespace {

struct Node {
  Node(uint8_t number, base::Now now, net::FragmentPolicy policy = net::FragmentPolicy::Many)
      : nic({"nic", {2, 0, 0, 0, 0, number}, 1500, port::ChecksumMode::Software, {}}, 1, {}) {
    DeviceConfig config;
    config.net.address = IpAddress::v4(0x0a000000u + number);
    config.net.fragments = policy;
    config.seed = number;
    config.mpa.markers_receive = true;
    config.limits.hold_octets = 1u << 20;
    device = std::make_unique<Device>(config, nic.queue(0), now, &reassembler);
    QueuePairSpec spec;
    spec.pd = *device->alloc_pd();
    spec.send_cq = *device->create_cq(16);
    spec.receive_cq = *device->create_cq(16);
    qp = *device->create_qp(spec);
  }

  mem::Stag add(std::vector<uint8_t>& memory, AccessSet rights) {
    mem::RegionSpec spec;
    spec.address = memory.data();
    spec.length = memory.size();
    spec.pd = qp->spec().pd;
    spec.rights = rights;
    return *device->register_memory(spec);
  }
  template <typename Kind>
  std::optional<Kind> event() {
    while (auto next = device->poll_event()) {
      if (auto* found = std::get_if<Kind>(&*next)) return std::move(*found);
    }
    return std::nullopt;
  }

  test::FakeNic nic;
  test::PlainReassembler reassembler;
  std::unique_ptr<Device> device;
  QueuePair* qp = nullptr;
};

class Path : public ::testing::Test {
 protected:
  explicit Path(bool cuts, net::FragmentPolicy policy = net::FragmentPolicy::Many)
      : left_(1, now_, policy), right_(2, now_, policy) {
    base::set_log_level(base::LogLevel::Off);
    test::FakeNic::connect(left_.nic, right_.nic);
    if (cuts) left_.nic.fragment_over = right_.nic.fragment_over = 600;
  }

  bool run_until(const std::function<bool()>& done) {
    for (int steps = 0; steps < 1'000'000; ++steps) {
      if (done()) return true;
      if (left_.device->poll(now_) + right_.device->poll(now_) != 0) {
        now_ += base::Duration(1000);
        continue;
      }
      const base::Now next =
          base::earlier(left_.device->next_deadline(), right_.device->next_deadline());
      if (next == base::kNever) break;
      now_ = std::max(now_ + base::Duration(1000), next);
    }
    return done();
  }
  void connect() {
    const Endpoint there{right_.device->config().net.address, 7};
    ASSERT_TRUE(right_.device->listen(there.port).has_value());
    ASSERT_TRUE(left_.device->connect(*left_.qp, there, {}, now_).has_value());
    std::optional<event::ConnectRequest> request;
    ASSERT_TRUE(run_until([&] {
      request = right_.event<event::ConnectRequest>();
      return request.has_value();
    }));
    ASSERT_TRUE(right_.device->accept(request->request, *right_.qp, {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return left_.event<event::Established>().has_value(); }));
  }

  /// Writes 300,000 octets; all of them arrive.
  void transfer() {
    std::vector<uint8_t> source(300'000), sink(source.size());
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 31 + i / 255);
    SendRequest write;
    write.opcode = Opcode::Write;
    write.sges = {{reinterpret_cast<uint64_t>(source.data()), 300'000,
                   left_.add(source, Access::LocalRead).value}};
    write.remote = {right_.add(sink, Access::RemoteWrite).value,
                    reinterpret_cast<uint64_t>(sink.data())};
    ASSERT_EQ(left_.qp->post_send(write), PostResult::Ok);
    left_.device->ring_doorbell(left_.qp->number());
    std::array<Completion, 4> done;
    ASSERT_TRUE(run_until([&] { return left_.qp->spec().send_cq->poll(done) == 1; }));
    EXPECT_EQ(done[0].status, CompletionStatus::Success);
    EXPECT_EQ(sink, source);
  }

  base::Now now_ = base::from_nanos(1'000'000);
  Node left_;
  Node right_;
};

class FragmentedPath : public Path, public ::testing::WithParamInterface<bool> {
 protected:
  FragmentedPath() : Path(GetParam()) {
    right_.nic.passes = [this](const std::vector<uint8_t>&) { return ++frames_ % 29 != 0; };
  }
  uint32_t frames_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Network, FragmentedPath, ::testing::Bool(),
                         [](const auto& cuts) { return cuts.param ? "Cuts" : "CutsNot"; });

// The same work with every segment in two fragments, some of which are lost, as
// without.
TEST_P(FragmentedPath, IsInvisibleAboveIp_MPA_A_5_1_03) {
  connect();
  transfer();
  EXPECT_EQ(right_.device->net_counters().ip_reassembled != 0, GetParam());
  const mpa::Counters& mpa = right_.device->mpa_counters();
  EXPECT_GT(mpa.placed_early_octets, 0u);
  EXPECT_EQ(mpa.crc_errors + mpa.marker_errors, 0u);
}

class Policies : public Path, public ::testing::WithParamInterface<net::FragmentPolicy> {
 protected:
  Policies() : Path(true, GetParam()) {}
};

// Whatever is done with fragments, the data arrives: put together, or
// the sender was told and its segments fit the path from then on.
TEST_P(Policies, TheDataArrives_MPA_A_5_1_02_MPA00_13_2_01) {
  connect();
  transfer();
  const net::Counters& net = right_.device->net_counters();
  const bool drops = GetParam() == net::FragmentPolicy::Drop;
  EXPECT_GT(net.ip_fragments, 0u);
  EXPECT_EQ(net.ip_reassembled != 0, !drops);
  EXPECT_EQ(net.icmp_errors_out != 0, drops);
  EXPECT_EQ(left_.device->net_counters().icmp_errors_in != 0, drops);
  if (drops) {
    EXPECT_LT(net.ip_fragments, 200u) << "the path was learned";
  }
}

INSTANTIATE_TEST_SUITE_P(OfRfc5044, Policies,
                         ::testing::Values(net::FragmentPolicy::Drop, net::FragmentPolicy::Mtu,
                                           net::FragmentPolicy::Many, net::FragmentPolicy::One,
                                           net::FragmentPolicy::Spanning));

}  // namespace
}  // namespace rnic::device
