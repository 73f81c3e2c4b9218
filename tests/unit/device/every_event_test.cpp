// Every event that a peer, the path, this side's port or administrator can bring about, in every
// state of a queue pair: what is told, in which order, in which state the queue pair is then, and
// that everything that was posted completes once, before the event that ends the connection.

#include <algorithm>
#include <utility>

#include "crc/crc.hpp"
#include "device/link_watch.hpp"
#include "every_state.hpp"

namespace rnic::device::every_state {
namespace {

enum class Cause {
  Close,      // the peer closes its direction
  Reset,      // the peer resets the connection, or refuses it
  Offence,    // the peer breaks a rule
  Terminate,  // the peer sends a Terminate for an error of its own
  Silence,    // nothing crosses the path any more
  Abort,      // this side's administrator ends the connection
  Overrun,    // a completion queue is full when a completion comes
  LinkDown,   // the port's link goes down, and stays so
  LinkUp,     // it goes down, and comes up again
  PortGone,   // the port is taken away
};
constexpr Cause kCauses[] = {Cause::Close,   Cause::Reset,   Cause::Offence, Cause::Terminate,
                             Cause::Silence, Cause::Abort,   Cause::Overrun, Cause::LinkDown,
                             Cause::LinkUp,  Cause::PortGone};
constexpr const char* kCauseNames[] = {"close", "reset",   "offence",   "terminate", "silence",
                                       "abort", "overrun", "link down", "link up",   "port gone"};
static_assert(std::size(kCauses) == std::size(kCauseNames));

bool is_of_port(Cause cause) {
  return cause == Cause::LinkDown || cause == Cause::LinkUp || cause == Cause::PortGone;
}

// What is told, and the state that the queue pair is left in.
constexpr const char* kNone = "rts";  // who has closed says nothing more
constexpr const char* kPeerClosed = "peer closed; rts";
constexpr const char* kLost = "disconnected; error";
constexpr const char* kTerminated = "terminate sent, disconnected; error";
constexpr const char* kBlamed = "terminate received, disconnected; error";
constexpr const char* kFailed = "connect failed, disconnected; error";
constexpr const char* kFailing = "connect failed; idle";  // the peer has not closed yet
constexpr const char* kOverrun = "completion overrun, disconnected; error";
constexpr const char* kDown = "port down; rts";
constexpr const char* kUp = "port down, port up; rts";
constexpr const char* kGone = "device fatal; rts";

/// What each cause brings about in a state with a connection. The port's events change nothing:
/// what is told beside them would be told without them.
struct Row {
  State state;
  const char* told[std::size(kCauses)];
};
const Row kRows[] = {
    {State::Dialling,
     {kFailed, kFailed, kFailing, kFailing, kFailed, kFailed,
      "completion overrun, connect failed, disconnected; error", "port down; idle",
      "port down, port up; idle", "device fatal; idle"}},
    {State::Asking,
     {kFailed, kFailed, kFailing, kFailing, kFailed, kFailed,
      "completion overrun, connect failed, disconnected; error", "port down; idle",
      "port down, port up; idle", "device fatal; idle"}},
    {State::Answered,
     {"established, peer closed; rts", "established, disconnected; error",
      "established, terminate sent; error", "established, terminate received; error",
      "established, disconnected; error", "request withdrawn, disconnected; error",
      "established, first fpdu overdue; rts", "established, port down; rts",
      "established, port down, port up; rts", "established, device fatal; rts"}},
    {State::Unheard,
     {kPeerClosed, kLost, kTerminated, kBlamed, kLost, kLost, "first fpdu overdue; rts", kDown, kUp,
      kGone}},
    {State::Running,
     {kPeerClosed, kLost, kTerminated, kBlamed, kLost, kLost, kOverrun, kDown, kUp, kGone}},
    {State::HalfClosed, {kNone, kLost, kNone, kNone, kLost, kLost, kOverrun, kDown, kUp, kGone}},
    {State::Closing,
     {"peer closed, disconnected; error", kLost, kLost, kBlamed, kLost, kLost, kOverrun,
      "port down; closing", "port down, port up; closing", "device fatal; closing"}},
    {State::Terminating,
     {kLost, kLost, kLost, kLost, kLost, kLost, kOverrun, "port down; error",
      "port down, disconnected, port up; error", "device fatal; error"}},
    {State::Terminated,
     {kLost, kLost, kLost, kLost, kLost, kLost, "disconnected, completion overrun; error",
      "port down; error", "port down, disconnected, port up; error", "device fatal; error"}},
};

class EventWorld : public Operations {
 public:
  EventWorld(State state, Cause cause)
      : Operations(peer_is_raw(state) ? State::Fresh : state, is_of_port(cause)) {
    if (!peer_is_raw(state)) return;
    listener_ = listen();
    if (state != State::Answered) left_dials(state == State::Asking);
    if (state == State::Answered) left_answers();
  }
  /// The octets of a start-up come from a stream.
  static bool peer_is_raw(State state) { return is_unborn(state); }

