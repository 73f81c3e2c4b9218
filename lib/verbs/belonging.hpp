/// \file
/// Objects that a call is given have to belong to the device that carries the call out. One of
/// another device would be taken for whatever has its number or its STag here.
#pragma once

#include <cstdint>

#include "rnic/error.hpp"
#include "rnic/types.hpp"
#include "verbs/runtime.hpp"

namespace rnic::verbs {

/// \param what names the object in an error: "accept: the queue pair" \return InvalidArgument,
/// which names both devices: the object belongs to another one. Abandoned: `here` is the parent
/// process's
Status check_device(const char* what, const DeviceRuntime& here, const DeviceRuntime& its);

/// As above, for a name that a device has given out. \param its DeviceRuntime::number of that
/// device \return NotFound, too: no device has given the name out
Status check_device(const char* what, const DeviceRuntime& here, uint32_t its);

/// Writes the device's number into the names that the event gives out.
void name_device(const DeviceRuntime& here, Event& event);

}  // namespace rnic::verbs
