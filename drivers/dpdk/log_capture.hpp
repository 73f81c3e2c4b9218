/// \file
/// Keeps what DPDK says while it exists, so that an error can quote it instead of printing it.
#pragma once

#include <rte_log.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace rnic::dpdk {

class LogCapture {
 public:
  // Into memory that is there: DPDK may be telling that there is none.
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

  /// The first line said (the ones after it report the same on the way up), in parentheses; or
  /// nothing.
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
