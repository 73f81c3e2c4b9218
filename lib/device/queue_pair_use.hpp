/// \file
/// The states of a QueuePair's connection, as the queue pair knows it, and their legal transitions.
#pragma once

#include <cstdint>

#include "base/transitions.hpp"

namespace rnic::device {

enum class QueuePairUse : uint8_t {
  Unused,        ///< the queue pair may be given a connection
  Connected,     ///< a connection is being made, or in use, or ends
  AwaitsRedial,  ///< between two attempts of one connect
  Used,          ///< it has had its connection and gets no other until it is renewed
};

inline constexpr base::Transitions<QueuePairUse, QueuePairUse::Used> kQueuePairUseTransitions{
    {QueuePairUse::Unused, {QueuePairUse::Connected}},
    // Back to Unused: there was no memory for the answer.
    {QueuePairUse::Connected,
     {QueuePairUse::Unused, QueuePairUse::AwaitsRedial, QueuePairUse::Used}},
    // To Used: the second attempt could not be made.
    {QueuePairUse::AwaitsRedial, {QueuePairUse::Connected, QueuePairUse::Used}},
    // To Unused: the application has made the queue pair idle again.
    {QueuePairUse::Used, {QueuePairUse::Unused}},
};

}  // namespace rnic::device
