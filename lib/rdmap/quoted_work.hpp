/// \file
/// Which work request of this side a Terminate of the peer is about.
#pragma once

#include "rdmap/send_queue.hpp"
#include "wire/terminate.hpp"

namespace rnic::rdmap {

/// The request whose message the Terminate has the header of; nullptr where there is none, or none
/// that is still in the queue.
[[nodiscard]] SendSlot* quoted_work(SendQueue& sends, const wire::Terminate& terminate);

}  // namespace rnic::rdmap
