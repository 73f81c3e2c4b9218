// What a third framing gets from SessionBase: a session whose start-up is one octet of the peer,
// and whose PDUs are found by their lengths.
#include "framing/session_base.hpp"

#include <gtest/gtest.h>

#include <new>
#include <utility>
#include <vector>

#include "framing/framing.hpp"
#include "length_locator.hpp"
#include "support/damage.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::framing {
namespace {

using test::FakeFramingUser;
using test::FakeStream;
using test::Octets;

struct SessionCounts {
  uint64_t pdus_in = 0, in_order = 0, early = 0, held = 0, refused = 0, discarded = 0;
};

class LengthSession final : public SessionBase<LengthLocator> {
 public:
  LengthSession(const Config& config, HoldStore& hold, SessionCounts& counts, StartEvents& owner)
      : SessionBase(config, hold,
                    {counts.pdus_in, counts.in_order, counts.early, counts.held, counts.refused,
                     counts.discarded},
                    locator_),
        owner_(owner),
        locator_(hold) {}

  void established(uint32_t emss, base::Now) override { set_emss(emss); }
  [[nodiscard]] size_t private_data_max() const override { return 4; }
  [[nodiscard]] bool left() const override { return false; }
  [[nodiscard]] base::Now next_deadline() const override { return base::kNever; }
  void on_timer(base::Now) override {}
  [[nodiscard]] const Negotiated& negotiated() const override { return agreed_; }
  [[nodiscard]] bool full_operation() const override { return started_; }

  llp::Pulled pull(uint32_t, uint64_t, llp::Frame&, base::Now) override { return {}; }
  bool rebuild(const llp::RecordTag&, uint64_t, uint32_t, llp::Frame&) override { return false; }
  void released(const llp::RecordTag&, uint64_t) override {}
  void emss_changed(uint32_t emss) override {
    set_emss(emss);
    if (tell_mulpdu()) ++notices;
  }
  [[nodiscard]] uint32_t mulpdu() const override { return std::min(emss() - 1, 255u); }
  [[nodiscard]] uint8_t version() const override { return 1; }
  void ready() override {}

  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override {
    return receiver_.inspect(range, octets, now);
  }
  void place(base::Range range, base::ByteView octets, bool, base::Now now) override {
    if (full_operation()) return receiver_.place(range, octets, now);
    started_ = true;
    receiver_.start(1);
    note_mulpdu();
  }
  void ordered(uint64_t offset, base::Now now) override { receiver_.ordered(offset, now); }
  void peer_finished(base::Now) override {}
  void ended(StreamEnd how, base::Now now) override {
    detach();
    tell_ended(owner_, how, now);
  }

  /// A start frame of two octets, for which there may be no memory.
  size_t parse(base::ByteView octets, bool memory) {
    return parse_start(octets, {}, [&]() -> size_t {
      if (!memory) throw std::bad_alloc();
      return 2;
    });
  }

  int notices = 0;
  std::vector<std::pair<bool, size_t>> answers;  // accepted, octets of private data
  std::vector<StartFailure> failures;

 private:
  void answer(bool accepted, base::ByteView private_data, const StartOptions&) override {
    answers.emplace_back(accepted, private_data.size());
  }
  void fail(StartFailure why, base::ByteView, base::Now) override { failures.push_back(why); }
  void broken(PduError, base::Now) override {}
  [[nodiscard]] size_t wanted_of_start() const override { return 1; }
  void validate_start() const override {}

  StartEvents& owner_;
  Negotiated agreed_;
  bool started_ = false;
  LengthLocator locator_;
};

struct Owner final : StartEvents {
  void request_received(const StartOffer&, base::ByteView, base::Now) override {}
  void started(const Negotiated&, base::ByteView, base::Now) override {}
  void start_failed(StartFailure, base::ByteView, base::Now) override {}
  void stream_ended(StreamEnd, base::Now) override {
    EXPECT_EQ(user->ends.size(), 1u) << "the endpoint is told before its owner";
    ++ends;
  }
  FakeFramingUser* user = nullptr;
  int ends = 0;
};

class SessionBaseTest : public testing::Test {
 protected:
  SessionBaseTest() {
    owner.user = &user;
    session.attach(stream);
    session.bind(user);
    session.established(101, {});
  }
  void arrive(uint64_t begin, const Octets& octets, uint64_t ordered) {
    const base::Range range{begin, begin + octets.size()};
    ASSERT_EQ(session.inspect(range, octets, {}), llp::InspectVerdict::Accept);
    session.place(range, octets, false, {});
    session.ordered(ordered, {});
  }
  void start() { session.place({0, 1}, Octets{'S'}, true, {}); }

  static Config small_window() {
    Config config;
    config.receive_window = 1000;
    return config;
  }

