#include "report.hpp"

#include <array>
#include <cstdio>

namespace rnic::simulation {

namespace {

std::string short_number(uint64_t n) {
  char text[32];
  if (n < 100'000) {
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(n));
  } else if (n < 100'000'000) {
    std::snprintf(text, sizeof text, "%lluk", static_cast<unsigned long long>(n / 1000));
  } else {
    std::snprintf(text, sizeof text, "%lluM", static_cast<unsigned long long>(n / 1'000'000));
  }
  return text;
}

void print_row(const char* name, const Totals& t, uint64_t failures, double seconds) {
  const std::string early = short_number(t.placed_early);
  const std::string held = short_number(t.held);
  std::printf("%-19s %6llu %8s %7s %7s %9s %9s %7s %6s %7s %7s %9s %6llu %7.1f\n", name,
              static_cast<unsigned long long>(t.worlds), short_number(t.messages).c_str(),
              short_number(t.frames).c_str(), short_number(t.drops).c_str(), early.c_str(),
              held.c_str(), short_number(t.resegmented).c_str(), short_number(t.cut).c_str(),
              short_number(t.crc_drops).c_str(), short_number(t.terminates).c_str(),
              short_number(t.retransmissions).c_str(), static_cast<unsigned long long>(failures),
              seconds);
}

void print_stream_row(const char* name, const Totals& t, uint64_t failures, double seconds) {
  std::printf("%-19s %6llu %8s %8s %7s %7s %7s %8s %8s %8s %7s %7s %6llu %7.1f\n", name,
              static_cast<unsigned long long>(t.worlds), short_number(t.octets).c_str(),
              short_number(t.frames).c_str(), short_number(t.drops).c_str(),
              short_number(t.reordered).c_str(), short_number(t.cut + t.joined).c_str(),
              short_number(t.retransmissions).c_str(), short_number(t.recoveries).c_str(),
              short_number(t.timeouts).c_str(), short_number(t.probes).c_str(),
              short_number(t.forged).c_str(), static_cast<unsigned long long>(failures), seconds);
}

void print_socket_row(const char* name, const Totals& t, uint64_t failures, double seconds) {
  std::printf("%-19s %6llu %8s %8s %7s %7s %6llu %7.1f\n", name,
              static_cast<unsigned long long>(t.worlds), short_number(t.messages).c_str(),
              short_number(t.octets).c_str(), short_number(t.broken).c_str(),
              short_number(t.refused).c_str(), static_cast<unsigned long long>(failures), seconds);
}

}  // namespace

std::string replay_command(const Task& task) {
  return "./scripts/sim --replay " + std::to_string(task.seed) + " --profile " + task.scene->name();
}

void print_failure(const TaskResult& result, bool with_state) {
  std::printf("FAILED seed %llu (%s): %s: %s\n", static_cast<unsigned long long>(result.task.seed),
              result.task.scene->name(), result.outcome.checker.c_str(),
              result.outcome.message.c_str());
  if (with_state) std::printf("%s", result.outcome.state.c_str());
  std::fflush(stdout);
}

Report::Report() : rows_(scenes().size()) {}

void Report::add(const TaskResult& result) {
  Row& row = rows_[static_cast<size_t>(result.task.scene - scenes().data())];
  row.totals.add(result.outcome.totals);
  row.seconds += result.seconds;
  if (result.outcome.ok) return;
  ++row.failures;
  ++failures_;
  // State of the first few: more would only hide them.
  print_failure(result, failures_ <= 3);
  commands_.push_back(replay_command(result.task));
}

template <typename F>
Totals Report::print_rows(Family family, F&& print) const {
  Totals sum;
  double seconds = 0;
  uint64_t failures = 0;
  for (size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    const bool ran = row.totals.worlds != 0 || row.failures != 0;
    const Family its = scenes()[i].device   ? Family::Devices
                       : scenes()[i].stream ? Family::Streams
                                            : Family::Sockets;
    if (its != family || !ran) continue;
    sum.add(row.totals);
    seconds += row.seconds;
    failures += row.failures;
    print(scenes()[i].name(), row.totals, row.failures, row.seconds);
  }
  static constexpr std::array kAll{"all devices", "all streams", "all sockets"};
  print(kAll[static_cast<size_t>(family)], sum, failures, seconds);
  return sum;
}

void Report::print(bool complete) {
  std::printf("%-19s %6s %8s %7s %7s %9s %9s %7s %6s %7s %7s %9s %6s %7s\n", "profile", "worlds",
              "messages", "frames", "drops", "early", "held", "reseg", "cut", "CRCdrop", "Termin.",
              "retrans.", "failed", "seconds");
  Totals all = print_rows(Family::Devices, print_row);
  std::printf(
      "early, held: octets placed out of order, held; reseg: records that the sender cut; "
      "cut: segments that a middlebox cut\n\n");
  std::printf("%-19s %6s %8s %8s %7s %7s %7s %8s %8s %8s %7s %7s %6s %7s\n", "profile", "worlds",
              "octets", "packets", "drops", "reorder", "cut", "retrans.", "recover.", "timeouts",
              "probes", "forged", "failed", "seconds");
  all.add(print_rows(Family::Streams, print_stream_row));
  std::printf("cut: segments that a middlebox cut or joined; probes: of a closed window\n");
  std::printf("\n%-19s %6s %8s %8s %7s %7s %6s %7s\n", "profile", "worlds", "messages", "octets",
              "broken", "refused", "failed", "seconds");
  all.add(print_rows(Family::Sockets, print_socket_row));
  std::printf("broken: connections that a fault ended; refused: calls that went wrong\n");
  if (complete) {
    all.for_each([&](const char* title, uint64_t value, bool must) {
      if (value != 0 || !must) return;
      ++failures_;
      std::printf("FAILED: the path '%s' never fired\n", title);
    });
  }
  for (const std::string& command : commands_) std::printf("%s\n", command.c_str());
}

}  // namespace rnic::simulation
