/// \file
/// Queue pair: the send and receive queues that the application fills, and the protocol endpoint
/// that the worker drives.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "base/doorbell.hpp"
#include "base/page_store.hpp"
#include "base/slab.hpp"
#include "base/timer_wheel.hpp"
#include "device/completion_queue.hpp"
#include "device/queue_pair_state.hpp"
#include "device/queue_pair_tally.hpp"
#include "device/queue_pair_use.hpp"
#include "device/receive_waits.hpp"
#include "device/shared_receive_queue.hpp"
#include "device/stalled_responders.hpp"
#include "device/terminate_tally.hpp"
#include "framing/hold_share.hpp"
#include "framing/start.hpp"
#include "mem/stag_table.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/requests.hpp"
#include "rdmap/work_opcodes.hpp"
#include "rnic/queue_info.hpp"
#include "rnic/tcp_options.hpp"

namespace rnic::device {

class QueuePair;

/// What a queue pair is made of: what the application chose, and what it stands on.
struct QueuePairSpec : QueuePairOptions {
  uint32_t pd = 0;
  CompletionQueue* send_cq = nullptr;     ///< outlives the queue pair
  CompletionQueue* receive_cq = nullptr;  ///< outlives the queue pair
  /// The queue that the handle QueuePairOptions::srq stands for, in whose place this is; outlives
  /// the queue pair.
  SharedReceiveQueue* srq = nullptr;
  framing::HoldSharePtr hold_share;  ///< of its connections; nullptr: none
};

/// What the application chose for TCP below a connection; the configuration decides what is not set
/// here.
struct TcpChoice {
  std::optional<bool> packing;
  TcpOptions options{};
  friend bool operator==(const TcpChoice&, const TcpChoice&) = default;
};

using rdmap::PostResult;

/// Learns of a queue pair's events (worker).
class QueuePairOwner {
 public:
  virtual void completion_overrun(QueuePair& qp, CompletionQueue& cq) = 0;
  /// The queue pair has completed the last receive that it took from its shared receive queue.
  virtual void last_receive_done(QueuePair& qp) = 0;
  virtual void rtr_sent(QueuePair& qp, base::Now now) = 0;
  /// Posted work cannot be sent before the peer has sent. Called once per connection.
  virtual void first_fpdu_awaited(QueuePair& qp, base::Now now) = 0;
  /// \param event PeerClosed, Disconnected, TerminateSent or TerminateReceived
  virtual void endpoint_event(QueuePair& qp, Event event, base::Now now) = 0;

 protected:
  ~QueuePairOwner() = default;
};

/// The parts of a device that its queue pairs share, besides its memory. They outlive the queue
/// pairs.
struct QueuePairParts {
  QueuePairOwner& owner;
  rdmap::Counters& counters;
  base::Doorbells& doorbells;
  rdmap::RequestStore& requests;
  ReceiveWaits& receive_waits;
  TerminateTally& terminates;
  StalledResponders& stalls;
  const rdmap::EndpointFaults& faults;  ///< what each connection does wrong
  bool extensions = true;               ///< RFC 7306
  std::array<uint64_t, 2> secret{};
};

class alignas(64) QueuePair final : public rdmap::EndpointOwner {
 public:
  /// \param parts, memory outlive the queue pair
  /// \param pages memory for what few work requests need; outlives it
  /// \param doorbell the one that it rings, even when renew() has changed its number
  QueuePair(uint32_t number, uint32_t doorbell, const QueuePairSpec& spec,
            const QueuePairParts& parts, mem::StagTable& memory, base::PageStore& pages);
  ~QueuePair() override {
    parts_.receive_waits.end(wait_timer_);
    parts_.stalls.end(stall_timer_);
  }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  /// Octets of memory that the queues of a queue pair take.
  [[nodiscard]] static uint64_t octets_for(const QueuePairSpec& spec);

  // --- Application side: one thread at a time for each queue ---

