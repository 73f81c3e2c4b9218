/// \file
/// Makes the machine poor at a chosen moment: the Nth request for memory, a mapping, a thread, a
/// socket and so on is refused, in this process and in every library of it.
///
/// The functions of the system are defined in scarcity.cpp, so that calls out of any library come
/// there first. Refusals begin with begin() and end with end(); in between they are counted,
/// whichever thread asks.
#pragma once

#include <cstdint>
#include <string>

namespace rnic::starved {

enum class Scarce : uint8_t {
  Memory,   ///< malloc() and its family, and so operator new
  Mapping,  ///< mmap(): ENOMEM
  Thread,   ///< pthread_create(): EAGAIN
  Socket,   ///< socket(): EMFILE
  Eventfd,  ///< eventfd(): EMFILE
  Epoll,    ///< epoll_create1(): EMFILE
  Open,     ///< open(), openat(), fopen(): EMFILE
  Write,    ///< write(): ENOSPC
};

[[nodiscard]] const char* to_string(Scarce what);

struct Refusals {
  Scarce what = Scarce::Memory;
  uint64_t first = UINT64_MAX;  ///< this request is refused, counted from 1
  bool onwards = false;         ///< and all behind it
};

void begin(const Refusals& refusals);
/// \return how many requests there were.
uint64_t end();
/// How many were refused since begin().
[[nodiscard]] uint64_t refused();

/// Blocks of memory that malloc() has given and free() has not got back, of the whole process.
[[nodiscard]] int64_t live_blocks();

/// Where the first refusal struck: names of functions, innermost first, and whether one of them is
/// DPDK's. Only after end(), with memory there.
struct Place {
  std::string text;
  std::string dpdk;          ///< the innermost function of DPDK on the way; empty: none
  bool dpdk_lacked = false;  ///< this or a later refusal struck DPDK
};
[[nodiscard]] Place where_refused();
/// The place on the caller's own stack.
[[nodiscard]] Place where_now();

}  // namespace rnic::starved
