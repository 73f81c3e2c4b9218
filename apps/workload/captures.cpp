#include "workload/captures.hpp"

#include <iostream>

#include "workload/command_line.hpp"

namespace rnic::workload {

namespace {

constexpr int kLastTurns = 8;

}  // namespace

int with_captures(const std::string& program, Context& context, int status) {
  // What the end of queue pairs lets out is captured, too.
  for (int turn = 0; turn < kLastTurns; ++turn) context.poll();
  for (const std::string& name : context.device_names()) {
    const auto device = context.device(name);
    if (!device) continue;
    const uint64_t lost = device->counter("capture", "write_errors").value_or(0);
    if (lost == 0) continue;
    std::cerr << program << ": the capture of " << name << " lacks " << lost
              << " frames that could not be written\n";
    status = kUsageStatus;
  }
  return status;
}

}  // namespace rnic::workload
