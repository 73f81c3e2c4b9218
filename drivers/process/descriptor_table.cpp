#include "process/descriptor_table.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

namespace rnic::process {

namespace {

constexpr uint64_t bit(int descriptor) { return uint64_t{1} << (descriptor % 64); }

// The table is zero pages until it is used. It exists before the first constructor and after the
// last destructor.
constinit DescriptorTable table;

}  // namespace

DescriptorTable& descriptors() { return table; }

bool DescriptorTable::enter(int descriptor) {
  if (descriptor < 0 || descriptor >= kMost) return false;
  const ForkPause pause;
  words_[descriptor / 64] |= bit(descriptor);
  end_ = std::max(end_, descriptor + 1);
  return true;
}

int DescriptorTable::refuse(int descriptor) {
  ::close(descriptor);
  errno = EMFILE;
  return -1;
}

int DescriptorTable::close(int descriptor) {
  const ForkPause pause;
  if (!has(descriptor)) {
    errno = EBADF;
    return -1;
  }
  leave(descriptor);
  return ::close(descriptor);
}

void DescriptorTable::leave(int descriptor) {
  const ForkPause pause;
  if (has(descriptor)) words_[descriptor / 64] &= ~bit(descriptor);
}

bool DescriptorTable::has(int descriptor) const {
  const ForkPause pause;
  return descriptor >= 0 && descriptor < end_ && (words_[descriptor / 64] & bit(descriptor)) != 0;
}

bool DescriptorTable::Adopted::is_there() const noexcept {
  struct stat now {};
  return descriptor >= 0 && fstat(descriptor, &now) == 0 && now.st_dev == device &&
         now.st_ino == inode && now.st_rdev == special;
}

bool DescriptorTable::adopt(int descriptor) {
  const ForkPause pause;
  struct stat file {};
  if (fstat(descriptor, &file) != 0) return true;  // it is closed already
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  disown(descriptor);
  auto place = std::find_if(adopted_.begin(), adopted_.end(),
                            [](const Adopted& one) { return one.descriptor < 0; });
  if (place == adopted_.end()) {
    place = std::find_if(adopted_.begin(), adopted_.end(),
                         [](const Adopted& one) { return !one.is_there(); });
  }
  if (place == adopted_.end()) return false;
  *place = {descriptor, file.st_dev, file.st_ino, file.st_rdev};
  return true;
}

void DescriptorTable::disown(int descriptor) {
  const ForkPause pause;
  for (Adopted& one : adopted_) {
    if (one.descriptor == descriptor) one = {};
  }
}

bool DescriptorTable::has_adopted(int descriptor) const {
  const ForkPause pause;
  return std::any_of(adopted_.begin(), adopted_.end(), [descriptor](const Adopted& one) {
    return one.descriptor == descriptor && one.is_there();
  });
}

void DescriptorTable::close_all() noexcept {
  for (int word = 0; word * 64 < end_; ++word) {
    for (uint64_t left = std::exchange(words_[word], 0); left != 0; left &= left - 1) {
      ::close(word * 64 + std::countr_zero(left));
    }
  }
  end_ = 0;
  for (Adopted& one : adopted_) {
    if (one.is_there()) ::close(one.descriptor);
    one = {};
  }
}

}  // namespace rnic::process
