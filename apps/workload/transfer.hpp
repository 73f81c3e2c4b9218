/// \file
/// Messages from one registered buffer to another, verified octet by octet at the far end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "workload/buffer.hpp"
#include "workload/operation.hpp"
#include "workload/pair.hpp"
#include "workload/pattern.hpp"

namespace rnic::workload {

struct TransferOptions {
  Operation operation = Operation::Write;
  uint64_t size = 1u << 20;  ///< octets of a message, 1..2^32-1; 8 where is_of_word()
  uint32_t slots = 1;        ///< messages cycle through this many places of the regions
  uint32_t depth = 16;       ///< messages outstanding
  int64_t timeout_ms = 60000;
  uint64_t seed = 1;
};

/// The timed part of a run.
struct TransferResult {
  uint64_t messages = 0;
  uint64_t octets = 0;
  int64_t elapsed_ns = 0;           ///< first post to last completion
  std::vector<int64_t> latency_ns;  ///< post to completion, each message
};

/// Moves messages between the two ends of a pair: Send, Write and Immediate Data from the initiator
/// to the responder, Read the other way; atomics of the initiator work on words of the responder.
/// One thread; `poll` drives the devices that this thread runs.
class Transfer {
 public:
  static Result<std::unique_ptr<Transfer>> create(Context& context, Pair& pair,
                                                  const TransferOptions& options,
                                                  std::function<void()> poll);

  /// Outside the timed part: gives the source (of atomics: the words) a new generation, poisons the
  /// target (of atomics: where their originals go).
  void prepare();
  /// Posts `messages` messages and waits for all of them. The error says what did not come back;
  /// after prepare() also which immediate or original value was another than it must be.
  Status run(uint64_t messages, TransferResult& result);
  /// Outside the timed part: compares every octet of the slots that the last run() wrote.
  [[nodiscard]] std::optional<Mismatch> verify() const;

  [[nodiscard]] const TransferOptions& options() const { return options_; }

 private:
  Transfer(Context& context, Pair& pair, const TransferOptions& options, std::function<void()> poll)
      : context_(context), pair_(pair), options_(options), poll_(std::move(poll)) {}

  Status post(uint64_t index);
  Status post_receives();
  Status reap(TransferResult& result);
  Status reap_receives();
  [[nodiscard]] Status check_original(const Completion& done) const;
  [[nodiscard]] Status stalled() const;

  Context& context_;
  Pair& pair_;
  TransferOptions options_;
  std::function<void()> poll_;
  Buffer source_;
  Buffer target_;
  MemoryRegion source_region_;
  MemoryRegion target_region_;
  uint64_t slot_octets_ = 0;  // distance of two slots
  Pattern pattern_;
  bool prepared_ = false;               // and not run since: all values are known
  std::optional<AtomicBatch> atomics_;  // of this run
  uint64_t messages_ = 0;               // of this run
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;
  uint64_t receives_posted_ = 0;
  uint64_t received_ = 0;
  std::vector<int64_t> post_time_;  // by index mod depth
};

}  // namespace rnic::workload
