/// \file
/// The completion status of a work request that a Terminate of the peer blames.
#pragma once

#include "rnic/fault.hpp"
#include "rnic/work.hpp"

namespace rnic::rdmap {

/// RemoteAccess, RemoteInvalidRequest or RemoteOperation; the last also stands for codes that the
/// RFCs do not name.
[[nodiscard]] CompletionStatus remote_status(const FaultCode& fault);

}  // namespace rnic::rdmap
