/// \file
/// A queue pair of one of two devices, in each state that its connection can be in.
#pragma once

#include <functional>
#include <iterator>
#include <optional>

#include "stream_pair.hpp"

namespace rnic::device::every_state {

enum class State {
  Fresh,        // nothing was asked of it
  Dialling,     // connect(): TCP's SYN has not left
  Asking,       // the peer's application has the request
  Answered,     // accept(): the Reply has not left
  Unheard,      // full operation as responder: the peer's first FPDU has not come
  Running,      // full operation
  HalfClosed,   // the peer has closed its direction
  Closing,      // we have closed ours
  Terminating,  // a Terminate of ours waits for the window
  Terminated,   // the peer's Terminate has just come
  Ended,        // both have closed
  Reset,        // the peer is gone
  Rejected,     // the peer's application said no
  Failed,       // nobody listens there
  Drained,      // flushed without ever having had a connection
};
inline constexpr State kStates[] = {
    State::Fresh,   State::Dialling,   State::Asking,   State::Answered,    State::Unheard,
    State::Running, State::HalfClosed, State::Closing,  State::Terminating, State::Terminated,
    State::Ended,   State::Reset,      State::Rejected, State::Failed,      State::Drained};
inline constexpr const char* kNames[] = {"fresh",       "dialling",   "asking",      "answered",
                                         "unheard",     "running",    "half closed", "closing",
                                         "terminating", "terminated", "ended",       "reset",
                                         "rejected",    "failed",     "drained"};
static_assert(std::size(kStates) == std::size(kNames));

inline bool is_connected(State s) {
  return s == State::Unheard || s == State::Running || s == State::HalfClosed ||
         s == State::Closing;
}
/// A connection is being made.
inline bool is_unborn(State s) {
  return s == State::Dialling || s == State::Asking || s == State::Answered;
}
/// There is a connection, of whatever use.
inline bool has_connection(State s) {
  return is_connected(s) || is_unborn(s) || s == State::Terminating || s == State::Terminated;
}
/// Receives are kept for the messages to come.
inline bool keeps_receives(State s) { return is_connected(s) || is_unborn(s) || s == State::Fresh; }
inline QueuePairState expected_state(State s) {
  switch (s) {
    case State::Fresh:
    case State::Dialling:
    case State::Asking:
    case State::Answered: return QueuePairState::Idle;
    case State::Unheard:
    case State::Running:
    case State::HalfClosed: return QueuePairState::Rts;
    case State::Closing: return QueuePairState::Closing;
    case State::Terminating: return QueuePairState::Terminate;
    default: return QueuePairState::Error;
  }
}

class Operations : public Streams {
 public:
  /// \param tells_link the left port can tell of its link, which is looked at every 100 ms then
  explicit Operations(State state, bool tells_link = false)
      : Streams([&](DeviceConfig& config) {
          if (tells_link) link_.a().set_link(port::LinkState::Up);
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
      case State::Unheard:
      case State::Answered: {
        EXPECT_TRUE(right().device->connect(*other_, left_end(), {}, now_).has_value());
        EXPECT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
        const auto request = left().take<event::ConnectRequest>();
        EXPECT_TRUE(left().device->accept(request->request, *qp_, {}, now_).has_value());
        if (state == State::Unheard) {
          EXPECT_TRUE(run_until([&] { return right().has<event::Established>(); }));
        }
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
      case State::Drained: EXPECT_TRUE(left().device->drain(*qp_, {}, now_).has_value()); return;
      default: break;
    }
    join(qp_, other_);
    for (uint64_t id = 0; id < 2; ++id) {
      EXPECT_EQ(other_->post_receive(receive(id, far_, there_, 64)), PostResult::Ok);
    }
    run_for(std::chrono::milliseconds(1));
    go_on(state);
  }
  /// Into a state behind full operation.
  void go_on(State state) {
    switch (state) {
      case State::HalfClosed:
        EXPECT_TRUE(right().device->disconnect(*other_).has_value());
        EXPECT_TRUE(run_until([&] { return left().has<event::PeerClosed>(); }));
        return;
      case State::Closing:
        EXPECT_TRUE(left().device->disconnect(*qp_).has_value());
        EXPECT_TRUE(run_until([&] { return right().has<event::PeerClosed>(); }));
        return;
      case State::Terminating: return be_about_to_terminate();
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
  /// The peer offends while our window is full of a Write, and its ACKs take long.
  void be_about_to_terminate() {
    bulk_.assign(64 * 1024, 3), bulk_target_.assign(bulk_.size(), 4);
    bulk_here_ = left().add(bulk_, qp_->spec().pd, Access::LocalRead);
    const mem::Stag there = right().add(bulk_target_, other_->spec().pd, Access::RemoteWrite);
    auto much = work(Opcode::Write, 1, bulk_, *bulk_here_, 64 * 1024);
    much.remote = {there.value, reinterpret_cast<uint64_t>(bulk_target_.data())};
    EXPECT_EQ(qp_->post_send(much), PostResult::Ok);
    offend();
    run_for(std::chrono::microseconds(2));
    link_.set_b_to_a({.delay = std::chrono::milliseconds(10)});
    EXPECT_TRUE(run_until([&] { return qp_->state() == QueuePairState::Terminate; }));
  }
  /// The peer writes where nobody may.
  void offend() {
    auto offence = work(Opcode::Write, 1, far_, there_, 8);
    offence.remote.stag = here_.value ^ 1;
    EXPECT_EQ(other_->post_send(offence), PostResult::Ok);
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
    if (opcode == BindWindow)
      w.grant = grant(*left().device->allocate_window(qp_->spec().pd, WindowType::QueuePair));
    if (opcode == FastRegister) w.grant = grant(*left().device->allocate_region(qp_->spec().pd, 2));
    return w;
  }
  PostResult post_receives(uint64_t n) {
    PostResult last = PostResult::Ok;
    for (uint64_t id = 0; id < n; ++id) last = qp_->post_receive(receive(id, near_, here_, 64));
    return last;
  }
  static MemoryGrant grant(mem::Stag stag) {
    return {.stag = next_key(stag.value), .access = Access::RemoteWrite};
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
  QueuePair* qp_ = nullptr;                  // of the left device: what is looked at
  QueuePair* other_ = nullptr;               // of the right device: its peer
  std::vector<uint8_t> bulk_, bulk_target_;  // of State::Terminating
  std::optional<mem::Stag> bulk_here_;
  static constexpr AccessSet kRights = Access::LocalWrite | Access::RemoteWrite |
                                       Access::RemoteRead | Access::RemoteAtomic |
                                       Access::RemoteInvalidate | Access::Bind;
  mem::Stag here_, there_;
};

inline void for_each_state(const std::function<void(State, Operations&)>& act) {
  for (const State state : kStates) {
    SCOPED_TRACE(kNames[static_cast<size_t>(state)]);
    Operations world(state);
    act(state, world);
    if (::testing::Test::HasFatalFailure()) return;
    world.expect_all_returned_at_the_end();
  }
}

}  // namespace rnic::device::every_state
