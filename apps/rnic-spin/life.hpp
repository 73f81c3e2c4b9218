/// \file
/// What was posted to a queue, and what its completions must be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "rnic/verbs.hpp"

namespace rnic::spin {

/// Octets of a store or target.
struct Stretch {
  size_t from = 0;
  size_t length = 0;

  [[nodiscard]] bool meets(const Stretch& other) const {
    return from < other.from + other.length && other.from < from + length;
  }
};

/// The Writes of a peer to one end of a connection. That one has completed at the peer does not say
/// that it is placed; a Read that was posted behind it and has completed does, because the end
/// answers in order (RFC 5040 s.5.5).
class Incoming {
 public:
  /// The peer has posted a Write to these octets.
  void post(const Stretch& where) { pending_.push_back({++posted_, where}); }
  /// The number of Writes that were posted before now.
  [[nodiscard]] uint64_t posted() const { return posted_; }
  /// The first `count` of them are placed.
  void placed(uint64_t count);
  [[nodiscard]] bool may_change(const Stretch& where) const;

 private:
  struct Write {
    uint64_t number;
    Stretch where;
  };
  std::deque<Write> pending_;
  uint64_t posted_ = 0;
};

/// A message that a peer has posted.
struct Message {
  size_t from = 0;  ///< of its octets in the store
  uint32_t length = 0;
  bool solicited = false;
  uint32_t invalidates = 0;                  ///< an STag of the receiver; 0: none
  std::optional<ImmediateData> immediate{};  ///< it has these instead of octets
};

/// Messages to one end of a connection: its receives tell of them one by one, in the order in which
/// they were posted.
class Messages {
 public:
  void post(const Message& message) { coming_.push_back(message); }
  /// Those that no receive has told of.
  [[nodiscard]] size_t size() const { return coming_.size(); }
  /// A receive has succeeded. \param wrong says why it cannot be that of the next message
  /// \return the message
  std::optional<Message> receive(const Completion& done, std::string& wrong);

 private:
  std::deque<Message> coming_;
};

struct Grant;
struct Life;

/// A request that was taken.
struct Posted {
  uint64_t id = 0;
  Opcode opcode = Opcode::Send;
  bool signaled = true;
  bool sound = true;    ///< nothing local speaks against it
  uint32_t length = 0;  ///< octets
  size_t place = 0;     ///< Read: of its sink in the target; Receive: the slot
  std::shared_ptr<Life> peer{};  ///< Read: who answers it
  uint64_t behind = 0;           ///< Read: the Writes to that one which were posted before
  std::shared_ptr<Grant> grant{};  ///< FastRegister, LocalInvalidate, ReadInvalidate: of what
  bool doomed = false;             ///< it names what is not valid any more: it must not succeed
  bool has_room = false;           ///< Send: the peer waits for a receive as long as it takes
};

/// The requests of one queue that have not completed. Each completes once and in its turn; what is
/// not signalled and succeeds does so in silence.
class Outstanding {
 public:
  void post(const Posted& posted) { queue_.push_back(posted); }
  /// \param wrong says why there can be no such completion
  /// \return what has completed
  std::optional<Posted> complete(const Completion& done, std::string& wrong);
  /// The number of requests that must complete.
  [[nodiscard]] size_t awaited() const;
  [[nodiscard]] size_t size() const { return queue_.size(); }
  /// \return whether a Read that may be under way fetches into these octets
  [[nodiscard]] bool may_fetch(const Stretch& where) const;
  /// What is left is given up.
  [[nodiscard]] std::deque<Posted> give_up() { return std::exchange(queue_, {}); }

 private:
  std::deque<Posted> queue_;
};

/// A queue pair from one return to Idle to the next: completions bear its number.
struct Life {
  /// \return whether a Write of the peer or a Read may change these octets
  [[nodiscard]] bool may_change(const Stretch& where) const {
    return !over && (incoming.may_change(where) || sends.may_fetch(where));
  }

  uint32_t number = 0;
  Outstanding sends;
  Outstanding receives;
  Incoming incoming;
  Messages messages;  ///< of the peer
  bool over = false;  ///< the connection has ended: nothing is under way any more
  bool shares_receives = false;  ///< they belong to a shared receive queue
};

}  // namespace rnic::spin