  void bring_about(Cause cause, State state) {
    switch (cause) {
      case Cause::Close: return close(state);
      case Cause::Reset: return reset(state);
      case Cause::Offence: return speak(state, fpdu(0), [&] { offend(); });
      case Cause::Terminate: return speak(state, fpdu(7), [&] { fail_at_peer(); });
      case Cause::Silence:
        // The peer's ACK of our Reply waits for a turn.
        if (state == State::Unheard) run_for(std::chrono::microseconds(100));
        if (has_connection(state)) {
          using std::chrono::milliseconds;
          const TcpOptions alive{.keep_alive = true,
                                 .keep_alive_idle = milliseconds(1000),
                                 .keep_alive_interval = milliseconds(1000),
                                 .keep_alive_count = 3};
          EXPECT_TRUE(left().device->modify_qp(*qp_, {.tcp = alive}, now_));
        }
        return cut();
      case Cause::Abort:
        for (const auto& one : left().device->connections(now_)) {
          EXPECT_TRUE(left().device->abort(one.id).has_value());
        }
        return;
      case Cause::Overrun:
        for (int round = 0; round < 4; ++round) {
          while (qp_->post_send({.opcode = Opcode::Write}) == PostResult::Ok) {
          }
          run_for(std::chrono::microseconds(100));
        }
        return;
      case Cause::LinkDown: return lose_link(port::LinkState::Down);
      case Cause::PortGone: return lose_link(port::LinkState::Gone);
      case Cause::LinkUp:
        lose_link(port::LinkState::Down);
        run_for(2 * LinkWatch::kInterval);
        link_.a().set_link(port::LinkState::Up);
        return join_again();
    }
  }

  /// What is told from now on, until nothing more happens, and the state then.
  std::string told(base::Duration limit) {
    std::string names;
    run_until(
        [&] {
          while (const auto event = left().device->poll_event()) {
            names += std::string(names.empty() ? "" : ", ") + to_string(*event);
            const bool is_of_port = event::common(*event).qp == 0;
            if (std::holds_alternative<event::CompletionOverrun>(*event)) {
              loses_ = true;
            } else if (!is_of_port) {
              EXPECT_FALSE(has_ended_) << names << " behind the last";
            }
            if (!std::holds_alternative<event::Disconnected>(*event)) continue;
            has_ended_ = true;
            expect_completed();
          }
          return false;
        },
        limit);
    return names + (names.empty() ? "" : "; ") + to_string(qp_->state());
  }
  /// Each of the two requests once, unless completions were lost.
  void expect_completed() {
    collect();
    EXPECT_EQ(std::max(sends_, loses_ ? 1u : 0u), 1u);
    EXPECT_EQ(std::max(receives_, loses_ ? 1u : 0u), 1u);
  }
  /// Counts what has completed of the two requests that were posted.
  void collect() {
    for (CompletionQueue* cq : {qp_->spec().send_cq, qp_->spec().receive_cq}) {
      for (const Completion& done : left().completions(cq)) {
        sends_ += done.id == 7 ? 1 : 0;
        receives_ += done.id == 5 ? 1 : 0;
      }
    }
  }
  void post() {
    ASSERT_EQ(qp_->post_receive(receive(5, near_, here_, 64)), PostResult::Ok);
    ASSERT_EQ(qp_->post_send(request(Opcode::Write)), PostResult::Ok);
  }
  void mend() {
    join_again();
    for (StreamSocket* socket : {raw_, listener_ != nullptr ? listener_->next() : nullptr}) {
      if (socket != nullptr) tell(right(), socket, StreamSocket::kAbort | StreamSocket::kRelease);
    }
  }

