// Which messages a flow consists of.

#include "base/prng.hpp"
#include "traffic.hpp"

namespace rnic::simulation {

namespace {

uint32_t mixed_length(base::Prng& prng) {
  const uint64_t kind = prng.below(100);
  if (kind < 4) return 0;
  if (kind < 35) return static_cast<uint32_t>(prng.between(1, 256));
  if (kind < 65) return static_cast<uint32_t>(prng.between(257, 4096));
  if (kind < 88) return static_cast<uint32_t>(prng.between(4097, 16384));
  if (kind < 98) return static_cast<uint32_t>(prng.between(16385, 65536));
  return static_cast<uint32_t>(prng.between(65537, 200'000));
}

uint32_t tiny_length(base::Prng& prng) {
  return prng.chance(0.9) ? static_cast<uint32_t>(prng.below(257))
                          : static_cast<uint32_t>(prng.between(2000, 30'000));
}

uint32_t length_of(Sizes sizes, base::Prng& prng) {
  switch (sizes) {
    case Sizes::Tiny: return tiny_length(prng);
    case Sizes::Small: return static_cast<uint32_t>(prng.below(257));
    case Sizes::Mixed: break;
  }
  return mixed_length(prng);
}

Operation operation(base::Prng& prng) {
  const uint64_t kind = prng.below(100);
  if (kind < 22) return Operation::Send;
  if (kind < 25) return Operation::Immediate;
  if (kind < 33) return Operation::SendSolicited;
  if (kind < 40) return Operation::SendInvalidate;
  if (kind < 73) return Operation::Write;
  if (kind < 94) return Operation::Read;
  return kind < 97 ? Operation::FetchAdd : Operation::CompareSwap;
}

}  // namespace

std::vector<MessagePlan> plan_messages(const WorldPlan& plan, uint32_t count, uint64_t octets,
                                       base::Prng& prng) {
  std::vector<MessagePlan> messages;
  uint64_t sum = 0;
  while (messages.size() < count || sum < octets) {
    MessagePlan m;
    m.operation = operation(prng);
    m.length = length_of(plan.sizes, prng);
    if (messages.size() >= count) m.length = static_cast<uint32_t>(prng.between(20'000, 65'536));
    m.pieces = prng.chance(0.3) ? static_cast<uint32_t>(prng.between(2, 4)) : 1;
    m.receive_pieces = prng.chance(0.3) ? static_cast<uint32_t>(prng.between(2, 4)) : 1;
    m.slack = prng.chance(0.5) ? 0 : static_cast<uint32_t>(prng.below(300));
    m.signaled = prng.chance(0.85);
    m.fence = prng.chance(0.1);
    if (m.operation == Operation::Read) m.pieces = 1;  // one sink (work.hpp)
    if (m.operation == Operation::Immediate) m.length = m.pieces = 0;
    if (m.operation == Operation::FetchAdd || m.operation == Operation::CompareSwap) {
      m.length = 8;
      m.pieces = prng.chance(0.5) ? 1 : 0;
    }
    sum += m.length;
    messages.push_back(m);
    // Read it back at once: the Read must see the Write before it (RFC 5040 s.5.5).
    if (m.operation == Operation::Write && m.length != 0 && prng.chance(0.3)) {
      messages.back().signaled = true;
      m.operation = Operation::ReadBack;
      m.pieces = 1;
      m.signaled = true;
      m.fence = false;
      sum += m.length;
      messages.push_back(m);
    }
  }
  messages.back().signaled = true;  // its completion is that of all
  return messages;
}

}  // namespace rnic::simulation
