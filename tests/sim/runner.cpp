#include "runner.hpp"

#include <poll.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <type_traits>

#include "base/log.hpp"

namespace rnic::simulation {

namespace {

using Clock = std::chrono::steady_clock;

// A world hangs when it has taken so much of a processor, however busy the machine is; or, where it
// waits for something, so much time.
constexpr std::chrono::seconds kProcessorLimit{240};
constexpr std::chrono::seconds kWallLimit{1200};

/// What a child has taken of a processor; 0 when it is gone.
std::chrono::nanoseconds processor_time(pid_t pid) {
  clockid_t clock{};
  timespec taken{};
  if (::clock_getcpuclockid(pid, &clock) != 0 || ::clock_gettime(clock, &taken) != 0) return {};
  return std::chrono::seconds(taken.tv_sec) + std::chrono::nanoseconds(taken.tv_nsec);
}

/// What a child sends of an outcome; the texts follow, each with its length.
struct Record {
  uint64_t index;
  bool ok;
  Totals totals;
  double virtual_seconds;
  double seconds;
  uint64_t steps;
  uint64_t fingerprint;
  uint32_t checker_size;
  uint32_t message_size;
  uint32_t state_size;
};
static_assert(std::is_trivially_copyable_v<Record>);

void write_all(int fd, const void* data, size_t n) {
  const char* at = static_cast<const char*>(data);
  while (n != 0) {
    const ssize_t written = ::write(fd, at, n);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(3);
    at += written;
    n -= static_cast<size_t>(written);
  }
}

void send_outcome(int fd, uint64_t index, const Outcome& o, double seconds) {
  Record r{};
  r.index = index;
  r.ok = o.ok;
  r.totals = o.totals;
  r.virtual_seconds = o.virtual_seconds;
  r.seconds = seconds;
  r.steps = o.steps;
  r.fingerprint = o.fingerprint;
  r.checker_size = static_cast<uint32_t>(o.checker.size());
  r.message_size = static_cast<uint32_t>(o.message.size());
  r.state_size = static_cast<uint32_t>(o.state.size());
  std::string bytes(reinterpret_cast<const char*>(&r), sizeof r);
  bytes += o.checker + o.message + o.state;
  write_all(fd, bytes.data(), bytes.size());
}

/// A child and the tasks it has not reported yet: every `stride`-th from `next` on.
struct Worker {
  pid_t pid = -1;
  int fd = -1;
  size_t next = 0;
  std::string buffer;
  std::string errors;
  int error_fd = -1;
  // When its latest world began.
  Clock::time_point since;
  std::chrono::nanoseconds since_processor{0};

  [[nodiscard]] bool hangs() const {
    return processor_time(pid) - since_processor > kProcessorLimit ||
           Clock::now() - since > kWallLimit;
  }
};

class Pool {
 public:
  Pool(const std::vector<Task>& tasks, uint32_t workers,
       const std::function<bool(const TaskResult&)>& report)
      : tasks_(tasks), workers_(workers), report_(report) {}

  void run() {
    for (size_t i = 0; i < workers_.size(); ++i) start(workers_[i], i);
    while (!stopped_ && std::any_of(workers_.begin(), workers_.end(),
                                    [](const Worker& w) { return w.pid >= 0; })) {
      turn();
    }
    for (Worker& worker : workers_) stop(worker);
  }

 private:
  void start(Worker& worker, size_t first) {
    worker.next = first;
    worker.buffer.clear();
    worker.errors.clear();
    worker.since = Clock::now();
    worker.since_processor = {};
    if (first >= tasks_.size()) return;
    int out[2];
    int err[2];
    if (::pipe(out) != 0 || ::pipe(err) != 0) return;
    std::fflush(nullptr);
    worker.pid = ::fork();
    if (worker.pid == 0) {
      ::close(out[0]);
      ::close(err[0]);
      ::dup2(err[1], STDERR_FILENO);
      child(out[1], first);
    }
    ::close(out[1]);
    ::close(err[1]);
    worker.fd = out[0];
    worker.error_fd = err[0];
  }

  [[noreturn]] void child(int fd, size_t first) {
    base::set_log_level(base::LogLevel::Off);
    for (size_t i = first; i < tasks_.size(); i += workers_.size()) {
      const auto begin = Clock::now();
      const Outcome outcome = run_task(tasks_[i], {});
      const std::chrono::duration<double> seconds = Clock::now() - begin;
      send_outcome(fd, i, outcome, seconds.count());
    }
    _exit(0);
  }

