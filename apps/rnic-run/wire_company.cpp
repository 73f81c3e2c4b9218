#include "rnic-run/wire_company.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace rnic::run {

namespace {

int open_file(const std::string& file) {
  return open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
}

/// What a process that holds the file's lock has written; nothing: nobody holds it.
std::string held_by_another(const std::string& file) {
  const int fd = open_file(file);
  if (fd < 0) return {};
  std::string text;
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    std::array<char, 256> octets;
    const ssize_t got = pread(fd, octets.data(), octets.size(), 0);
    text.assign(octets.data(), got > 0 ? static_cast<size_t>(got) : 0);
  }
  close(fd);  // and the lock with it
  return text;
}

}  // namespace

WireCompany::WireCompany(std::string folder, std::string impair)
    : folder_(std::move(folder)), impair_(std::move(impair)) {
  join();
}

std::string WireCompany::file_of(bool impaired) const {
  return folder_ + (impaired ? "/impaired" : "/unimpaired");
}

void WireCompany::join() const {
  const bool impaired = !impair_.empty();
  const int fd = open_file(file_of(impaired));
  if (fd < 0) return;
  const std::string text = impaired ? impair_ : "none";
  if (pwrite(fd, text.data(), text.size(), 0) >= 0 &&
      ftruncate(fd, static_cast<off_t>(text.size())) == 0) {
    flock(fd, LOCK_SH);
  }
  // It stays open, and so locked, until the process ends.
}

std::string WireCompany::remark() const {
  const bool impaired = !impair_.empty();
  const std::string other = held_by_another(file_of(!impaired));
  if (other.empty()) return {};
  if (impaired) {
    return "another program on the wire " + folder_ +
           " does not damage its frames: start it with --impair " + impair_ + ", too";
  }
  return "another program on the wire " + folder_ + " damages its frames (--impair " + other +
         "), and this one does not: give it the same";
}

}  // namespace rnic::run
