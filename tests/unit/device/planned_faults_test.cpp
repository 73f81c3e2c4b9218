// Planned faults that need no frames: a Terminate now or in the place of a message, and a responder
// that is stalled, in virtual time.

#include <chrono>
#include <string>
#include <vector>

#include "device_pair.hpp"

namespace rnic::device {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr FaultCode kCatastrophic{FaultLayer::Rdmap, 0, 0};

/// The right host is the one that does wrong.
class PlannedFaults : public DevicePair {
 protected:
  static constexpr uint32_t kOctets = 3000;

  explicit PlannedFaults(const std::vector<std::string>& lines = {}, bool connected = true)
      : DevicePair([&](DeviceConfig& config) {
          if (config.name != "right") return;
          for (const std::string& line : lines) {
            config.faults.push_back(*parse_planned_fault(line));
          }
        }) {
    a_ = left().make_qp();
    b_ = right().make_qp();
    near_ = octets(kOctets, 1);
    far_ = octets(kOctets, 2);
    near_stag_ = left().add(near_, a_->spec().pd, Access::LocalWrite);
    far_stag_ = right().add(far_, b_->spec().pd,
                            Access::LocalWrite | Access::RemoteRead | Access::RemoteAtomic);
    if (connected) connect(a_, b_);
  }

  void read(uint64_t id) {
    SendRequest request = work(Opcode::Read, id, near_, near_stag_, kOctets);
    request.remote = {far_stag_.value, reinterpret_cast<uint64_t>(far_.data())};
    ASSERT_EQ(a_->post_send(request), PostResult::Ok);
  }
  void fetch_add(uint64_t id) {
    SendRequest request;
    request.id = id;
    request.opcode = Opcode::FetchAdd;
    request.remote = {far_stag_.value, reinterpret_cast<uint64_t>(far_.data())};
    request.atomic.data = 1;
    ASSERT_EQ(a_->post_send(request), PostResult::Ok);
  }
  /// The left's messages, so that a responder may send.
  void write(uint64_t id) {
    SendRequest request = work(Opcode::Send, id, near_, near_stag_, 10);
    ASSERT_EQ(a_->post_send(request), PostResult::Ok);
  }
  void send_from_right(uint64_t id) {
    ASSERT_EQ(b_->post_send(work(Opcode::Send, id, far_, far_stag_, 10)), PostResult::Ok);
  }
  static void receive_at(QueuePair* qp, std::vector<uint8_t>& memory, mem::Stag stag,
                         uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      ASSERT_EQ(qp->post_receive(receive(100 + i, memory, stag, 100)), PostResult::Ok);
    }
  }
  /// The next completion of the left's send queue.
  Completion completion() {
    std::vector<Completion> done;
    EXPECT_TRUE(run_until([&] {
      if (done.empty()) done = left().completions(a_->spec().send_cq);
      return !done.empty();
    }));
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? Completion{} : done[0];
  }
  void expect_terminate() {
    ASSERT_TRUE(run_until([&] {
      return left().has<event::TerminateReceived>() && right().has<event::Disconnected>();
    }));
    EXPECT_EQ(code_of(left().take<event::TerminateReceived>()->fault), kCatastrophic);
    const auto sent = right().take<event::TerminateSent>();
    ASSERT_TRUE(sent.has_value());
    EXPECT_EQ(code_of(sent->fault), kCatastrophic);
    EXPECT_NE(sent->detail.find("planned fault"), std::string::npos) << sent->detail;
    EXPECT_EQ(right().device->rdmap_counters().terminates_planned, 1u);
    EXPECT_EQ(right().device->rdmap_counters().terminates_out, 1u);
    expect_all_returned();
  }

  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  std::vector<uint8_t> near_;
  std::vector<uint8_t> far_;
  mem::Stag near_stag_;
  mem::Stag far_stag_;
};

// --- terminate ---

struct TerminatesNow : PlannedFaults {
  TerminatesNow() : PlannedFaults({"terminate now"}) {}
};

