/// \file
/// A child of the process that runs the tests, and what it finds.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <utility>

namespace rnic::test {

/// Descriptors of this process.
inline std::set<int> open_descriptors() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    found.insert(std::atoi(entry.path().filename().c_str()));
  }
  // The one that the directory was read by.
  std::erase_if(found, [](int descriptor) { return fcntl(descriptor, F_GETFD) == -1; });
  return found;
}

/// What a child complains of, a line each.
class Findings {
 public:
  void expect(bool good, const std::string& what) {
    if (!good) text_ += what + "\n";
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A process that is forked when this is made, carries `body` out, says what it found, and lives
/// until it is told to end, or its parent dies. It ends by _exit(): no destructor of the parent's
/// test runs in it but those that `body` runs.
class ForkedChild {
 public:
  static constexpr int kPatience = 60'000;  // ms: only a failure takes that long

  explicit ForkedChild(const std::function<void(Findings&)>& body) {
    std::array<int, 2> report{};
    std::array<int, 2> life{};
    if (pipe2(report.data(), O_CLOEXEC) != 0 || pipe2(life.data(), O_CLOEXEC) != 0) std::abort();
    pid_ = fork();
    if (pid_ == 0) {
      close(report[0]);
      close(life[1]);
      says_ = report[1];
      lives_ = life[0];
      live(body);
    }
    close(report[1]);
    close(life[0]);
    report_ = report[0];
    life_ = life[1];
  }
  ~ForkedChild() { end(); }
  ForkedChild(const ForkedChild&) = delete;
  ForkedChild& operator=(const ForkedChild&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// In the child: its two pipes.
  [[nodiscard]] static std::set<int> own_descriptors() { return {says_, lives_}; }

  /// In the child: where it says what it found; a 0 ends it.
  [[nodiscard]] static int says() { return says_; }
  /// It has said something: whatever drives a device in the meantime may ask.
  [[nodiscard]] bool has_reported() {
    while (!reported_) {
      pollfd one{report_, POLLIN, 0};
      if (poll(&one, 1, 0) != 1) return false;
      take();
    }
    return true;
  }
  /// Waits for what it found: nothing, if all is well.
  [[nodiscard]] std::string findings() {
    while (!reported_) {
      pollfd one{report_, POLLIN, 0};
      if (poll(&one, 1, kPatience) != 1) return "the child hangs";
      take();
    }
    return heard_;
  }
  /// It has not ended yet.
  [[nodiscard]] bool is_alive() const { return pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0; }
  void end() {
    if (pid_ <= 0) return;
    close(life_);
    if (!reported_) kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(report_);
    pid_ = -1;
  }

 private:
  static constexpr char kEnd = '\0';

  [[noreturn]] static void live(const std::function<void(Findings&)>& body) {
    Findings found;
    try {
      body(found);
    } catch (const std::exception& error) {
      found.expect(false, std::string("thrown: ") + error.what());
    }
    const std::string said = found.text() + kEnd;
    if (write(says_, said.data(), said.size()) < 0) _exit(3);
    char none = 0;
    while (read(lives_, &none, 1) > 0) continue;
    _exit(0);
  }
  void take() {
    std::array<char, 4096> some{};
    const ssize_t got = read(report_, some.data(), some.size());
    if (got > 0) heard_.append(some.data(), static_cast<size_t>(got));
    if (got <= 0) heard_ += "the child has died\n";
    reported_ = got <= 0 || heard_.ends_with(kEnd);
    if (reported_ && heard_.ends_with(kEnd)) heard_.pop_back();
  }

  inline static int says_ = -1;
  inline static int lives_ = -1;
  pid_t pid_ = -1;
  int report_ = -1;
  int life_ = -1;
  bool reported_ = false;
  std::string heard_;
};

}  // namespace rnic::test
