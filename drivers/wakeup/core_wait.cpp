#include "wakeup/core_wait.hpp"

#include <fcntl.h>
#include <sys/uio.h>

#include <array>
#include <charconv>

namespace rnic::wakeup {

std::optional<CoreTally> parse_schedstat(std::string_view line) {
  std::array<uint64_t, 3> numbers{};
  const char* at = line.data();
  const char* const end = line.data() + line.size();
  for (uint64_t& number : numbers) {
    while (at != end && *at == ' ') ++at;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return std::nullopt;
    at = behind;
  }
  const auto [ran, waited, runs] = numbers;
  if (waited > static_cast<uint64_t>(base::Duration::max().count())) return std::nullopt;
  return CoreTally{base::Duration(static_cast<base::Duration::rep>(waited)), runs};
}

CoreWait CoreWait::of_this_thread() {
  CoreWait made(
      Descriptor::open([] { return ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC); }));
  if (const auto first = made.tally()) made.latest_ = *first;
  return made;
}

std::optional<CoreTally> CoreWait::tally() const {
  if (!file_.is_open()) return std::nullopt;
  std::array<char, 80> line{};
  const iovec whole{line.data(), line.size()};
  const ssize_t length = ::preadv(file_.get(), &whole, 1, 0);
  if (length <= 0) return std::nullopt;
  return parse_schedstat({line.data(), static_cast<size_t>(length)});
}

bool CoreWait::is_wait(const CoreTally& earlier, const CoreTally& later) {
  const base::Duration waited = later.waited - earlier.waited;
  if (waited < kLong) return false;
  const uint64_t runs = later.runs - earlier.runs;
  return runs <= static_cast<uint64_t>(waited / kMean);
}

bool CoreWait::has_waited(base::Now now) {
  if (now - asked_at_ < kEach) return false;
  asked_at_ = now;
  const auto later = tally();
  if (!later) return false;
  return is_wait(std::exchange(latest_, *later), *later);
}

}  // namespace rnic::wakeup
