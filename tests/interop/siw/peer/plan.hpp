// What both ends of a trial say to each other: the plan in the Request's private data, and control
// messages. plan.py and guest_peer.c have the same layouts; all numbers are in network order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rnic/error.hpp"

namespace rnic::siw {

inline constexpr size_t kMaxSizes = 40;
inline constexpr size_t kControlOctets = 256;

enum class Operation : uint8_t { Send, SendSolicited, SendInvalidate, Write, Read };

/// How the active end breaks a rule in round `Plan::fault_round`.
enum class Breach : uint8_t {
  None,
  WriteBadStag,
  ReadBadStag,
  WriteBounds,
  ReadBounds,
  WriteNoRight,
  ReadNoRight,
  SendNoReceive,
  SendTooLong,
  SendTooLongSegments,
  InvalidateBadStag,
  WriteInvalidated,
  ReadInvalidated,
};

/// A trial has rounds, in which the ends take turns in being active: the active end does the
/// operation once for each size.
struct Plan {
  Operation operation = Operation::Write;
  bool acceptor_speaks = false;  ///< first; it is passive in the first round
  Breach breach = Breach::None;
  uint8_t breach_round = 0;  ///< from 1 on
  uint64_t seed = 1;         ///< of the content
  uint16_t patience = 60;    ///< seconds
  uint8_t pairs = 1;         ///< two rounds each; 255: without end
  std::vector<uint32_t> sizes;

  static std::optional<Plan> decode(std::span<const uint8_t> octets);
  [[nodiscard]] bool is_send() const { return operation <= Operation::SendInvalidate; }
  [[nodiscard]] uint32_t rounds() const { return pairs == 255 ? UINT32_MAX : 2u * pairs; }
};

/// The octets of a plan, from hex digits.
std::vector<uint8_t> from_hex(const std::string& digits);
/// In the octets of a plan.
void set_seed(std::span<uint8_t> plan, uint64_t seed);

/// The Reply's private data.
std::array<uint8_t, 12> encode_reply(uint64_t seed);

enum class ControlKind : uint8_t { Ready = 1, Done = 2, Verdict = 3 };

/// Ready: the passive end says where to. Done: the active end has done everything. Verdict: the
/// passive end has found all as it must be.
struct Control {
  ControlKind kind = ControlKind::Ready;
  bool ok = true;
  uint32_t stag = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  std::string text;             ///< what went wrong
  std::vector<uint32_t> stags;  ///< to be invalidated, one a size

  void encode(std::span<uint8_t, kControlOctets> octets) const;
  static std::optional<Control> decode(std::span<const uint8_t, kControlOctets> octets);
};

}  // namespace rnic::siw
