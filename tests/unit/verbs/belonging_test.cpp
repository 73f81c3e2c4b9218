// An object that a call is given belongs to the device and to the domain of that call, or is
// refused by an error that says whose it is.

#include <string>
#include <vector>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

class BelongingTest : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr uint16_t kPort = 7471;

  template <typename Answer>
  static void expect_refused(const Answer& answer, ErrorCode code,
                             const std::vector<std::string>& words) {
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, code) << answer.error().message;
    for (const std::string& word : words) {
      EXPECT_NE(answer.error().message.find(word), std::string::npos)
          << "no \"" << word << "\" in: " << answer.error().message;
    }
  }
  template <typename Answer>
  static void expect_foreign(const Answer& answer) {
    expect_refused(answer, ErrorCode::InvalidArgument, {"rnic0", "rnic1"});
  }
  /// A connection request at `to`, from `from`.
  RequestHandle ask(Side& from, Device& to) {
    must(to.listen(kPort));
    must(from.qp.connect({to.address(), kPort}));
    const auto asked = world_.await<event::ConnectRequest>(to);
    if (!asked) throw std::runtime_error("no connection request came");
    must(to.unlisten(kPort));
    return asked->request;
  }

  World world_{loopback_config(GetParam())};
  Side a_{world_.left};
  Side b_{world_.right};
};
INSTANTIATE_TEST_SUITE_P(InlineAndThreaded, BelongingTest, ::testing::Bool());

// Both devices have a request in the same place of their tables: a connection that nobody answers
// takes the first place of one of them.
TEST_P(BelongingTest, ARequestIsAnsweredAtItsOwnDevice) {
  Side unanswered(world_.left);
  must(unanswered.qp.connect(at("10.0.0.77", kPort)));
  Side c(world_.left);
  Side d(world_.right);
  const RequestHandle at_left = ask(b_, world_.left);
  const RequestHandle at_right = ask(a_, world_.right);
  EXPECT_EQ(at_left.index, at_right.index) << "else the test shows nothing";
  EXPECT_EQ(at_left.generation, at_right.generation);
  EXPECT_NE(at_left, at_right);
  expect_foreign(c.qp.accept(at_right));
  expect_foreign(d.qp.accept(at_left));
  expect_foreign(world_.left.reject(at_right));
  expect_foreign(world_.right.reject(at_left));
  must(d.qp.accept(at_right));
  EXPECT_TRUE(world_.await<event::Established>(world_.left, a_.qp.number()));
  must(world_.left.reject(at_left));
  EXPECT_TRUE(world_.await<event::Rejected>(world_.right, b_.qp.number()));
}

TEST_P(BelongingTest, ARequestThatWasWithdrawnIsKnownByTheSameName) {
  const RequestHandle request = ask(a_, world_.right);
  must(a_.qp.cancel_connect());
  const auto gone = world_.await<event::RequestWithdrawn>(world_.right);
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->request, request);
  expect_refused(b_.qp.accept(request), ErrorCode::NotFound, {"gone"});
}

TEST_P(BelongingTest, AConnectionIsAbortedAtItsOwnDevice) {
  world_.connect(a_, b_);
  const ConnectionId near = must(world_.left.connections()).at(0).id;
  const ConnectionId far = must(world_.right.connections()).at(0).id;
  EXPECT_EQ(near.index, far.index) << "else the test shows nothing";
  EXPECT_EQ(near.generation, far.generation);
  EXPECT_NE(near, far);
  expect_foreign(world_.left.abort(far));
  expect_foreign(world_.right.abort(near));
  exchange(world_, a_, b_, 100, 1);
  must(world_.right.abort(far));
  EXPECT_TRUE(world_.await<event::Disconnected>(world_.right, b_.qp.number()));
}

