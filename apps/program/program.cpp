#include "program/program.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <stdexcept>
#include <system_error>

namespace rnic::program {

namespace {

/// Nothing, or why not all of standard output has been taken.
std::optional<std::string> standard_output_failed() {
  errno = 0;
  std::cout.flush();
  std::fflush(stdout);
  if (!std::cout || std::ferror(stdout) != 0) {
    return errno != 0 ? std::generic_category().message(errno) : "an earlier write failed";
  }
  // Some file systems tell only when a file is closed; any descriptor of it will do. Who closed
  // ours before the start and was told nothing loses nothing.
  const int copy = dup(STDOUT_FILENO);
  if (copy >= 0 && close(copy) != 0) return std::generic_category().message(errno);
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

/// Where nothing may be asked for any more.
void say(const char* name, const char* what) {
  for (const char* part : {name, ": ", what, "\n"}) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) return;
  }
}

}  // namespace

Thrown::Thrown(const char* first, const char* second) noexcept {
  std::snprintf(text_.data(), text_.size(), "%s%s", first, second);
}

Thrown caught_by(void (*body)(void* of), void* of) noexcept {
  try {
    body(of);
    return {};
  } catch (const std::bad_alloc&) {
    return Thrown(
        "out of memory: the machine gives no more, or this process may not have it (ulimit -v)");
  } catch (const std::length_error&) {
    return Thrown("out of memory: more was asked for than there can be");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return Thrown(
          "no thread is to be had: raise the limits of threads and memory (ulimit -u, ulimit -v)");
    }
    return Thrown("the system refused something: ", error.what());
  } catch (const std::exception& error) {
    return Thrown("an unexpected error: ", error.what());
  }
}

void begin() {
  occupy_standard_descriptors();
  std::signal(SIGPIPE, SIG_DFL);
}

int end(const char* name, const Thrown& thrown, int status) {
  if (thrown) {
    say(name, thrown.what());
    return kUsageStatus;
  }
  const auto why = standard_output_failed();
  if (!why) return status;
  std::cerr << name << ": cannot write to standard output: " << *why << "\n";
  return kUsageStatus;
}

std::optional<std::string> write_file(const std::string& path, std::string_view content) {
  const auto failed = [&path] {
    return "cannot write " + path + ": " + std::generic_category().message(errno);
  };
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
