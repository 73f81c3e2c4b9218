/// \file
/// Keeps what DPDK says while it exists, so that an error can quote it instead of printing it.
#pragma once

#include <rte_log.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace rnic::dpdk {

class LogCapture {
 public:
  LogCapture() : stream_(open_memstream(&text_, &size_)) {
    if (stream_ != nullptr) rte_openlog_stream(stream_);
  }
  ~LogCapture() {
    if (stream_ == nullptr) return;
    rte_openlog_stream(nullptr);
    std::fclose(stream_);
    std::free(text_);
  }
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// The first line said (the ones after it report the same on the way up), in parentheses; or
  /// nothing.
  [[nodiscard]] std::string quote() {
    if (stream_ == nullptr) return {};
    std::fflush(stream_);
    std::string_view said(text_, size_);
    while (!said.empty() && said.front() == '\n') said.remove_prefix(1);
    said = said.substr(0, said.find('\n'));
    return said.empty() ? std::string() : " (DPDK says: " + std::string(said) + ")";
  }

 private:
  char* text_ = nullptr;
  size_t size_ = 0;
  FILE* stream_;
};

}  // namespace rnic::dpdk
