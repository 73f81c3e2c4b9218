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
  }

  test::FakeNic nic;
  test::PlainReassembler reassembler;
  std::unique_ptr<Device> device;
};

// MPA-A.5.1-03: the same work with every segment in two fragments, some of which are lost, as
// without.
TEST(FragmentedPath, IsInvisibleAboveIp_MPA_A_5_1_03) {
  base::set_log_level(base::LogLevel::Off);
  for (const bool fragments : {false, true}) {
    base::Now now = base::from_nanos(1'000'000);
    Node left(1, now), right(2, now);
    test::FakeNic::connect(left.nic, right.nic);
    if (fragments) left.nic.fragment_over = right.nic.fragment_over = 600;
    uint32_t count = 0;
    right.nic.passes = [&](const std::vector<uint8_t>&) { return ++count % 29 != 0; };
    const auto run_until = [&](const std::function<bool()>& done) {
      for (int steps = 0; steps < 1'000'000; ++steps) {
        if (done()) return true;
        if (left.device->poll(now) + right.device->poll(now) != 0) {
          now += base::Duration(1000);
          continue;
        }
        const base::Now next =
            base::earlier(left.device->next_deadline(), right.device->next_deadline());
        if (next == base::kNever) break;
        now = std::max(now + base::Duration(1000), next);
      }
      return done();
    };
    const auto make_qp = [](Device& device) {
      QueuePairSpec spec;
      spec.pd = *device.alloc_pd();
      spec.send_cq = *device.create_cq(16);
      spec.receive_cq = *device.create_cq(16);
      return *device.create_qp(spec);
    };
    const auto event_of = [](Device& device, EventKind kind) {
      for (Event event; device.poll_event(event);) {
        if (event.kind == kind) return std::optional<Event>(event);
      }
      return std::optional<Event>{};
    };
    QueuePair* a = make_qp(*left.device);
    QueuePair* b = make_qp(*right.device);
    ASSERT_TRUE(right.device->listen(7).has_value());
    ASSERT_TRUE(
        left.device->connect(*a, {right.device->config().net.address, 7}, {}, now).has_value());
    std::optional<Event> request;
    ASSERT_TRUE(run_until([&] {
      request = event_of(*right.device, EventKind::ConnectRequest);
      return request.has_value();
    }));
    ASSERT_TRUE(right.device->accept(request->connection, *b, {}, now).has_value());
    ASSERT_TRUE(
        run_until([&] { return event_of(*left.device, EventKind::Established).has_value(); }));
    std::vector<uint8_t> source(300'000), sink(source.size());
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<uint8_t>(i * 31 + i / 255);
    const auto add = [](Device& device, std::vector<uint8_t>& memory, uint32_t pd,
                        uint32_t rights) {
      mem::RegionSpec spec;
      spec.address = memory.data();
      spec.length = memory.size();
      spec.pd = pd;
      spec.rights = rights;
      return *device.register_memory(spec);
    };
    const mem::Stag from = add(*left.device, source, a->spec().pd, mem::kLocalRead);
    const mem::Stag to = add(*right.device, sink, b->spec().pd, mem::kRemoteWrite);
    rdmap::SendWork write;
    write.opcode = rdmap::WorkOpcode::Write;
    write.sge_count = 1;
    write.sges[0] = {reinterpret_cast<uint64_t>(source.data()), 300'000, from.value};
    write.remote_stag = to.value;
    write.remote_to = reinterpret_cast<uint64_t>(sink.data());
    ASSERT_EQ(a->post_send(write), PostResult::Ok);
    left.device->ring_doorbell(a->number());
    std::array<rdmap::Completion, 4> done;
    ASSERT_TRUE(run_until([&] { return a->spec().send_cq->poll(done) == 1; }));
    EXPECT_EQ(done[0].status, rdmap::WorkStatus::Success);
    EXPECT_EQ(sink, source);
    EXPECT_EQ(right.device->net_counters().ip_fragments != 0, fragments);
    EXPECT_GT(right.device->mpa_counters().placed_early_octets, 0u);
    EXPECT_EQ(right.device->mpa_counters().crc_errors + right.device->mpa_counters().marker_errors,
              0u);
  }
}

}  // namespace
}  // namespace rnic::nic
