#include "recording.hpp"

#include <cerrno>
#include <cstring>

#include "pcap/capture_port.hpp"
#include "pcap/writer.hpp"

namespace rnic::simulation {

FILE* Recording::open_trace() const {
  if (prefix.empty()) return nullptr;
  FILE* trace = std::fopen((prefix + ".trace").c_str(), "w");
  if (trace == nullptr) lose("cannot write " + prefix + ".trace: " + std::strerror(errno));
  return trace;
}

void Recording::close_trace(FILE* trace) const {
  if (trace == nullptr) return;
  const bool torn = std::ferror(trace) != 0;
  errno = 0;
  if (std::fclose(trace) == 0 && !torn) return;
  const char* why = errno != 0 ? std::strerror(errno) : "an earlier write failed";
  lose("cannot write " + prefix + ".trace: " + why);
}

void Recording::check_capture(const std::string& side, const pcap::Writer& writer) const {
  if (writer.counters().write_errors == 0) return;
  lose(prefix + "." + side + ".pcapng lacks " + std::to_string(writer.counters().write_errors) +
       " frames that could not be written");
}

}  // namespace rnic::simulation
