#include "rnic-perf/neighbour.hpp"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <system_error>
#include <utility>

#include "program/program.hpp"
#include "rnic-perf/responder.hpp"

namespace rnic::perf {

namespace {

constexpr int64_t kPatienceNs = 20'000'000'000;

/// What on_early_end() removes: a signal may come at any time, so it is text that stands.
std::array<std::string, 3>& left_behind() {
  static std::array<std::string, 3> paths;  // two sockets, and then their folder
  return paths;
}

/// The other process has ended before it was told to, and has said why.
void on_early_end(int) {
  int status = 0;
  if (waitpid(-1, &status, WNOHANG) <= 0) return;
  for (const std::string& path : left_behind()) {
    if (unlink(path.c_str()) != 0) rmdir(path.c_str());
  }
  _exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : kNotVerified);
}

}  // namespace

Result<std::unique_ptr<Neighbour>> Neighbour::start(const Options& options) {
  std::string folder = (std::filesystem::temp_directory_path() / "rnic-perf-XXXXXX").string();
  void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                      -1, 0);
  if (memory == MAP_FAILED || mkdtemp(folder.data()) == nullptr) {
    return tl::unexpected(Error{ErrorCode::Environment,
                                "no memory or no folder that two processes could share: " +
                                    std::generic_category().message(errno)});
  }
  std::unique_ptr<Neighbour> neighbour(new Neighbour(options, folder, new (memory) Board));
  left_behind() = {folder + "/0", folder + "/1", folder};
  std::signal(SIGCHLD, on_early_end);
  neighbour->other_ = fork();
  if (neighbour->other_ < 0) {
    return tl::unexpected(Error{ErrorCode::ResourceExhausted, "the system forks no process"});
  }
  if (neighbour->other_ == 0) {
    std::signal(SIGCHLD, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::exit(program::run("rnic-perf",
                       [&] { return run_responder(options, folder, *neighbour->board_); }));
  }
  const auto& state = neighbour->board_->obeyed;
  while (state.load(std::memory_order_acquire) != Board::kListening) usleep(1000);
  return neighbour;
}

Neighbour::~Neighbour() {
  floor_.reset();
  std::signal(SIGCHLD, SIG_DFL);
  if (other_ > 0) {
    board_->order.store(1u << Board::kOrderBits | static_cast<uint32_t>(Order::End));
    waitpid(other_, nullptr, 0);
  }
  remove_folder();
  board_->~Board();
  munmap(board_, sizeof(Board));
}

void Neighbour::remove_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

/// Waits until the other one has begun a turn, or has done what is no turn.
void Neighbour::give(Order order) {
  const uint32_t count = (board_->order.load() >> Board::kOrderBits) + 1;
  const uint32_t number = count << Board::kOrderBits | static_cast<uint32_t>(order);
  board_->order.store(number, std::memory_order_release);
  while (board_->obeyed.load(std::memory_order_acquire) != number) {
  }
}

Result<Config> Neighbour::configuration() const {
  return memif_configuration(options_, folder_, Role::Initiator);
}

Endpoint Neighbour::endpoint() const {
  return *parse_endpoint(kResponderAddress, options_.port.tcp);
}

void Neighbour::take_messages() { give(Order::TakeMessages); }

void Neighbour::prepare(const workload::Pattern& pattern) {
  board_->pattern = pattern;
  give(Order::Prepare);
}

void Neighbour::verify() { give(Order::Verify); }

Status Neighbour::open_floor() {
  auto floor = dpdk::LinkFloor::create(memif_floor(options_, folder_, Role::Initiator),
                                       board_->progress);
  if (!floor) return tl::unexpected(floor.error());
  floor_ = std::move(*floor);
  for (int64_t waited = 0; !floor_->is_up(); waited += 1'000'000) {
    if (waited > kPatienceNs) {
      return workload::fail(ErrorCode::Environment, "the floor's ends do not meet over net_memif");
    }
    usleep(1000);
  }
  return {};
}

Result<double> Neighbour::floor(base::Duration duration) {
  give(Order::TakeFloor);
  auto goodput = floor_->send(duration);
  if (goodput) give(Order::JudgeFloor);
  return goodput;
}

double Neighbour::line_ns(uint32_t trips) {
  give(Order::Lines);
  auto times = board_->lines.line_trips(trips);
  return percentile_us(times, 0.5) * 1000.0;
}

int64_t Neighbour::processor_time_ns() const {
  clockid_t clock{};
  timespec spent{};
  if (clock_getcpuclockid(other_, &clock) == 0) clock_gettime(clock, &spent);
  return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

}  // namespace rnic::perf
