#include "plan.hpp"

#include <algorithm>

namespace rnic::siw {

namespace {

constexpr uint32_t kPlanMagic = 0x54524c31;
constexpr uint32_t kReplyMagic = 0x54524c32;
constexpr uint32_t kControlMagic = 0x54524c43;
constexpr size_t kPlanHead = 20;
constexpr size_t kSeedAt = 8;
constexpr size_t kTextAt = 32;
constexpr size_t kTextOctets = 64;
constexpr size_t kStagsAt = kTextAt + kTextOctets;

void put(uint8_t* at, uint64_t value, int octets) {
  for (int i = octets - 1; i >= 0; --i, value >>= 8) at[i] = static_cast<uint8_t>(value);
}

uint64_t get(const uint8_t* at, int octets) {
  uint64_t value = 0;
  for (int i = 0; i < octets; ++i) value = value << 8 | at[i];
  return value;
}

}  // namespace

std::optional<Plan> Plan::decode(std::span<const uint8_t> octets) {
  if (octets.size() < kPlanHead || get(&octets[0], 4) != kPlanMagic) return std::nullopt;
  const size_t count = octets[18];
  if (count > kMaxSizes || octets.size() < kPlanHead + 4 * count) return std::nullopt;
  if (octets[4] > static_cast<uint8_t>(Operation::Read)) return std::nullopt;
  if (octets[6] > static_cast<uint8_t>(Breach::ReadInvalidated)) return std::nullopt;
  Plan plan;
  plan.operation = static_cast<Operation>(octets[4]);
  plan.acceptor_speaks = octets[5] != 0;
  plan.breach = static_cast<Breach>(octets[6]);
  plan.breach_round = octets[7];
  plan.seed = get(&octets[kSeedAt], 8);
  plan.patience = static_cast<uint16_t>(get(&octets[16], 2));
  plan.pairs = octets[19];
  for (size_t i = 0; i < count; ++i) {
    plan.sizes.push_back(static_cast<uint32_t>(get(&octets[kPlanHead + 4 * i], 4)));
  }
  return plan;
}

std::vector<uint8_t> from_hex(const std::string& digits) {
  std::vector<uint8_t> octets;
  for (size_t i = 0; i + 1 < digits.size(); i += 2) {
    octets.push_back(static_cast<uint8_t>(std::stoul(digits.substr(i, 2), nullptr, 16)));
  }
  return octets;
}

void set_seed(std::span<uint8_t> plan, uint64_t seed) { put(&plan[kSeedAt], seed, 8); }

std::array<uint8_t, 12> encode_reply(uint64_t seed) {
  std::array<uint8_t, 12> octets;
  put(&octets[0], kReplyMagic, 4);
  put(&octets[4], seed, 8);
  return octets;
}

void Control::encode(std::span<uint8_t, kControlOctets> octets) const {
  std::fill(octets.begin(), octets.end(), uint8_t{0});
  put(&octets[0], kControlMagic, 4);
  octets[4] = static_cast<uint8_t>(kind);
  octets[5] = ok ? 1 : 0;
  put(&octets[8], stag, 4);
  put(&octets[16], address, 8);
  put(&octets[24], length, 8);
  const size_t said = std::min(text.size(), kTextOctets - 1);
  std::copy_n(text.begin(), said, octets.begin() + kTextAt);
  for (size_t i = 0; i < std::min(stags.size(), kMaxSizes); ++i) {
    put(&octets[kStagsAt + 4 * i], stags[i], 4);
  }
}

std::optional<Control> Control::decode(std::span<const uint8_t, kControlOctets> octets) {
  if (get(&octets[0], 4) != kControlMagic || octets[4] < 1 || octets[4] > 3) return std::nullopt;
  Control control;
  control.kind = static_cast<ControlKind>(octets[4]);
  control.ok = octets[5] != 0;
  control.stag = static_cast<uint32_t>(get(&octets[8], 4));
  control.address = get(&octets[16], 8);
  control.length = get(&octets[24], 8);
  const auto begin = octets.begin() + kTextAt;
  control.text.assign(begin, std::find(begin, begin + kTextOctets, uint8_t{0}));
  for (size_t i = 0; i < kMaxSizes; ++i) {
    control.stags.push_back(static_cast<uint32_t>(get(&octets[kStagsAt + 4 * i], 4)));
  }
  return control;
}

}  // namespace rnic::siw
