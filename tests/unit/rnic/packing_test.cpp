// Packing chosen by connection, on a device that says otherwise; and what a device tells of the
// octets it holds.

#include "device_pair.hpp"

namespace rnic::nic {
namespace {

using rdmap::WorkOpcode;

class PackingChosen : public DevicePair, public ::testing::WithParamInterface<bool> {
 protected:
  // The devices say the opposite of what the connection wants.
  PackingChosen()
      : DevicePair([](DeviceConfig& config) { config.tcp.pack_records = !GetParam(); }) {}

  void send_ten(Host& from, QueuePair* a, Host& to, QueuePair* b, uint64_t segments) {
    std::vector<uint8_t> source = octets(10, 1), target(100);
    const mem::Stag read = from.add(source, a->spec().pd, 0);
    const mem::Stag write = to.add(target, b->spec().pd, mem::kLocalWrite);
    for (uint64_t i = 0; i < 10; ++i) {
      ASSERT_EQ(b->post_receive(receive(i, target, write, 10)), PostResult::Ok);
      ASSERT_EQ(a->post_send(work(WorkOpcode::Send, i, source, read, 10)), PostResult::Ok);
    }
    const uint64_t before = from.device->tcp_counters().data_segments_out;
    size_t done = 0;
    EXPECT_TRUE(run_until([&] {
      done += to.completions(b->spec().receive_cq).size();
      return done == 10;
    }));
    EXPECT_EQ(from.device->tcp_counters().data_segments_out - before, segments);
  }
};

// MPAA-6-05: each end chooses for what it sends.
TEST_P(PackingChosen, ByConnection_MPAA_6_05) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  ConnectOptions options;
  options.packing = GetParam();
  ASSERT_TRUE(left().device->connect(*a, right_end(), {}, now_, options).has_value());
  ASSERT_TRUE(run_until([&] { return right().has(EventKind::ConnectRequest); }));
  const auto request = right().take(EventKind::ConnectRequest);
  ASSERT_TRUE(right().device->accept(request->connection, *b, {}, now_, options).has_value());
  ASSERT_TRUE(run_until(
      [&] { return left().has(EventKind::Established) && right().has(EventKind::Established); }));
  EXPECT_TRUE(left().take(EventKind::Established) && right().take(EventKind::Established));
  send_ten(left(), a, right(), b, GetParam() ? 1 : 10);
  send_ten(right(), b, left(), a, GetParam() ? 1 : 10);
  // The next connection is as the device has it.
  QueuePair* c = left().make_qp();
  QueuePair* d = right().make_qp();
  connect(c, d);
  send_ten(left(), c, right(), d, GetParam() ? 10 : 1);
}

INSTANTIATE_TEST_SUITE_P(OnAndOff, PackingChosen, ::testing::Bool());

class HeldOctets : public DevicePair {};

// MPAA-7-02
TEST_F(HeldOctets, AreListed_MPAA_7_02) {
  QueuePair* qp = left().make_qp();
  EXPECT_EQ(left().device->held_octets(*qp), 0u);  // not connected
  connect(qp, right().make_qp());
  EXPECT_EQ(left().device->held_octets(*qp), 0u);
  std::vector<std::string> names;
  for (const CounterValue& value : left().device->counters()) {
    if (value.layer != "hold") continue;
    names.emplace_back(value.row.name);
    EXPECT_EQ(value.row.value, 0u);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"in_use", "peak", "memory"}));
}

}  // namespace
}  // namespace rnic::nic
