#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "rnic-demo/demo.hpp"

namespace rnic::demo {

namespace {

using workload::Operation;

void print_row(const char* operation, const char* wire, const std::string& size, const Run& run) {
  std::printf("%-11s %-8s %9s %8.3f %9.0f %6.1f %10llu %9llu %7llu %5llu  %s\n", operation, wire,
              size.c_str(), run.goodput_gbps, run.msgs_per_s, run.aligned_pct,
              static_cast<unsigned long long>(run.ooo_placed_octets),
              static_cast<unsigned long long>(run.held_octets),
              static_cast<unsigned long long>(run.retransmissions),
              static_cast<unsigned long long>(run.crc_drops), run.verified ? "yes" : "NO");
}

/// Every size that has no row of its own, in one: medians of the rates, sums of the counts.
Run summary(const std::vector<Run>& runs, size_t& count) {
  Run sum;
  sum.verified = true;
  std::vector<double> goodput;
  std::vector<double> rate;
  std::vector<double> aligned;
  for (const Run& run : runs) {
    if (is_headline_size(run.size)) continue;
    goodput.push_back(run.goodput_gbps);
    rate.push_back(run.msgs_per_s);
    aligned.push_back(run.aligned_pct);
    sum.ooo_placed_octets += run.ooo_placed_octets;
    sum.held_octets += run.held_octets;
    sum.retransmissions += run.retransmissions;
    sum.crc_drops += run.crc_drops;
    sum.verified = sum.verified && run.verified;
  }
  count = goodput.size();
  const auto median = [](std::vector<double>& values) {
    if (values.empty()) return 0.0;
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  };
  sum.goodput_gbps = median(goodput);
  sum.msgs_per_s = median(rate);
  sum.aligned_pct = median(aligned);
  return sum;
}

}  // namespace

std::string size_text(uint64_t octets) {
  if (octets >= (1u << 20) && octets % (1u << 20) == 0) return std::to_string(octets >> 20) + " MB";
  if (octets >= (1u << 10) && octets % (1u << 10) == 0) return std::to_string(octets >> 10) + " KB";
  return std::to_string(octets) + " B";
}

bool is_headline_size(uint64_t octets) {
  return octets == 64 || octets == (4u << 10) || octets == (64u << 10) || octets == (1u << 20) ||
         octets == (64u << 20);
}

void print_table(const Campaign& campaign) {
  std::printf("%-11s %-8s %9s %8s %9s %6s %10s %9s %7s %5s  %s\n", "op", "wire", "size", "Gb/s",
              "msgs/s", "align%", "placed ooo", "held", "retrans", "CRC", "verified");
  for (const Operation op : kOperations) {
    for (const Wire wire : {Wire::Clean, Wire::Hostile}) {
      std::vector<Run> runs;
      for (const Run& run : campaign.runs) {
        if (run.operation == op && run.wire == wire) runs.push_back(run);
      }
      for (const Run& run : runs) {
        if (is_headline_size(run.size) || workload::is_of_word(op)) {
          print_row(workload::to_string(op), to_string(wire), size_text(run.size), run);
        }
      }
      if (workload::is_of_word(op)) continue;
      size_t others = 0;
      const Run rest = summary(runs, others);
      if (others == 0) continue;
      print_row(workload::to_string(op), to_string(wire), std::to_string(others) + " more", rest);
    }
  }
}

std::string to_json(const Campaign& campaign) {
  nlohmann::ordered_json json;
  json["runs"] = nlohmann::ordered_json::array();
  for (const Run& run : campaign.runs) {
    json["runs"].push_back({{"op", workload::to_string(run.operation)},
                            {"size", run.size},
                            {"wire", to_string(run.wire)},
                            {"goodput_gbps", run.goodput_gbps},
                            {"msgs_per_s", run.msgs_per_s},
                            {"aligned_pct", run.aligned_pct},
                            {"ooo_placed_octets", run.ooo_placed_octets},
                            {"held_octets", run.held_octets},
                            {"retransmissions", run.retransmissions},
                            {"crc_drops", run.crc_drops},
                            {"verified", run.verified}});
  }
  return json.dump();
}

}  // namespace rnic::demo
