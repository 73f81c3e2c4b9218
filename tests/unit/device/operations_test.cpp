// Every operation of the application on a queue pair in every state of its connection: what it
// answers, what completes, and that everything comes back afterwards.

#include "stream_pair.hpp"

namespace rnic::device {
namespace {

enum class State {
  Fresh,       // nothing was asked of it
  Dialling,    // connect(): TCP's SYN has not left
  Asking,      // the peer's application has the request
  Answered,    // accept(): the Reply has not left
  Running,     // full operation
  HalfClosed,  // the peer has closed its direction
  Closing,     // we have closed ours
  Terminated,  // the peer's Terminate has just come
  Ended,       // both have closed
  Reset,       // the peer is gone
  Rejected,    // the peer's application said no
  Failed,      // nobody listens there
};
constexpr State kStates[] = {State::Fresh,   State::Dialling,   State::Asking,   State::Answered,
                             State::Running, State::HalfClosed, State::Closing,  State::Terminated,
                             State::Ended,   State::Reset,      State::Rejected, State::Failed};
constexpr const char* kNames[] = {"fresh",   "dialling",    "asking",   "answered",
                                  "running", "half closed", "closing",  "terminated",
                                  "ended",   "reset",       "rejected", "failed"};

bool is_connected(State s) {
  return s == State::Running || s == State::HalfClosed || s == State::Closing;
}
/// There is a connection, of whatever use.
bool has_connection(State s) {
  return is_connected(s) || s == State::Dialling || s == State::Asking || s == State::Answered ||
         s == State::Terminated;
}
/// Receives are kept for the messages to come.
bool keeps_receives(State s) {
  return is_connected(s) || s == State::Fresh || s == State::Dialling || s == State::Asking ||
         s == State::Answered;
}

class Operations : public Streams {
 public:
  explicit Operations(State state)
      : Streams([](DeviceConfig& config) {
          config.tcp.time_wait = std::chrono::milliseconds(1);
          config.tcp.max_connections = 16;
          config.limits.max_connections = 8;
          config.limits.stream_octets = 8 * kRing;
          config.mpa.redial = false;
        }) {
    near_.assign(64, 1), far_.assign(64, 2);
    EXPECT_TRUE(left().device->listen(kPort).has_value());
    qp_ = left().make_qp(8, 16);
    other_ = right().make_qp(8, 16);
    here_ = left().add(near_, qp_->spec().pd, kRights, qp_->stream());
    there_ = right().add(far_, other_->spec().pd, kRights, other_->stream());
    enter(state);
    left().collect();
    left().events.clear();
    left().completions(qp_->spec().send_cq);
    left().completions(qp_->spec().receive_cq);
  }
  void TestBody() override {}

  void enter(State state) {
    switch (state) {
      case State::Fresh: return;
      case State::Dialling: return dial(kPort);
      case State::Asking:
        dial(kPort);
        EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
        return;
      case State::Answered: {
        EXPECT_TRUE(right().device->connect(*other_, left_end(), {}, now_).has_value());
        EXPECT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
        const auto request = left().take<event::ConnectRequest>();
        EXPECT_TRUE(left().device->accept(request->request, *qp_, {}, now_).has_value());
        return;
      }
      case State::Rejected: {
        dial(kPort);
        EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
        const auto request = right().take<event::ConnectRequest>();
        EXPECT_TRUE(right().device->reject(request->request, {}, now_).has_value());
        EXPECT_TRUE(run_until([&] { return left().device->live_connections() == 0; }));
        return;
      }
      case State::Failed:
        dial(9);
        EXPECT_TRUE(run_until([&] { return left().device->live_connections() == 0; }));
        return;
      default: break;
    }
    DevicePair::connect(qp_, other_, {}, {});
    for (uint64_t id = 0; id < 2; ++id) {
      EXPECT_EQ(other_->post_receive(receive(id, far_, there_, 64)), PostResult::Ok);
    }
    run_for(std::chrono::microseconds(1));
    switch (state) {
      case State::HalfClosed:
        EXPECT_TRUE(right().device->disconnect(*other_).has_value());
        EXPECT_TRUE(run_until([&] { return left().has<event::PeerClosed>(); }));
        return;
      case State::Closing:
        EXPECT_TRUE(left().device->disconnect(*qp_).has_value());
        EXPECT_TRUE(run_until([&] { return right().has<event::PeerClosed>(); }));
        return;
      case State::Terminated: {
        auto offence = work(Opcode::Write, 1, near_, here_, 8);
        offence.remote.stag = there_.value ^ 1;
        EXPECT_EQ(qp_->post_send(offence), PostResult::Ok);
        EXPECT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
        return;
      }
      case State::Ended:
        EXPECT_TRUE(left().device->disconnect(*qp_).has_value());
        EXPECT_TRUE(right().device->disconnect(*other_).has_value());
        EXPECT_TRUE(run_until([&] { return left().device->live_connections() == 0; }));
        return;
      case State::Reset:
        EXPECT_TRUE(right().device->destroy_qp(other_).has_value());
        other_ = nullptr;
        EXPECT_TRUE(run_until([&] { return left().device->live_connections() == 0; }));
        return;
      default: return;
    }
  }
  void dial(uint16_t port) {
    EXPECT_TRUE(left().device->connect(*qp_, right_end(port), {}, now_).has_value());
  }
  [[nodiscard]] Endpoint left_end() { return {left().device->config().net.address, kPort}; }

