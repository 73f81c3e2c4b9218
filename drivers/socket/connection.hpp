/// \file
/// One connection over a socket of the system.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "llp/transport.hpp"
#include "socket/config.hpp"
#include "socket/connection_state.hpp"
#include "socket/counters.hpp"
#include "socket/emss.hpp"
#include "socket/options.hpp"
#include "socket/system.hpp"
#include "socket/unsent.hpp"

namespace rnic::socket {

class Connection;

/// The owner of connections gives them their turns and their end.
class ConnectionOwner {
 public:
  /// The connection has something to read or to send: the next turn serves it.
  virtual void list(Connection& connection) = 0;
  /// The user has no space for the octets: the connection goes on when more octets come, or a turn
  /// after room_grew().
  virtual void lacks_space(Connection& connection) = 0;
  /// Hold space was given back.
  virtual void room_grew() = 0;
  virtual void reap_later(Connection& connection) = 0;
  /// Has epoll tell when the system takes octets (again), or tell of the peer's alone.
  /// \return false: the system has not, and tells what it told before
  virtual bool watch_output(Connection& connection, bool yes) = 0;
  virtual void arm(Connection& connection, base::Now deadline) = 0;
  virtual void disarm(Connection& connection) = 0;

 protected:
  ~ConnectionOwner() = default;
};

/// What the system and the user have last reported, which tells whether to ask them again.
class Readiness {
 public:
  /// The reason why octets stay with the system, whose window tells the peer.
  enum class Lack : uint8_t {
    None,
    Window,  ///< receive_room() is 0
    Space,   ///< takes() is 0: more octets may change that, or what other streams give back
  };

  // Reading.
  [[nodiscard]] bool reads() const { return readable_ && lack_ == Lack::None; }
  [[nodiscard]] Lack lack() const { return lack_; }
  void set_readable(bool readable) { readable_ = readable; }
  /// Octets that come would be read at once.
  [[nodiscard]] bool would_read() const { return lack_ == Lack::None; }
  /// The system gave less than it was asked for: it has no more, and an event follows when it has
  /// (epoll(7), on edges), so it is not asked again in vain.
  void came_short() { readable_ = readable_ && stops_early_; }
  /// A read may end before the last octet or the end of the stream that an event has told of: at
  /// urgent data, which stop it, or at a FIN or an error, which have no other event.
  void short_reads_mean_nothing() { stops_early_ = true; }
  void wait_for(Lack what) { lack_ = what; }
  void room_grew() { lack_ = Lack::None; }
  /// Clears the lack: more octets or more space may have come.
  void look_again() {
    if (lack_ == Lack::Space) lack_ = Lack::None;
  }

  // Sending.
  [[nodiscard]] bool takes() const { return writable_; }
  void set_writable(bool writable) { writable_ = writable; }
  /// \return whether epoll tells when the system takes octets
  [[nodiscard]] bool is_output_watched() const { return output_watched_; }
  void set_output_watched(bool watched) { output_watched_ = watched; }
  [[nodiscard]] bool user_has() const { return user_ready_; }
  void set_user_has(bool something) { user_ready_ = something; }

 private:
  bool readable_ = false;     // the system may have octets of the peer
  bool stops_early_ = false;  // it may have more although it gave less than it was asked for
  Lack lack_ = Lack::None;
  bool writable_ = false;    // the system may take octets
  bool output_watched_ = false;  // only while that is waited for
  bool user_ready_ = false;  // pull() may have something
};

class Connection final : public llp::Stream {
 public:
  using State = StreamState;

  Connection(ConnectionOwner& owner, System& system, const Config& config, Counters& counters,
             Descriptor&& descriptor, const Endpoint& remote, State state);

  // llp::Stream
  [[nodiscard]] llp::StreamTraits traits() const override {
    return {.can_drop = false,
            .out_of_order = false,
            .atomic_records = false,
            .release_on_ack = false,
            .emss_exact = false,
            .shows_segments = false};
  }
  [[nodiscard]] uint32_t emss() const override { return emss_.value(); }
  [[nodiscard]] Endpoint local() const override { return local_; }
  [[nodiscard]] Endpoint remote() const override { return remote_; }
  void ready() override;
  void close() override;
  void abort() override;
  void leave() override;
  void room_grew() override;
  void set_user(llp::StreamUser& user) override { user_ = &user; }
  void set_trace(base::TraceSink* sink) override { trace_ = sink; }
  [[nodiscard]] base::TraceSink* trace() const override { return trace_; }

