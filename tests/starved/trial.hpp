/// \file
/// One call of the API, made in a process of its own while one thing is refused to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "scarcity.hpp"
#include "world.hpp"

namespace rnic::starved {

/// What a call has answered.
struct Outcome {
  bool done = true;
  ErrorCode code = ErrorCode::InvalidArgument;  ///< when not done
  bool told = false;                            ///< when not done: with a text
};

inline Outcome of(const Status& status) {
  if (status) return {};
  return {false, status.error().code, !status.error().message.empty()};
}
template <typename T>
Outcome of(const Result<T>& result) {
  if (result) return {};
  return {false, result.error().code, !result.error().message.empty()};
}

enum class Where : uint8_t { Everywhere, OnWire };

/// An entry of the table of calls.
struct Call {
  /// Members of the public headers, "Class::member", separated by commas; of a free function its
  /// name and the types of its parameters, "function(string/uint16_t)".
  const char* names;
  /// Makes what the call needs. nullptr: nothing.
  void (*prepare)(World& world);
  /// The call. It may be made again when it was refused. The harness allocates nothing in here.
  Outcome (*make)(World& world);
  /// With memory again, after the call has succeeded: what was asked for is there.
  void (*prove)(World& world);
  /// Which devices have it.
  Where where = Where::Everywhere;
  /// Turns of the loop: what could not be served may have been given up, so it is not made again.
  bool in_background = false;
};

[[nodiscard]] const std::vector<Call>& calls();
// calls() has these, too.

/// Those of rnic/blocking.hpp and rnic/coroutine.hpp.
[[nodiscard]] std::vector<Call> blocking_calls();
/// The free functions of the public headers.
[[nodiscard]] std::vector<Call> free_calls();
/// Those of rnic/port_reservation.hpp.
[[nodiscard]] std::vector<Call> reserve_calls();

/// What became of a trial.
struct Verdict {
  bool good = false;
  std::string why;          ///< when not good
  uint64_t asked = 0;       ///< requests for what was scarce, during the call
  uint64_t refused = 0;     ///< of these
  int64_t left_blocks = 0;  ///< blocks of memory that nobody has given back
  int left_descriptors = 0;
  std::string dpdk;  ///< the function of DPDK in, or below, which it was refused; empty: none
};

/// Makes the call in a child process. \param usual what a call that nothing is refused to leaves
[[nodiscard]] Verdict attempt(const Call& call, const Setting& setting, const Refusals& refusals,
                              const Verdict& usual);

}  // namespace rnic::starved