  HoldStore store{1u << 20};
  SessionCounts counts;
  Owner owner;
  FakeStream stream;
  FakeFramingUser user;
  LengthSession session{small_window(), store, counts, owner};
};

TEST_F(SessionBaseTest, TakesTheOctetsOfAStartFrameAndAsksTheReceiverBehindIt) {
  EXPECT_EQ(session.takes({0, 3}, Octets{'S', 1, 7}), 1u);
  EXPECT_EQ(session.takes({0, 0}, {}), 0u);
  start();
  EXPECT_EQ(session.takes({1, 3}, Octets{1, 7}), 2u);
  arrive(1, {1, 7}, 3);
  EXPECT_EQ(user.delivered, (std::vector<Octets>{{7}}));
  EXPECT_EQ(session.arrived(), 3u);
}

TEST_F(SessionBaseTest, TheWindowIsLessWhatIsHeldOutOfOrder) {
  start();
  EXPECT_EQ(session.receive_room(), 1000u);
  arrive(1, {4, 9}, 3);
  EXPECT_EQ(session.held(), 2u);
  EXPECT_EQ(session.receive_room(), 1000u) << "the begin of the PDU at the delivery point";
  arrive(10, Octets(300, 1), 3);
  EXPECT_EQ(session.receive_room(), 700u);
  arrive(400, Octets(800, 1), 3);
  EXPECT_EQ(session.receive_room(), 0u);
  session.discard_received();
  EXPECT_EQ(session.held(), 0u);
  EXPECT_EQ(session.receive_room(), 1000u);
}

TEST_F(SessionBaseTest, TellsTheMulpduWhenItIsAnotherOne) {
  start();
  session.emss_changed(101);
  EXPECT_TRUE(user.mulpdus.empty());
  session.emss_changed(90);
  session.emss_changed(90);
  EXPECT_EQ(user.mulpdus, (std::vector<uint32_t>{89}));
  session.emss_changed(400);
  session.emss_changed(500);
  EXPECT_EQ(user.mulpdus, (std::vector<uint32_t>{89, 255}));
  EXPECT_EQ(session.notices, 2);
}

TEST_F(SessionBaseTest, AnAnswerHasNoMorePrivateDataThanItMay) {
  session.accept(Octets{1, 2, 3, 4}, {});
  session.reject(Octets{1}, {});
  EXPECT_EQ(session.answers, (std::vector<std::pair<bool, size_t>>{{true, 4}, {false, 1}}));
  EXPECT_DEATH(session.accept(Octets(5, 0), {}), "private_data_max");
  EXPECT_DEATH(session.reject(Octets(5, 0), {}), "private_data_max");
}

TEST_F(SessionBaseTest, AStartFrameWithoutMemoryFailsTheStart) {
  EXPECT_EQ(session.parse(Octets{1, 2, 3}, true), 2u);
  EXPECT_TRUE(session.failures.empty());
  EXPECT_EQ(session.parse(Octets{1, 2, 3}, false), 3u) << "nobody parses the rest";
  EXPECT_EQ(session.failures, (std::vector<StartFailure>{StartFailure::OutOfMemory}));
}

TEST_F(SessionBaseTest, ClosesAndAbortsAStreamThatIsThere) {
  LengthSession alone(small_window(), store, counts, owner);
  alone.close();
  alone.abort();
  session.close();
  session.abort();
  EXPECT_EQ(stream.closes, 1);
  EXPECT_EQ(stream.aborts, 1);
  session.ended(StreamEnd::Aborted, {});
  session.close();
  session.abort();
  EXPECT_EQ(stream.closes + stream.aborts, 2);
}

TEST_F(SessionBaseTest, TheEndIsToldOnceToTheEndpointThatIsBound) {
  start();
  arrive(10, Octets(300, 1), 1);
  session.ended(StreamEnd::PeerReset, {});
  EXPECT_EQ(user.ends, (std::vector<StreamEnd>{StreamEnd::PeerReset}));
  EXPECT_EQ(owner.ends, 1);
  EXPECT_EQ(session.held(), 0u);
}

TEST_F(SessionBaseTest, AnEndpointThatWasTakenAwayIsNotTold) {
  session.unbind();
  FakeFramingUser other;
  other.ends.push_back(StreamEnd::Closed);
  owner.user = &other;
  session.ended(StreamEnd::Closed, {});
  EXPECT_TRUE(user.ends.empty());
  EXPECT_EQ(owner.ends, 1);
}

using LengthSessionBase = SessionBase<LengthLocator>;

RNIC_OPEN(LengthSessionBase, user_)

TEST_F(SessionBaseTest, NoticesThatNobodyUsesIt) {
  start();
  test::notices(session, "framing/session_base.hpp: !full_operation() ||",
                [&] { user_(session) = nullptr; });
}

}  // namespace
}  // namespace rnic::framing
