// Something refused inside DPDK while it starts: where DPDK returns an error, it is passed on in
// one line; where DPDK itself ends the process, the place stands in dpdk_crashes.txt, and nowhere
// else may it happen.
//
// What is refused is a sample. DPDK_SEED=N: of that seed; DPDK_REFUSALS=N: so many (200 by
// `DPDK_REFUSALS=200 tests/starved/dpdk_start`).

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "rnic/verbs.hpp"
#include "scarcity.hpp"

namespace rnic::starved {
namespace {

constexpr const char* kEal = "[eal]\nhugepages = \"off\"\nmemory_mb = 64\n";
// Small tables: it is DPDK that asks.
constexpr const char* kLimits =
    "[limits]\nstream_octets = \"1MB\"\nstream_buffer = \"64KB\"\nmax_framed_streams = 4\n";

struct Start {
  const char* name;
  const char* devices;
};
constexpr Start kStarts[] = {
    {"Wire",
     "[[wire]]\nname = \"loop\"\nring_size = 64\n"
     "[[device]]\nport = \"wire:loop:0\"\naddress = \"10.0.0.1/24\"\n"
     "[[device]]\nport = \"wire:loop:1\"\naddress = \"10.0.0.2/24\"\n"},
    {"Null", "[[device]]\nport = \"net_null0\"\naddress = \"10.0.0.1/24\"\n"},
};
constexpr Scarce kKinds[] = {Scarce::Memory, Scarce::Mapping, Scarce::Thread, Scarce::Eventfd,
                             Scarce::Epoll,  Scarce::Open,    Scarce::Socket};

Config config_of(const Start& start) {
  return Config::from_text(std::string(kEal) + kLimits + start.devices, "start.toml");
}

/// What the child tells; it lies in memory that both processes have.
struct Report {
  uint64_t asked;
  uint64_t refused;
  bool opened;
  int code;
  char message[1024];  // of the refusal
  char again[1024];    // of the same call with everything there again; empty: it succeeded
  char place[128];     // the innermost function of DPDK that was refused something
  char died_in[128];   // the innermost function of DPDK, or of anybody, that the process died in
  char stack[4096];
};
Report* report = nullptr;

void keep(char* to, size_t size, const std::string& text) {
  std::snprintf(to, size, "%s", text.c_str());
}

void note_place() {
  const Place place = where_refused();
  keep(report->place, sizeof report->place, place.dpdk);
  keep(report->stack, sizeof report->stack, place.text);
}

void note_death(int signal) {
  std::signal(signal, SIG_DFL);
  static_cast<void>(end());
  note_place();
  const Place place = where_now();
  keep(report->died_in, sizeof report->died_in, place.dpdk.empty() ? "?" : place.dpdk);
  std::raise(signal);
}

[[noreturn]] void child(const Start& start, const Refusals& refusals) {
  alarm(60);
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM}) {
    std::signal(signal, note_death);
  }
  const Config config = config_of(start);
  begin(refusals);
  Result<Context> opened = Context::open(config);
  report->asked = end();
  report->refused = refused();
  note_place();
  report->opened = opened.has_value();
  if (!opened) {
    report->code = static_cast<int>(opened.error().code);
    keep(report->message, sizeof report->message, opened.error().message);
    const Result<Context> again = Context::open(config);
    if (!again) keep(report->again, sizeof report->again, again.error().message);
  }
  // Closed before the process ends, as a program does.
  opened = tl::unexpected(Error{});
  _exit(0);
}

/// \return how it ended, as waitpid() has it
int run(const Start& start, const Refusals& refusals) {
  std::memset(static_cast<void*>(report), 0, sizeof *report);
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    std::FILE* nowhere = std::fopen("/dev/null", "w");
    if (nowhere != nullptr) {  // DPDK explains its arguments at length
      dup2(fileno(nowhere), STDOUT_FILENO);
      dup2(fileno(nowhere), STDERR_FILENO);
    }
    child(start, refusals);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Lines "refused in: died in", the function of DPDK for both.
std::set<std::string> known_crashes() {
  std::ifstream file(RNIC_SOURCE_DIR "/tests/starved/dpdk_crashes.txt");
  EXPECT_TRUE(file) << "dpdk_crashes.txt is missing";
  std::set<std::string> known;
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    known.insert(line.substr(0, line.find(" #")));
  }
  return known;
}

