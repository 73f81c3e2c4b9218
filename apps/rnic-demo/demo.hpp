/// \file
/// rnic-demo: two soft RNICs in one process move verified data over a clean and over a hostile
/// wire.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "workload/workload.hpp"

namespace rnic::demo {

enum class Wire : uint8_t { Clean, Hostile };
[[nodiscard]] const char* to_string(Wire wire);

/// One operation at one size on one wire.
struct Run {
  workload::Operation operation = workload::Operation::Send;
  uint64_t size = 0;  ///< octets of a message
  Wire wire = Wire::Clean;
  uint64_t messages = 0;
  double goodput_gbps = 0;
  double msgs_per_s = 0;
  double aligned_pct = 0;  ///< data segments that begin and end at an FPDU boundary
  uint64_t ooo_placed_octets = 0;
  uint64_t held_octets = 0;
  uint64_t retransmissions = 0;  ///< segments
  uint64_t crc_drops = 0;        ///< segments
  bool verified = false;
  std::string error;     ///< why not verified
  bool starved = false;  ///< the machine did not give what it takes: nothing was tried
};

/// What happened to the segments of one message, both ends' events in one list.
struct Picture {
  workload::Operation operation = workload::Operation::Send;
  uint64_t size = 0;
  std::vector<TraceEvent> events;  ///< sorted by time; offsets from the message's first octet on
};

/// Everything that a demo found out.
struct Campaign {
  std::vector<Run> runs;
  std::vector<Picture> pictures;
  std::vector<std::pair<std::string, std::string>>
      facts;                  ///< configuration and machine, name and value
  std::string configuration;  ///< the TOML text and the overrides
  bool complete = false;
};

/// What a demo does, in this order.
inline constexpr std::array kOperations{
    workload::Operation::Send,        workload::Operation::Write,
    workload::Operation::Read,        workload::Operation::Immediate,
    workload::Operation::FetchAdd,    workload::Operation::MaskedAdd,
    workload::Operation::CompareSwap, workload::Operation::MaskedSwap};

/// 2^k for k = 0..26, 2^k - 1 for k = 2..26, ascending. `largest` cuts the list (for a quick look).
[[nodiscard]] std::vector<uint64_t> message_sizes(uint64_t largest);
/// These, or 8 octets alone where no other message exists.
[[nodiscard]] std::vector<uint64_t> message_sizes(workload::Operation operation, uint64_t largest);

/// Runs everything; progress goes to stderr. The error is one of the environment; a run that fails
/// is in the campaign.
Status run_campaign(uint64_t largest, uint64_t seed, Campaign& campaign);

/// The table that fits a screen.
void print_table(const Campaign& campaign);
[[nodiscard]] std::string to_json(const Campaign& campaign);
/// One self-contained page.
[[nodiscard]] std::string to_html(const Campaign& campaign);
/// The picture as an SVG element.
[[nodiscard]] std::string to_svg(const Picture& picture);

/// "64 B", "4 KB", "1 MB"
[[nodiscard]] std::string size_text(uint64_t octets);
/// Rows of their own in the table: 64 octets, 4 KB, 64 KB, 1 MB, 64 MB. What moves words has one
/// row.
[[nodiscard]] bool is_headline_size(uint64_t octets);

}  // namespace rnic::demo