// RFC 5044 s.7.1.2 rule 4: a responder may not send before the initiator's first FPDU.
TEST_F(TerminatesNow, AResponderDoesSoAtThePeersFirstFpdu) {
  receive_at(b_, far_, far_stag_, 1);
  run_for(seconds(1));
  EXPECT_EQ(b_->state(), QueuePairState::Rts);
  write(1);
  expect_terminate();
}

TEST_F(TerminatesNow, ReceivesOfBothSidesEndWithTheCause) {
  receive_at(a_, near_, near_stag_, 1);
  receive_at(b_, far_, far_stag_, 2);
  write(1);
  ASSERT_TRUE(run_until([&] { return left().has<event::Disconnected>(); }));
  const auto here = left().completions(a_->spec().receive_cq);
  ASSERT_EQ(here.size(), 1u);
  EXPECT_EQ(here[0].status, CompletionStatus::Flushed);
  EXPECT_EQ(here[0].cause, CompletionCause::PeerTerminate);
  EXPECT_EQ(here[0].fault, kCatastrophic);
  const auto there = right().completions(b_->spec().receive_cq);
  ASSERT_EQ(there.size(), 2u);
  EXPECT_EQ(there.back().status, CompletionStatus::Flushed);
  EXPECT_EQ(there.back().cause, CompletionCause::LocalError);
  EXPECT_EQ(there.back().fault, kCatastrophic);
}

class LeftTerminates : public DevicePair {
 protected:
  explicit LeftTerminates(const char* line = "terminate now")
      : DevicePair([line](DeviceConfig& config) {
          if (config.name == "left") config.faults = {*parse_planned_fault(line)};
        }) {
    a_ = left().make_qp();
    b_ = right().make_qp();
  }
  QueuePair* a_;
  QueuePair* b_;
};

TEST_F(LeftTerminates, AnInitiatorDoesSoWhenItIsConnected) {
  connect(a_, b_);
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateReceived>(); }));
  EXPECT_EQ(code_of(left().take<event::TerminateSent>()->fault), kCatastrophic);
}

TEST_F(LeftTerminates, ItsRtrGoesBefore) {
  connect(a_, b_, {1}, {2}, {.peer_to_peer = true});
  ASSERT_TRUE(run_until([&] { return right().has<event::TerminateReceived>(); }));
  EXPECT_EQ(left().device->rdmap_counters().rtrs_out, 1u);
}

struct LeftTerminatesAtFirst : LeftTerminates {
  LeftTerminatesAtFirst() : LeftTerminates("terminate at message 1") {}
};

TEST_F(LeftTerminatesAtFirst, TheRtrIsAMessage) {
  ASSERT_TRUE(left().device->connect(*a_, right_end(), {}, now_, {.peer_to_peer = true}));
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(right().device->accept(request->request, *b_, {}, now_));
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(left().device->rdmap_counters().rtrs_out, 0u);
  EXPECT_EQ(left().device->rdmap_counters().terminates_out, 1u);
}

struct TerminatesAtThird : PlannedFaults {
  TerminatesAtThird() : PlannedFaults({"terminate at message 3", "terminate at message 5"}) {}
};

TEST_F(TerminatesAtThird, TwoMessagesArriveAndTheThirdIsATerminate) {
  receive_at(a_, near_, near_stag_, 5);
  receive_at(b_, far_, far_stag_, 1);
  write(1);
  run_for(milliseconds(1));
  send_from_right(11);
  send_from_right(12);
  run_for(seconds(1));
  EXPECT_EQ(b_->state(), QueuePairState::Rts) << "nothing is in the place of a message that is not";
  send_from_right(13);
  ASSERT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
  const auto received = left().completions(a_->spec().receive_cq);
  ASSERT_EQ(received.size(), 5u);
  for (size_t i = 0; i < received.size(); ++i) {
    EXPECT_EQ(received[i].status, i < 2 ? CompletionStatus::Success : CompletionStatus::Flushed);
  }
  const auto sent = right().completions(b_->spec().send_cq);
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[2].status, CompletionStatus::Flushed);
  expect_terminate();
}

struct TerminatesAtAResponse : PlannedFaults {
  TerminatesAtAResponse() : PlannedFaults({"terminate at message 2"}) {}
};