  /// What is legal of that kind.
  SendRequest request(Opcode opcode) {
    using enum Opcode;
    const bool bare = opcode == Immediate || opcode == LocalInvalidate;
    SendRequest w;
    w.id = 7;
    w.opcode = opcode;
    if (!bare) w.sges = {{reinterpret_cast<uint64_t>(near_.data()), 8, here_.value}};
    w.remote = {there_.value, reinterpret_cast<uint64_t>(far_.data())};
    w.invalidate_stag = opcode == LocalInvalidate ? here_.value : there_.value;
    return w;
  }
  /// What completes of the left queue pair within a while.
  std::vector<Completion> completed(CompletionQueue* cq) {
    std::vector<Completion> all;
    run_until(
        [&] {
          for (const auto& c : left().completions(cq)) all.push_back(c);
          return false;
        },
        std::chrono::milliseconds(50));
    return all;
  }
  /// Both queue pairs go, and everything is given back.
  void expect_all_returned_at_the_end() {
    if (qp_ != nullptr) {
      EXPECT_TRUE(left().device->destroy_qp(qp_).has_value());
    }
    if (other_ != nullptr) {
      EXPECT_TRUE(right().device->destroy_qp(other_).has_value());
    }
    while (const auto request = right().take<event::ConnectRequest>()) {
      static_cast<void>(right().device->reject(request->request, {}, now_));
    }
    run_for(std::chrono::seconds(70));  // the start-up's timers
    expect_all_returned();
  }

  /// Connects them; an empty Write lets the responder send, too (RFC 5044 s.7.1.2).
  void join(QueuePair* from, QueuePair* to) {
    DevicePair::connect(from, to, {}, {});
    const SendRequest first{.opcode = Opcode::Write, .signaled = false};
    EXPECT_EQ(from->post_send(first), PostResult::Ok);
  }

  using DevicePair::connect;
  using DevicePair::left;
  using DevicePair::now_;
  using DevicePair::receive;
  using DevicePair::right;
  using DevicePair::right_end;
  using DevicePair::run_for;
  using DevicePair::run_until;
  using DevicePair::work;
  using Streams::connected;
  using Streams::listen;
  using Streams::release;
  using Streams::tell;

