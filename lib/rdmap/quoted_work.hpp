/// \file
/// Which work request of this side a Terminate of the peer is about.
#pragma once

#include <cstdint>
#include <optional>

#include "rdmap/send_queue.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

/// The slot of the request whose message the Terminate has the header of: one that has not
/// completed, or the only one that has and is still known (SendQueue::oldest_known()). Otherwise
/// nothing: of several Writes to the same place it does not say which it is about.
[[nodiscard]] std::optional<uint32_t> quoted_work(const SendQueue& sends,
                                                  const wire::Terminate& terminate);

}  // namespace rnic::rdmap
