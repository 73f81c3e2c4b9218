/// \file
/// How every program of this repository ends: what it printed has been written, or it says that it
/// has not and ends with status 2; so does what the machine did not give (memory, threads). A
/// reader that closed its pipe ends it quietly.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace rnic::program {

/// Exit status: usage, environment (as too little memory), or an output that could not be written.
inline constexpr int kUsageStatus = 2;

/// Carries `body` out and looks whether its standard output has been taken.
/// \param name stands before each line on stderr
/// \return the status of `body`; kUsageStatus, and one line on stderr, when it has thrown or octets
/// of the standard output are lost. A closed pipe ends the process by SIGPIPE, also where its
/// parent ignores that.
int run(const char* name, const std::function<int()>& body);

/// What was thrown, in words that have asked for no memory; a long text is cut short.
class Thrown {
 public:
  Thrown() = default;
  explicit Thrown(const char* first, const char* second = "") noexcept;
  /// Something was.
  explicit operator bool() const { return text_[0] != '\0'; }
  [[nodiscard]] const char* what() const { return text_.data(); }

 private:
  std::array<char, 256> text_{};
};

/// Carries out what a thread is there for. \return what it has thrown
[[nodiscard]] Thrown caught(const std::function<void()>& body) noexcept;

/// Writes a whole file, and the folders on the way to it. \return nothing, or why it is not there
/// whole: "cannot write out/a.json: No space left on device".
[[nodiscard]] std::optional<std::string> write_file(const std::string& path,
                                                    std::string_view content);

}  // namespace rnic::program
