// TCP sequence numbers pass 2^32 within an MPA stream with markers, at every place of it.

#include "mpa_over_tcp.hpp"

namespace rnic::testing {
namespace {

using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

/// What one side has sent, by its sequence numbers.
struct Tape {
  uint32_t iss;
  Octets octets;
  void take(const LinkFrame& frame) {
    if (frame.payload() == 0) return;
    const uint32_t at = frame.sequence() - iss - 1;
    const size_t header = frame.tcp.size() - frame.payload();
    octets.resize(std::max<size_t>(octets.size(), at + size_t{frame.payload()}));
    std::copy(frame.tcp.begin() + static_cast<long>(header), frame.tcp.end(),
              octets.begin() + static_cast<long>(at));
  }
};

// MPA-4.3-04: the initial sequence numbers are chosen so that 2^32 lies
// before, in and behind each FPDU header, ULPDU, marker and CRC of some FPDUs, in both directions.
// On the wire stands what the slow encoder says; and with a segment lost, the FPDUs behind the hole
// are found by their markers, beyond the wrap and before it.
TEST(SequenceWrap, MarkersStandWhereTheyShould_MPA_4_3_05_MPA_4_3_06) {
  constexpr uint32_t kFpdus = 3;
  constexpr size_t kLength = 510;  // an FPDU with its marker: 520 octets
  uint32_t in_pointer_range = 0;   // 2^32 between an FPDU's length and a marker of that FPDU
  uint64_t early = 0;
  for (uint32_t before = 1; before <= 20 + kFpdus * 520 + 8; before += before < 600 ? 1 : 5) {
    MpaConnection c;
    Tape from_a{0u - before, {}}, from_b{0u - before - 2, {}};
    c.link.a.force_isn(from_a.iss);
    c.link.b.force_isn(from_b.iss);
    c.link.seen = [&](const LinkFrame& frame) { (frame.from_a ? from_a : from_b).take(frame); };
    c.open();
    SlowEncoder to_b(kFullOperation, true), to_a(kFullOperation, true);
    bool lost = false;
    c.link.hook = [&](const LinkFrame& frame) {  // the first FPDU
      const bool drop = !lost && frame.from_a && frame.payload() > 500;
      lost = lost || drop;
      return Fate{.drop = drop};
    };
    c.queue(kFpdus, kLength);
    c.expect_all_delivered();
    ASSERT_TRUE(lost);
    for (uint32_t i = 0; i < kFpdus; ++i) {
      to_b.add(numbered_ulpdu(i, kLength));
      to_a.add(numbered_ulpdu(100 + i, kLength));
      c.b.send(100 + i, kLength);
    }
    ASSERT_TRUE(c.link.run_until([&] { return c.a.user.delivered.size() == kFpdus; }, seconds(60)));
    ASSERT_EQ(Octets(from_a.octets.begin() + 20, from_a.octets.end()), to_b.stream) << before;
    ASSERT_EQ(Octets(from_b.octets.begin() + 20, from_b.octets.end()), to_a.stream) << before;
    ASSERT_EQ(c.b.user.placed.size(), kFpdus);
    early += c.b.counters.placed_early_octets;
    // Octet `before - 1` of a's stream has sequence number 0.
    for (uint64_t marker = kFullOperation; marker < from_a.octets.size(); marker += 512) {
      const uint32_t back = base::load_be16(&from_a.octets[marker + 2]);
      in_pointer_range += back != 0 && before - 1 <= marker && before - 1 > marker - back;
    }
    if (HasFailure()) FAIL() << before;
  }
  EXPECT_GT(in_pointer_range, 300u);
  EXPECT_GT(early, 100'000u);
}

}  // namespace
}  // namespace rnic::testing
