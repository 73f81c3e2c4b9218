#include "workload/machine.hpp"

#include <sys/utsname.h>

#include <fstream>
#include <thread>

namespace rnic::workload {

std::string machine() {
  std::string model = "unknown CPU";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.starts_with("model name")) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  std::string load = "?";
  std::ifstream("/proc/loadavg") >> load;
  utsname system{};
  uname(&system);
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " cores, " +
         system.sysname + " " + system.release + ", load " + load;
}

}  // namespace rnic::workload
