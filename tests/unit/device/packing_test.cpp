// Packing chosen by connection, on a device that says otherwise; and what a device tells of the
// octets it holds.

#include "device_pair.hpp"

namespace rnic::device {
namespace {

class PackingChosen : public DevicePair, public ::testing::WithParamInterface<bool> {
 protected:
  // The devices say the opposite of what the connection wants.
  PackingChosen()
      : DevicePair([](DeviceConfig& config) { config.tcp.pack_records = !GetParam(); }) {}

  void send_ten(Host& from, QueuePair* a, Host& to, QueuePair* b, uint64_t segments) {
    std::vector<uint8_t> source = octets(10, 1), target(100);
    const mem::Stag read = from.add(source, a->spec().pd, {});
    const mem::Stag write = to.add(target, b->spec().pd, Access::LocalWrite);
    for (uint64_t i = 0; i < 10; ++i) {
      ASSERT_EQ(b->post_receive(receive(i, target, write, 10)), PostResult::Ok);
      ASSERT_EQ(a->post_send(work(Opcode::Send, i, source, read, 10)), PostResult::Ok);
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

// Each end chooses for what it sends.
TEST_P(PackingChosen, ByConnection_MPAA_6_05) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  ConnectOptions options;
  options.packing = GetParam();
  connect(a, b, {}, {}, options, options);
  send_ten(left(), a, right(), b, GetParam() ? 1 : 10);
  send_ten(right(), b, left(), a, GetParam() ? 1 : 10);
  // The next connection is as the device has it.
  QueuePair* c = left().make_qp();
  QueuePair* d = right().make_qp();
  connect(c, d);
  send_ten(left(), c, right(), d, GetParam() ? 10 : 1);
}

INSTANTIATE_TEST_SUITE_P(OnAndOff, PackingChosen, ::testing::Bool());

class NagleChosen : public DevicePair, public ::testing::WithParamInterface<bool> {
 protected:
  // The devices say the opposite of what the connection wants.
  NagleChosen() : DevicePair([](DeviceConfig& config) { config.tcp.nagle = !GetParam(); }) {}

  [[nodiscard]] uint64_t segments() { return left().device->tcp_counters().data_segments_out; }
};

// With Nagle's rule small FPDUs wait while a short segment is on its way, and go
// together with its ACK; what fills a segment does not wait. Without it each goes at once.
TEST_P(NagleChosen, SmallFpdusArePackedWhileDataIsInFlight_MPA_A_2_01) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  ConnectOptions options;
  options.tcp.nagle = GetParam();
  connect(a, b, {}, {}, options);
  run_for(std::chrono::milliseconds(200));  // the ACK of the Request
  std::vector<uint8_t> source = octets(5000, 1), target(5000);
  const mem::Stag from = left().add(source, a->spec().pd, {});
  const mem::Stag to = right().add(target, b->spec().pd, Access::LocalWrite);
  for (uint64_t i = 0; i < 8; ++i) {
    ASSERT_EQ(b->post_receive(receive(i, target, to, 5000)), PostResult::Ok);
  }
  const auto send = [&](uint64_t id, uint32_t length) {
    ASSERT_EQ(a->post_send(work(Opcode::Send, id, source, from, length)), PostResult::Ok);
    left().device->poll(now_ += base::Duration(10));
  };
  uint64_t before = segments();
  send(0, 10);
  EXPECT_EQ(segments(), before + 1) << "nothing is in flight";
  for (uint64_t i = 1; i <= 5; ++i) send(i, 10);
  EXPECT_EQ(segments(), before + (GetParam() ? 1 : 6));
  size_t done = 0;
  const auto arrived = [&] {
    done += right().completions(b->spec().receive_cq).size();
    return done;
  };
  EXPECT_TRUE(run_until([&] { return arrived() == 6; }));
  EXPECT_EQ(segments(), before + (GetParam() ? 2 : 6)) << "five in one segment";
  run_for(std::chrono::milliseconds(200));
  before = segments();
  send(6, 10);
  send(7, 5000);  // fills three segments, and its end may wait
  EXPECT_GE(segments(), before + 4);
  EXPECT_TRUE(run_until([&] { return arrived() == 8; }));
  EXPECT_EQ(target, source);
}

// A close, a Terminate and Read Responses do not wait for ever.
TEST_P(NagleChosen, EverythingEnds_MPA_A_2_01) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  ConnectOptions options;
  options.tcp.nagle = GetParam();
  connect(a, b, {}, {}, options, options);
  std::vector<uint8_t> near = octets(400, 1), far = octets(400, 9);
  const mem::Stag here = left().add(near, a->spec().pd, Access::LocalWrite);
  const mem::Stag there = right().add(far, b->spec().pd, Access::RemoteWrite | Access::RemoteRead);
  for (uint64_t i = 0; i < 20; ++i) {
    const Opcode opcode = i % 2 == 0 ? Opcode::Write : Opcode::Read;
    auto w = work(opcode, i, near, here, 20);
    w.remote = {there.value, reinterpret_cast<uint64_t>(far.data())};
    ASSERT_EQ(a->post_send(w), PostResult::Ok);
  }
  size_t done = 0;
  const auto start = now_;
  EXPECT_TRUE(
      run_until([&] { return (done += left().completions(a->spec().send_cq).size()) == 20; }));
  EXPECT_LT(now_ - start, std::chrono::seconds(5));
  auto bad = work(Opcode::Write, 1, near, here, 20);  // to nowhere
  ASSERT_EQ(a->post_send(work(Opcode::Write, 0, near, here, 0)), PostResult::Ok);
  ASSERT_EQ(a->post_send(bad), PostResult::Ok);
  EXPECT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
  EXPECT_TRUE(run_until([&] { return left().has<event::Disconnected>(); }));
}

INSTANTIATE_TEST_SUITE_P(OnAndOff, NagleChosen, ::testing::Bool());

/// The window is always below a segment of the path.
class SmallWindow : public DevicePair {
 protected:
  SmallWindow() : DevicePair([](DeviceConfig& config) { config.tcp.receive_window = 4096; }) {}
};

// Step (2): a small message goes beside what is in flight when the window has room
// for it.
TEST_F(SmallWindow, ASmallMessageDoesNotWait_TCP_9293_3_8_6_2_01) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  connect(a, b);
  run_for(std::chrono::milliseconds(200));  // the ACK of the Request
  std::vector<uint8_t> source = octets(2700, 1), target(2700);
  const mem::Stag from = left().add(source, a->spec().pd, {});
  const mem::Stag to = right().add(target, b->spec().pd, Access::LocalWrite);
  for (uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(b->post_receive(receive(i, target, to, 2700)), PostResult::Ok);
  }
  const auto segments = [&] { return left().device->tcp_counters().data_segments_out; };
  const auto send = [&](uint64_t id, uint32_t length) {
    ASSERT_EQ(a->post_send(work(Opcode::Send, id, source, from, length)), PostResult::Ok);
    left().device->poll(now_ += base::Duration(10));
  };
  const uint64_t before = segments();
  send(0, 2700);
  ASSERT_EQ(segments(), before + 2);
  send(1, 10);
  EXPECT_EQ(segments(), before + 3);
  send(2, 1400);  // more than is left
  EXPECT_EQ(segments(), before + 3);
  size_t done = 0;
  EXPECT_TRUE(run_until([&] {
    done += right().completions(b->spec().receive_cq).size();
    return done == 3;
  }));
}

class HeldOctets : public DevicePair {};

TEST_F(HeldOctets, AreListed_MPAA_7_02) {
  QueuePair* qp = left().make_qp();
  EXPECT_EQ(left().device->info(*qp, now_).received.held_now, 0u);  // not connected
  connect(qp, right().make_qp());
  EXPECT_EQ(left().device->info(*qp, now_).received.held_now, 0u);
  std::vector<std::string> names;
  left().device->for_each_counter([&](const std::string& layer, const base::CounterRow& row) {
    if (layer != "hold") return;
    names.emplace_back(row.name);
    EXPECT_EQ(row.value, 0u);
  });
  EXPECT_EQ(names, (std::vector<std::string>{"in_use", "peak", "memory"}));
}

}  // namespace
}  // namespace rnic::device
