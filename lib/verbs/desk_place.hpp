/// \file
/// DeskPlace: a device's only place for an event desk, held by the desk.
#pragma once

#include <atomic>
#include <memory>

namespace rnic::verbs {

/// Gives the place back.
struct LeaveDeskPlace {
  void operator()(std::atomic<bool>* taken) const { taken->store(false); }
};

/// Points to the mark of the device, which must outlive it.
using DeskPlace = std::unique_ptr<std::atomic<bool>, LeaveDeskPlace>;

}  // namespace rnic::verbs
