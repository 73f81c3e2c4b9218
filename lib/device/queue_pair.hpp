/// \file
/// Queue pair: the send and receive queues that the application fills, and the protocol endpoint
/// that the worker drives.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "base/doorbell.hpp"
#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "device/completion_queue.hpp"
#include "device/queue_pair_state.hpp"
#include "device/queue_pair_tally.hpp"
#include "device/queue_pair_use.hpp"
#include "device/receive_waits.hpp"
#include "device/shared_receive_queue.hpp"
#include "device/terminate_tally.hpp"
#include "framing/start.hpp"
#include "mem/stag_table.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/work_opcodes.hpp"
#include "rnic/queue_info.hpp"

namespace rnic::device {

class QueuePair;

struct QueuePairSpec {
  uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;     ///< outlives the queue pair
  CompletionQueue* receive_cq = nullptr;  ///< outlives the queue pair
  uint32_t send_depth = 128;
  uint32_t receive_depth = 128;
  uint32_t ird = 16;
  uint32_t ord = 16;
  /// A peer's close is answered once the receives before it are delivered, by a graceful close.
  /// (The public API says so unless it is told otherwise.)
  bool answer_close = false;
  bool strict_read_sinks = false;  ///< they need Access::RemoteWrite, too
  void* context = nullptr;  ///< the application's own, for events
  /// Receives come from there, and `receive_depth` of them are taken for messages ahead of the
  /// order, at most; outlives the queue pair.
  SharedReceiveQueue* srq = nullptr;
  /// How long a message may wait for a receive; 0: not at all.
  base::Duration receive_wait{0};
};

/// How a connection makes its segments; what is not said is as the configuration has it.
struct SegmentChoice {
  std::optional<bool> packing;
  std::optional<bool> nagle;
  friend bool operator==(const SegmentChoice&, const SegmentChoice&) = default;
};

using rdmap::PostResult;

/// Learns of a queue pair's events (worker).
class QueuePairOwner {
 public:
  virtual void completion_overrun(QueuePair& qp, CompletionQueue& cq) = 0;
  /// It has completed the last receive that it took from its shared receive queue.
  virtual void last_receive_done(QueuePair& qp) = 0;
  virtual void rtr_sent(QueuePair& qp, base::Now now) = 0;
  /// What was posted cannot be sent before the peer has sent; once a connection.
  virtual void first_fpdu_awaited(QueuePair& qp, base::Now now) = 0;
  /// \param event PeerClosed, Disconnected, TerminateSent or TerminateReceived
  virtual void endpoint_event(QueuePair& qp, Event event, base::Now now) = 0;

 protected:
  ~QueuePairOwner() = default;
};

/// What the queue pairs of a device share beside its memory; all of it outlives them.
struct QueuePairParts {
  QueuePairOwner& owner;
  rdmap::Counters& counters;
  base::Doorbells& doorbells;
  ReceiveWaits& receive_waits;
  TerminateTally& terminates;
  bool extensions = true;  ///< RFC 7306
  std::array<uint64_t, 2> secret{};
};

class QueuePair final : public rdmap::EndpointOwner {
 public:
  /// \param memory outlives it
  /// \param doorbell which one it rings, whatever its number becomes
  QueuePair(uint32_t number, uint32_t doorbell, const QueuePairSpec& spec,
            const QueuePairParts& parts, mem::StagTable& memory);
  ~QueuePair() override { parts_.receive_waits.end(wait_timer_); }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  /// What its queues ask the machine for.
  [[nodiscard]] static uint64_t octets_for(const QueuePairSpec& spec);

  // --- Application side: one thread at a time for each queue ---

  /// Queues a work request and rings the doorbell. The memory of its SGEs stays the device's to
  /// read or write until the completion.
  PostResult post_send(const SendRequest& work);
  PostResult post_receive(const ReceiveRequest& work);
  /// Of a list that is posted at once: what was taken, from the front, is carried out.
  struct ListResult {
    uint32_t taken = 0;
    PostResult result = PostResult::Ok;  ///< why the next was not; Ok: all were
  };
  /// The same for all of them, with one doorbell.
  ListResult post_sends(std::span<const SendRequest> works);
  ListResult post_receives(std::span<const ReceiveRequest> works);

  // --- Worker ---

