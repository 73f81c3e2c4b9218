/// \file
/// EarlyPosts: what a program posts before its queue pair has met the peer's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "rnic/work.hpp"

namespace rnic::run {

/// Under the RoCE face a queue pair may be posted to while the connection is being made, which may
/// take several attempts; the device would flush what was posted to it meanwhile.
///
/// The owner guards it by a lock of its own.
class EarlyPosts {
 public:
  EarlyPosts(uint32_t most_sends, uint32_t most_receives)
      : most_sends_(most_sends), most_receives_(most_receives) {}

  /// Keeps a request, and the octets of an inline one. \return 0, or errno
  int add(const SendRequest& request);
  int add(const ReceiveRequest& request);
  [[nodiscard]] bool has_sends() const { return !sends_.empty(); }
  void clear();

  /// Gives them away, each of the two in the order in which they were posted. Receives are first,
  /// as a Send may be answered at once.
  template <typename ForReceive, typename ForSend>
  void hand_over(ForReceive for_receive, ForSend for_send) {
    for (const ReceiveRequest& each : receives_) for_receive(each);
    for (Send& each : sends_) {
      if (!each.octets.empty()) each.request.inline_data = each.octets;
      for_send(each.request);
    }
    clear();
  }

 private:
  struct Send {
    SendRequest request;
    std::vector<std::byte> octets;  // of an inline one
  };

  const uint32_t most_sends_;
  const uint32_t most_receives_;
  std::deque<Send> sends_;
  std::deque<ReceiveRequest> receives_;
};

}  // namespace rnic::run
