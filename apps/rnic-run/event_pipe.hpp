/// \file
/// EventPipe: a pipe from which libibverbs reads records of one size.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdint>
#include <new>
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
    // An open file of its own, so that the program's descriptor blocks as before.
    const std::string path = "/proc/self/fd/" + std::to_string(reads_);
    const int again = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (again < 0) return 0;
    // What is read has to find room.
    int octets = 0;
    ioctl(again, FIONREAD, &octets);
    std::vector<Record> kept;
    try {
      kept.reserve(static_cast<size_t>(octets) / sizeof(Record) + 1);
    } catch (const std::bad_alloc&) {
      ::close(again);
      throw;
    }
    uint32_t gone = 0;
    Record record{};
    while (kept.size() < kept.capacity() &&
           ::read(again, &record, sizeof(record)) == sizeof(record)) {
      if (goes(record)) {
        ++gone;
      } else {
        kept.push_back(record);
      }
    }
    ::close(again);
    for (const Record& each : kept) {
      if (!tell(each)) break;
    }
    return gone;
  }

 private:
  int reads_ = -1;
  int writes_ = -1;
};

}  // namespace rnic::run
