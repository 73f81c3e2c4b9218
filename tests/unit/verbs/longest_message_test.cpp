// Messages of 2^32 - 1 octets, the longest that there are, out of and into memory that repeats: of
// pages that are mapped again and again, so that a machine with less memory has them, too.

#include <sys/mman.h>

#include <cstring>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint32_t kLongest = UINT32_MAX;

/// kLongest octets of address space, in which octet i and octet i + period are one.
class Repeated {
 public:
  explicit Repeated(size_t period) : period_(period) {
    const int file = memfd_create("repeated", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, static_cast<off_t>(period)) != 0) {
      throw std::runtime_error("no memory to repeat");
    }
    void* const at =
        mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no address space of 4 GB");
    first_ = static_cast<std::byte*>(at);
    for (size_t begin = 0; begin < kRoom; begin += period) {
      const size_t length = std::min(period, kRoom - begin);
      if (mmap(first_ + begin, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
          MAP_FAILED) {
        throw std::runtime_error("memory cannot be mapped again");
      }
    }
    close(file);
  }
  ~Repeated() { munmap(first_, kRoom); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;

  [[nodiscard]] std::span<std::byte> octets() const { return {first_, kLongest}; }
  /// Those that there are.
  [[nodiscard]] std::span<std::byte> own() const { return {first_, period_}; }

 private:
  static constexpr size_t kRoom = size_t{kLongest} + 1;

  size_t period_;
  std::byte* first_ = nullptr;
};

class Longest : public testing::TestWithParam<bool> {
 protected:
  static constexpr size_t kMegabyte = size_t{1} << 20;

  /// What the sink has when all octets have come in order: the last that came for each of its own.
  void expect_all_of_it() const {
    const std::span<const std::byte> from = source_.own();
    const std::span<const std::byte> to = sink_.own();
    for (size_t i = 0; i < to.size(); ++i) {
      const size_t last = i + (kLongest - 1 - i) / to.size() * to.size();
      ASSERT_EQ(to[i], from[last % from.size()]) << "octet " << last;
    }
  }
  void renew(uint64_t seed) {
    const std::vector<uint8_t> content = test::octets(source_.own().size(), seed);
    std::memcpy(source_.own().data(), content.data(), content.size());
    std::ranges::fill(sink_.own(), std::byte{0});
  }
  void expect_done(CompletionQueue& queue, uint64_t id) {
    Completion done;
    ASSERT_TRUE(world_.context.wait_until(
        [&] {
          return queue.poll({&done, 1}) == 1;
        },
        std::chrono::minutes(5)));
    EXPECT_EQ(done.status, CompletionStatus::Success) << to_string(done.status);
    EXPECT_EQ(done.id, id);
    EXPECT_EQ(done.length, kLongest);
  }

  // No multiple of the other: octets that lie elsewhere are other ones.
  Repeated source_{7 * kMegabyte};
  Repeated sink_{5 * kMegabyte};
  World world_{GetParam() ? socket_config(false) : loopback_config()};
};

TEST_P(Longest, OneWriteAndOneSend_VERBS_21) {
  Side near(world_.left);
  Side far(world_.right);
  MemoryRegion from = must(near.pd.register_memory(source_.octets(), Access::LocalWrite));
  MemoryRegion to = must(far.pd.register_memory(sink_.octets(), kEverything));
  world_.connect(near, far);

  renew(1);
  SendRequest write = request(Opcode::Write, from.sge(0, kLongest), 11);
  write.remote = {to.stag(), to.address()};
  must(near.qp.post_send(write));
  // A Read of one octet is answered when the Write is where it belongs.
  std::vector<uint8_t> last(1);
  Memory answer(near.pd, last, Access::LocalWrite);
  SendRequest read = request(Opcode::Read, answer.all(), 12);
  read.remote = {to.stag(), to.address() + kLongest - 1};
  must(near.qp.post_send(read));
  expect_done(near.send_cq, 11);
  world_.expect_done(near.send_cq, 12, 1);
  EXPECT_EQ(std::byte{answer.data[0]}, source_.octets()[kLongest - 1]);
  ASSERT_NO_FATAL_FAILURE(expect_all_of_it());

  renew(2);
  must(far.qp.post_receive(receive(to.sge(0, kLongest), 21)));
  must(near.qp.post_send(request(Opcode::Send, from.sge(0, kLongest), 13)));
  expect_done(near.send_cq, 13);
  expect_done(far.receive_cq, 21);
  ASSERT_NO_FATAL_FAILURE(expect_all_of_it());

  // An octet more is none that a request could name: the second SGE is refused, nothing is sent.
  SendRequest more = request(Opcode::Write, from.sge(0, kLongest), 14);
  more.sges = {from.sge(0, kLongest), from.sge(0, 1)};
  more.remote = {to.stag(), to.address()};
  EXPECT_FALSE(near.qp.post_send(more).has_value());
  world_.disconnect(near, far);
}

INSTANTIATE_TEST_SUITE_P(Everywhere, Longest, testing::Bool(),
                         [](const auto& p) { return std::string(p.param ? "Sockets" : "Wire"); });

}  // namespace
}  // namespace rnic::test
