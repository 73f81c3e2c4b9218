// RDMA where the network cuts every IP packet: MPA and its users see nothing of it.

#include "device_pair.hpp"
#include "support/fake_nic.hpp"
#include "support/plain_reassembler.hpp"

namespace rnic::nic {
namespace {

struct Node {
  Node(uint8_t number, base::Now now)
      : nic({"nic", {2, 0, 0, 0, 0, number}, 1500, port::ChecksumMode::Software, {}}, 1, {}) {
    DeviceConfig config;
    config.net.address = llp::IpAddress::v4(0x0a000000u + number);
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

  mem::Stag add(std::vector<uint8_t>& memory, uint32_t rights) {
    mem::RegionSpec spec;
    spec.address = memory.data();
    spec.length = memory.size();
    spec.pd = qp->spec().pd;
    spec.rights = rights;
    return *device->register_memory(spec);
  }
  std::optional<Event> event(EventKind kind) {
    for (Event next; device->poll_event(next);) {
      if (next.kind == kind) return next;
    }
    return std::nullopt;
  }

  test::FakeNic nic;
  test::PlainReassembler reassembler;
  std::unique_ptr<Device> device;
  QueuePair* qp = nullptr;
};

class FragmentedPath : public ::testing::TestWithParam<bool> {
 protected:
  FragmentedPath() : left_(1, now_), right_(2, now_) {
    base::set_log_level(base::LogLevel::Off);
    test::FakeNic::connect(left_.nic, right_.nic);
    if (GetParam()) left_.nic.fragment_over = right_.nic.fragment_over = 600;
    right_.nic.passes = [this](const std::vector<uint8_t>&) { return ++frames_ % 29 != 0; };
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
    const llp::Endpoint there{right_.device->config().net.address, 7};
    ASSERT_TRUE(right_.device->listen(there.port).has_value());
    ASSERT_TRUE(left_.device->connect(*left_.qp, there, {}, now_).has_value());
    std::optional<Event> request;
    ASSERT_TRUE(run_until([&] {
      request = right_.event(EventKind::ConnectRequest);
      return request.has_value();
    }));
    ASSERT_TRUE(right_.device->accept(request->connection, *right_.qp, {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return left_.event(EventKind::Established).has_value(); }));
  }

  base::Now now_ = base::from_nanos(1'000'000);
  uint32_t frames_ = 0;
  Node left_;
  Node right_;
};

INSTANTIATE_TEST_SUITE_P(Network, FragmentedPath, ::testing::Bool(),
                         [](const auto& cuts) { return cuts.param ? "Cuts" : "CutsNot"; });

// MPA-A.5.1-03: the same work with every segment in two fragments, some of which are lost, as
// without.
TEST_P(FragmentedPath, IsInvisibleAboveIp_MPA_A_5_1_03) {
  connect();
  std::vector<uint8_t> source(300'000), sink(source.size());
  for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 31 + i / 255);
  rdmap::SendWork write;
  write.opcode = rdmap::WorkOpcode::Write;
  write.sge_count = 1;
  write.sges[0] = {reinterpret_cast<uint64_t>(source.data()), 300'000,
                   left_.add(source, mem::kLocalRead).value};
  write.remote_stag = right_.add(sink, mem::kRemoteWrite).value;
  write.remote_to = reinterpret_cast<uint64_t>(sink.data());
  ASSERT_EQ(left_.qp->post_send(write), PostResult::Ok);
  left_.device->ring_doorbell(left_.qp->number());
  std::array<rdmap::Completion, 4> done;
  ASSERT_TRUE(run_until([&] { return left_.qp->spec().send_cq->poll(done) == 1; }));
  EXPECT_EQ(done[0].status, rdmap::WorkStatus::Success);
  EXPECT_EQ(sink, source);
  EXPECT_EQ(right_.device->net_counters().ip_reassembled != 0, GetParam());
  const mpa::Counters& mpa = right_.device->mpa_counters();
  EXPECT_GT(mpa.placed_early_octets, 0u);
  EXPECT_EQ(mpa.crc_errors + mpa.marker_errors, 0u);
}

}  // namespace
}  // namespace rnic::nic
