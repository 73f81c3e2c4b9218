/// \file
/// OurDescriptors: which descriptors of the process the door has given out.
#pragma once

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

namespace rnic::run {

enum class Kind : uint8_t { Other, Uverbs, RdmaCm, Channel };

struct OurDescriptor {
  Kind kind = Kind::Other;
  uint8_t mark = 0;   // the signal of the open file; 0: it bears no mark
  uint16_t name = 0;  // the number that the plugin knows it by: a duplicate has its original's
};

/// A table by number. There are ways to close a descriptor that nobody sees, and the number is
/// another file's then. So an open file of ours bears a mark, which its duplicates share: the
/// signal that it would send if it was told to (F_SETSIG). Each look-up of a number in the table
/// asks for it; every other number costs a look into the table.
///
/// Without a lock, and safe in the handler of a signal. A child of vfork() has its parent's memory,
/// and descriptors of its own: nothing that it does changes the table.
class OurDescriptors {
 public:
  static constexpr int kMost = 65536;  // those beyond are not ours

  /// This process has the table to itself: at its begin, and after fork().
  void own() { owner_ = process(); }

  /// \return what the descriptor is now
  [[nodiscard]] OurDescriptor at(int fd) const {
    const OurDescriptor known = noted(fd);
    if (known.kind == Kind::Other || is_marked(fd, known)) return known;
    return {};
  }

  /// The descriptor is new.
  void add(int fd, Kind kind) {
    const auto mark = static_cast<uint8_t>(kFirstMark + static_cast<int>(kind));
    const bool marked = control(fd, F_SETSIG, mark) == 0;
    store(fd, {kind, marked ? mark : uint8_t{0}, static_cast<uint16_t>(fd)});
  }

  /// `copy` is a duplicate of `fd`, if that is ours.
  void duplicated(int fd, int copy) {
    const OurDescriptor known = at(copy < kMost ? fd : -1);
    if (known.kind == Kind::Other) return;
    store(copy, known);
    has_copies_ = true;
  }

  /// What the plugin has to be told of a number that is given up.
  struct Loss {
    Kind kind = Kind::Other;  // nothing
    int name = -1;
    int heir = -1;  // a duplicate, whose number is the name from now on; -1: the last one has gone
  };
  Loss remove(int fd) {
    const OurDescriptor known = noted(fd);
    if (known.kind == Kind::Other || process() != owner_) return {};
    store(fd, {});
    const int heir = has_copies_ ? copy_of(known) : -1;
    if (known.name != fd && heir >= 0) return {};  // the plugin knows it by another number
    if (heir >= 0 && known.kind == Kind::RdmaCm) rename(known, heir);
    if (heir >= 0 && known.kind != Kind::RdmaCm) return {};
    return {known.kind, known.name, heir};
  }

  /// \return no number beyond is in the table
  [[nodiscard]] int highest() const { return highest_; }

  /// The open file has been told to send this signal. \param known what at() said before
  void remark(OurDescriptor known, uint8_t mark) {
    known.mark = mark;
    for_each_copy(known, [this, known](int copy) {
      store(copy, known);
      return true;
    });
  }

 private:
  static constexpr int kFirstMark = 60;  // no signal that programs use

  static int process() { return static_cast<int>(syscall(SYS_getpid)); }
  static int control(int fd, int command, int argument) {
    const int error = errno;
    const auto result = static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
    errno = error;
    return result;
  }

  [[nodiscard]] OurDescriptor noted(int fd) const {
    if (fd < 0 || fd >= kMost) return {};
    return table_[fd].load(std::memory_order_relaxed);
  }
  [[nodiscard]] static bool is_marked(int fd, OurDescriptor known) {
    return known.mark == 0 || control(fd, F_GETSIG, 0) == known.mark;
  }

  void store(int fd, OurDescriptor what) {
    if (process() != owner_) return;
    int former = highest_;
    while (fd > former && !highest_.compare_exchange_weak(former, fd)) {
    }
    table_[fd].store(what, std::memory_order_relaxed);
  }

  /// \param known with the mark that its open file bears \param visit returns whether to go on
  template <typename Visit>
  void for_each_copy(OurDescriptor known, Visit visit) const {
    if (known.kind == Kind::Other) return;
    for (int fd = 0; fd <= highest_; ++fd) {
      const OurDescriptor each = noted(fd);
      if (each.kind != known.kind || each.name != known.name || !is_marked(fd, known)) continue;
      if (!visit(fd)) return;
    }
  }
  /// \return the number of a duplicate; -1: there is none
  [[nodiscard]] int copy_of(OurDescriptor known) const {
    int out = -1;
    for_each_copy(known, [&out](int fd) {
      out = fd;
      return false;
    });
    return out;
  }
  void rename(OurDescriptor known, int name) {
    OurDescriptor renamed = known;
    renamed.name = static_cast<uint16_t>(name);
    for_each_copy(known, [this, renamed](int fd) {
      store(fd, renamed);
      return true;
    });
  }

  std::atomic<OurDescriptor> table_[kMost];
  std::atomic<int> highest_{-1};
  std::atomic<int> owner_{0};
  std::atomic<bool> has_copies_{false};
};

}  // namespace rnic::run