TEST_F(TerminatesAtAResponse, ResponsesAreMessagesToo) {
  read(1);
  EXPECT_EQ(completion().status, CompletionStatus::Success);
  EXPECT_EQ(near_, far_);
  read(2);
  const Completion second = completion();
  EXPECT_EQ(second.id, 2u);
  EXPECT_EQ(second.status, CompletionStatus::Flushed);
  EXPECT_EQ(second.cause, CompletionCause::PeerTerminate);
  expect_terminate();
}

// --- stall ---

struct Stalls : PlannedFaults {
  Stalls() : PlannedFaults({"stall the responder 2s"}) {}
};

TEST_F(Stalls, EachReadAndAtomicIsAnsweredSoMuchLater) {
  for (uint64_t id = 1; id <= 4; ++id) {
    const base::Now begin = now_;
    id % 2 == 1 ? read(id) : fetch_add(id);
    EXPECT_EQ(completion().id, id);
    EXPECT_GE(now_ - begin, seconds(2));
    EXPECT_LT(now_ - begin, milliseconds(2010));
    EXPECT_EQ(near_ == far_, id % 2 == 1);
  }
  EXPECT_EQ(far_[0], 4u) << "both atomics were carried out";
  EXPECT_EQ(right().device->rdmap_counters().responses_stalled, 4u);
  EXPECT_EQ(left().device->tcp_counters().retransmitted_segments, 0u);
}

TEST_F(Stalls, OtherMessagesGoOn) {
  receive_at(b_, far_, far_stag_, 1);
  receive_at(a_, near_, near_stag_, 1);
  read(1);
  write(2);
  run_for(milliseconds(10));
  EXPECT_EQ(right().completions(b_->spec().receive_cq).size(), 1u);
  send_from_right(11);
  run_for(milliseconds(10));
  EXPECT_EQ(left().completions(a_->spec().receive_cq).size(), 1u);
}

