/// \file
/// The memory that a device allocates when it is made.
#pragma once

#include "base/memory_use.hpp"
#include "device/config.hpp"

namespace rnic::device {

/// Lists all tables of a megabyte or more, by the setting that sizes them. They are allocated at
/// once and touched as they fill.
/// \param on_port the device has TCP/IP of its own
[[nodiscard]] base::MemoryUses memory_use(const DeviceConfig& config, bool on_port);

}  // namespace rnic::device
