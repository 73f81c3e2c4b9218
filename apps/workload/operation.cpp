#include "workload/operation.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace rnic::workload {

namespace {

constexpr std::array kWords{"send",      "write",      "read",     "write-imm",  "imm",
                            "fetch-add", "masked-add", "cmp-swap", "masked-swap"};

uint64_t word_of(const Pattern& pattern, uint64_t offset) {
  uint64_t word = 0;
  std::array<uint8_t, kWordOctets> octets{};
  fill(octets, pattern, offset);
  std::memcpy(&word, octets.data(), sizeof word);
  return word;
}

uint64_t after_add(uint64_t original, const AtomicOperands& o) {
  uint64_t result = 0;
  uint64_t carry = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t sum = carry + (original >> bit & 1) + (o.data >> bit & 1);
    result |= (sum & 1) << bit;
    const bool ends_field = (o.mask >> bit & 1) != 0;
    carry = ends_field ? 0 : sum >> 1;
  }
  return result;
}

uint64_t after_swap(uint64_t original, const AtomicOperands& o) {
  uint64_t result = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t one = uint64_t{1} << bit;
    if ((o.compare_mask & one) != 0 && (original & one) != (o.compare & one)) return original;
    result |= ((o.mask & one) != 0 ? o.data : original) & one;
  }
  return result;
}

std::optional<Mismatch> difference(std::span<const uint8_t> found, uint64_t word, uint64_t at) {
  std::array<uint8_t, kWordOctets> expected{};
  std::memcpy(expected.data(), &word, sizeof word);
  const auto [bad, want] =
      std::mismatch(found.begin(), found.begin() + kWordOctets, expected.begin());
  if (want == expected.end()) return std::nullopt;
  return Mismatch{at + static_cast<uint64_t>(bad - found.begin()), *want, *bad};
}

}  // namespace

const char* to_string(Operation operation) { return kWords[static_cast<size_t>(operation)]; }

std::optional<Operation> parse_operation(const std::string& word) {
  const auto* found = std::find(kWords.begin(), kWords.end(), word);
  if (found == kWords.end()) return std::nullopt;
  return static_cast<Operation>(found - kWords.begin());
}

std::vector<std::string> operation_words() { return {kWords.begin(), kWords.end()}; }

ImmediateData immediate_of(const Pattern& pattern, uint64_t index) {
  ImmediateData octets{};
  fill(octets, pattern, index * kWordOctets);
  return octets;
}

Opcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::Send: return Opcode::Send;
    case Operation::Write:
    case Operation::WriteImmediate: return Opcode::Write;
    case Operation::Read: return Opcode::Read;
    case Operation::Immediate: return Opcode::Immediate;
    case Operation::FetchAdd:
    case Operation::MaskedAdd: return Opcode::FetchAdd;
    case Operation::CompareSwap:
    case Operation::MaskedSwap: break;
  }
  return Opcode::CompareSwap;
}

AtomicStep step_atomic(Operation operation, const Pattern& pattern, uint64_t index,
                       uint64_t& word) {
  const Pattern drawn{~pattern.seed, pattern.generation};
  const auto draw = [&](uint64_t which) { return word_of(drawn, (index * 4 + which) * 8); };
  AtomicStep step{.operands = {.data = draw(0)}, .original = word};
  AtomicOperands& o = step.operands;
  switch (operation) {
    case Operation::MaskedAdd: o.mask = draw(1) & draw(2); break;
    case Operation::CompareSwap:
      o.mask = o.compare_mask = ~uint64_t{0};
      o.compare = index % 4 == 3 ? draw(1) : word;
      break;
    case Operation::MaskedSwap:
      o.mask = draw(1);
      o.compare_mask = draw(2);
      // What is not compared may be anything.
      o.compare = index % 4 == 3 ? draw(3) : (word & o.compare_mask) | (draw(3) & ~o.compare_mask);
      break;
    default: break;
  }
  const bool add = operation == Operation::FetchAdd || operation == Operation::MaskedAdd;
  word = add ? after_add(word, o) : after_swap(word, o);
  return step;
}

AtomicBatch::AtomicBatch(Operation operation, const Pattern& pattern, uint32_t slots,
                         uint64_t messages)
    : pattern_(pattern) {
  for (uint32_t slot = 0; slot < std::max(slots, 1u); ++slot) {
    words_.push_back(word_of(pattern, slot * kWordStride));
  }
  steps_.reserve(messages);
  for (uint64_t i = 0; i < messages; ++i) {
    steps_.push_back(step_atomic(operation, pattern, i, words_[i % words_.size()]));
  }
}

std::optional<Mismatch> AtomicBatch::compare_targets(std::span<const uint8_t> octets) const {
  for (size_t slot = 0; slot < words_.size(); ++slot) {
    const uint64_t at = slot * kWordStride;
    const auto place = octets.subspan(at, kWordStride);
    if (const auto bad = difference(place, words_[slot], at)) return bad;
    if (auto bad = compare(place.subspan(kWordOctets), pattern_, at + kWordOctets)) {
      bad->offset += at + kWordOctets;
      return bad;
    }
  }
  return std::nullopt;
}

std::optional<Mismatch> AtomicBatch::compare_originals(std::span<const uint8_t> octets) const {
  const size_t slots = words_.size();
  for (size_t i = steps_.size() > slots ? steps_.size() - slots : 0; i < steps_.size(); ++i) {
    const uint64_t at = i % slots * kWordStride;
    if (const auto bad = difference(octets.subspan(at, kWordStride), steps_[i].original, at)) {
      return bad;
    }
  }
  return std::nullopt;
}

}  // namespace rnic::workload
