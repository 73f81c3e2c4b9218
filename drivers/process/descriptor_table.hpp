/// \file
/// DescriptorTable: the descriptors that the library has in this process.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "process/fork_pause.hpp"

namespace rnic::process {

/// Holds each descriptor of ours from its making to its end, so that a child can close them at
/// once: sockets, listeners, epolls, eventfds, timerfds, captures, and what DPDK has opened for a
/// port. A child that kept them would hold the connections of a parent that has died.
///
/// Threads: any. For a fork the making and entering of a descriptor is one step, and so is taking
/// it out and closing it.
class DescriptorTable {
 public:
  /// Linux gives no higher numbers unless fs.nr_open was raised; they are refused (EMFILE).
  static constexpr int kMost = 1 << 20;
  /// The most adopted descriptors at once.
  static constexpr size_t kMostAdopted = 1024;

  constexpr DescriptorTable() = default;
  DescriptorTable(const DescriptorTable&) = delete;
  DescriptorTable& operator=(const DescriptorTable&) = delete;

  /// Enters what `make()` returns: a descriptor, or a negative number with errno, which is passed
  /// on. `make` asks for a descriptor that is closed on exec, and does not block.
  template <typename F>
  int open(F&& make) {
    const ForkPause pause;
    const int made = make();
    return made < 0 || enter(made) ? made : refuse(made);
  }
  /// Enters a descriptor that exists already. \return false: its number is too high
  [[nodiscard]] bool enter(int descriptor);

  /// Takes a descriptor out and closes it. One that is not in the table belongs to somebody else
  /// and stays open: -1, EBADF.
  int close(int descriptor);
  /// Takes a descriptor out; the caller closes it, under a ForkPause of its own.
  void leave(int descriptor);

  /// Adopts a descriptor that DPDK has made and will close: it is closed in a child, and on exec. A
  /// number that is another file by then is left alone. \return false: the table is full
  bool adopt(int descriptor);
  /// Removes an adopted descriptor, before or after DPDK closes it. Needed if the kernel's facts
  /// could not tell it from another file with its number.
  void disown(int descriptor);

  [[nodiscard]] bool has(int descriptor) const;
  [[nodiscard]] bool has_adopted(int descriptor) const;

  /// For the child: closes all and empties the table. Makes only system calls that are safe after a
  /// fork.
  void close_all() noexcept;

 private:
  /// Closes it. \return -1, with EMFILE
  static int refuse(int descriptor);

  /// A file, identified by the kernel's facts about it.
  struct Adopted {
    int descriptor = -1;
    dev_t device = 0;
    ino_t inode = 0;
    dev_t special = 0;

    [[nodiscard]] bool is_there() const noexcept;
  };

  std::array<uint64_t, kMost / 64> words_{};  // a bit per number; all guarded by ForkPause
  int end_ = 0;                               // no bit from there on
  std::array<Adopted, kMostAdopted> adopted_{};
};

/// The table of this process.
[[nodiscard]] DescriptorTable& descriptors();

}  // namespace rnic::process
