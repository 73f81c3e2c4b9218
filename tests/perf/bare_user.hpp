/// \file
/// The least that a user of a stream can be: what is measured is TCP's alone.
#pragma once

#include <algorithm>
#include <cstring>

#include "llp/stream.hpp"
#include "llp/transport.hpp"

namespace rnic::perf {

/// Sends `to_send` records of `record` octets, takes everything, counts.
class BareUser : public llp::StreamUser {
 public:
  void established(uint32_t, base::Now) override { ++established_count; }
  llp::Pulled pull(uint32_t n, uint64_t, llp::Frame& out, base::Now) override {
    const uint32_t length = std::min(record, n);
    if (to_send == 0 || length == 0) return {};
    --to_send;
    std::memset(out.append(length), 0x5a, length);
    return {.length = length, .push = false, .atomic = true, .tag = {}};
  }
  bool rebuild(const llp::RecordTag&, uint64_t, uint32_t length, llp::Frame& out) override {
    std::memset(out.append(length), 0x5a, length);
    return true;
  }
  void released(const llp::RecordTag&, uint64_t) override { ++released_count; }
  void released_run(llp::RecordRun run) override { released_count += run.size(); }
  llp::InspectVerdict inspect(base::Range, base::ByteView, base::Now) override {
    return llp::InspectVerdict::Accept;
  }
  void place(base::Range range, base::ByteView, bool, base::Now) override {
    placed += range.size();
  }
  void ordered(uint64_t, base::Now) override {}
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override { return 1u << 20; }
  void peer_finished(base::Now) override {}
  void ended(StreamEnd how, base::Now) override {
    ++ended_count;
    closed_count += how == StreamEnd::Closed ? 1 : 0;
  }

  uint32_t record = 1448;
  uint64_t to_send = 0;
  uint64_t established_count = 0;
  uint64_t released_count = 0;
  uint64_t placed = 0;
  uint64_t ended_count = 0;
  uint64_t closed_count = 0;
};

}  // namespace rnic::perf
