/// \file
/// Meeting: the way of a queue pair of the RoCE face to its peer's.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "rnic-run/early_posts.hpp"
#include "rnic-run/introduction.hpp"
#include "rnic-run/peer_address.hpp"
#include "rnic-run/shown_numbers.hpp"
#include "rnic/verbs.hpp"

namespace rnic::run {

class QueuePairs;

/// What a queue pair of the RoCE face is told at RTR.
struct Appointment {
  PeerAddress self;
  PeerAddress peer;
  uint32_t expected_psn = 0;
  uint32_t reads_served = 0;  ///< Reads and atomics of the peer at once
};

/// The two sides of an appointment know each other's address and number. The lower one connects,
/// again and again where that fails; the other one keeps a request that comes before its program
/// has named the peer. What the program posts meanwhile waits here.
///
/// The Rendezvous's lock guards all but the posts, which any thread may make.
class Meeting {
 public:
  using Clock = std::chrono::steady_clock;
  /// A Send waits so long for the peer, as it does for a receive of the peer's.
  static constexpr std::chrono::seconds kPatience{10};

  /// \param made_with the depths of both queues
  Meeting(QueuePairs& owner, uint32_t qpn, const ibv_qp_cap& made_with);

  /// \return whether Writes get receipts
  [[nodiscard]] static bool gives_receipts();
  [[nodiscard]] uint32_t qpn() const { return shown_->number; }
  [[nodiscard]] const std::shared_ptr<ShownPair>& shown() const { return shown_; }
  /// It is in error, as the program has said or may have noticed.
  [[nodiscard]] bool has_failed() const { return shown_->failed || terminated_; }

  // ---- The program's calls ----
  /// RTR: the peer has a name.
  void appoint(const Appointment& appointment);
  /// RTS: the number of the first packet that this side sends.
  void set_psn(uint32_t psn) { own_psn_ = psn; }
  /// ERR: what waits is flushed.
  void fail();
  /// RESET: what was posted is forgotten, and so is the peer.
  void forget();
  /// It is being destroyed: requests that wait for it are rejected.
  void leave();
  struct Posted {
    int error = 0;            ///< 0, or errno
    bool is_to_wait = false;  ///< the Rendezvous has to look again, or it may wait for ever
  };
  Posted post(const SendRequest& request);
  int post(const ReceiveRequest& request);

  // ---- What happens on the device ----
  /// A peer asks for this queue pair.
  void hear(const event::ConnectRequest& request, const Introduction& from);
  /// A request that waits here has gone. \return false: it is none of them
  bool withdraw(const RequestHandle& request);
  /// \param answer the private data of the peer's answer, for the side that connects
  void established(std::span<const uint8_t> answer);
  /// An attempt has ended, or the connection has.
  void ended();
  /// One of the two sides has ended it by a Terminate.
  void terminated() { terminated_ = true; }
  /// Does what is due. \return when there is something to do next; nothing: never
  std::optional<Clock::time_point> look(Clock::time_point now);

 private:
  /// It decides what becomes of a post.
  enum class Phase : uint8_t {
    Early,  ///< there is no connection yet
    Met,
    Lost,  ///< the peer has gone, and the program has not come to know
    Over,  ///< in error
  };
  enum class Step : uint8_t {
    Unnamed,    // the program has not named the peer
    Waiting,    // for the peer's request, or for the time of the next attempt
    Asking,     // connect() is under way
    Answering,  // accept() is under way
    Ended,      // an attempt has ended, and the queue pair is not idle again yet
    Done,       // there is, or was, a connection
  };
  struct Held {
    RequestHandle request;
    IpAddress address;
    Introduction from;
  };

  [[nodiscard]] bool connects() const { return with_.self < with_.peer; }
  [[nodiscard]] bool is_expected(const Held& held) const;
  [[nodiscard]] bool is_from_peer(std::span<const uint8_t> answer) const;
  [[nodiscard]] Introduction own() const;
  [[nodiscard]] ConnectOptions options() const;
  void try_again_later();
  void ask();
  void answer(const Held& held);
  void answer_one_of_those_held();
  void give_up();
  void flush_early(ibv_wc_status first_send);
  void complete(uint64_t id, ibv_wc_opcode opcode, ibv_wc_status status);
  int post_into_the_void(const SendRequest& request);
  int to_device(const SendRequest& request);
  int to_device(const ReceiveRequest& request);

  QueuePairs& owner_;
  const std::shared_ptr<ShownPair> shown_;
  Step step_ = Step::Unnamed;
  Appointment with_;
  std::optional<uint32_t> own_psn_;
  std::vector<Held> held_;
  std::chrono::milliseconds pause_;
  Clock::time_point next_attempt_;

  std::atomic<bool> terminated_{false};

  std::mutex posting_;
  EarlyPosts early_;                          // guarded by posting_
  std::optional<Clock::time_point> patient_;  // until then the oldest early Send waits; as early_
  std::atomic<Phase> phase_{Phase::Early};    // written under posting_
};

}  // namespace rnic::run
