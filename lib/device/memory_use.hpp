/// \file
/// What a device asks the machine for when it is made.
#pragma once

#include "base/memory_use.hpp"
#include "device/config.hpp"

namespace rnic::device {

/// Of all tables of a megabyte or more, by the key that sizes them. They are asked for at once and
/// touched as they fill.
/// \param on_port it has TCP/IP of its own
[[nodiscard]] base::MemoryUses memory_use(const DeviceConfig& config, bool on_port);

}  // namespace rnic::device
