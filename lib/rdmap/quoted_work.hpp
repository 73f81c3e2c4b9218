/// \file
/// Finds the work request of this side that a Terminate of the peer is about.
#pragma once

#include <cstdint>
#include <optional>

#include "rdmap/send_queue.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

/// The slot of the request whose message header the Terminate quotes: one that has not completed,
/// or the only one that has completed and is still known (SendQueue::oldest_known()). Otherwise
/// nothing: the quote does not tell several Writes to the same place apart.
[[nodiscard]] std::optional<uint32_t> quoted_work(const SendQueue& sends,
                                                  const wire::Terminate& terminate);

}  // namespace rnic::rdmap
