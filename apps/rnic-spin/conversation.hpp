/// \file
/// What the two ends of a stream have said to each other.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "rnic/error.hpp"
#include "rnic/transport.hpp"

namespace rnic::spin {

/// The two ends of a stream.
enum class StreamRole : uint8_t { Initiator, Acceptor };

/// A stream between two ends that both belong to the caller. Each octet depends on the stream, the
/// direction and its place: one that was lost, repeated or exchanged shows.
class Conversation {
 public:
  /// What the application has done at one end, and what has come there.
  struct Speaker {
    uint64_t sent = 0;      ///< octets that send() has taken
    uint64_t received = 0;  ///< octets that receive() has given
    bool finished = false;
    bool closed = false;
    bool aborted = false;
  };

  /// \param number differs between streams
  explicit Conversation(uint64_t number) : number_(number) {}

  [[nodiscard]] Speaker& at(StreamRole role) { return speakers_[static_cast<size_t>(role)]; }
  [[nodiscard]] const Speaker& at(StreamRole role) const {
    return speakers_[static_cast<size_t>(role)];
  }
  [[nodiscard]] uint64_t number() const { return number_; }
  /// The acceptor's application has its end.
  void accept() { accepted_ = true; }
  [[nodiscard]] bool is_accepted() const { return accepted_; }
  /// Another stream has the same endpoints, and it is not known which of them has which other end:
  /// nothing is held against either.
  void doubt() { doubtful_ = true; }
  [[nodiscard]] bool is_doubtful() const { return doubtful_; }

  /// Fills in the next octets that an end sends.
  void fill(StreamRole sender, std::span<uint8_t> octets) const;
  /// Takes the next octets that an end has received. \return what is wrong with them
  [[nodiscard]] std::optional<std::string> receive(StreamRole receiver,
                                                   std::span<const uint8_t> octets);
  /// \return why the end cannot have received everything, and the peer's close
  [[nodiscard]] std::optional<std::string> check_at_end(StreamRole role) const;
  /// \return why the stream cannot have ended so at that end
  [[nodiscard]] std::optional<std::string> check_ended(StreamRole role, StreamEnd how) const;

 private:
  [[nodiscard]] uint8_t octet(StreamRole sender, uint64_t at) const;

  uint64_t number_;
  std::array<Speaker, 2> speakers_{};
  bool accepted_ = false;
  bool doubtful_ = false;
};

/// The other end of a stream.
[[nodiscard]] constexpr StreamRole other(StreamRole role) {
  return role == StreamRole::Initiator ? StreamRole::Acceptor : StreamRole::Initiator;
}
/// The error that calls on a stream return once it has ended.
[[nodiscard]] ErrorCode code_of(StreamEnd how);

}  // namespace rnic::spin