  std::vector<uint8_t> near_, far_;
  QueuePair* qp_ = nullptr;     // of the left device: what is looked at
  QueuePair* other_ = nullptr;  // of the right device: its peer
  static constexpr AccessSet kRights = Access::LocalWrite | Access::RemoteWrite |
                                      Access::RemoteRead | Access::RemoteAtomic |
                                      Access::RemoteInvalidate;
  mem::Stag here_, there_;
};

void for_each_state(const std::function<void(State, Operations&)>& act) {
  for (const State state : kStates) {
    SCOPED_TRACE(kNames[static_cast<size_t>(state)]);
    Operations world(state);
    act(state, world);
    if (::testing::Test::HasFatalFailure()) return;
    world.expect_all_returned_at_the_end();
  }
}

// RDMAP-6.2-01 DDP-6.2.1-01: work of every kind is taken in every state and completes once:
// carried out while the connection can carry it, flushed otherwise.
TEST(EveryState, PostSend_BUG_06) {
  for (const Opcode opcode : {Opcode::Send, Opcode::SendInvalidate, Opcode::Write, Opcode::Read,
                              Opcode::ReadInvalidate, Opcode::FetchAdd, Opcode::CompareSwap,
                              Opcode::Immediate, Opcode::LocalInvalidate, Opcode::WriteImmediate}) {
    SCOPED_TRACE(to_string(opcode));
    for_each_state([&](State state, Operations& w) {
      const auto far = w.far_;
      ASSERT_EQ(w.qp_->post_send(w.request(opcode)), PostResult::Ok);
      const auto done = w.completed(w.qp_->spec().send_cq);
      ASSERT_EQ(done.size(), 1u);
      EXPECT_EQ(done[0].id, 7u);
      EXPECT_EQ(done[0].opcode, opcode);
      // A peer that has closed its direction answers nothing any more.
      const bool carried =
          state == State::Running || (state == State::HalfClosed && !has_response(opcode));
      EXPECT_EQ(done[0].status, carried ? CompletionStatus::Success : CompletionStatus::Flushed);
      if (!carried) {
        EXPECT_EQ(far, w.far_);
        EXPECT_EQ(w.left().device->rdmap_counters().local_invalidations, 0u);
      }
    });
  }
}

TEST(EveryState, PostReceive_BUG_06) {
  for_each_state([](State state, Operations& w) {
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    const auto done = w.completed(w.qp_->spec().receive_cq);
    EXPECT_EQ(done.size(), keeps_receives(state) ? 0u : 1u);
    if (done.empty()) return;
    EXPECT_EQ(done[0].id, 5u);
    EXPECT_EQ(done[0].status, CompletionStatus::Flushed);
  });
}

// A queue pair serves one connection at a time: what would begin another is refused, in each of its
// ways, and changes nothing.
TEST(EveryState, ConnectAndAccept_CM_01) {
  for_each_state([](State state, Operations& w) {
    const bool free = state == State::Fresh;
    // A request, and a converted stream, to try with.
    QueuePair* asker = w.right().make_qp(2, 4);
    ASSERT_TRUE(w.right().device->connect(*asker, w.left_end(), {}, w.now_).has_value());
    ASSERT_TRUE(w.run_until([&] { return w.left().has<event::ConnectRequest>(); }));
    const auto request = w.left().take<event::ConnectRequest>();
    const auto sockets = w.connected(w.listen());
    if (!free) {
      for (const auto& status : {w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_),
                                 w.left().device->connect(*w.qp_, *sockets[0], {}, w.now_),
                                 w.left().device->accept(request->request, *w.qp_, {}, w.now_)}) {
        ASSERT_FALSE(status.has_value());
        EXPECT_EQ(status.error().code, ErrorCode::WrongState);
        EXPECT_NE(status.error().message.find("create a new queue pair"), std::string::npos);
      }
      EXPECT_FALSE(sockets[0]->is_converted());
      QueuePair* fresh = w.left().make_qp(2, 4);
      EXPECT_TRUE(w.left().device->accept(request->request, *fresh, {}, w.now_).has_value());
      EXPECT_TRUE(w.run_until([&] { return w.right().has<event::Established>(); }));
      EXPECT_TRUE(w.left().device->destroy_qp(fresh).has_value());
    } else {
      EXPECT_TRUE(w.left().device->accept(request->request, *w.qp_, {}, w.now_).has_value());
      EXPECT_TRUE(w.run_until([&] { return w.right().has<event::Established>(); }));
    }
    EXPECT_TRUE(w.right().device->destroy_qp(asker).has_value());
    w.tell(w.left(), sockets[0], StreamSocket::kAbort | StreamSocket::kRelease);
    w.tell(w.right(), sockets[1], StreamSocket::kAbort | StreamSocket::kRelease);
  });
}

// Disconnect(), once and again, and what it is answered by.
TEST(EveryState, Disconnect_CM_04) {
  for_each_state([](State state, Operations& w) {
    for (int again = 0; again < 2; ++again) {
      const auto status = w.left().device->disconnect(*w.qp_);
      EXPECT_EQ(status.has_value(), state != State::Fresh) << again;
      if (status) continue;
      EXPECT_EQ(status.error().code, ErrorCode::WrongState);
      EXPECT_NE(status.error().message.find("not connected"), std::string::npos);
    }
    if (state == State::Running || state == State::Closing) {
      w.run_until([&] { return w.right().has<event::PeerClosed>(); });
      EXPECT_TRUE(w.right().device->disconnect(*w.other_).has_value());
    }
    w.run_for(std::chrono::seconds(1));
    EXPECT_EQ(w.left().device->live_connections(), 0u);
    w.left().collect();
    size_t ends = 0, failed = 0;
    for (const Event& e : w.left().events) {
      ends += std::holds_alternative<event::Disconnected>(e) ? 1 : 0;
      failed += std::holds_alternative<event::ConnectFailed>(e) ? 1 : 0;
      failed += std::holds_alternative<event::RequestWithdrawn>(e) ? 1 : 0;
    }
    const bool unborn =
        state == State::Dialling || state == State::Asking || state == State::Answered;
    EXPECT_EQ(failed, unborn ? 1u : 0u);
    if (!unborn) {
      EXPECT_EQ(ends, has_connection(state) ? 1u : 0u);
    }
    // A used queue pair stays used.
    const auto again = w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_);
    EXPECT_EQ(again.has_value(), state == State::Fresh);
  });
}

