/// \file
/// How every program of this repository ends: what it printed has been written, or it says that it
/// has not and ends with status 2; so does what the machine did not give (memory, threads). A
/// reader that closed its pipe ends it quietly.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace rnic::program {

/// Exit status: usage, environment (as too little memory), or an output that could not be written.
inline constexpr int kUsageStatus = 2;

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

/// Calls `body` with `of`. \return what it has thrown
[[nodiscard]] Thrown caught_by(void (*body)(void* of), void* of) noexcept;

/// Carries out what a thread is there for. \return what it has thrown
/// The body is called by reference: a std::function of a large one would ask for memory before
/// anything is there to catch what that throws.
template <typename Body>
[[nodiscard]] Thrown caught(Body&& body) noexcept {
  using Called = std::remove_reference_t<Body>;
  return caught_by([](void* of) { (*static_cast<Called*>(of))(); }, std::addressof(body));
}

/// The first part of run(): opens the standard descriptors that are closed, and has SIGPIPE end the
/// process.
void begin();
/// The last part of run(). \return what the program ends with
[[nodiscard]] int end(const char* name, const Thrown& thrown, int status);

/// Carries `body`, which returns an exit status, out and looks whether its standard output has been
/// taken.
/// \param name stands before each line on stderr
/// \return the status of `body`; kUsageStatus, and one line on stderr, when it has thrown or octets
/// of the standard output are lost. A closed pipe ends the process by SIGPIPE, also where its
/// parent ignores that.
template <typename Body>
int run(const char* name, Body&& body) {
  begin();
  int status = kUsageStatus;
  const Thrown thrown = caught([&] { status = body(); });
  return end(name, thrown, status);
}

/// Writes a whole file, and the folders on the way to it. \return nothing, or why it is not there
/// whole: "cannot write out/a.json: No space left on device".
[[nodiscard]] std::optional<std::string> write_file(const std::string& path,
                                                    std::string_view content);

}  // namespace rnic::program
