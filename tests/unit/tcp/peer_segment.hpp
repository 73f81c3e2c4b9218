/// \file
/// A segment as a test writes or reads it, and its comparison in one line.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rnic/address.hpp"
#include "wire/tcp.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::testing {

namespace flag = wire::tcp_flag;
inline constexpr uint8_t kFinAck = flag::kFin | flag::kAck;
inline constexpr uint8_t kPshAck = flag::kPsh | flag::kAck;
inline constexpr uint8_t kSynAck = flag::kSyn | flag::kAck;
// RFC 3168: both flags of an ECN set-up SYN, and the codepoints of the IP header.
inline constexpr uint8_t kBoth = flag::kEce | flag::kCwr;
inline constexpr uint8_t kEct0 = 2;
inline constexpr uint8_t kCe = 3;

/// A segment either way; numbers are absolute.
struct Segment {
  uint32_t seq = 0;
  uint32_t ack = 0;
  uint8_t flags = 0;
  uint16_t window = 65535;
  uint32_t payload = 0;          ///< octets; content by octet_at() unless `octets` is given
  std::vector<uint8_t> options;  ///< whole, a multiple of 4
  std::vector<uint8_t> octets;
  wire::TcpOptions parsed;  ///< of what the stack sent
  uint16_t source_port = 0;
  IpAddress source;       ///< of what the stack gets; unspecified: the peer's
  uint8_t ecn = 0;        ///< the two bits of the IP header
  uint8_t dscp = 0;       ///< sent: the six bits beside them
  uint8_t hop_limit = 0;  ///< sent; 0: the interface's default
};

/// Left and right edges, absolute.
using SackBlocks = std::vector<std::pair<uint32_t, uint32_t>>;

/// The kinds of options that a segment carries, as a set.
namespace kinds {
inline constexpr uint16_t kNone = 0;
inline constexpr uint16_t kMss = 1 << wire::tcp_option::kMss;
inline constexpr uint16_t kWindowScale = 1 << wire::tcp_option::kWindowScale;
inline constexpr uint16_t kSackPermitted = 1 << wire::tcp_option::kSackPermitted;
inline constexpr uint16_t kSack = 1 << wire::tcp_option::kSack;
inline constexpr uint16_t kTimestamps = 1 << wire::tcp_option::kTimestamps;
/// Those that stand on a SYN alone: RFC 9293 s.3.2, RFC 7323 s.2.2, RFC 2018 s.2.
inline constexpr uint16_t kOfASyn = kMss | kWindowScale | kSackPermitted;
}  // namespace kinds

/// A member of Expected that may be anything.
inline constexpr std::nullopt_t kAny = std::nullopt;

/// The whole of a segment that a test expects of the stack. What it does not name is as follows:
/// - flags, payload, SACK blocks, the bits of the IP header: as a bare ACK of an idle connection
///   has them, ACK alone, no octets, no blocks, neither DSCP nor ECN, the interface's hop limit;
/// - the kinds of options: none of a SYN's (kinds::kOfASyn) on what is no SYN;
/// - numbers, window, ports and what options say: not compared, for they follow from what went
///   before, which few tests are about.
/// A flag is compared exactly, PSH, too. A member that is kAny is not compared.
struct Expected {
  std::optional<uint8_t> flags = flag::kAck;
  std::optional<uint32_t> seq{};
  std::optional<uint32_t> ack{};
  std::optional<uint16_t> window{};
  std::optional<uint32_t> payload = 0;           ///< octets; not compared where `octets` is given
  std::optional<std::vector<uint8_t>> octets{};  ///< the payload itself
  std::optional<uint8_t> ecn = 0;                ///< codepoint of the IP header
  std::optional<uint16_t> options{};             ///< `kinds`: these and no others
  std::optional<uint16_t> mss{};                 ///< present, with this value; so for the next ones
  std::optional<uint8_t> window_scale{};
  std::optional<uint32_t> ts_value{};
  std::optional<uint32_t> ts_echo{};
  std::optional<SackBlocks> sack = SackBlocks{};  ///< all of them in this order
  std::optional<uint16_t> source_port{};
  std::optional<uint8_t> dscp = 0;       ///< of the IP header
  std::optional<uint8_t> hop_limit = 0;  ///< 0: the interface's default
};

/// Where compare() is called; as a default argument it is the caller's line.
struct Caller {
  const char* file = __builtin_FILE();
  int line = __builtin_LINE();
};

/// The set of `kinds` that the segment carries.
inline uint16_t option_kinds(const wire::TcpOptions& o) {
  return static_cast<uint16_t>(
      (o.mss ? kinds::kMss : 0) | (o.window_scale ? kinds::kWindowScale : 0) |
      (o.sack_permitted ? kinds::kSackPermitted : 0) | (o.sack_count != 0 ? kinds::kSack : 0) |
      (o.timestamps ? kinds::kTimestamps : 0));
}

inline SackBlocks sack_blocks(const wire::TcpOptions& o) {
  SackBlocks blocks;
  for (uint32_t i = 0; i < o.sack_count; ++i) {
    blocks.emplace_back(o.sack[i].left.value, o.sack[i].right.value);
  }
  return blocks;
}