class NoTrace final : public base::TraceSink {
 public:
  void record(TraceKind, base::Range, base::Now) override {}
};

TEST(EveryState, TraceAndHeldOctets) {
  for_each_state([](State state, Operations& w) {
    NoTrace sink;
    EXPECT_EQ(w.left().device->set_trace(*w.qp_, &sink).has_value(), has_connection(state));
    EXPECT_TRUE(w.left().device->set_trace(*w.qp_, nullptr)) << "its end needs no connection";
    EXPECT_EQ(w.left().device->info(*w.qp_, w.now_).received.held_now, 0u);
  });
}

// destroy_qp() in every state, with work posted and not served: nothing of it is told from then
// on, the peer sees an end, and its completion queues and domain are free.
TEST(EveryState, Destroy_CM_04) {
  for_each_state([](State state, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    EXPECT_EQ(w.left().device->destroy_cq(spec.send_cq).error().code, ErrorCode::WrongState);
    EXPECT_EQ(w.left().device->free_pd(spec.pd).error().code, ErrorCode::WrongState);
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Write)), PostResult::Ok);
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    const uint32_t number = w.qp_->number();
    QueuePair* gone = w.qp_;
    ASSERT_TRUE(w.left().device->destroy_qp(gone).has_value());
    w.qp_ = nullptr;
    EXPECT_EQ(w.left().device->destroy_qp(gone).error().code, ErrorCode::NotFound);
    w.run_for(std::chrono::seconds(1));
    w.left().collect();
    EXPECT_TRUE(w.left().events.empty());
    EXPECT_TRUE(w.left().completions(spec.send_cq).empty());
    EXPECT_TRUE(w.left().completions(spec.receive_cq).empty());
    EXPECT_EQ(w.far_, std::vector<uint8_t>(64, 2)) << "unserved work never leaves";
    if (is_connected(state)) {
      EXPECT_TRUE(w.right().has<event::Disconnected>());
    }
    // Its completion queues and domain serve the next one, which has another number.
    ASSERT_TRUE(w.left().device->deregister_memory(w.here_).has_value());
    QueuePairSpec again = spec;
    QueuePair* next = *w.left().device->create_qp(again);
    EXPECT_NE(next->number(), number);
    EXPECT_TRUE(w.left().device->destroy_qp(next).has_value());
    EXPECT_TRUE(w.left().device->destroy_cq(spec.send_cq).has_value());
    EXPECT_TRUE(w.left().device->destroy_cq(spec.receive_cq).has_value());
    EXPECT_TRUE(w.left().device->free_pd(spec.pd).has_value());
  });
}

// A region is revoked in every state; once it is gone, work that names it touches
// nothing.
TEST(EveryState, Deregister) {
  for_each_state([](State state, Operations& w) {
    ASSERT_TRUE(w.left().device->deregister_memory(w.here_).has_value());
    EXPECT_EQ(w.left().device->deregister_memory(w.here_).error().code, ErrorCode::NotFound);
    const auto far = w.far_;
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Write)), PostResult::Ok);
    const auto done = w.completed(w.qp_->spec().send_cq);
    ASSERT_EQ(done.size(), 1u);
    const bool looked_at = state == State::Running || state == State::HalfClosed;
    EXPECT_EQ(done[0].status,
              looked_at ? CompletionStatus::LocalProtection : CompletionStatus::Flushed);
    EXPECT_EQ(far, w.far_);
  });
}

QueuePairState expected_state(State s) {
  switch (s) {
    case State::Fresh:
    case State::Dialling:
    case State::Asking:
    case State::Answered: return QueuePairState::Idle;
    case State::Running:
    case State::HalfClosed: return QueuePairState::Rts;
    case State::Closing: return QueuePairState::Closing;
    default: return QueuePairState::Error;
  }
}

