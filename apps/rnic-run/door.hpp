/// \file
/// How the plugin answers what the door catches (door.cpp). No dependency but libc.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace rnic::run {

/// The calls of the door. They set errno like the system calls that they stand for.
struct DoorOps {
  /// \param fd a new event descriptor, whose count is that of the events queued
  /// \return 0, or -1
  int (*cm_opened)(int fd);
  void (*cm_closed)(int fd);
  /// The number is closed; another one is a duplicate, and stands for the channel from now on.
  void (*cm_renamed)(int fd, int copy);
  /// One command of rdma_user_cm.h. \return `size`, or -1
  ssize_t (*cm_write)(int fd, const void* command, size_t size);
  /// Makes a completion channel. \return what ibv_get_cq_event() reads from, or -1
  int (*make_channel)();
  void (*channel_closed)(int fd);
};

/// The device among the kernel's: its own ones have lower numbers.
inline constexpr char kUverbsName[] = "uverbs4000";

/// The door's one symbol: gives it the plugin.
inline constexpr char kAttach[] = "rnic_door_attach";
using Attach = void(const DoorOps*);

}  // namespace rnic::run
