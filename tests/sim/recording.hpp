/// \file
/// Where a replay writes, and what of it could not be written.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

namespace rnic::pcap {
class Writer;
}

namespace rnic::simulation {

/// A replay writes `prefix`.trace and `prefix`.left.pcapng, `prefix`.right.pcapng. Empty: nothing.
struct Recording {
  std::string prefix;
  std::vector<std::string>* lost = nullptr;  ///< a line for each file that is not there whole

  void lose(const std::string& line) const {
    if (lost != nullptr) lost->push_back(line);
  }
  /// nullptr without a prefix, or where it cannot be opened.
  [[nodiscard]] FILE* open_trace() const;
  /// \param trace may be nullptr
  void close_trace(FILE* trace) const;
  /// Before the world ends, behind the last flush(). \param side names the file
  void check_capture(const std::string& side, const pcap::Writer& writer) const;
};

}  // namespace rnic::simulation
