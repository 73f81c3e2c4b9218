#include "program/program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>

namespace rnic::program {

namespace {

/// Nothing, or why not all of standard output has been taken.
std::optional<std::string> standard_output_failed() {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  if (!std::cout || std::ferror(stdout) != 0) {
    return errno != 0 ? std::strerror(errno) : "an earlier write failed";
  }
  // Some file systems tell only when a file is closed; any descriptor of it will do. Who closed
  // ours before the start and was told nothing loses nothing.
  const int copy = dup(STDOUT_FILENO);
  if (copy >= 0 && close(copy) != 0) return std::strerror(errno);
  return std::nullopt;
}

/// A descriptor that is closed would be the next file's, which would get what is printed.
void occupy_standard_descriptors() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) {
    descriptor = open("/dev/null", O_RDONLY);  // writing to it fails, as it should
  }
  if (descriptor > STDERR_FILENO) close(descriptor);
}

}  // namespace

int run(const char* name, const std::function<int()>& body) {
  occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_DFL);
  const int status = body();
  const auto why = standard_output_failed();
  if (!why) return status;
  std::cerr << name << ": cannot write to standard output: " << *why << "\n";
  return kUsageStatus;
}

std::optional<std::string> write_file(const std::string& path, std::string_view content) {
  const auto failed = [&path] { return "cannot write " + path + ": " + std::strerror(errno); };
  const std::filesystem::path target(path);
  std::error_code ignored;  // opening says what matters
  if (target.has_parent_path()) std::filesystem::create_directories(target.parent_path(), ignored);
  FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return failed();
  const bool taken = std::fwrite(content.data(), 1, content.size(), file) == content.size() &&
                     std::fflush(file) == 0;
  if (!taken) {
    std::string why = failed();
    std::fclose(file);
    return why;
  }
  if (std::fclose(file) != 0) return failed();
  return std::nullopt;
}

}  // namespace rnic::program