  /// Queues a work request and rings the doorbell. The device may read or write the memory of its
  /// SGEs until the completion.
  PostResult post_send(const SendRequest& work);
  PostResult post_receive(const ReceiveRequest& work);
  /// The outcome of posting a list: the first `taken` of its work requests were queued and are
  /// carried out.
  struct ListResult {
    uint32_t taken = 0;
    PostResult result = PostResult::Ok;  ///< why the next one was not taken; Ok: all were
  };
  /// Posts a list of work requests in order, and rings the doorbell once for all that were taken.
  ListResult post_sends(std::span<const SendRequest> works);
  ListResult post_receives(std::span<const ReceiveRequest> works);
  /// \return whether all work that was posted to the send queue has ended
  [[nodiscard]] bool is_send_idle() const { return sends_.is_idle(); }

  // --- Worker ---

  /// Moves posted work to the endpoint.
  void serve(base::Now now) {
    serve();
    if (watches_first_fpdu_) [[unlikely]] look_for_unsent(now);
    if (waits_for_receive()) [[unlikely]] resume(now);
  }
  /// A message waits for a receive.
  [[nodiscard]] bool waits_for_receive() const { return endpoint_.waits_for_receive(); }
  /// How many messages have waited for a receive on the present or last connection, one that waits
  /// now included.
  [[nodiscard]] uint64_t receive_waits() const { return endpoint_.receive_waits(); }
  /// Goes on with a message that waits, if there is a receive for it now or its time is over.
  void resume(base::Now now);
  /// From now on the queue pair tells when it begins to wait for the peer's first FPDU
  /// (first_fpdu_awaited()).
  void watch_first_fpdu() { watches_first_fpdu_ = true; }
  /// Commits a fault on the connection: see rdmap::Endpoint::commit().
  Status commit(const PlannedFault& fault, base::Now now);
  /// Answers the requests of the peer whose time has come.
  void answer_stalled(base::Now now) { endpoint_.answer_stalled(now); }
  /// Makes the endpoint the user of what the session frames.
  void bind(framing::StartSession& session) { session.bind(endpoint_.framing_user()); }
  /// What its endpoint and its send queue work with.
  [[nodiscard]] llp::WorkingSet::Part endpoint_part() const { return endpoint_.working_part(); }
  [[nodiscard]] llp::WorkingSet::Part send_queue_part() const {
    return {.at = &sends_, .sending = sizeof sends_};
  }
  /// Begins RDMA on the session that the queue pair is bound to. \param agreement the outcome of
  /// the session's start-up
  void start(llp::Framing& session, const rdmap::Agreement& agreement) {
    endpoint_.plan(parts_.faults);
    endpoint_.bind(session, agreement);
  }
  /// Closes gracefully: what was posted is sent, then FIN. Without a connection everything is
  /// flushed.
  void disconnect();
  /// Flushes everything that was posted.
  void abort();
  /// Makes the queue pair Idle again for another connection, under the new `number`. Called only in
  /// Error and without a connection. When it throws nothing has happened.
  void renew(uint32_t number, uint32_t ird, uint32_t ord);
  /// Changes IRD and ORD. Called only in Idle and without a connection. When it throws nothing has
  /// happened.
  void set_reads(uint32_t ird, uint32_t ord);
  void set_answer_close(bool answer) { answers_close_ = answer; }
  void set_context(void* context) { context_ = context; }
  [[nodiscard]] QueuePairState state() const { return state_of(endpoint_.state()); }
  [[nodiscard]] QueuePairAttributes attributes() const;
  [[nodiscard]] void* context() const { return context_; }
  [[nodiscard]] bool has_work() const { return endpoint_.has_work(); }
  /// \return whether something waits to be sent
  [[nodiscard]] bool has_unsent() const { return endpoint_.has_unsent(); }
  /// Work requests of the Send queue that have completed; wraps.
  [[nodiscard]] uint32_t sends_completed() const { return endpoint_.sends_completed(); }
  /// Counters over all connections of the queue pair.
  [[nodiscard]] const QueuePairCounters& counters() const { return tally_.counters(); }
  void validate() const { endpoint_.validate(); }
  /// Any thread.
  [[nodiscard]] uint32_t number() const { return number_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint32_t doorbell() const { return doorbell_; }
  [[nodiscard]] const QueuePairSpec& spec() const { return spec_; }
  /// The number to which an STag is bound that only this queue pair may use (RFC 5041 s.8.2). No
  /// other queue pair ever has it, nor this one after it was renewed.
  [[nodiscard]] uint64_t stream() const { return stream_; }

  /// \return whether a fault of this connection has to be logged: true once
  bool tell_fault() { return !std::exchange(fault_told_, true); }

  /// The application has destroyed the queue pair; it lives on without events until its stream has
  /// ended.
  void orphan() { orphaned_ = true; }
  /// Does orphan() and abort() for a queue pair with a shared receive queue, and uses nothing of
  /// that queue from here on. Does nothing without a shared receive queue.
  void leave_srq();
  [[nodiscard]] SrqUse srq_use() const {
    return {number(), receives_.claimed(), receives_.in_progress()};
  }
  [[nodiscard]] bool orphaned() const { return orphaned_; }

  /// Invalid while there is none.
  [[nodiscard]] base::Handle connection() const { return connection_; }
  /// The queue pair has its connection, or has had it: it serves one until it is renewed.
  [[nodiscard]] bool used() const { return use_ != QueuePairUse::Unused; }
  [[nodiscard]] bool awaits_redial() const { return use_ == QueuePairUse::AwaitsRedial; }
  void begin_connection(base::Handle connection);
  /// The answer for which the queue pair was bound could not be made: it is Unused again.
  void cancel_connection();
  /// Another attempt of the same connect follows.
  void await_redial();
  /// The connection is gone, or the second attempt could not be made.
  void end_connection();

  /// What ConnectOptions chose for TCP below the connection.
  [[nodiscard]] TcpChoice tcp_choice() const {
    return tcp_choice_ == nullptr ? TcpChoice{} : *tcp_choice_;
  }
  /// \throw std::bad_alloc: nothing has happened
  void choose_tcp(const TcpChoice& choice) {
    tcp_choice_ = choice == TcpChoice{} ? nullptr : std::make_unique<const TcpChoice>(choice);
  }

  // rdmap::EndpointOwner
  void send_completed(const Completion& completion) override;
  void send_succeeded(uint64_t id, Opcode opcode, uint32_t length, uint32_t qp) override;
  void receive_completed(const Completion& completion) override;
  void last_receive_done() override;
  void receive_wait_began(base::Now deadline) override;
  void response_stalled(base::Now until) override {
    parts_.stalls.begin(stall_timer_, until, number());
  }
  void rtr_sent(base::Now now) override;
  void event(Event event, base::Now now) override;

 private:
  void serve() { endpoint_.serve(); }
  void look_for_unsent(base::Now now);
  void serve_between_turns();
  void set_use(QueuePairUse next, base::Handle connection);
  [[nodiscard]] rdmap::Endpoint make_endpoint(uint32_t number, uint64_t stream, uint32_t ird,
                                              uint32_t ord);
  [[nodiscard]] PostResult check(const SendRequest& work, const rdmap::WorkRow& row,
                                 uint64_t octets) const;
  // These queue work without ringing the doorbell.
  PostResult queue(const SendRequest& work);
  [[gnu::noinline]] PostResult queue_any(const SendRequest& work);
  PostResult queue(const ReceiveRequest& work);
  template <typename Work, typename Queue>
  ListResult post_list(std::span<const Work> works, Queue& to);
  void complete(CompletionQueue& cq, const Completion& completion);

  std::atomic<uint32_t> number_;  // an application's thread may ask while the worker renews it
  const uint32_t doorbell_;
  const base::Doorbells::Bell bell_;
  QueuePairSpec spec_;
  const QueuePairParts& parts_;
  mem::StagTable& memory_;
  rdmap::SendQueue sends_;
  rdmap::ReceiveQueue receives_;
  uint64_t stream_;
  rdmap::Endpoint endpoint_;
  // The members from here on belong to the worker.
  QueuePairUse use_ = QueuePairUse::Unused;
  base::Handle connection_;                      // Invariant: valid in Connected, and nowhere else
  std::unique_ptr<const TcpChoice> tcp_choice_;  // nullptr: nothing was chosen
  QueuePairTally tally_;
  bool orphaned_ = false;  // not part of the state: it can happen in every state
  bool fault_told_ = false;
  bool watches_first_fpdu_ = false;
  bool answers_close_;
  void* context_;
  base::TimerNode wait_timer_;
  base::TimerNode stall_timer_;
};

}  // namespace rnic::device