// What modify() answers for each state that it may be asked for.
TEST(EveryState, Modify_VERBS_18) {
  for (const QueuePairState next :
       {QueuePairState::Idle, QueuePairState::Rts, QueuePairState::Closing,
        QueuePairState::Terminate, QueuePairState::Error}) {
    SCOPED_TRACE(to_string(next));
    for_each_state([next](State state, Operations& w) {
      EXPECT_EQ(w.qp_->state(), expected_state(state)) << to_string(w.qp_->state());
      const uint32_t number = w.qp_->number();
      const auto status = w.left().device->modify_qp(*w.qp_, {.state = next}, w.now_);
      bool allowed = next == QueuePairState::Error;
      if (next == QueuePairState::Closing) allowed = state != State::Fresh;
      if (next == QueuePairState::Idle) {
        const bool ended = expected_state(state) == QueuePairState::Error;
        allowed = state == State::Fresh || (ended && !has_connection(state));
      }
      EXPECT_EQ(status.has_value(), allowed);
      if (!status) {
        const bool never = next == QueuePairState::Rts || next == QueuePairState::Terminate;
        EXPECT_EQ(status.error().code, never ? ErrorCode::InvalidArgument : ErrorCode::WrongState);
        EXPECT_EQ(w.qp_->state(), expected_state(state)) << "nothing has changed";
      } else if (next == QueuePairState::Idle || next == QueuePairState::Error) {
        EXPECT_EQ(w.qp_->state(), next);
      }
      const bool again = status && next == QueuePairState::Idle && state != State::Fresh;
      EXPECT_EQ(w.qp_->number() != number, again);
    });
  }
}

// In every state a move to Error flushes what was posted before the call returns, in the order in
// which it was posted; what is posted from then on is flushed, too; and after the end of the
// connection the queue pair can be used again.
TEST(EveryState, ToError_VERBS_19) {
  for_each_state([](State state, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    for (uint64_t id = 1; id <= 3; ++id) {
      SendRequest write = w.request(Opcode::Write);
      write.id = id;
      ASSERT_EQ(w.qp_->post_send(write), PostResult::Ok);
      ASSERT_EQ(w.qp_->post_receive(w.receive(10 + id, w.near_, w.here_, 64)), PostResult::Ok);
    }
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Error}, w.now_));
    for (const bool sends : {true, false}) {
      const auto done = w.left().completions(sends ? spec.send_cq : spec.receive_cq);
      ASSERT_EQ(done.size(), 3u);
      for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(done[i].id, (sends ? 1u : 11u) + i);
        EXPECT_EQ(done[i].status, CompletionStatus::Flushed);
      }
    }
    EXPECT_EQ(w.far_, std::vector<uint8_t>(64, 2)) << "unserved work never leaves";
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Send)), PostResult::Ok);
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    EXPECT_EQ(w.completed(spec.send_cq).size(), 1u);
    EXPECT_EQ(w.left().completions(spec.receive_cq).size(), 1u);
    w.run_for(std::chrono::seconds(1));
    if (is_connected(state)) {
      EXPECT_EQ(w.left().count<event::Disconnected>(), 1u);
    }
    EXPECT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Idle}, w.now_));
    EXPECT_TRUE(w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_).has_value());
  });
}

// drain() ends in every state, and everything that was posted has completed then; of a peer that
// does not close no later than its limit says.
TEST(EveryState, Drain_BUG_06) {
  for_each_state([](State state, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    constexpr base::Duration kLimit = std::chrono::milliseconds(300);
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Write)), PostResult::Ok);
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    const base::Now begun = w.now_;
    ASSERT_TRUE(w.left().device->drain(*w.qp_, kLimit, w.now_));
    ASSERT_TRUE(w.left().device->drain(*w.qp_, kLimit, w.now_)) << "once more changes nothing";
    if (!is_connected(state)) {
      EXPECT_EQ(w.qp_->state(), QueuePairState::Error);
    }
    ASSERT_TRUE(w.run_until([&] { return w.qp_->state() == QueuePairState::Error; }));
    EXPECT_LE(w.now_ - begun, kLimit + std::chrono::milliseconds(1));
    const auto sends = w.completed(spec.send_cq);
    ASSERT_EQ(sends.size(), 1u);
    const bool carried = state == State::Running || state == State::HalfClosed;
    EXPECT_EQ(sends[0].status, carried ? CompletionStatus::Success : CompletionStatus::Flushed);
    const auto receives = w.left().completions(spec.receive_cq);
    ASSERT_EQ(receives.size(), 1u);
    EXPECT_EQ(receives[0].status, CompletionStatus::Flushed);
    if (state == State::Running || state == State::Closing) {
      const auto gone = w.left().take<event::Disconnected>();
      ASSERT_TRUE(gone);
      EXPECT_EQ(gone->end, StreamEnd::Aborted);
      EXPECT_NE(gone->detail.find("drain"), std::string::npos) << gone->detail;
    }
  });
}