/// What a segment that the stack sent is as a whole: a member without a value is an absent option.
inline Expected all_of(const Segment& s) {
  const wire::TcpOptions& o = s.parsed;
  Expected all{.flags = s.flags,
               .seq = s.seq,
               .ack = s.ack,
               .window = s.window,
               .payload = s.payload,
               .octets = s.octets,
               .ecn = s.ecn,
               .options = option_kinds(o),
               .mss = o.mss,
               .window_scale = o.window_scale,
               .sack = sack_blocks(o),
               .source_port = s.source_port,
               .dscp = s.dscp,
               .hop_limit = s.hop_limit};
  if (o.timestamps) {
    all.ts_value = o.timestamps->value;
    all.ts_echo = o.timestamps->echo;
  }
  return all;
}

template <size_t kCount>
std::string names_of(uint32_t set, const std::pair<uint32_t, const char*> (&names)[kCount]) {
  std::string text;
  for (const auto& [bit, name] : names) {
    if (set & bit) text += (text.empty() ? "" : "|") + std::string(name);
  }
  return text.empty() ? "none" : text;
}

inline std::string flag_names(uint8_t flags) {
  static constexpr std::pair<uint32_t, const char*> kNames[] = {
      {flag::kFin, "FIN"}, {flag::kSyn, "SYN"}, {flag::kRst, "RST"}, {flag::kPsh, "PSH"},
      {flag::kAck, "ACK"}, {flag::kUrg, "URG"}, {flag::kEce, "ECE"}, {flag::kCwr, "CWR"}};
  return names_of(flags, kNames);
}

inline std::string kind_names(uint16_t set) {
  static constexpr std::pair<uint32_t, const char*> kNames[] = {
      {kinds::kMss, "MSS"},
      {kinds::kWindowScale, "WS"},
      {kinds::kSackPermitted, "SACK-permitted"},
      {kinds::kSack, "SACK"},
      {kinds::kTimestamps, "timestamps"}};
  return names_of(set, kNames);
}

template <typename T>
std::string plain(const T& value) {
  if constexpr (std::is_integral_v<T>) return std::to_string(value);
  return ::testing::PrintToString(value);
}

/// Calls `of(name, member, how a value of it is printed)` for each member of Expected.
template <typename F>
void for_each_member(F of) {
  of("flags", &Expected::flags, flag_names);
  of("seq", &Expected::seq, plain<uint32_t>);
  of("ack", &Expected::ack, plain<uint32_t>);
  of("window", &Expected::window, plain<uint16_t>);
  of("payload", &Expected::payload, plain<uint32_t>);
  of("octets", &Expected::octets, plain<std::vector<uint8_t>>);
  of("ecn", &Expected::ecn, plain<uint8_t>);
  of("options", &Expected::options, kind_names);
  of("mss", &Expected::mss, plain<uint16_t>);
  of("window_scale", &Expected::window_scale, plain<uint8_t>);
  of("ts_value", &Expected::ts_value, plain<uint32_t>);
  of("ts_echo", &Expected::ts_echo, plain<uint32_t>);
  of("sack", &Expected::sack, plain<SackBlocks>);
  of("source_port", &Expected::source_port, plain<uint16_t>);
  of("dscp", &Expected::dscp, plain<uint8_t>);
  of("hop_limit", &Expected::hop_limit, plain<uint8_t>);
}

/// A line with all members that have a value.
inline std::string in_words(const Expected& segment) {
  std::string text;
  for_each_member([&](const char* name, auto member, auto print) {
    if (!(segment.*member)) return;
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + print(*(segment.*member));
  });
  return text;
}

/// A line for each member in which what was sent is not as expected.
inline std::string differences(const Expected& sent, const Expected& expected) {
  std::string text;
  for_each_member([&](const char* name, auto member, auto print) {
    const auto& want = expected.*member;
    const auto& got = sent.*member;
    if (!want || got == want) return;
    text += "\n  " + std::string(name) + ": " + (got ? print(*got) : "absent") + ", expected " +
            print(*want);
  });
  return text;
}

/// Fails once, at the caller's line, with all members that differ and both segments as a whole.
inline void compare(const Segment& s, Expected expected, Caller caller = {}) {
  const Expected sent = all_of(s);
  if (expected.octets) expected.payload = kAny;
  std::string text = differences(sent, expected);
  const auto of_a_syn = static_cast<uint16_t>(*sent.options & kinds::kOfASyn);
  if (!expected.options && !(s.flags & flag::kSyn) && of_a_syn != 0) {
    text += "\n  options: " + kind_names(of_a_syn) + ", expected on a SYN alone";
  }
  if (text.empty()) return;
  Expected shown = sent;
  if (!expected.octets) shown.octets = kAny;  // so many that they would hide the rest
  ADD_FAILURE_AT(caller.file, caller.line)
      << "the segment differs:" << text << "\n  sent: " << in_words(shown)
      << "\n  expected: " << in_words(expected);
}

}  // namespace rnic::testing