  // --- The owner's side ---

  /// Changes options of TCP. Unsupported: apply() of socket/options.hpp.
  Status choose(const TcpOptions& options);
  /// epoll has reported the descriptor. \param events EPOLLIN and so on
  void on_epoll(uint32_t events, base::Now now);
  /// The handshake is over: tells the user.
  void open(base::Now now);
  /// Does one turn of reading: hands up what came.
  uint32_t receive(std::vector<uint8_t>& buffer, llp::BeforeHandUp& before, base::Now now);
  /// Does one turn of sending: octets left from before, or else what the user has.
  void send(base::Now now);
  /// Space may be there again.
  void look_again();
  /// Octets have probably come: asks for them before epoll has told of any. \return false: it would
  /// not read them, or epoll would still call it ready once they are read
  bool expect_octets();
  /// A deadline has come.
  void timer_fired(base::Now now);
  /// Ends the connection: of the user only ended() is still called, by the transport.
  void end_with(StreamEnd how);
  /// Closes the socket and tells the user. The last call.
  void finish(base::Now now);
  void learn_local();

  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  [[nodiscard]] bool wants_reading() const { return readiness_.reads() && !is_over(); }
  [[nodiscard]] bool wants_sending() const;

  /// \return whether the connection has ended: nothing is sent or handed up any more, and the
  /// transport takes it away at its next turn
  [[nodiscard]] bool is_over() const { return state_ == State::Ended; }

  /// Tells the connection its own place in the transport's slab. Called once, before anything else.
  void name(base::Handle handle) { handle_ = handle; }
  [[nodiscard]] base::Handle handle() const { return handle_; }

  // The timer of the opening, of memory for sending, and of the peer's FIN.
  void arm(base::TimerWheel& wheel, base::Now deadline) { wheel.arm(timer_, deadline); }
  void disarm(base::TimerWheel& wheel) { wheel.cancel(timer_); }

  // Its entries in two lists of the transport: of those with something to do, and of those that
  // lack space.

  /// \return whether it was not in that list already
  bool enlist() { return !std::exchange(is_listed_, true); }
  void left_list() { is_listed_ = false; }
  /// \return whether it was not in that list already
  bool begin_waiting() { return !std::exchange(is_waiting_, true); }
  void left_waiting() { is_waiting_ = false; }

 private:
  void set_state(State next);
  void set_write_half(WriteHalf next);
  void set_read_half(ReadHalf next);
  void refresh_emss(base::Now now);
  void pull_records(base::Now now);
  uint32_t pull_segment(uint32_t emss, base::Now now);
  /// Gives octets to the system. \return false: it takes no more for now, or the connection is over
  bool write_out(base::Now now);
  void release_taken(base::Now now);
  void send_fin(base::Now now);
  int take(uint8_t* to, uint32_t octets);
  void note_read(ssize_t octets);
  void wait_for(Readiness::Lack what);
  void await_output(bool memory, base::Now now);
  void watch_output(bool yes);
  void note_leaving();
  uint32_t room_behind_leaving(llp::BeforeHandUp& before);
  [[nodiscard]] uint32_t taken_of(base::ByteView octets);
  void hand_up(base::ByteView octets, base::Now now);
  void end_of_file(base::Now now);
  int error_of_system();
  void fail(int error);
  void count_end();

  ConnectionOwner& owner_;
  base::Handle handle_;
  base::TimerNode timer_;
  bool is_listed_ = false;
  bool is_waiting_ = false;
  System& system_;
  const Config& config_;
  Counters& counters_;
  Descriptor descriptor_;
  Endpoint local_;
  Endpoint remote_;
  State state_;
  llp::StreamUser* user_ = nullptr;
  base::TraceSink* trace_ = nullptr;
  KnownEmss emss_;
  bool nagle_;  // short segments are meant to be joined

  Readiness readiness_;

  // Sending.
  Unsent unsent_;
  WriteHalf write_half_ = WriteHalf::Open;
  int write_error_ = 0;  // reported after all octets of the peer were read

  // Receiving.
  uint64_t received_ = 0;  // stream offset
  uint32_t owed_ = 0;      // octets before it that the system still has
  ReadHalf read_half_ = ReadHalf::Open;

  bool handshake_done_;  // the peer knows of the connection: a reset has to tell of its end
  StreamEnd how_ended_ = StreamEnd::Closed;
};

}  // namespace rnic::socket