 private:
  /// Nothing crosses the link any more.
  void cut() {
    link_.set_a_to_b({.queue_limit = 0, .drop_when_full = true});
    link_.set_b_to_a({.queue_limit = 0, .drop_when_full = true});
  }
  void join_again() {
    link_.set_a_to_b(link_config().a_to_b);
    link_.set_b_to_a(link_config().b_to_a);
  }
  /// The left port's end says so, and nothing crosses it.
  void lose_link(port::LinkState how) {
    link_.a().set_link(how);
    cut();
  }
  void left_dials(bool until_the_request) {
    dial(kStreamPort);
    if (!until_the_request) return;
    accept_raw();
    Streams::receive(right(), raw_, 20);
  }
  void accept_raw() {
    EXPECT_TRUE(run_until([&] { return (raw_ = listener_->next()) != nullptr; }));
  }
  void left_answers() {
    auto made = right().device->connect_stream(left_end(), {}, now_);
    ASSERT_TRUE(made.has_value());
    raw_ = *made;
    EXPECT_TRUE(run_until([&] { return raw_->is_established(); }));
    const std::string key = "MPA ID Req Frame";
    std::vector<uint8_t> asked(key.begin(), key.end());
    asked.insert(asked.end(), {0x40, 1, 0, 0});  // C, revision 1, no private data
    Streams::send(right(), raw_, asked);
    EXPECT_TRUE(run_until([&] { return left().has<event::ConnectRequest>(); }));
    const auto request = left().take<event::ConnectRequest>();
    EXPECT_TRUE(left().device->accept(request->request, *qp_, {}, now_).has_value());
  }
  /// An FPDU whose message has that opcode, of queue 2: 7 is a Terminate (2/0/1), others offend.
  static std::vector<uint8_t> fpdu(uint8_t opcode) {
    std::vector<uint8_t> out(24);
    out[1] = 22, out[2] = 0x41, out[3] = static_cast<uint8_t>(0x40 | opcode);
    out[11] = 2, out[15] = 1, out[20] = 0x20, out[21] = 1;
    const uint32_t crc = crc::finish(crc::update(crc::kInit, out.data(), out.size()));
    for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<uint8_t>(crc >> shift));
    return out;
  }
  void close(State state) {
    if (peer_is_raw(state)) {
      if (raw_ == nullptr) accept_raw();
      return tell(right(), raw_, StreamSocket::kFinish);
    }
    if (has_connection(state)) {
      EXPECT_TRUE(right().device->disconnect(*other_).has_value());
    }
  }
  void reset(State state) {
    if (state == State::Dialling) return std::exchange(listener_, nullptr)->stop(now_);
    if (peer_is_raw(state)) return tell(right(), raw_, StreamSocket::kAbort);
    for (const auto& one : right().device->connections(now_)) {
      EXPECT_TRUE(right().device->abort(one.id).has_value());
    }
  }
  /// The peer says that: as octets where the start-up is not over, and else by its queue pair.
  void speak(State state, const std::vector<uint8_t>& octets, const std::function<void()>& act) {
    if (peer_is_raw(state)) {
      if (raw_ == nullptr) accept_raw();
      return Streams::send(right(), raw_, octets);
    }
    if (has_connection(state)) act();
  }
  /// The peer finds that memory of its own is not registered.
  void fail_at_peer() {
    auto mistake = work(Opcode::Send, 1, far_, there_, 8);
    mistake.sges[0].stag ^= 1;
    EXPECT_EQ(other_->post_send(mistake), PostResult::Ok);
  }

  StreamListener* listener_ = nullptr;
  StreamSocket* raw_ = nullptr;
  uint32_t sends_ = 0, receives_ = 0;
  bool loses_ = false;
  bool has_ended_ = false;
};

std::string expected(State state, size_t cause) {
  for (const Row& row : kRows) {
    if (row.state == state) return row.told[cause];
  }
  EXPECT_FALSE(has_connection(state)) << "it has no row";
  // Without a connection only the completion queues and the port are left. An unused queue pair
  // stays so.
  const std::string then = to_string(expected_state(state));
  switch (kCauses[cause]) {
    case Cause::Overrun: return "completion overrun; " + then;
    case Cause::LinkDown: return "port down; " + then;
    case Cause::LinkUp: return "port down, port up; " + then;
    case Cause::PortGone: return "device fatal; " + then;
    default: return then;
  }
}

TEST(EveryState, EveryEvent) {
  for (size_t i = 0; i < std::size(kCauses); ++i) {
    for (const State state : kStates) {
      SCOPED_TRACE(std::string(kCauseNames[i]) + " in " + kNames[static_cast<size_t>(state)]);
      EventWorld w(state, kCauses[i]);
      w.post();
      w.bring_about(kCauses[i], state);
      // A peer that has closed gives up a stream that is half closed after 5 s.
      const base::Duration limit = kCauses[i] == Cause::Silence
                                       ? base::Duration(std::chrono::hours(1))
                                       : std::chrono::seconds(3);
      EXPECT_EQ(w.told(limit), expected(state, i));
      ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Error}, w.now_));
      w.run_for(std::chrono::seconds(1));
      w.expect_completed();
      w.mend();
      w.expect_all_returned_at_the_end();
    }
  }
}

}  // namespace
}  // namespace rnic::device::every_state
