#include "trial.hpp"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "base/log.hpp"

namespace rnic::starved {

namespace {

/// What the child tells; it lies in memory that both processes have.
struct Report {
  uint64_t asked;
  uint64_t refused;
  int64_t left_blocks;
  int left_descriptors;
  bool good;
  bool refused_to_caller;  // the call has failed
  bool dpdk_lacked;
  char stage[64];
  char dpdk[128];
  char why[4096];
};

int descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

void tell(Report& report, const std::string& why) {
  std::snprintf(report.why, sizeof report.why, "%s", why.c_str());
}

void enter(Report& report, const char* stage) {
  std::snprintf(report.stage, sizeof report.stage, "%s", stage);
}

/// An exhausted machine is no invalid argument; what the system or DPDK refuses is passed on.
bool right_code(ErrorCode code, Scarce what, bool in_dpdk) {
  if (code == ErrorCode::ResourceExhausted) return true;
  return (in_dpdk || what != Scarce::Memory) && code == ErrorCode::Environment;
}

/// No table of a World has more.
constexpr int kPlaces = 18;

/// A whole context for each call.
bool opens(const Call& call) { return std::strstr(call.names, "Context::open") != nullptr; }

/// Makes the call while something is refused. \return what is wrong with its answer; empty: nothing
std::string make(const Call& call, World& world, const Refusals& refusals, Report& report) {
  Outcome outcome;
  bool threw = false;
  enter(report, "the call");
  begin(refusals);
  try {
    outcome = call.make(world);
  } catch (...) {
    threw = true;
  }
  report.asked = end();
  report.refused = refused();
  if (report.refused != 0) {
    const Place place = where_refused();
    std::snprintf(report.dpdk, sizeof report.dpdk, "%s", place.dpdk.c_str());
    report.dpdk_lacked = place.dpdk_lacked;
    tell(report, place.text);
  }
  if (threw) return "an exception has left the API";
  if (outcome.done) return {};
  report.refused_to_caller = true;
  if (report.refused == 0) return "the call fails though nothing was refused";
  if (!right_code(outcome.code, refusals.what, report.dpdk[0] != '\0')) {
    return std::string("the error is \"") + to_string(outcome.code) + "\"";
  }
  if (!outcome.told) return "the error has no text";
  if (call.in_background) return {};
  // As often as there are places in the largest table: one that is lost each time is missed. What
  // DPDK loses is not ours to count.
  enter(report, "the same refusal again and again");
  const int often = opens(call) ? 1 : kPlaces;
  for (int i = 0; i < often && report.dpdk[0] == '\0' && !outcome.done; ++i) {
    begin(refusals);
    outcome = call.make(world);
    static_cast<void>(end());
    // What another thread asked for at that moment may be what was refused.
    if (outcome.done && refused() != 0) report.refused_to_caller = false;
    if (!outcome.done && !right_code(outcome.code, refusals.what, false)) {
      return std::string("after some refusals the error is \"") + to_string(outcome.code) + "\"";
    }
  }
  if (outcome.done) return {};  // what it had got of the memory was kept
  enter(report, "the same call again");
  outcome = call.make(world);
  return outcome.done ? "" : "the same call fails when there is enough again";
}

bool try_it(const Call& call, const Setting& setting, const Refusals& refusals, Report& report) {
  World world(setting);
  enter(report, "preparation");
  if (call.prepare != nullptr) call.prepare(world);
  if (const std::string wrong = make(call, world, refusals, report); !wrong.empty()) {
    tell(report, wrong + report.why);
    return false;
  }
  // On a worker the refusal may have struck what went on there behind the call.
  const bool beside = setting.threaded && report.refused != 0 && !report.refused_to_caller;
  enter(report, "proof");
  if (call.prove != nullptr && !beside) call.prove(world);
  enter(report, "new traffic");
  world.settle();
  world.prove_traffic();
  enter(report, "destruction");
  return true;
}

/// What the process was at when it died; it is dying anyhow, so memory may be asked for.
Report* dying_report = nullptr;

void note_death(int signal) {
  std::signal(signal, SIG_DFL);
  static_cast<void>(end());
  const Place place = where_refused();
  tell(*dying_report, place.text);
  std::snprintf(dying_report->dpdk, sizeof dying_report->dpdk, "%s", place.dpdk.c_str());
  std::raise(signal);
}

[[noreturn]] void child(const Call& call, const Setting& setting, const Refusals& refusals,
                        Report& report) {
  alarm(60);
  dying_report = &report;
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM}) {
    std::signal(signal, note_death);
  }
  // The log of a child is made anew when it is first written, and stays.
  base::log(base::LogLevel::Warning, "starved", "a line of a child");
  // DPDK starts in each of them: a process that was forked from one with DPDK has none.
  if (setting.below == Below::Wire) const World world(Setting{Below::Wire, false});
  const int before = descriptors();
  const int64_t blocks = live_blocks();
  report.good = try_it(call, setting, refusals, report);
  report.left_blocks = live_blocks() - blocks;
  report.left_descriptors = descriptors() - before;
  if (report.good) enter(report, "");
  _exit(report.good ? 0 : 1);
}

/// The last lines that the child has written.
std::string tail_of(std::FILE* file) {
  std::rewind(file);
  std::string text(4096, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

}  // namespace

Verdict attempt(const Call& call, const Setting& setting, const Refusals& refusals,
                const Verdict& usual) {
  static auto* report = static_cast<Report*>(
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::memset(report, 0, sizeof *report);
  std::FILE* said = std::tmpfile();
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(fileno(said), STDERR_FILENO);
    child(call, setting, refusals, *report);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  Verdict verdict;
  verdict.asked = report->asked;
  verdict.refused = report->refused;
  verdict.dpdk = report->dpdk;
  verdict.left_blocks = report->left_blocks;
  verdict.left_descriptors = report->left_descriptors;
  if (WIFSIGNALED(status)) {
    verdict.why = std::string("ended by ") + strsignal(WTERMSIG(status)) + report->why;
  } else if (!report->good) {
    verdict.why = report->why[0] == '\0' ? "failed" : report->why;
  } else if (verdict.left_blocks > usual.left_blocks && !report->dpdk_lacked) {
    verdict.why =
        std::to_string(verdict.left_blocks - usual.left_blocks) + " blocks are lost" + report->why;
  } else if (verdict.left_descriptors > 0) {
    verdict.why = std::to_string(verdict.left_descriptors) + " descriptors are lost";
  }
  verdict.good = verdict.why.empty();
  if (!verdict.good && report->stage[0] != '\0') {
    verdict.why += std::string(" (during: ") + report->stage + ")";
  }
  if (!verdict.good) verdict.why += "\n" + tail_of(said);
  std::fclose(said);
  return verdict;
}

}  // namespace rnic::starved
