/// \file
/// Receipts: completions of Writes that say that the peer's memory has the octets.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <mutex>

#include "rnic/verbs.hpp"

namespace rnic::run {

/// Programs that exchange GID and number tell their peer by another way that a Write is complete,
/// and the peer looks at its memory. Over the system's sockets a completion says less: that TCP has
/// taken the octets. So a Write whose completion is asked for gets a receipt, a Read of no octets
/// behind it, which the peer answers when it has placed what came before.
///
/// All calls may be made by any thread.
class Receipts {
 public:
  /// \param depth requests of the program that may be outstanding. The device's queue has room for
  /// twice as many (kShare).
  explicit Receipts(uint32_t depth) : depth_(depth) {}
  static constexpr uint32_t kShare = 2;

  /// Posts a request to the device, with a receipt where it needs one. \return 0, or errno
  int post(QueuePair& pair, const SendRequest& request);
  /// Puts the program's own words into a completion of the send queue. \param out has the device's
  /// \return false: it says nothing that the program has not been told
  bool take(uint64_t id, ibv_wc& out);
  /// What was posted is forgotten.
  void clear();

 private:
  enum class Role : uint8_t {
    Alone,
    Carried,  // a receipt is behind it: its own success is not told
    Receipt,
  };
  /// A request of the device's. Its number there is that of its place.
  struct Entry {
    uint64_t id;  // the program's
    Role role;
    bool told = false;
  };

  int post_alone(QueuePair& pair, SendRequest request, uint64_t id);
  int post_with_receipt(QueuePair& pair, SendRequest request, uint64_t id);

  const uint32_t depth_;
  std::mutex mutex_;  // guards all that follows
  std::deque<Entry> entries_;
  uint64_t first_ = 0;        // the number of the front of entries_
  uint32_t outstanding_ = 0;  // of the program's, in entries_
};

}  // namespace rnic::run