class DpdkStart : public ::testing::TestWithParam<Start> {
 protected:
  static void SetUpTestSuite() {
    report = static_cast<Report*>(
        mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }

  /// How many requests of a kind are made behind the reading of the settings.
  void count() {
    for (const Scarce kind : kKinds) {
      begin({kind, UINT64_MAX, false});
      ASSERT_TRUE(config_of(GetParam()).check());
      const uint64_t reading = end();
      ASSERT_EQ(run(GetParam(), {kind, UINT64_MAX, false}), 0);
      ASSERT_TRUE(report->opened) << report->message;
      counts_.push_back({kind, reading, report->asked - reading});
      total_ += counts_.back().requests;
    }
  }

  [[nodiscard]] Refusals nth(uint64_t number) const {
    for (const Count& count : counts_) {
      if (number < count.requests) return {count.kind, count.reading + number + 1, false};
      number -= count.requests;
    }
    return {};
  }

  void judge(const Refusals& refusals, int status) {
    const std::string where = std::string(to_string(refusals.what)) + " request " +
                              std::to_string(refusals.first) + " refused in " + report->place;
    if (status != 0) {
      const std::string crash = std::string(report->place) + ": " + report->died_in;
      ++crashes_[crash];
      EXPECT_TRUE(known_.contains(crash))
          << where << ": ended by " << strsignal(WTERMSIG(status)) << " in " << report->died_in
          << ", which is not listed in dpdk_crashes.txt" << report->stack;
      return;
    }
    ++(report->opened ? survived_ : passed_on_);
    if (report->opened) return;
    const std::string message = report->message;
    const auto code = static_cast<ErrorCode>(report->code);
    EXPECT_TRUE(code == ErrorCode::Environment || code == ErrorCode::ResourceExhausted)
        << where << ": " << to_string(code) << ": " << message << report->stack;
    EXPECT_GT(message.size(), 10u) << where;
    EXPECT_EQ(message.find('\n'), std::string::npos) << where << ": " << message;
  }

  struct Count {
    Scarce kind;
    uint64_t reading;
    uint64_t requests;
  };
  std::vector<Count> counts_;
  uint64_t total_ = 0;
  const std::set<std::string> known_ = known_crashes();
  std::map<std::string, int> crashes_;
  int survived_ = 0;
  int passed_on_ = 0;
};

TEST_P(DpdkStart, Sample) {
  ASSERT_NO_FATAL_FAILURE(count());
  const uint64_t seed = from_environment("DPDK_SEED", 1);
  const uint64_t wanted = from_environment("DPDK_REFUSALS", 40) / std::size(kStarts);
  std::mt19937_64 random(seed);
  std::set<uint64_t> drawn;
  uint64_t inside = 0;
  while (inside < wanted && drawn.size() < total_) {
    const uint64_t number = random() % total_;
    if (!drawn.insert(number).second) continue;
    const Refusals refusals = nth(number);
    const int status = run(GetParam(), refusals);
    if (report->place[0] == '\0' && status == 0) continue;  // it was not DPDK that asked
    ++inside;
    judge(refusals, status);
  }
  std::printf(
      "DPDK_SEED=%llu: %llu of %llu requests refused, %d survived, %d passed on, %zu kinds "
      "of crashes\n",
      static_cast<unsigned long long>(seed), static_cast<unsigned long long>(inside),
      static_cast<unsigned long long>(total_), survived_, passed_on_, crashes_.size());
  for (const auto& [crash, times] : crashes_) std::printf("%s (%d)\n", crash.c_str(), times);
  EXPECT_EQ(inside, wanted);
}

std::string shown(const ::testing::TestParamInfo<Start>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(All, DpdkStart, ::testing::ValuesIn(kStarts), shown);

}  // namespace
}  // namespace rnic::starved
