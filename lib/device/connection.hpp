/// \file
/// One connection being made or in use: the owner of a framing session and its start-up.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "device/config.hpp"
#include "device/connection_state.hpp"
#include "llp/admission.hpp"
#include "llp/llp.hpp"
#include "mpa/mpa.hpp"
#include "rnic/connection.hpp"
#include "tuf/key_source.hpp"
#include "tuf/tuf.hpp"

namespace rnic::device {

class Connection;
class QueuePair;
struct QueuePairSpec;
struct SegmentChoice;
class StreamSocket;

/// What the sessions of a device share: memory for what cannot be placed yet, keys, counters.
struct FramingParts {
  explicit FramingParts(const DeviceConfig& config);
  framing::HoldStorePtr hold;
  tuf::PackStorePtr pack;
  tuf::KeySource tuf_keys;
  mpa::Counters mpa_counters;
  tuf::Counters tuf_counters;
};

/// Learns of a connection's start-up and of its end.
class ConnectionOwner {
 public:
  /// The Request is whole: may it wait for the application? False: too many do, and the connection
  /// was aborted.
  virtual bool admits_request(Connection& connection, base::Now now) = 0;
  virtual void request_received(Connection& connection, base::ByteView private_data) = 0;
  virtual void connection_started(Connection& connection, std::vector<uint8_t> private_data,
                                  base::Now now) = 0;
  virtual void start_failed(Connection& connection, ConnectionState before,
                            framing::StartFailure why, base::ByteView private_data,
                            base::Now now) = 0;
  virtual void connection_ended(Connection& connection) = 0;
  /// There is no memory for the rest of the start-up: the connection is aborted.
  virtual void give_up(Connection& connection) = 0;
  virtual void choose_segments(llp::Stream& stream, const SegmentChoice& choice, base::Now now) = 0;
  /// Sets the one timer of a start-up, of its RTR, or of a delay. \param deadline kNever: stops it
  virtual void set_start_timer(Connection& connection, base::Now deadline) = 0;

 protected:
  ~ConnectionOwner() = default;
};

class Connection final : public framing::StartEvents, public tuf::SessionEvents {
 public:
  /// Over MPA. \param owner, parts outlive it
  Connection(ConnectionOwner& owner, FramingParts& parts, framing::Role role,
             const mpa::Config& config, base::ByteView private_data,
             const framing::StartWish& wish = {});
  /// Over ULP framing.
  Connection(ConnectionOwner& owner, FramingParts& parts, framing::Role role,
             const tuf::Config& config, base::ByteView private_data,
             const framing::StartWish& wish = {});

  [[nodiscard]] framing::StartSession& session() { return *session_; }
  /// The same when it is MPA's; nullptr: it is not.
  [[nodiscard]] mpa::Session* mpa_session() { return mpa_session_; }
  [[nodiscard]] ConnectionState state() const { return state_; }
  /// Of the whole start-up, as its framing's configuration has it.
  [[nodiscard]] base::Duration start_timeout() const { return start_timeout_; }
  [[nodiscard]] bool is_responder() const { return role_ == framing::Role::Responder; }

  /// Binds the queue pair's endpoint to the session; before the start-up goes on.
  void bind(QueuePair& qp, base::Now now);
  [[nodiscard]] QueuePair* queue_pair() { return qp_; }

  /// bind(), and the Reply. When it throws nothing has happened.
  void accept(QueuePair& qp, base::ByteView private_data, const framing::StartWish& wish,
              base::Now now);
  /// When it throws nothing has happened.
  void reject(base::ByteView private_data, base::Now now);

  /// The start timer has fired.
  void on_timer(base::Now now);

  /// What was agreed, and what the peer said.
  [[nodiscard]] const framing::Negotiated& agreed() const { return agreed_; }
  /// Names it to the application, while it is a request.
  [[nodiscard]] RequestHandle request() const { return {handle.index, handle.generation}; }
  /// The application has got the event that says how the attempt went.
  [[nodiscard]] bool outcome_reported() const { return outcome_reported_; }
  void set_outcome_reported() { outcome_reported_ = true; }
  /// The connection is in full operation, and the RTR, where one was agreed on, was sent or has
  /// come.
  void complete(base::Now now);

  /// Initiator: kept for a second attempt with revision 1 (RFC 6581 s.10); empty: there is none.
  struct Redial {
    uint32_t qp = 0;
    Endpoint remote;
    std::vector<uint8_t> private_data;
    framing::StartWish wish;
  };
  std::unique_ptr<Redial> redial;
  /// Gives the connection a place in a table of those of which one may have to give way. It has at
  /// most one such place.
  void take_seat(llp::Admission& table) {
    leave_seat();
    seat_ = table.enter(remote.address, handle);
    table_ = &table;
  }
  void leave_seat() {
    if (llp::Admission* table = std::exchange(table_, nullptr)) table->leave(seat_);
  }
  [[nodiscard]] bool has_seat() const { return table_ != nullptr; }
  /// Lets go of the queue pair, which another connection will serve.
  void unbind();

  // framing::StartEvents
  void request_received(const framing::StartOffer& peer, base::ByteView private_data,
                        base::Now now) override;
  void started(const framing::Negotiated& agreed, base::ByteView private_data,
               base::Now now) override;
  void start_failed(framing::StartFailure why, base::ByteView private_data, base::Now now) override;
  void rtr_received(base::Now now) override;
  void peer_left(base::Now now) override;
  void stream_ended(StreamEnd how, base::Now now) override;

  // tuf::SessionEvents
  void middlebox_suspected(base::Now now) override;
  void stream_broken(tuf::Error error, base::Now now) override;

  base::Handle handle;            ///< its own place in the device's slab
  llp::Stream* stream = nullptr;  ///< valid until stream_ended()
  Endpoint local;
  Endpoint remote;
  base::TimerNode start_timer;  ///< start-up time-out
  /// The streaming socket that the connection was made from; nullptr: none. Valid as `stream` is.
  StreamSocket* socket = nullptr;
  const char* evicted_for = nullptr;  ///< why it had to give way to others; nullptr: it had not

  /// How far it had come when it was looked at last (limits.silence).
  struct Progress {
    uint64_t arrived = 0;  ///< octets of the peer
    uint32_t sends = 0;    ///< work requests of ours that have completed
    friend bool operator==(const Progress&, const Progress&) = default;
  };
  Progress progress;
  base::Now silent_since{};
  base::TimerNode silence_timer;  ///< when its progress is looked at next

 private:
  void set_state(ConnectionState next);
  void leave_mpa(base::Now now);
  void stop_lingering();

  ConnectionOwner& owner_;
  llp::Admission* table_ = nullptr;  // where it has a seat; nullptr: it has none
  uint32_t seat_ = 0;                // its number there
  framing::Role role_;
  base::Duration start_timeout_;
  ConnectionState state_ = ConnectionState::Connecting;
  QueuePair* qp_ = nullptr;
  framing::Negotiated agreed_;
  std::vector<uint8_t> private_data_;  // of the Reply, until the connection is complete
  // No state: in Running the report waits for the RTR, and a failure that is dialled again has
  // none.
  bool outcome_reported_ = false;
  std::unique_ptr<framing::StartSession> session_;
  mpa::Session* mpa_session_ = nullptr;
};

}  // namespace rnic::device