TEST_P(BelongingTest, ANameOfAnotherContextIsNoNameHere) {
  World other(socket_config(GetParam()));
  Side c(other.left);
  Side d(other.right);
  other.connect(c, d);
  const ConnectionId elsewhere = must(other.left.connections()).at(0).id;
  world_.connect(a_, b_);
  expect_refused(world_.left.abort(elsewhere), ErrorCode::InvalidArgument,
                 {"another context", "rnic0"});
  const RequestHandle request{elsewhere.index, elsewhere.generation, elsewhere.device};
  expect_refused(a_.qp.accept(request), ErrorCode::InvalidArgument, {"another context", "rnic0"});
  std::vector<std::byte> memory(16);
  MemoryRegion region = must(c.pd.register_memory(memory, kEverything));
  expect_refused(a_.pd.reregister(region, {}), ErrorCode::InvalidArgument,
                 {"rnic0 of another context"});
}

TEST_P(BelongingTest, ANameThatNoDeviceHasGivenIsNobodys) {
  const RequestHandle request = ask(a_, world_.right);
  expect_refused(b_.qp.accept({}), ErrorCode::NotFound, {"nobody's"});
  expect_refused(world_.right.reject({request.index, request.generation}), ErrorCode::NotFound,
                 {"nobody's"});
  expect_refused(world_.right.abort({request.index, request.generation}), ErrorCode::NotFound,
                 {"nobody's"});
  must(world_.right.reject(request));
}

TEST_P(BelongingTest, AWindowIsBoundToARegionOfItsOwnDevice) {
  std::vector<std::byte> memory(64);
  const AccessSet rights = Access::Bind | Access::LocalWrite;
  MemoryRegion near = must(a_.pd.register_memory(memory, rights));
  MemoryRegion far = must(b_.pd.register_memory(memory, rights));
  MemoryWindow window = must(b_.pd.create_window(WindowType::Domain));
  const uint32_t before = window.stag();
  expect_foreign(window.bind(near, near.address(), 8, Access::RemoteRead));
  const MemoryRegion none;
  expect_refused(window.bind(none, 0, 0, Access::RemoteRead), ErrorCode::WrongState, {"empty"});
  EXPECT_EQ(window.stag(), before);
  must(window.bind(far, far.address(), 8, Access::RemoteRead));
}

TEST_P(BelongingTest, AQueuePairIsMadeOfQueuesOfItsOwnDevice) {
  expect_foreign(a_.pd.create_qp(b_.send_cq, a_.receive_cq));
  expect_foreign(a_.pd.create_qp(a_.send_cq, b_.receive_cq));
  SharedReceiveQueue srq = must(b_.pd.create_srq());
  expect_foreign(a_.pd.create_qp(a_.send_cq, a_.receive_cq, {.srq = &srq}));
  EXPECT_EQ(must(world_.left.limits()).qps, 1u) << "the one that there was";
}

TEST_P(BelongingTest, ARegionIsOfTheDeviceAndTheDomainOfItsQueuePair) {
  std::vector<std::byte> memory(16);
  expect_foreign(a_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &b_.qp}));
  ProtectionDomain other = must(world_.left.alloc_pd());
  expect_refused(other.register_memory(memory, {.access = kEverything, .queue_pair = &a_.qp}),
                 ErrorCode::InvalidArgument, {"another protection domain"});
  MemoryRegion bound =
      must(a_.pd.register_memory(memory, {.access = kEverything, .queue_pair = &a_.qp}));
  const uint32_t stag = bound.stag();
  expect_refused(other.reregister(bound, {}), ErrorCode::InvalidArgument, {"bound", "domain"});
  EXPECT_EQ(bound.stag(), stag);
  must(a_.pd.reregister(bound, {}));
  expect_foreign(b_.pd.reregister(bound, {}));
  must(other.destroy());
}

TEST_P(BelongingTest, AStreamBecomesAConnectionOfItsOwnDevice) {
  StreamListener listener = must(world_.right.listen_stream(7100));
  Stream stream = must(world_.left.connect_stream({world_.right.address(), 7100}));
  ASSERT_TRUE(world_.wait([&] { return stream.state() == StreamState::Open; }));
  expect_foreign(b_.qp.connect(stream));
  stream.close();
  expect_refused(a_.qp.connect(stream), ErrorCode::WrongState, {"closed"});
  must(a_.qp.connect({world_.right.address(), kPort}));  // the queue pair is as it was
}

}  // namespace
}  // namespace rnic::test
