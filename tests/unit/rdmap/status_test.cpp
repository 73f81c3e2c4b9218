// What a request that failed says: its status, and the cause in words.

#include "rdmap/remote_status.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

class StatusTest : public TwoNodes {
 protected:
  /// The status and the words of the only send that has completed.
  void expect(CompletionStatus status, const std::string& words) {
    ASSERT_EQ(a->owner.sends.size(), 1u);
    EXPECT_EQ(a->owner.sends[0].status, status);
    EXPECT_EQ(describe(a->owner.sends[0]), words);
  }
};

// Each code that a Terminate can have.
TEST(RemoteStatus, OfEachCode) {
  using enum CompletionStatus;
  for (int code = 0; code < 256; ++code) {
    const auto status = [&](FaultLayer layer, uint8_t type) {
      return remote_status({layer, type, static_cast<uint8_t>(code)});
    };
    SCOPED_TRACE(code);
    EXPECT_EQ(status(FaultLayer::Rdmap, 0), RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Rdmap, 1), RemoteAccess);
    EXPECT_EQ(status(FaultLayer::Rdmap, 2), code == 5 || code == 6 ? RemoteInvalidRequest
                                            : code == 9            ? RemoteAccess
                                                                   : RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Rdmap, 3), RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Ddp, 0), RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Ddp, 1), code < 4    ? RemoteAccess
                                          : code == 4 ? RemoteInvalidRequest
                                                      : RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Ddp, 2),
              code >= 1 && code <= 6 ? RemoteInvalidRequest : RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Ddp, 3), RemoteOperation);
    EXPECT_EQ(status(FaultLayer::Llp, 0), RemoteOperation);
  }
}

TEST_F(StatusTest, ALocalLength_VERBS_24) {
  SendRequest w = a->work(1, Opcode::Write, 0, 8);
  w.sges = {{0, UINT32_MAX, a->all}, {0, 8, a->all}};
  a->send(w);
  pair.pump();
  expect(CompletionStatus::LocalLength, "local length error");
}

TEST_F(StatusTest, ALocalProtection_VERBS_24) {
  SendRequest w = a->work(1, Opcode::Write, 0, 8);
  w.sges = {{Node::kSize - 7, 8, a->all}};
  a->send(w);
  pair.pump();
  expect(CompletionStatus::LocalProtection, "local protection error");
}

TEST_F(StatusTest, ARemoteAccess_VERBS_24) {
  write(1, 0, 8, Node::kSize);
  pair.pump(false);
  expect(CompletionStatus::RemoteAccess,
         "remote access error: the peer ended the stream with a Terminate: layer DDP, type tagged "
         "buffer error, code 0x01 base or bounds violation");
}

TEST_F(StatusTest, ARemoteInvalidRequest_VERBS_24) {
  send(1, 0, 8);  // for which there is no receive
  pair.pump(false);
  expect(CompletionStatus::RemoteInvalidRequest,
         "remote invalid request: the peer ended the stream with a Terminate: layer DDP, type "
         "untagged buffer error, code 0x02 invalid MSN: no buffer available");
}

TEST_F(StatusTest, ARemoteOperation_VERBS_24) {
  fetch_add(1, 4, 1);  // not aligned
  pair.pump(false);
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::RemoteOperation);
  EXPECT_EQ(a->owner.sends[0].cause, CompletionCause::PeerTerminate);
}

// What was under way and is the next to complete is lost; what is behind it is flushed. Nothing is
// lost that was not begun.
TEST_F(StatusTest, ALoss_VERBS_24) {
  struct Case {
    StreamEnd how;
    const char* words;
  };
  for (const Case& c :
       {Case{StreamEnd::TimedOut, "the peer did not answer any more"},
        Case{StreamEnd::PeerReset, "the peer reset the connection"},
        Case{StreamEnd::Unreachable, "the network told that there is no way to the peer"}}) {
    restart();
    for (uint64_t id = 1; id <= 3; ++id) write(id, 0, 8, 0);
    pair.a.pull();
    pair.a.pull();
    pair.a.release_up_to(1);
    pair.a.user().ended(c.how, {});
    ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
    EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Success);
    EXPECT_EQ(describe(a->owner.sends[1]), std::string("connection lost: ") + c.words);
    EXPECT_EQ(describe(a->owner.sends[2]), std::string("flushed: ") + c.words);

    restart();
    write(1, 0, 8, 0);
    pair.a.user().ended(c.how, {});
    expect(CompletionStatus::Flushed, std::string("flushed: ") + c.words);
  }
}

