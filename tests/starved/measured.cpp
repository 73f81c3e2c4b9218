#include "measured.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace rnic::starved {

namespace {

/// What the child tells; it lies in memory that both processes have.
struct Report {
  Footprint grown;
  char said[4096];
};

uint64_t in_status(const char* name) {
  std::ifstream file("/proc/self/status");
  std::string word;
  uint64_t kilobytes = 0;
  while (file >> word) {
    if (word == name) {
      file >> kilobytes;
      break;
    }
  }
  return kilobytes * 1024;
}

[[noreturn]] void child(uint64_t address_space, const std::function<std::string()>& body,
                        const std::function<void()>& before_it, Report& report) {
  if (before_it) before_it();
  std::ofstream("/proc/self/clear_refs") << "5";  // begins the count of VmHWM
  alarm(120);  // a hang is a failure, whatever the machine's load
  // A page that is touched is a page, not the 2 MB around it.
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  const Footprint before{in_status("VmSize:"), in_status("VmHWM:")};
  if (address_space != UINT64_MAX) limit_addresses(address_space);
  const std::string said = body();
  const Footprint after{in_status("VmPeak:"), in_status("VmHWM:")};
  report.grown = {after.addresses - std::min(before.addresses, after.addresses),
                  after.resident - std::min(before.resident, after.resident)};
  std::snprintf(report.said, sizeof report.said, "%s", said.c_str());
  _exit(0);
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

void limit_addresses(uint64_t more) {
  const uint64_t most = in_status("VmSize:") + more;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
}

Spent in_child(uint64_t address_space, const std::function<std::string()>& body,
               const std::function<void()>& before) {
  static auto* report = static_cast<Report*>(
      mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::memset(static_cast<void*>(report), 0, sizeof *report);
  std::FILE* said = std::tmpfile();
  std::fflush(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(fileno(said), STDERR_FILENO);
    child(address_space, body, before, *report);
  }
  int status = 0;
  rusage usage{};
  wait4(pid, &status, 0, &usage);
  Spent spent;
  spent.alive = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  spent.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  spent.grown = report->grown;
  spent.said = report->said;
  if (!spent.alive) {
    spent.said += WIFSIGNALED(status) ? std::string("ended by ") + strsignal(WTERMSIG(status))
                                      : "exit status " + std::to_string(WEXITSTATUS(status));
    std::rewind(said);
    std::string tail(2048, '\0');
    tail.resize(std::fread(tail.data(), 1, tail.size(), said));
    spent.said += "\n" + tail;
  }
  std::fclose(said);
  return spent;
}

}  // namespace rnic::starved

/// DPDK without hugepages would take memory that a child shares with its parent.
extern "C" int memfd_create(const char*, unsigned int) noexcept {
  errno = ENOSYS;
  return -1;
}
