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
  IpAddress source;           ///< of what the stack gets; unspecified: the peer's
  uint8_t ecn = 0;            ///< the two bits of the IP header
  uint8_t traffic_class = 0;  ///< sent: DSCP << 2 | ECN
  uint8_t hop_limit = 0;      ///< sent; 0: the interface's default
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
}  // namespace kinds

/// What a test expects of a segment that the stack sent. A member without a value is not compared.
struct Expected {
  std::optional<uint8_t> flags{};
  std::optional<uint32_t> seq{};
  std::optional<uint32_t> ack{};
  std::optional<uint16_t> window{};
  std::optional<uint32_t> payload{};             ///< octets
  std::optional<std::vector<uint8_t>> octets{};  ///< the payload itself
  std::optional<uint8_t> ecn{};                  ///< codepoint of the IP header
  std::optional<uint16_t> options{};             ///< `kinds`: these and no others
  std::optional<uint16_t> mss{};                 ///< present, with this value; so for the next ones
  std::optional<uint8_t> window_scale{};
  std::optional<uint32_t> ts_value{};
  std::optional<uint32_t> ts_echo{};
  std::optional<SackBlocks> sack{};  ///< all of them in this order
  std::optional<uint16_t> source_port{};
  std::optional<uint8_t> traffic_class{};  ///< DSCP << 2 | ECN
  std::optional<uint8_t> hop_limit{};      ///< 0: the interface's default
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
               .traffic_class = s.traffic_class,
               .hop_limit = s.hop_limit};
  if (o.timestamps) {
    all.ts_value = o.timestamps->value;
    all.ts_echo = o.timestamps->echo;
  }
  return all;
}

inline std::string flag_names(uint8_t flags) {
  static constexpr std::pair<uint8_t, const char*> kNames[] = {
      {flag::kFin, "FIN"}, {flag::kSyn, "SYN"}, {flag::kRst, "RST"}, {flag::kPsh, "PSH"},
      {flag::kAck, "ACK"}, {flag::kUrg, "URG"}, {flag::kEce, "ECE"}, {flag::kCwr, "CWR"}};
  std::string names;
  for (const auto& [bit, name] : kNames) {
    if (flags & bit) names += (names.empty() ? "" : "|") + std::string(name);
  }
  return names.empty() ? "none" : names;
}

/// Collects how a segment differs from what was expected.
class Differences {
 public:
  template <typename T>
  void member(const char* name, const std::optional<T>& expected, const std::optional<T>& sent) {
    if (!expected || sent == expected) return;
    add(name, sent ? printed(*sent) : "absent", printed(*expected));
  }
  void flags(std::optional<uint8_t> expected, uint8_t sent) {
    if (expected && sent != *expected) add("flags", flag_names(sent), flag_names(*expected));
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  template <typename T>
  static std::string printed(const T& value) {
    if constexpr (std::is_integral_v<T>) return std::to_string(value);
    return ::testing::PrintToString(value);
  }
  void add(const std::string& name, const std::string& sent, const std::string& expected) {
    text_ += "\n  " + name + ": " + sent + ", expected " + expected;
  }

  std::string text_;
};

/// Fails once, at the caller's line, with all members that differ.
inline void compare(const Segment& s, const Expected& expected, Caller caller = {}) {
  const Expected sent = all_of(s);
  Differences d;
  d.flags(expected.flags, s.flags);
  d.member("seq", expected.seq, sent.seq);
  d.member("ack", expected.ack, sent.ack);
  d.member("window", expected.window, sent.window);
  d.member("payload", expected.payload, sent.payload);
  d.member("octets", expected.octets, sent.octets);
  d.member("ecn", expected.ecn, sent.ecn);
  d.member("options", expected.options, sent.options);
  d.member("mss", expected.mss, sent.mss);
  d.member("window_scale", expected.window_scale, sent.window_scale);
  d.member("ts_value", expected.ts_value, sent.ts_value);
  d.member("ts_echo", expected.ts_echo, sent.ts_echo);
  d.member("sack", expected.sack, sent.sack);
  d.member("source_port", expected.source_port, sent.source_port);
  d.member("traffic_class", expected.traffic_class, sent.traffic_class);
  d.member("hop_limit", expected.hop_limit, sent.hop_limit);
  if (d.text().empty()) return;
  ADD_FAILURE_AT(caller.file, caller.line) << "the segment differs:" << d.text();
}

}  // namespace rnic::testing