// A flush tells the first cause, to sends and receives alike, and to what is posted later.
TEST_F(StatusTest, AFlush_VERBS_24) {
  a->post_receive(7, 0, 8);
  write(1, 0, 8, Node::kSize);
  write(2, 0, 8, 0);
  pair.pump(false);
  pair.a.user().ended(StreamEnd::Closed, {});
  write(3, 0, 8, 0);
  const std::string words =
      "flushed: the peer ended the stream with a Terminate: layer DDP, type tagged buffer error, "
      "code 0x01 base or bounds violation";
  ASSERT_EQ(a->owner.sends.size(), 3u);
  EXPECT_EQ(describe(a->owner.sends[1]), words);
  EXPECT_EQ(describe(a->owner.sends[2]), words);
  EXPECT_EQ(describe(a->owner.receives.at(0)), words);
}

TEST_F(StatusTest, AFlushBeforeAndBehindTheConnection) {
  Node alone({.qp = 3, .pd = 4}, 5);
  alone.send(alone.work(1, Opcode::Write, 0, 8));
  EXPECT_EQ(describe(alone.owner.sends.at(0)),
            "flushed: it was posted before there was a connection");
  alone.endpoint.disconnect();
  alone.send(alone.work(2, Opcode::Write, 0, 8));
  EXPECT_EQ(describe(alone.owner.sends.at(1)), "flushed: it was posted behind disconnect()");

  a->endpoint.disconnect();
  write(3, 0, 8, 0);
  EXPECT_EQ(describe(a->owner.sends.at(0)), "flushed: it was posted behind disconnect()");
  a->endpoint.abort();
  write(4, 0, 8, 0);
  EXPECT_EQ(describe(a->owner.sends.at(1)), "flushed: this side aborted the connection");
}

TEST_F(StatusTest, AFlushByOurOwnError) {
  write(1, Node::kSize, 8, 0);
  write(2, 0, 8, 0);
  pair.pump();
  EXPECT_EQ(describe(a->owner.sends.at(1)),
            "flushed: an error of this side ended the stream: layer RDMAP, type local catastrophic "
            "error, code 0x00");
}

TEST_F(StatusTest, AFlushByAPeerThatBreaksARule) {
  b->post_receive(7, 0, 8);
  inject(ulpdu(wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x4f, .qn = 0, .msn = 1}, 0));
  ASSERT_EQ(b->owner.receives.size(), 1u);
  EXPECT_EQ(b->owner.receives[0].cause, CompletionCause::PeerFault);
  restart();
  b->post_receive(7, 0, 8);
  inject({0x41});  // shorter than a header, which has no code of its own
  ASSERT_EQ(b->owner.receives.size(), 1u);
  EXPECT_EQ(b->owner.receives[0].cause, CompletionCause::PeerFault);
}

TEST_F(StatusTest, AFlushWhereNoResponseCanCome) {
  read(1, 0, 8, 0);
  pair.a.pull_all();
  pair.a.user().peer_finished(true, {});
  expect(CompletionStatus::Flushed,
         "flushed: the peer has closed its direction and sends no response any more");
}

TEST_F(StatusTest, AFlushOfWhatWasNotAgreed) {
  restart({.qp = 9, .pd = 4, .ord = 0});
  read(1, 0, 8, 0);
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].cause, CompletionCause::NotAgreed);
}

}  // namespace
}  // namespace rnic::rdmap