  /// Moves posted work to the endpoint.
  void serve(base::Now now) {
    serve();
    if (watches_first_fpdu_) [[unlikely]] look_for_unsent(now);
    if (waits_for_receive()) [[unlikely]] resume(now);
  }
  /// A message waits for a receive.
  [[nodiscard]] bool waits_for_receive() const { return endpoint_.waits_for_receive(); }
  /// How many have waited on the connection that it has or had last, this one included.
  [[nodiscard]] uint64_t receive_waits() const { return endpoint_.receive_waits(); }
  /// Goes on with it, where it has its receive now or may wait no longer.
  void resume(base::Now now);
  /// From now on the queue pair tells when it begins to wait for the peer's first FPDU
  /// (first_fpdu_awaited()).
  void watch_first_fpdu() { watches_first_fpdu_ = true; }
  /// Makes the endpoint the user of what the session frames.
  void bind(framing::StartSession& session) { session.bind(endpoint_.framing_user()); }
  /// The start-up of the session that it is bound to has come to this.
  void start(llp::Framing& session, const rdmap::Agreement& agreement) {
    endpoint_.bind(session, agreement);
  }
  /// Graceful: what was posted is sent, then FIN. Without a connection everything is flushed.
  void disconnect();
  /// Everything that was posted is flushed.
  void abort();
  /// Idle again, for another connection, under that number; only in Error, and without a
  /// connection. When it throws nothing has happened.
  void renew(uint32_t number, uint32_t ird, uint32_t ord);
  /// Only in Idle and without a connection. When it throws nothing has happened.
  void set_reads(uint32_t ird, uint32_t ord);
  void set_answer_close(bool answer) { answers_close_ = answer; }
  void set_context(void* context) { context_ = context; }
  [[nodiscard]] QueuePairState state() const { return state_of(endpoint_.state()); }
  [[nodiscard]] QueuePairAttributes attributes() const;
  [[nodiscard]] void* context() const { return context_; }
  [[nodiscard]] bool has_work() const { return endpoint_.has_work(); }
  /// Something waits to be sent.
  [[nodiscard]] bool has_unsent() const { return endpoint_.has_unsent(); }
  /// Work requests of the Send queue that have completed; wraps.
  [[nodiscard]] uint32_t sends_completed() const { return endpoint_.sends_completed(); }
  /// Of all its connections.
  [[nodiscard]] const QueuePairCounters& counters() const { return tally_.counters(); }
  void validate() const { endpoint_.validate(); }
  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] uint32_t doorbell() const { return doorbell_; }
  [[nodiscard]] const QueuePairSpec& spec() const { return spec_; }
  /// What an STag is bound to that only this queue pair may use (RFC 5041 s.8.2). It is never
  /// another one's, nor this one's once it was renewed.
  [[nodiscard]] uint64_t stream() const { return stream_; }

  /// Whether a fault of this connection is news for the log: it is so once.
  bool tell_fault() { return !std::exchange(fault_told_, true); }

  /// The application has destroyed the queue pair; it lives on without events until its stream has
  /// ended.
  void orphan() { orphaned_ = true; }
  /// orphan() and abort() of a queue pair with a shared receive queue, of which nothing is used
  /// from here on. Nothing where it has none.
  void leave_srq();
  [[nodiscard]] SrqUse srq_use() const {
    return {number_, receives_.claimed(), receives_.in_progress()};
  }
  [[nodiscard]] bool orphaned() const { return orphaned_; }

  /// Invalid while there is none.
  [[nodiscard]] base::Handle connection() const { return connection_; }
  /// The queue pair has its connection, or has had it: it serves one until it is renewed.
  [[nodiscard]] bool used() const { return use_ != QueuePairUse::Unused; }
  [[nodiscard]] bool awaits_redial() const { return use_ == QueuePairUse::AwaitsRedial; }
  void begin_connection(base::Handle connection);
  /// The answer that it was bound for could not be made: it is as good as new.
  void cancel_connection();
  /// Another attempt of the same connect follows.
  void await_redial();
  /// The connection is gone, or the second attempt could not be made.
  void end_connection();

  /// How the connection makes its segments, as ConnectOptions chose.
  [[nodiscard]] const SegmentChoice& segments() const { return segments_; }
  void choose_segments(const SegmentChoice& choice) { segments_ = choice; }

  // rdmap::EndpointOwner
  void send_completed(const Completion& completion) override;
  void receive_completed(const Completion& completion) override;
  void last_receive_done() override;
  void receive_wait_began(base::Now deadline) override;
  void rtr_sent(base::Now now) override;
  void event(Event event, base::Now now) override;

 private:
  void serve() { endpoint_.serve(); }
  void look_for_unsent(base::Now now);
  void serve_between_turns();
  void set_use(QueuePairUse next, base::Handle connection);
  [[nodiscard]] rdmap::Endpoint make_endpoint(uint32_t number, uint64_t stream, uint32_t ird,
                                              uint32_t ord);
  [[nodiscard]] PostResult check(const SendRequest& work, const rdmap::WorkRow& row) const;
  // Without telling the worker.
  PostResult queue(const SendRequest& work);
  PostResult queue(const ReceiveRequest& work);
  template <typename Work, typename Queue>
  ListResult post_list(std::span<const Work> works, Queue& to);
  void complete(CompletionQueue& cq, const Completion& completion);

  uint32_t number_;
  const uint32_t doorbell_;
  QueuePairSpec spec_;
  const QueuePairParts parts_;
  mem::StagTable& memory_;
  rdmap::SendQueue sends_;
  rdmap::ReceiveQueue receives_;
  uint64_t stream_;
  rdmap::Endpoint endpoint_;
  // The worker's.
  QueuePairUse use_ = QueuePairUse::Unused;
  base::Handle connection_;  // Invariant: valid in Connected, and nowhere else
  SegmentChoice segments_;
  QueuePairTally tally_;
  bool orphaned_ = false;  // no state: it can happen in each
  bool fault_told_ = false;
  bool watches_first_fpdu_ = false;
  bool answers_close_;
  void* context_;
  base::TimerNode wait_timer_;
};

}  // namespace rnic::device
