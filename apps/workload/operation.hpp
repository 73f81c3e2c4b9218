/// \file
/// What the programs do to a peer, and what an atomic of theirs has to find and to leave.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rnic/types.hpp"
#include "workload/pattern.hpp"

namespace rnic::workload {

enum class Operation : uint8_t {
  Send,
  Write,
  Read,
  WriteImmediate,  ///< a Write, then Immediate Data: its arrival says that the Write is placed
  Immediate,
  FetchAdd,
  MaskedAdd,  ///< FetchAdd in fields, whose highest bits a mask marks
  CompareSwap,
  MaskedSwap,  ///< CmpSwap of some bits, if some bits are as expected
};
[[nodiscard]] const char* to_string(Operation operation);
/// "send", "write", ...; nothing for another word.
[[nodiscard]] std::optional<Operation> parse_operation(const std::string& word);
/// All words that parse_operation() knows.
[[nodiscard]] std::vector<std::string> operation_words();
/// Says what each word means, for the help of a program.
inline constexpr const char* kOperationHelp =
    "send, write, read; write-imm (Write, then Immediate Data), imm (Immediate Data); fetch-add, "
    "masked-add, cmp-swap, masked-swap (atomics of RFC 7306, 8 octets)";

[[nodiscard]] constexpr bool is_atomic(Operation operation) {
  return operation >= Operation::FetchAdd;
}
/// The peer posts a receive for each message.
[[nodiscard]] constexpr bool takes_receive(Operation operation) {
  return operation == Operation::Send || operation == Operation::WriteImmediate ||
         operation == Operation::Immediate;
}
[[nodiscard]] constexpr bool has_immediate(Operation operation) {
  return operation == Operation::WriteImmediate || operation == Operation::Immediate;
}
/// A message is 8 octets, whatever one may wish.
[[nodiscard]] constexpr bool is_of_word(Operation operation) {
  return operation == Operation::Immediate || is_atomic(operation);
}
inline constexpr uint64_t kWordOctets = 8;
/// Distance of the words that a batch of atomics works on: what lies between must stay as it is.
inline constexpr uint64_t kWordStride = 64;

/// The work request that carries it out; of WriteImmediate the first.
[[nodiscard]] Opcode opcode_of(Operation operation);

/// The 8 octets of message `index`.
[[nodiscard]] ImmediateData immediate_of(const Pattern& pattern, uint64_t index);

/// One atomic: what it asks for and what it has to find.
struct AtomicStep {
  AtomicOperands operands;
  uint64_t original = 0;
};

/// Draws the operands of atomic `index` and carries it out on `word`, bit by bit as RFC 7306
/// section 5.1 tells it. Three comparisons in four find what they look for.
AtomicStep step_atomic(Operation operation, const Pattern& pattern, uint64_t index, uint64_t& word);

/// What a batch of atomics does to the words of `slots` places, kWordStride apart, that hold the
/// pattern before; atomic i works on place i mod `slots`.
class AtomicBatch {
 public:
  AtomicBatch(Operation operation, const Pattern& pattern, uint32_t slots, uint64_t messages);

  [[nodiscard]] const AtomicStep& step(uint64_t index) const { return steps_[index]; }
  /// Compares the places with what they must hold after the batch, octet by octet.
  [[nodiscard]] std::optional<Mismatch> compare_targets(std::span<const uint8_t> octets) const;
  /// Compares memory that took the original values, laid out in the same way.
  [[nodiscard]] std::optional<Mismatch> compare_originals(std::span<const uint8_t> octets) const;

 private:
  Pattern pattern_;
  std::vector<AtomicStep> steps_;
  std::vector<uint64_t> words_;  // by place, after the batch
};

}  // namespace rnic::workload
