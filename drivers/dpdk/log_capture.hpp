/// \file
/// LogCapture: keeps the lines that DPDK logs while it exists, so that an error can quote them.
#pragma once

#include <rte_log.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace rnic::dpdk {

class LogCapture {
 public:
  // The stream uses memory that is there already: DPDK may be reporting that there is none.
  LogCapture() : stream_(fmemopen(text_.data(), text_.size(), "w")) {
    if (stream_ != nullptr) rte_openlog_stream(stream_);
  }
  ~LogCapture() {
    if (stream_ == nullptr) return;
    rte_openlog_stream(nullptr);
    std::fclose(stream_);
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// The first line logged, in parentheses (later lines report the same on the way up); empty:
  /// there is none.
  [[nodiscard]] std::string quote() {
    if (stream_ == nullptr) return {};
    std::fflush(stream_);
    text_.back() = '\0';
    std::string_view said(text_.data());
    while (!said.empty() && said.front() == '\n') said.remove_prefix(1);
    said = said.substr(0, said.find('\n'));
    return said.empty() ? std::string() : " (DPDK says: " + std::string(said) + ")";
  }

 private:
  std::array<char, 4096> text_{};
  FILE* stream_;
};

}  // namespace rnic::dpdk
