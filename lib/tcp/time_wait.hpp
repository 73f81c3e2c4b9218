/// \file
/// TIME-WAIT (RFC 9293 s.3.6.1) of a stack: the answers for connections that have ended, and the
/// reuse of their 4-tuples.
#pragma once

#include <cstdint>
#include <optional>

#include "base/seq32.hpp"
#include "base/time.hpp"
#include "base/timer_wheel.hpp"
#include "tcp/challenge_acks.hpp"
#include "tcp/config.hpp"
#include "tcp/counters.hpp"
#include "tcp/isn.hpp"
#include "tcp/reply_queue.hpp"
#include "tcp/segment.hpp"
#include "tcp/time_wait_table.hpp"

namespace rnic::tcp {

class TimeWait {
 public:
  /// What is to be done with a segment.
  enum class Verdict : uint8_t {
    Elsewhere,  ///< no connection in TIME-WAIT has the segment's 4-tuple
    Done,       ///< the segment was dropped or answered
    Reopen,     ///< the SYN ends TIME-WAIT (RFC 6191): the caller calls end() and takes the SYN in
                ///< LISTEN
  };

  /// \param secret the key of the timestamp offsets and of the hash. \param wheel and the others
  /// outlive this; a node without an owner is for fired()
  TimeWait(const Config& config, const Secret& secret, base::TimerWheel& wheel, ReplyQueue& replies,
           ChallengeAcks& challenge_acks, Counters& counters);
  ~TimeWait() { wheel_.cancel(timer_); }
  TimeWait(const TimeWait&) = delete;
  TimeWait& operator=(const TimeWait&) = delete;

  [[nodiscard]] uint32_t live() const { return table_.live(); }
  /// A connection enters TIME-WAIT; at the limit the oldest entry is displaced. \param owes_ack its
  /// last segment is still to be acknowledged
  void enter(const Endpoint& local, const Endpoint& remote, const TimeWaitEntry& entry,
             bool owes_ack, base::Now now);
  /// Takes a segment. \param listening there is a listener for its local endpoint
  [[nodiscard]] Verdict input(const Segment& segment, bool listening, base::Now now);
  /// An active open may use the 4-tuple: no entry has it, or our timestamps are newer than those of
  /// the old incarnation (RFC 6191 s.2).
  [[nodiscard]] bool may_reuse(const Endpoint& local, const Endpoint& remote, base::Now now);
  /// Ends TIME-WAIT, since a new connection uses the 4-tuple. \return SND.NXT of the old
  /// incarnation, beyond which the new one has to begin; nullopt: there was no entry
  std::optional<base::Seq32> end(const Endpoint& local, const Endpoint& remote);
  /// The node of the timer wheel has fired.
  void fired(base::Now now);
  void validate() const;

 private:
  [[nodiscard]] bool may_reopen(const TimeWaitEntry& entry, const Segment& segment) const;
  [[nodiscard]] Verdict take_syn(const TimeWaitEntry& entry, const Segment& segment, bool listening,
                                 base::Now now);
  void take_segment(TimeWaitEntry& entry, const Segment& segment, base::Now now);
  void acknowledge(const TimeWaitEntry& entry, base::Now now);
  void arm(base::Now now);

  const Secret secret_;
  const bool timestamps_;
  base::TimerWheel& wheel_;
  ReplyQueue& replies_;
  ChallengeAcks& challenge_acks_;
  Counters& counters_;
  TimeWaitTable table_;
  base::TimerNode timer_;  // Invariant: armed if the table has an entry.
};

}  // namespace rnic::tcp
