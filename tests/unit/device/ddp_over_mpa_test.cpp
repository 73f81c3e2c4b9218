// A DDP stream on MPA on TCP, without RDMAP: what the stream does of its own accord.

#include "ddp/ddp.hpp"
#include "mpa_over_tcp.hpp"
#include "unit/ddp/stream_fixture.hpp"
#include "wire/ddp.hpp"

namespace rnic::testing {
namespace {

using test::Octets;

/// b's endpoint is a ddp::Stream whose user only takes notes.
class DdpOverMpa : public MpaOverTcp {
 protected:
  DdpOverMpa() {
    stag_ = memory_
                .add({.address = target_.data(),
                      .length = target_.size(),
                      .pd = 3,
                      .rights = Access::RemoteWrite,
                      .offset = 0})
                ->value;
    b.session.bind(stream_of_b_);
    link.seen = [this](const LinkFrame& frame) {
      if (frame.from_a) return;
      ended_by_b_ += frame.has(wire::tcp_flag::kFin) || frame.has(wire::tcp_flag::kRst);
      b_octets_ += frame.payload();
    };
  }
  void write(uint32_t stag, uint64_t to, size_t payload) {
    Octets ulpdu(14 + payload, 0x11);
    wire::write_ddp(ulpdu.data(), {.last = true, .stag = stag, .to = to});
    a.user.to_send.push_back(ulpdu);
    a.session.ready();
  }
  /// TCP stands, in both directions, and takes what the peer sends.
  void expect_open(base::Duration time = seconds(300)) {
    link.run(time);
    EXPECT_EQ(ended_by_b_, 0u);
    EXPECT_EQ(notes_.ends, 0u);
    EXPECT_TRUE(a.user.ends.empty());
    EXPECT_TRUE(a.user.sent.empty()) << "not all was acknowledged";
    EXPECT_TRUE(a.user.to_send.empty());
  }

  Octets target_ = Octets(4096, 0x5a);
  mem::StagTable memory_{8, {1, 2}};
  ddp::RecordingUser notes_;
  uint64_t segments_ = 0, octets_ = 0, postponed_ = 0;
  ddp::Stream stream_of_b_{{.who = {3, 5}, .queues = 3, .secret = 77},
                           memory_,
                           notes_,
                           {segments_, octets_, postponed_}};
  uint32_t stag_ = 0;
  uint32_t ended_by_b_ = 0;
  uint64_t b_octets_ = 0;
};

// DDP-6.2.2-03: of all that may go wrong or come to its end - a segment that is refused,
// in order and ahead of it, what follows it, and the peer's end - DDP tells its user and closes
// nothing. The stream stands until the user ends it.
TEST_F(DdpOverMpa, TearsNothingDown_DDP_6_2_01) {
  write(stag_, 0, 100);
  link.run(seconds(1));
  EXPECT_EQ(target_[99], 0x11);
  uint32_t data = 0;
  link.hook = [&](const LinkFrame& frame) {  // the second one comes ahead of the first
    return Fate{.drop = frame.from_a && frame.payload() != 0 && data++ == 0};
  };
  write(stag_, 200, 1200);
  write(stag_ ^ 1, 0, 1200);
  expect_open();
  EXPECT_GT(postponed_, 0u);
  ASSERT_EQ(notes_.faults.size(), 1u);
  EXPECT_EQ(notes_.delivered.size(), 2u);
  EXPECT_EQ(target_[200], 0x11);
  for (int i = 0; i < 20; ++i) write(stag_, 2000, 1000);
  expect_open();
  EXPECT_EQ(target_[2000], 0x5a) << "nothing is placed behind the error";
  EXPECT_EQ(notes_.faults.size(), 1u);
  a.session.close();  // half of it
  expect_open(seconds(5));
  EXPECT_EQ(b_octets_, kFullOperation) << "the Reply only";
  b.session.close();
  EXPECT_TRUE(link.run_until([&] { return notes_.ends == 1 && ended_by_b_ == 1; }, seconds(300)));
}

// Nor for a peer that only finishes.
TEST_F(DdpOverMpa, OutlivesThePeersEnd_DDP_6_2_01) {
  write(stag_, 0, 100);
  link.run(seconds(1));
  a.session.close();
  expect_open(seconds(5));
  b.session.close();
  EXPECT_TRUE(link.run_until([&] { return notes_.ends == 1; }, seconds(300)));
}

}  // namespace
}  // namespace rnic::testing
