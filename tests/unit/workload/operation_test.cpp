// What the programs expect of atomics, and that they see when it is not so.

#include "workload/operation.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace rnic::workload {
namespace {

constexpr uint32_t kSlots = 3;
constexpr uint64_t kMessages = 8;
constexpr Pattern kPattern{5, 2};

uint64_t load(const std::vector<uint8_t>& octets, uint64_t at) {
  uint64_t word = 0;
  std::memcpy(&word, octets.data() + at, sizeof word);
  return word;
}

void store(std::vector<uint8_t>& octets, uint64_t at, uint64_t word) {
  std::memcpy(octets.data() + at, &word, sizeof word);
}

/// What a right peer does, without masks or by arithmetic that the model does not use.
uint64_t right_result(Operation operation, uint64_t original, const AtomicOperands& o) {
  switch (operation) {
    case Operation::FetchAdd: return original + o.data;
    case Operation::MaskedAdd:
      return ((original & ~o.mask) + (o.data & ~o.mask)) ^ ((original ^ o.data) & o.mask);
    case Operation::CompareSwap: return original == o.compare ? o.data : original;
    default: break;
  }
  const bool equal = ((original ^ o.compare) & o.compare_mask) == 0;
  return equal ? (original & ~o.mask) | (o.data & o.mask) : original;
}

struct Memory {
  std::vector<uint8_t> targets = std::vector<uint8_t>(kSlots * kWordStride);
  std::vector<uint8_t> originals = std::vector<uint8_t>(kSlots * kWordStride);
};

/// \param twice this message is carried out again, without its original being told
Memory carry_out(Operation operation, const AtomicBatch& batch, uint64_t twice = kMessages) {
  Memory memory;
  fill(memory.targets, kPattern);
  for (uint64_t i = 0; i < kMessages; ++i) {
    const uint64_t at = i % kSlots * kWordStride;
    const uint64_t original = load(memory.targets, at);
    EXPECT_TRUE(twice < kMessages || original == batch.step(i).original);
    store(memory.originals, at, original);
    for (int times = 0; times < (i == twice ? 2 : 1); ++times) {
      store(memory.targets, at,
            right_result(operation, load(memory.targets, at), batch.step(i).operands));
    }
  }
  return memory;
}

TEST(AtomicBatch, ARightPeerPasses) {
  for (const Operation op :
       {Operation::FetchAdd, Operation::MaskedAdd, Operation::CompareSwap, Operation::MaskedSwap}) {
    const AtomicBatch batch(op, kPattern, kSlots, kMessages);
    const Memory memory = carry_out(op, batch);
    EXPECT_FALSE(batch.compare_targets(memory.targets)) << to_string(op);
    EXPECT_FALSE(batch.compare_originals(memory.originals)) << to_string(op);
  }
}

TEST(AtomicBatch, EveryWrongBitIsSeen) {
  for (const Operation op : {Operation::FetchAdd, Operation::MaskedSwap}) {
    const AtomicBatch batch(op, kPattern, kSlots, kMessages);
    Memory memory = carry_out(op, batch);
    for (uint64_t bit = 0; bit < memory.targets.size() * 8; ++bit) {
      memory.targets[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
      const auto bad = batch.compare_targets(memory.targets);
      ASSERT_TRUE(bad && bad->offset == bit / 8) << bit;
      memory.targets[bit / 8] ^= static_cast<uint8_t>(1u << bit % 8);
    }
    for (uint64_t slot = 0; slot < kSlots; ++slot) {
      memory.originals[slot * kWordStride + 7] ^= 1;
      EXPECT_TRUE(batch.compare_originals(memory.originals));
      memory.originals[slot * kWordStride + 7] ^= 1;
    }
  }
}

TEST(AtomicBatch, AnAdditionDoneTwiceIsSeen) {
  for (const Operation op : {Operation::FetchAdd, Operation::MaskedAdd}) {
    const AtomicBatch batch(op, kPattern, kSlots, kMessages);
    for (uint64_t i = 0; i < kMessages; ++i) {
      EXPECT_TRUE(batch.compare_targets(carry_out(op, batch, i).targets)) << to_string(op) << i;
    }
  }
}

TEST(AtomicBatch, ComparisonsMatchAndFail) {
  for (const Operation op : {Operation::CompareSwap, Operation::MaskedSwap}) {
    uint32_t swapped = 0;
    uint64_t word = 77;
    for (uint64_t i = 0; i < 100; ++i) {
      const uint64_t before = word;
      EXPECT_EQ(step_atomic(op, kPattern, i, word).original, before);
      if (word != before) ++swapped;
    }
    EXPECT_EQ(swapped, 75u) << to_string(op);
  }
}

TEST(Operation, WordsAndBack) {
  for (const std::string& word : operation_words()) {
    const auto operation = parse_operation(word);
    ASSERT_TRUE(operation);
    EXPECT_EQ(to_string(*operation), word);
    EXPECT_NE(std::string(kOperationHelp).find(word), std::string::npos) << "the help has it";
  }
  EXPECT_FALSE(parse_operation("erase"));
}

}  // namespace
}  // namespace rnic::workload
