// A connect between its two attempts: each that waits is dialled once, or the application is told.

#include "device/redials.hpp"

#include <gtest/gtest.h>

#include <new>

#include "device/port_stack.hpp"
#include "device/receive_waits.hpp"
#include "device/terminate_tally.hpp"

namespace rnic::device {
namespace {

class RedialsTest : public ::testing::Test, private QueuePairOwner {
 protected:
  RedialsTest() {
    pd_ = *resources_.alloc_pd(0);
    cq_ = *resources_.create_cq(64, {}, 0);
  }

  QueuePair& make_qp() {
    QueuePairSpec spec;
    spec.pd = pd_;
    spec.send_cq = spec.receive_cq = cq_;
    spec.send_depth = spec.receive_depth = 4;
    QueuePair& qp = **resources_.create_qp(spec, parts_);
    qp.begin_connection({});
    return qp;
  }
  void add(QueuePair& qp, uint16_t port) {
    auto redial = std::make_unique<Connection::Redial>();
    redial->qp = qp.number();
    redial->remote = {*parse_ip("10.0.0.2"), port};
    redials_.add(qp, std::move(redial));
  }
  void dial_all(const Status& outcome) {
    redials_.dial_all([&](QueuePair& qp, const Connection::Redial& redial) {
      dialled_.push_back(redial.remote.port);
      if (outcome) qp.begin_connection({});
      return outcome;
    });
  }
  /// The text of the one failure that there is; its end is told behind it.
  std::string failure_of(const QueuePair& qp) {
    const auto event = events_.poll();
    const auto end = events_.poll();
    EXPECT_TRUE(end && std::holds_alternative<event::Disconnected>(*end));
    EXPECT_FALSE(events_.poll().has_value());
    const auto* failed = event ? std::get_if<event::ConnectFailed>(&*event) : nullptr;
    if (failed == nullptr) return "no event";
    EXPECT_EQ(failed->qp, qp.number());
    return failed->detail;
  }

  // QueuePairOwner
  void completion_overrun(QueuePair&, CompletionQueue&) override {}
  void last_receive_done(QueuePair&) override {}
  void rtr_sent(QueuePair&, base::Now) override {}
  void first_fpdu_awaited(QueuePair&, base::Now) override {}
  void endpoint_event(QueuePair&, Event, base::Now) override {}

  DeviceConfig config_;
  DeviceCounters counters_;
  rdmap::Counters rdmap_counters_;
  base::Doorbells doorbells_{doorbells_of(config_.limits)};
  ReceiveWaits receive_waits_{base::Now{}};
  const rdmap::EndpointFaults faults_;
  StalledResponders stalls_{config_.name, base::Now{}};
  TerminateTally terminates_;
  rdmap::RequestStore requests_;
  const QueuePairParts parts_{*this,          rdmap_counters_, doorbells_, requests_,
                              receive_waits_, terminates_,     stalls_,    faults_};
  Consumers consumers_{config_.limits.max_consumers, config_.quotas, given_out(config_.limits)};
  device::Resources resources_{config_, counters_, consumers_, base::Now{}};
  EventQueue events_{16, counters_.events_lost};
  Redials redials_{4, resources_, events_, counters_};
  uint32_t pd_ = 0;
  CompletionQueue* cq_ = nullptr;
  std::vector<uint16_t> dialled_;
};

TEST_F(RedialsTest, EachThatWaitsIsDialledOnce) {
  QueuePair& one = make_qp();
  QueuePair& other = make_qp();
  add(one, 1);
  add(other, 2);
  EXPECT_TRUE(one.awaits_redial());
  dial_all({});
  dial_all({});
  EXPECT_EQ(dialled_, (std::vector<uint16_t>{2, 1}));
  EXPECT_EQ(counters_.connects_redialed, 2u);
  EXPECT_EQ(counters_.connects_failed, 0u);
  EXPECT_FALSE(events_.poll().has_value());
}

TEST_F(RedialsTest, AQueuePairThatIsGoneIsNotDialled) {
  QueuePair& qp = make_qp();
  add(qp, 1);
  ASSERT_TRUE(resources_.take_qp(&qp).has_value());
  dial_all({});
  EXPECT_TRUE(dialled_.empty());
  EXPECT_EQ(counters_.connects_redialed, 0u);
}

TEST_F(RedialsTest, ASecondAttemptThatCannotBeginIsTold) {
  QueuePair& qp = make_qp();
  add(qp, 1);
  dial_all(base::fail(ErrorCode::ResourceExhausted, "no connection left"));
  EXPECT_EQ(failure_of(qp), "no connection left");
  EXPECT_EQ(counters_.connects_failed, 1u);
  EXPECT_FALSE(qp.awaits_redial());
  EXPECT_TRUE(qp.used());
}

TEST_F(RedialsTest, WithoutMemoryForASecondAttemptThatIsTold) {
  QueuePair& qp = make_qp();
  add(qp, 1);
  redials_.dial_all(
      [](QueuePair&, const Connection::Redial&) -> Status { throw std::bad_alloc(); });
  EXPECT_EQ(failure_of(qp), base::kOutOfMemory);
  EXPECT_FALSE(qp.awaits_redial());
}

TEST_F(RedialsTest, OneThatWaitsCanBeCancelled) {
  QueuePair& one = make_qp();
  QueuePair& other = make_qp();
  add(one, 1);
  add(other, 2);
  const auto why = [] { return "cancelled"; };
  EXPECT_TRUE(redials_.cancel(one, why));
  EXPECT_EQ(failure_of(one), "cancelled");
  EXPECT_FALSE(redials_.cancel(one, why));
  dial_all({});
  EXPECT_EQ(dialled_, (std::vector<uint16_t>{2}));
}

}  // namespace
}  // namespace rnic::device
