/// \file
/// The descriptors that the library has in this process.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "process/fork_pause.hpp"

namespace rnic::process {

/// Each descriptor of ours from its making to its end, so that a child can close them at once:
/// sockets, listeners, epolls, eventfds, timerfds, captures, and what DPDK has opened for a port.
/// A child that kept them would hold the connections of a parent that has died.
///
/// Threads: any; a descriptor is made and entered, or taken out and closed, in one step to a fork.
class DescriptorTable {
 public:
  /// Linux gives no higher numbers unless fs.nr_open was raised; they are refused (EMFILE).
  static constexpr int kMost = 1 << 20;
  /// Descriptors of others at once.
  static constexpr size_t kMostAdopted = 1024;

  constexpr DescriptorTable() = default;
  DescriptorTable(const DescriptorTable&) = delete;
  DescriptorTable& operator=(const DescriptorTable&) = delete;

  /// Enters what `make()` returns: a descriptor, or a negative number with errno, which is passed
  /// on. `make` asks for one that is closed on exec, and does not block.
  template <typename F>
  int open(F&& make) {
    const ForkPause pause;
    const int made = make();
    return made < 0 || enter(made) ? made : refuse(made);
  }
  /// For one that is there already. \return false: its number is too high
  [[nodiscard]] bool enter(int descriptor);

  /// Takes it out and closes it. One that is not in the table is somebody else's and stays: -1,
  /// EBADF.
  int close(int descriptor);
  /// Takes it out; the caller closes it, under a pause of his own.
  void leave(int descriptor);

  /// One that DPDK has made and will close: is closed in a child, and on exec. A number that is
  /// another file by then is left alone. \return false: the table is full
  bool adopt(int descriptor);
  /// Before DPDK closes it, or behind: where its number alone could not tell it from another file.
  void disown(int descriptor);

  [[nodiscard]] bool has(int descriptor) const;
  [[nodiscard]] bool has_adopted(int descriptor) const;

  /// The child's: closes all, and is empty. Makes system calls that are safe behind a fork, and
  /// nothing else.
  void close_all() noexcept;

 private:
  /// Closes it. \return -1, with EMFILE
  static int refuse(int descriptor);

  /// A file, named by what the kernel says of it.
  struct Adopted {
    int descriptor = -1;
    dev_t device = 0;
    ino_t inode = 0;
    dev_t special = 0;

    [[nodiscard]] bool is_there() const noexcept;
  };

  std::array<uint64_t, kMost / 64> words_{};  // a bit a number; all guarded by ForkPause
  int end_ = 0;                               // no bit from there on
  std::array<Adopted, kMostAdopted> adopted_{};
};

/// The table of this process.
[[nodiscard]] DescriptorTable& descriptors();

}  // namespace rnic::process