TEST_F(Stalls, ACloseWaitsForTheResponse) {
  read(1);
  run_for(milliseconds(10));
  ASSERT_TRUE(right().device->disconnect(*b_).has_value());
  EXPECT_EQ(completion().status, CompletionStatus::Success);
  ASSERT_TRUE(left().device->disconnect(*a_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  EXPECT_EQ(right().take<event::Disconnected>()->error, QueuePairError::None);
  expect_all_returned();
}

TEST_F(Stalls, AQueuePairGoesWhileItIsStalled) {
  read(1);
  run_for(milliseconds(10));
  ASSERT_TRUE(right().device->destroy_qp(b_).has_value());
  EXPECT_NE(completion().status, CompletionStatus::Success);
  run_for(seconds(3));
  expect_all_returned();
}

TEST_F(Stalls, AQueuePairThatIsRenewedIsStalledAgain) {
  read(1);
  run_for(milliseconds(10));
  for (auto& [host, qp] : {std::pair(&left(), a_), std::pair(&right(), b_)}) {
    ASSERT_TRUE(host->device->modify_qp(*qp, {.state = QueuePairState::Error}, now_).has_value());
  }
  ASSERT_TRUE(run_until(
      [&] { return left().has<event::Disconnected>() && right().has<event::Disconnected>(); }));
  run_for(milliseconds(1));
  for (auto& [host, qp] : {std::pair(&left(), a_), std::pair(&right(), b_)}) {
    ASSERT_TRUE(host->device->modify_qp(*qp, {.state = QueuePairState::Idle}, now_).has_value());
  }
  static_cast<void>(left().completions(a_->spec().send_cq));
  connect(a_, b_);
  const base::Now begin = now_;
  read(2);
  EXPECT_EQ(completion().id, 2u);
  EXPECT_GE(now_ - begin, seconds(2));
  EXPECT_LT(now_ - begin, milliseconds(2010));
}

struct StallsThird : PlannedFaults {
  StallsThird()
      : PlannedFaults({"stall the responder 50ms at request 3", "stall the responder 1ms"}) {}
};

TEST_F(StallsThird, ThoseBehindItWaitInTheirOrder) {
  for (uint64_t id = 1; id <= 5; ++id) read(id);
  const base::Now begin = now_;
  std::vector<base::Duration> times;
  std::vector<Completion> done;
  ASSERT_TRUE(run_until([&] {
    for (const Completion& each : left().completions(a_->spec().send_cq)) {
      done.push_back(each);
      times.push_back(now_ - begin);
    }
    return done.size() == 5;
  }));
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(done[i].id, i + 1);
  EXPECT_GE(times[0], milliseconds(1));
  EXPECT_LT(times[1], milliseconds(5));
  EXPECT_GE(times[2], milliseconds(50));
  EXPECT_LT(times[4], milliseconds(60));
}

// --- commit() ---

ErrorCode refusal(const Status& status) {
  return status ? ErrorCode::Environment : status.error().code;
}

class Commits : public PlannedFaults {
 protected:
  Status commit(const char* line) { return b_->commit(*parse_planned_fault(line), now_); }
};

TEST_F(Commits, ATerminateNow) {
  receive_at(b_, far_, far_stag_, 2);
  write(1);
  run_for(milliseconds(1));
  ASSERT_TRUE(commit("terminate now").has_value());
  EXPECT_EQ(b_->state(), QueuePairState::Terminate) << "at once";
  EXPECT_EQ(right().completions(b_->spec().receive_cq).size(), 2u) << "the second was flushed";
  EXPECT_EQ(refusal(commit("terminate now")), ErrorCode::WrongState);
  expect_terminate();
}

TEST_F(Commits, ATerminateOfAResponderThatHasNotHeardOfItsPeer) {
  receive_at(b_, far_, far_stag_, 1);
  ASSERT_TRUE(commit("terminate now").has_value());
  run_for(milliseconds(1));
  EXPECT_EQ(b_->state(), QueuePairState::Rts);
  write(1);
  expect_terminate();
}

TEST_F(Commits, ATerminateAtAMessageToCome) {
  read(1);
  EXPECT_EQ(completion().status, CompletionStatus::Success);
  EXPECT_EQ(refusal(commit("terminate at message 1")), ErrorCode::WrongState);
  ASSERT_TRUE(commit("terminate at message 2").has_value());
  run_for(milliseconds(1));
  EXPECT_EQ(b_->state(), QueuePairState::Rts);
  read(2);
  EXPECT_EQ(completion().cause, CompletionCause::PeerTerminate);
  expect_terminate();
}

TEST_F(Commits, AStallAndItsEnd) {
  ASSERT_TRUE(commit("stall the responder 100ms").has_value());
  base::Now begin = now_;
  read(1);
  EXPECT_EQ(completion().id, 1u);
  EXPECT_GE(now_ - begin, milliseconds(100));
  ASSERT_TRUE(commit("stall the responder 0s").has_value());
  begin = now_;
  read(2);
  EXPECT_EQ(completion().id, 2u);
  EXPECT_LT(now_ - begin, milliseconds(1));
  EXPECT_EQ(refusal(commit("stall the responder 1s at request 2")), ErrorCode::WrongState);
  ASSERT_TRUE(commit("stall the responder 1s at request 4").has_value());
  for (uint64_t id = 3; id <= 4; ++id) {
    begin = now_;
    read(id);
    EXPECT_EQ(completion().id, id);
    EXPECT_EQ(now_ - begin >= seconds(1), id == 4);
  }
}

TEST_F(Commits, FaultsOfFramesArePlannedBefore) {
  for (const char* line : {"drop fpdu 1 of message 1", "bad crc on read response 1"}) {
    const Status status = commit(line);
    EXPECT_EQ(refusal(status), ErrorCode::Unsupported);
    EXPECT_NE(status.error().message.find("device.fault"), std::string::npos);
  }
}

struct Unconnected : PlannedFaults {
  Unconnected() : PlannedFaults({}, false) {}
};

TEST_F(Unconnected, ThereIsNothingToCommitItOn) {
  for (const char* line : {"terminate now", "stall the responder 1s"}) {
    EXPECT_EQ(refusal(b_->commit(*parse_planned_fault(line), now_)), ErrorCode::WrongState);
  }
}

}  // namespace
}  // namespace rnic::device
