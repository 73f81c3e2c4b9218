/// \file
/// EventPipe: a pipe from which libibverbs reads records of one size.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace rnic::run {

/// Holds the writing end; the program, or libibverbs for it, reads from the other one and closes
/// it. The owner sees to it that one thread at a time makes a call.
template <typename Record>
class EventPipe {
  static_assert(std::is_trivially_copyable_v<Record> &&
                std::has_unique_object_representations_v<Record>);

 public:
  EventPipe() = default;
  EventPipe(EventPipe&& other) noexcept
      : reads_(std::exchange(other.reads_, -1)), writes_(std::exchange(other.writes_, -1)) {}
  EventPipe& operator=(EventPipe&& other) noexcept {
    std::swap(reads_, other.reads_);
    std::swap(writes_, other.writes_);
    return *this;
  }
  ~EventPipe() {
    if (writes_ >= 0) ::close(writes_);
  }

  /// \return whether the system gave the pipe
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    // A full pipe must not hold the thread that tells of everything else.
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    reads_ = ends[0];
    writes_ = ends[1];
    return true;
  }
  [[nodiscard]] int reads() const { return reads_; }

  /// \return false: the pipe is full, or nobody reads there any more
  bool tell(const Record& record) {
    return ::write(writes_, &record, sizeof(record)) == sizeof(record);
  }

  /// Takes out the records that nobody has read and that `goes` returns true for.
  /// \return how many
  /// \throw std::bad_alloc, and nothing has changed
  template <typename Goes>
  uint32_t withdraw(Goes goes) {
    // What is read has to find room.
    int octets = 0;
    ioctl(reads_, FIONREAD, &octets);
    std::vector<Record> kept(static_cast<size_t>(octets) / sizeof(Record));
    kept.resize(take(kept));
    const auto gone = static_cast<uint32_t>(std::erase_if(kept, goes));
    for (const Record& each : kept) {
      if (!tell(each)) break;
    }
    return gone;
  }

 private:
  /// Reads without waiting, although the program's descriptor may do so. \return how many came
  size_t take(std::span<Record> room) {
    if (room.empty()) return 0;
    // read() would wait if the program has read meanwhile, and its O_NONBLOCK is the program's to
    // set. This call asks for no waiting by itself, and takes neither a descriptor nor /proc.
    const iovec all{room.data(), room.size_bytes()};
    ssize_t got = vmsplice(reads_, &all, 1, SPLICE_F_NONBLOCK);
    if (got < 0 && errno != EAGAIN) got = take_elsewhere(room);
    return got < 0 ? 0 : static_cast<size_t>(got) / sizeof(Record);
  }
  /// Where the system has no such call (a sandbox): by an open file of our own.
  ssize_t take_elsewhere(std::span<Record> room) {
    const std::string path = "/proc/self/fd/" + std::to_string(reads_);
    const int again = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (again < 0) return -1;
    const ssize_t got = ::read(again, room.data(), room.size_bytes());
    ::close(again);
    return got;
  }

  int reads_ = -1;
  int writes_ = -1;
};

}  // namespace rnic::run
