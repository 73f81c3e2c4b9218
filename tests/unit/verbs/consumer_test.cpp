// Consumers, the way an application has them.

#include "rnic/consumer.hpp"

#include <utility>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

class Consumers : public ::testing::TestWithParam<bool> {
 protected:
  Consumers() : context_(*Context::open(loopback_config(GetParam()))) {}

  Device device() { return *context_.device("rnic0"); }

  Context context_;
};

TEST_P(Consumers, HaveWhatTheirQuotasAllow_SEC_3_01) {
  auto consumer = device().create_consumer({.name = "index", .quotas = {.pds = 1, .qps = 1}});
  ASSERT_TRUE(consumer) << consumer.error().message;
  auto pd = consumer->alloc_pd();
  auto cq = consumer->create_cq(16);
  ASSERT_TRUE(pd && cq);
  const auto second = consumer->alloc_pd();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::ResourceExhausted);
  EXPECT_NE(second.error().message.find("\"index\""), std::string::npos) << second.error().message;
  auto qp = pd->create_qp(*cq, *cq);
  ASSERT_TRUE(qp);
  EXPECT_EQ(pd->create_qp(*cq, *cq).error().code, ErrorCode::ResourceExhausted);
  const auto info = consumer->info();
  ASSERT_TRUE(info);
  EXPECT_EQ(info->name, "index");
  EXPECT_EQ(info->quotas.qps, 1u);
  EXPECT_EQ(info->quotas.cqs, kNoQuota);
  EXPECT_EQ(info->used,
            (ResourceCounts{.pds = 1, .cqs = 1, .cq_entries = 16, .qps = 1, .reads = 32}));
  EXPECT_EQ(info->refused, 2u);
  EXPECT_EQ(*device().counter("device", "quota_refusals"), 2u);
}

TEST_P(Consumers, ShareNoQueueWithTheApplication_SEC_7_1_01) {
  auto consumer = *device().create_consumer({.name = "one"});
  auto pd = *consumer.alloc_pd();
  auto cq = *device().create_cq(16);
  EXPECT_EQ(pd.create_qp(cq, cq).error().code, ErrorCode::PermissionDenied);
  const auto here = consumer.listen(Endpoint{{}, 0});
  ASSERT_TRUE(here) << here.error().message;
  EXPECT_EQ(device().unlisten(*here).error().code, ErrorCode::PermissionDenied);
  EXPECT_TRUE(consumer.unlisten(*here));
  EXPECT_EQ(consumer.unlisten(*here).error().code, ErrorCode::NotFound);
}

TEST_P(Consumers, AreHeldSafely) {
  auto consumer = *device().create_consumer({.name = "one"});
  Consumer moved = std::move(consumer);
  EXPECT_EQ(consumer.alloc_pd().error().code, ErrorCode::WrongState);
  EXPECT_EQ(consumer.create_cq(1).error().code, ErrorCode::WrongState);
  EXPECT_EQ(consumer.listen(Endpoint{{}, 1}).error().code, ErrorCode::WrongState);
  EXPECT_EQ(consumer.unlisten(Endpoint{{}, 1}).error().code, ErrorCode::WrongState);
  EXPECT_EQ(consumer.info().error().code, ErrorCode::WrongState);
  EXPECT_TRUE(consumer.destroy());
  auto pd = *moved.alloc_pd();
  EXPECT_EQ(moved.destroy().error().code, ErrorCode::WrongState);
  ASSERT_TRUE(moved.info()) << "it is as it was";
  moved = Consumer();  // its domain goes on
  auto cq = *device().create_cq(1);
  EXPECT_EQ(pd.create_qp(cq, cq).error().code, ErrorCode::PermissionDenied);
  EXPECT_TRUE(pd.destroy());
  EXPECT_EQ(device().create_consumer({}).error().code, ErrorCode::InvalidArgument);
  EXPECT_TRUE(device().create_consumer({.name = "two"})->destroy());
}

// A listener outlives the handle of its consumer, and is then the application's to end.
TEST_P(Consumers, LeaveTheirListenersToTheApplication) {
  auto consumer = *device().create_consumer({.name = "one"});
  const auto here = *consumer.listen(Endpoint{{}, 0});
  const auto refused = device().unlisten(here);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::PermissionDenied);
  consumer = Consumer();
  EXPECT_EQ(device().limits()->consumers, 1u) << "it has its listener";
  EXPECT_TRUE(device().unlisten(here));
  EXPECT_EQ(device().limits()->consumers, 0u);
  EXPECT_TRUE(device().listen(here));
}

// The request of a peer that had connected before comes neither to a consumer that is gone nor to
// another one that has got its number.
TEST_P(Consumers, MayGoBeforeAPeerHasAsked_SEC_3_01) {
  Device peer = *context_.device("rnic1");
  auto consumer = *device().create_consumer({.name = "one"});
  const auto here = *consumer.listen(Endpoint{{}, 0});
  auto stream = *peer.connect_stream({device().address(), here.port});
  const auto taken = [&] { return device().limits()->connections == 1; };
  ASSERT_TRUE(context_.wait_until(taken, kPatience));
  ASSERT_TRUE(consumer.unlisten(here));
  ASSERT_TRUE(consumer.destroy());
  auto heir = *device().create_consumer({.name = "two"});
  const std::string key = "MPA ID Req Frame";
  std::vector<uint8_t> request(key.begin(), key.end());
  request.insert(request.end(), {0x40, 1, 0, 0});  // C, revision 1, no private data
  ASSERT_EQ(*stream.send(request), request.size());
  const auto reset = [&] { return stream.how_ended() == StreamEnd::PeerReset; };
  EXPECT_TRUE(context_.wait_until(reset, kPatience));
  EXPECT_EQ(*device().counter("device", "requests_too_late"), 1u);
  EXPECT_EQ(*device().counter("device", "connect_requests"), 0u);
  EXPECT_EQ(heir.info()->used, ResourceCounts{});
}

INSTANTIATE_TEST_SUITE_P(InlineAndThreaded, Consumers, ::testing::Bool());

}  // namespace
}  // namespace rnic::test