// A queue pair is made idle again and connected anew: another number, receives that wait for the
// new connection, and completions of its former life under their own number.
TEST(EveryState, Reconnect) {
  for_each_state([](State, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    const uint32_t before = w.qp_->number();
    ASSERT_EQ(w.qp_->post_receive(w.receive(4, w.near_, w.here_, 64)), PostResult::Ok);
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Error}, w.now_));
    w.run_for(std::chrono::seconds(1));
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Idle}, w.now_));
    EXPECT_NE(w.qp_->number(), before);
    w.left().collect();
    w.left().events.clear();
    while (const auto old = w.right().take<event::ConnectRequest>()) {
      static_cast<void>(w.right().device->reject(old->request, {}, w.now_));
    }
    w.run_for(std::chrono::seconds(1));
    w.right().events.clear();
    // A region of the queue pair alone was one of its former life, and serves no later one.
    w.here_ = w.left().add(w.near_, spec.pd, Operations::kRights, w.qp_->stream());
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    QueuePair* peer = w.right().make_qp(8, 16);
    w.join(w.qp_, peer);
    std::vector<uint8_t> text(8, 7);
    const mem::Stag stag = w.right().add(text, peer->spec().pd, Access::LocalWrite);
    ASSERT_EQ(peer->post_send(Operations::work(Opcode::Send, 1, text, stag, 8)), PostResult::Ok);
    ASSERT_TRUE(w.run_until([&] { return w.near_[0] == 7; }));
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::LocalInvalidate)), PostResult::Ok);
    w.run_for(std::chrono::milliseconds(1));
    const auto receives = w.left().completions(spec.receive_cq);
    ASSERT_EQ(receives.size(), 2u);
    EXPECT_EQ(receives[0].id, 4u);
    EXPECT_EQ(receives[0].qp, before);
    EXPECT_EQ(receives[0].status, CompletionStatus::Flushed);
    EXPECT_EQ(receives[1].id, 5u);
    EXPECT_EQ(receives[1].qp, w.qp_->number());
    EXPECT_EQ(receives[1].status, CompletionStatus::Success);
    const auto sends = w.left().completions(spec.send_cq);
    ASSERT_EQ(sends.size(), 1u);
    EXPECT_EQ(sends[0].status, CompletionStatus::Success);
    EXPECT_EQ(sends[0].qp, w.qp_->number());
    EXPECT_TRUE(w.right().device->destroy_qp(peer).has_value());
  });
}

// What the queues refuse, they refuse in every state, and it completes nothing.
TEST(EveryState, RequestsThatAreNone) {
  for_each_state([](State, Operations& w) {
    SendRequest many = w.request(Opcode::ReadInvalidate);
    many.sges.push_back(many.sges[0]);
    EXPECT_EQ(w.qp_->post_send(many), PostResult::TooManySge);
    many.opcode = Opcode::Write;
    while (many.sges.size() <= kMaxSge) many.sges.push_back({});
    EXPECT_EQ(w.qp_->post_send(many), PostResult::TooManySge);
    SendRequest atomic = w.request(Opcode::FetchAdd);
    atomic.sges[0].length = 7;
    EXPECT_EQ(w.qp_->post_send(atomic), PostResult::BadLength);
    EXPECT_EQ(w.qp_->post_send(w.request(Opcode::Receive)), PostResult::BadOpcode);
    SendRequest longest = w.request(Opcode::Write);
    longest.sges = {{.length = UINT32_MAX}, {.length = UINT32_MAX}};
    EXPECT_EQ(w.qp_->post_send(longest), PostResult::TooLong);
    ReceiveRequest receives;
    while (receives.sges.size() <= kMaxSge) receives.sges.push_back({});
    EXPECT_EQ(w.qp_->post_receive(receives), PostResult::TooManySge);
    EXPECT_TRUE(w.completed(w.qp_->spec().send_cq).empty());
    EXPECT_TRUE(w.completed(w.qp_->spec().receive_cq).empty());
  });
}

}  // namespace
}  // namespace rnic::device