  void stop(Worker& worker) {
    if (worker.pid < 0) return;
    ::kill(worker.pid, SIGKILL);
    int status = 0;
    ::waitpid(worker.pid, &status, 0);
    ::close(worker.fd);
    ::close(worker.error_fd);
    worker.pid = -1;
  }

  void turn() {
    std::vector<pollfd> polled;
    std::vector<Worker*> owners;
    for (Worker& worker : workers_) {
      if (worker.pid < 0) continue;
      polled.push_back({worker.fd, POLLIN, 0});
      polled.push_back({worker.error_fd, POLLIN, 0});
      owners.push_back(&worker);
      owners.push_back(&worker);
    }
    ::poll(polled.data(), polled.size(), 1000);
    for (size_t i = 0; i < polled.size() && !stopped_; ++i) {
      Worker& worker = *owners[i];
      if (worker.pid < 0) continue;
      const bool errors = polled[i].fd == worker.error_fd;
      if (polled[i].revents != 0) receive(worker, errors);
    }
    for (Worker& worker : workers_) {
      if (worker.pid >= 0 && worker.hangs()) lost(worker, "hangs");
    }
  }

  void receive(Worker& worker, bool errors) {
    char bytes[65536];
    const ssize_t n = ::read(errors ? worker.error_fd : worker.fd, bytes, sizeof bytes);
    if (n > 0) {
      (errors ? worker.errors : worker.buffer).append(bytes, static_cast<size_t>(n));
      if (!errors) parse(worker);
      return;
    }
    if (errors) {
      // The texts have ended, the results have perhaps not.
      if (worker.next < tasks_.size()) return drain_results(worker);
      return;
    }
    ended(worker);
  }

  void drain_results(Worker& worker) {
    char bytes[65536];
    for (;;) {
      const ssize_t n = ::read(worker.fd, bytes, sizeof bytes);
      if (n <= 0) break;
      worker.buffer.append(bytes, static_cast<size_t>(n));
    }
    parse(worker);
    if (!stopped_) ended(worker);
  }

  void parse(Worker& worker) {
    while (worker.buffer.size() >= sizeof(Record) && !stopped_) {
      Record r;
      std::memcpy(&r, worker.buffer.data(), sizeof r);
      const size_t texts = size_t{r.checker_size} + r.message_size + r.state_size;
      if (worker.buffer.size() < sizeof r + texts) return;
      TaskResult result;
      result.task = tasks_[r.index];
      Outcome& o = result.outcome;
      o.ok = r.ok;
      o.totals = r.totals;
      o.virtual_seconds = r.virtual_seconds;
      o.steps = r.steps;
      o.fingerprint = r.fingerprint;
      result.seconds = r.seconds;
      size_t at = sizeof r;
      o.checker = worker.buffer.substr(at, r.checker_size);
      o.message = worker.buffer.substr(at += r.checker_size, r.message_size);
      o.state = worker.buffer.substr(at += r.message_size, r.state_size);
      worker.buffer.erase(0, sizeof r + texts);
      worker.next = r.index + workers_.size();
      worker.since = Clock::now();
      worker.since_processor = processor_time(worker.pid);
      if (!report_(result)) stopped_ = true;
    }
  }

  /// The child has closed its pipe: done, or dead.
  void ended(Worker& worker) {
    if (worker.next >= tasks_.size()) return stop(worker);
    lost(worker, "died");
  }

  void lost(Worker& worker, const char* how) {
    char bytes[4096];
    if (std::strcmp(how, "died") == 0) {
      for (ssize_t n; (n = ::read(worker.error_fd, bytes, sizeof bytes)) > 0;) {
        worker.errors.append(bytes, static_cast<size_t>(n));
      }
    }
    const size_t index = worker.next;
    TaskResult result;
    result.task = tasks_[index];
    result.outcome.checker = "crash";
    result.outcome.message = std::string("the process ") + how;
    const size_t line = worker.errors.find_last_not_of('\n');
    if (line != std::string::npos) {
      worker.errors.resize(line + 1);
      result.outcome.message += ": " + worker.errors.substr(worker.errors.rfind('\n') + 1);
      result.outcome.state = worker.errors.substr(0, 4000) + "\n";
    }
    stop(worker);
    if (!report_(result)) {
      stopped_ = true;
      return;
    }
    start(worker, index + workers_.size());
  }

  const std::vector<Task>& tasks_;
  std::vector<Worker> workers_;
  const std::function<bool(const TaskResult&)>& report_;
  bool stopped_ = false;
};

}  // namespace

void run_tasks(const std::vector<Task>& tasks, uint32_t workers,
               const std::function<bool(const TaskResult&)>& report) {
  Pool pool(tasks, workers, report);
  pool.run();
}

}  // namespace rnic::simulation
