// Messages of every length around a segment's payload, between whole devices.

#include "unit/device/device_pair.hpp"

namespace rnic::conformance {
namespace {

class Lengths : public device::DevicePair {
 protected:
  Lengths() : DevicePair([](device::DeviceConfig& config) { config.tcp.pack_records = false; }) {}

  /// Posts one message and waits for its completion. \return the segments of DDP it took
  uint64_t carry(const SendRequest& work, device::Host& sender) {
    const uint64_t before = sender.device->mpa_counters().fpdus_out;
    EXPECT_EQ(a_->post_send(work), device::PostResult::Ok);
    std::vector<Completion> done;
    EXPECT_TRUE(run_until([&] {
      done = left().completions(a_->spec().send_cq);
      return !done.empty();
    }));
    EXPECT_EQ(done.at(0).status, CompletionStatus::Success);
    return sender.device->mpa_counters().fpdus_out - before;
  }

  device::QueuePair* a_ = nullptr;
};

// The EMSS is 1448 with timestamps, the MULPDU without markers 1442.
TEST_F(Lengths, AroundMultiplesOfTheMulpdu_UNH_DDP_11) {
  constexpr uint32_t kMulpdu = 1442, kMost = 3 * kMulpdu + 3;
  a_ = left().make_qp();
  device::QueuePair* b = right().make_qp();
  connect(a_, b);
  std::vector<uint8_t> near = octets(kMost, 3), far(kMost);
  const mem::Stag here = left().add(near, a_->spec().pd, Access::LocalWrite);
  const mem::Stag there =
      right().add(far, b->spec().pd, Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead);
  uint32_t tried = 0;
  for (const Opcode opcode : {Opcode::Write, Opcode::Send, Opcode::Read}) {
    const uint32_t room = kMulpdu - (opcode == Opcode::Send ? 18 : 14);
    for (uint32_t k = 0; k <= 3; ++k) {
      for (int32_t off = -2; off <= 2; ++off) {
        const int64_t length = int64_t{k} * room + off;
        if (length < 0 || length > kMost) continue;
        const auto n = static_cast<uint32_t>(length);
        const bool read = opcode == Opcode::Read;
        const std::vector<uint8_t> content = octets(kMost, static_cast<uint8_t>(++tried));
        std::vector<uint8_t>& source = read ? far : near;
        std::vector<uint8_t>& sink = read ? near : far;
        std::copy(content.begin(), content.end(), source.begin());
        std::fill(sink.begin(), sink.end(), uint8_t{0xa5});
        if (opcode == Opcode::Send) {
          ASSERT_EQ(b->post_receive(receive(tried, far, there, kMost)), device::PostResult::Ok);
        }
        auto w = work(opcode, tried, near, here, n);
        w.remote = {there.value, reinterpret_cast<uint64_t>(far.data())};
        EXPECT_EQ(carry(w, read ? right() : left()), n == 0 ? 1u : (n + room - 1) / room) << n;
        if (opcode == Opcode::Send) {
          const auto got = right().completions(b->spec().receive_cq);
          ASSERT_EQ(got.size(), 1u);
          EXPECT_EQ(got[0].length, n);
        }
        EXPECT_TRUE(std::equal(content.begin(), content.begin() + n, sink.begin())) << n;
        EXPECT_TRUE(std::all_of(sink.begin() + n, sink.end(), [](uint8_t o) { return o == 0xa5; }));
      }
    }
  }
  EXPECT_EQ(tried, 3u * (3 + 3 * 5));
}

}  // namespace
}  // namespace rnic::conformance
