// Atomic operations (RFC 7306 sections 5 and 8).

#include "rdmap/atomic.hpp"

#include <atomic>
#include <latch>
#include <thread>

#include "base/prng.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using AtomicRequest = wire::RdmapAtomicRequest;
using AtomicResponse = wire::RdmapAtomicResponse;

/// RFC 7306 s.5.1.1, bit by bit.
uint64_t slow_fetch_add(uint64_t original, uint64_t add, uint64_t mask) {
  uint64_t result = 0;
  unsigned carry = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const unsigned sum = carry + (original >> bit & 1) + (add >> bit & 1);
    result |= uint64_t{sum & 1} << bit;
    carry = (mask >> bit & 1) != 0 ? 0 : sum >> 1;
  }
  return result;
}

/// RFC 7306 s.5.1.2, bit by bit.
uint64_t slow_compare_swap(uint64_t original, const AtomicRequest& r) {
  uint64_t result = original;
  for (unsigned bit = 0; bit < 64; ++bit) {
    const bool differs = (r.compare >> bit & 1) != (original >> bit & 1);
    if ((r.compare_mask >> bit & 1) != 0 && differs) return original;
  }
  for (unsigned bit = 0; bit < 64; ++bit) {
    if ((r.mask >> bit & 1) == 0) continue;
    result = (result & ~(uint64_t{1} << bit)) | (r.data & (uint64_t{1} << bit));
  }
  return result;
}

uint64_t sparse(base::Prng& prng) {
  switch (prng.below(4)) {
    case 0: return 0;
    case 1: return ~uint64_t{0};
    case 2: return prng.next() & prng.next() & prng.next();
    default: return prng.next();
  }
}

// UNH-RDMAP-11
TEST(AtomicOperation, FetchAddAgreesWithThePseudocode_R7306_5_04) {
  base::Prng prng(1);
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t original = sparse(prng), add = sparse(prng), mask = sparse(prng);
    ASSERT_EQ(fetch_add_result(original, add, mask), slow_fetch_add(original, add, mask))
        << original << " " << add << " " << mask;
    ASSERT_EQ(fetch_add_result(original, add, 0), original + add);
    alignas(8) uint8_t memory[8];
    std::memcpy(memory, &original, 8);
    EXPECT_EQ(execute({.code = 0, .data = add, .mask = mask}, memory), original);
    uint64_t now = 0;
    std::memcpy(&now, memory, 8);
    ASSERT_EQ(now, slow_fetch_add(original, add, mask));
  }
  // Four fields of 16 bits: no carry leaves one.
  EXPECT_EQ(fetch_add_result(0xffff'ffff'8000'0001ull, 0x0001'0001'8000'ffffull,
                             0x8000'8000'8000'8000ull),
            0ull);
}

// UNH-RDMAP-11
TEST(AtomicOperation, CompareSwapAgreesWithTheText_R7306_5_05) {
  base::Prng prng(2);
  int swapped = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t original = sparse(prng);
    AtomicRequest r{.code = 2,
                    .data = sparse(prng),
                    .mask = sparse(prng),
                    .compare = sparse(prng),
                    .compare_mask = sparse(prng)};
    if (prng.chance(0.5)) r.compare = original ^ (sparse(prng) & ~r.compare_mask);
    const uint64_t expected = slow_compare_swap(original, r);
    ASSERT_EQ(compare_swap_result(original, r), expected);
    alignas(8) uint8_t memory[8];
    std::memcpy(memory, &original, 8);
    EXPECT_EQ(execute(r, memory), original);
    uint64_t now = 0;
    std::memcpy(&now, memory, 8);
    ASSERT_EQ(now, expected);
    swapped += now != original ? 1 : 0;
  }
  EXPECT_GT(swapped, 1000);
}

// Threads that work on the same words through the function that every worker uses.
// A sum that lost an addition, or a ticket that was given twice, would show. They go on until they
// have met often enough, however few processors a busy machine gives them: each gap between the
// tickets of a thread is another one that went on within its round.
TEST(AtomicOperation, ThreadsNeverInterleave_R7306_5_11) {
  constexpr int kThreads = 4;
  constexpr uint64_t kLeast = 20'000, kMost = 200'000'000;
  constexpr uint64_t kMeetings = 200;
  alignas(64) std::array<uint64_t, 3> words{};
  std::atomic<uint64_t> meetings{0}, rounds{0};
  std::vector<std::vector<uint64_t>> tickets(kThreads);
  std::vector<std::thread> threads;
  std::latch together(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      together.arrive_and_wait();
      auto* at = reinterpret_cast<uint8_t*>(words.data());
      uint64_t round = 0, last = 0;
      for (; round < kLeast || (meetings < kMeetings && round < kMost); ++round) {
        const uint64_t ticket = execute({.code = 0, .data = 1}, at);
        if (round != 0 && ticket != last + 1) ++meetings;
        if (round < kLeast) tickets[t].push_back(ticket);
        last = ticket;
        execute({.code = 0, .data = 0x0001'0001'0001'0001ull, .mask = 0x8000'8000'8000'8000ull},
                at + 8);
        // A counter kept by CmpSwap alone.
        uint64_t seen = 0;
        for (;;) {
          const uint64_t was = execute({.code = 2,
                                        .data = seen + 1,
                                        .mask = ~uint64_t{0},
                                        .compare = seen,
                                        .compare_mask = ~uint64_t{0}},
                                       at + 16);
          if (was == seen) break;
          seen = was;
        }
      }
      rounds += round;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GE(meetings, kMeetings);
  EXPECT_EQ(words[0], rounds);
  EXPECT_EQ(words[1], (rounds & 0xffff) * 0x0001'0001'0001'0001ull);
  EXPECT_EQ(words[2], rounds);
  std::vector<bool> given(rounds);
  for (const auto& list : tickets) {
    for (const uint64_t ticket : list) {
      ASSERT_LT(ticket, given.size());
      EXPECT_FALSE(given[ticket]);
      given[ticket] = true;
    }
  }
}

class AtomicTest : public TwoNodes {};

// What a posted operation sends: every field in its place, the reserved bits zero, and
// what FetchAdd does not use 0 and all ones.
TEST_F(AtomicTest, ThePostedRequestOnTheWire_R7306_5_02) {
  compare_swap(1, 0x0a0b,
               {.data = 0x4142434445464748ull,
                .mask = 0x5152535455565758ull,
                .compare = 0x6162636465666768ull,
                .compare_mask = 0x7172737475767778ull});
  fetch_add(2, 0x0c0d, 0x2122232425262728ull, 0x3132333435363738ull);
  pair.a.pull_all();
  ASSERT_EQ(pair.a.sent.size(), 2u);
  const auto request = [&](size_t i) {
    const std::vector<uint8_t>& octets = pair.a.sent[i].octets;
    EXPECT_EQ(octets.size(), wire::kDdpUntaggedSize + 52u);
    return std::vector<uint8_t>(octets.begin() + wire::kDdpUntaggedSize, octets.end());
  };
  const auto head = [&](uint8_t code, uint32_t stag, uint64_t to) {
    std::vector<uint8_t> octets{0, 0, 0, code};
    octets.resize(20);
    base::store_be32(&octets[8], stag);
    base::store_be64(&octets[12], to);
    return octets;
  };
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<uint8_t> sent = request(i);
    std::vector<uint8_t> expected = head(i == 0 ? 2 : 0, b->all, i == 0 ? 0x0a0b : 0x0c0d);
    std::copy_n(sent.begin() + 4, 4, expected.begin() + 4);  // the identifier is the sender's own
    const uint64_t swap[] = {0x4142434445464748ull, 0x5152535455565758ull, 0x6162636465666768ull,
                             0x7172737475767778ull};
    const uint64_t add[] = {0x2122232425262728ull, 0x3132333435363738ull, 0, ~0ull};
    for (size_t k = 0; k < 4; ++k) {
      expected.resize(expected.size() + 8);
      base::store_be64(&expected[expected.size() - 8], i == 0 ? swap[k] : add[k]);
    }
    EXPECT_EQ(sent, expected);
  }
}

// R7306-5-01 R7306-5-03 R7306-5-06 R7306-5-09
// UNH-RDMAP-11
TEST_F(AtomicTest, BothOperationsEndToEnd_R7306_5_08) {
  b->set_word(64, 1000);
  SendRequest w = a->work(1, Opcode::FetchAdd, 8, 8);  // the original goes to [8, 16), too
  w.remote = {b->all, 64};
  w.atomic.data = 0x0102030405060708ull;
  a->send(w);
  compare_swap(2, 64, {.data = 5, .mask = ~uint64_t{0}, .compare = 1000, .compare_mask = ~0ull});
  compare_swap(
      3, 64,
      {.data = 6, .mask = ~0ull, .compare = 1000 + 0x0102030405060708ull, .compare_mask = ~0ull});
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].original, 1000u);
  EXPECT_EQ(a->owner.sends[0].length, 8u);
  EXPECT_EQ(a->owner.sends[0].opcode, Opcode::FetchAdd);
  EXPECT_EQ(a->word(8), 1000u) << "host order";
  EXPECT_EQ(a->owner.sends[1].original, 1000 + 0x0102030405060708ull) << "did not match";
  EXPECT_EQ(a->owner.sends[2].original, 1000 + 0x0102030405060708ull);
  EXPECT_EQ(b->word(64), 6u);
  EXPECT_TRUE(b->owner.receives.empty()) << "the responder's user is not involved";
  EXPECT_EQ(b->counters.atomics_in, 3u);
  EXPECT_EQ(a->counters.atomic_responses_in, 3u);

  // What went over the wire.
  ASSERT_EQ(pair.a.sent.size(), 3u);
  ASSERT_EQ(pair.b.sent.size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    const auto request = wire::parse_ddp_untagged(pair.a.sent[i].octets);
    EXPECT_EQ(request,
              (wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x4a, .qn = 1, .msn = i + 1}));
    const auto response = wire::parse_ddp_untagged(pair.b.sent[i].octets);
    EXPECT_EQ(response,
              (wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x4b, .qn = 3, .msn = i + 1}));
    EXPECT_EQ(pair.a.sent[i].octets.size(), 18u + 52);
    EXPECT_EQ(pair.b.sent[i].octets.size(), 18u + 12);
    const auto sent =
        wire::parse_rdmap_atomic_request(base::ByteView(pair.a.sent[i].octets).subspan(18));
    const auto answer =
        wire::parse_rdmap_atomic_response(base::ByteView(pair.b.sent[i].octets).subspan(18));
    EXPECT_EQ(sent->id, answer->id);
  }
  const auto add =
      wire::parse_rdmap_atomic_request(base::ByteView(pair.a.sent[0].octets).subspan(18));
  EXPECT_EQ(add->compare, 0u);  // s.5.2.1: what FetchAdd does not use
  EXPECT_EQ(add->compare_mask, ~uint64_t{0});
  EXPECT_EQ(pair.a.sent[0].octets[18 + 20], 0x01) << "big-endian on the wire";
  EXPECT_EQ(pair.a.sent[0].octets[18 + 27], 0x08);
}

// Every AOpCode.
// UNH-RDMAP-11
TEST_F(AtomicTest, EveryAtomicCode_R7306_5_01) {
  for (uint8_t code = 0; code < 16; ++code) {
    restart();
    b->set_word(0, 10);
    inject(atomic_request(1, {.code = code, .stag = b->all, .data = 1, .mask = 0}));
    if (code == 0 || code == 2) {
      pair.b.pull_all();
      EXPECT_EQ(b->counters.atomics_in, 1u);
      EXPECT_TRUE(b->owner.events.empty());
      continue;
    }
    expect_terminate(0, 2, 0x06);
    EXPECT_EQ(b->word(0), 10u);
    EXPECT_EQ(pair.b.sent.size(), 1u) << "no response";
  }
}

// BUG-02: every other length.
TEST_F(AtomicTest, RequestOfAnotherSize_R7306_5_02) {
  for (size_t n = 0; n <= 60; ++n) {
    restart();
    b->set_word(0, 10);
    auto octets = atomic_request(1, {.stag = b->all, .data = 1});
    octets.resize(18 + n);
    inject(octets);
    if (n < 52) {
      expect_terminate(0, 2, 0xff);
    } else if (n > 52) {
      expect_terminate(1, 2, 0x05);
    } else {
      pair.b.pull_all();
    }
    EXPECT_EQ(b->word(0), n == 52 ? 11u : 10u);
  }
}

// Every wrong alignment, of the address and not of the TO, for both operations; a swap
// that compares nothing would change what it finds.
TEST_F(AtomicTest, UnalignedTarget_R7306_5_07) {
  for (const uint8_t code : {0, 2}) {
    for (uint64_t to = 0; to <= 8; ++to) {
      restart();
      const auto before = b->memory;
      inject(atomic_request(
          1, {.code = code, .stag = b->all, .to = to, .data = 1, .mask = code != 0 ? ~0ull : 0}));
      if (to % 8 == 0) {
        pair.b.pull_all();
        EXPECT_TRUE(b->owner.events.empty());
        EXPECT_NE(b->memory, before);
        continue;
      }
      expect_terminate(0, 2, 0x07);
      EXPECT_EQ(b->memory, before);
    }
  }
  restart();
  const auto odd = b->table.add({.address = b->at(3),
                                 .length = 64,
                                 .pd = b->pd,
                                 .rights = Access::RemoteAtomic,
                                 .offset = 0});
  inject(atomic_request(1, {.stag = odd->value, .to = 5, .data = 1}));
  pair.b.pull_all();
  EXPECT_TRUE(b->owner.events.empty()) << "TO 5 of a region at 3 is address 8";
  inject(atomic_request(2, {.stag = odd->value, .to = 8, .data = 1}));
  expect_terminate(0, 2, 0x07);
}

// R7306-8-01: identity, right and 8 octets of bounds; DDP header, no RDMA header.
TEST_F(AtomicTest, RefusedTargets_R7306_5_14) {
  struct Case {
    uint32_t pd;
    AccessSet rights;
    std::optional<uint64_t> stream;
    bool known;
    uint64_t to;
    uint8_t code;
  };
  constexpr AccessSet kOther = AccessSet::all().without(Access::RemoteAtomic);
  for (const Case& c :
       {Case{4, Access::RemoteAtomic, {}, false, 0, 0x00},
        Case{4, Access::RemoteAtomic, {}, true, 64 - 7, 0x01},
        Case{4, Access::RemoteAtomic, {}, true, 64, 0x01}, Case{4, kOther, {}, true, 0, 0x02},
        Case{5, Access::RemoteAtomic, {}, true, 0, 0x03},
        Case{4, Access::RemoteAtomic, 8, true, 0, 0x03},
        Case{4, Access::RemoteAtomic, {}, true, UINT64_MAX - 6, 0x04}}) {
    restart();
    const auto region = b->table.add({.address = b->at(0),
                                      .length = 64,
                                      .pd = c.pd,
                                      .rights = c.rights,
                                      .offset = 0,
                                      .stream = c.stream ? c.stream : b->stream_for(c.rights)});
    const auto before = b->memory;
    const auto bad = atomic_request(
        1, {.stag = c.known ? region->value : region->value ^ 1, .to = c.to, .data = 1});
    inject(bad);
    expect_terminate(0, 1, c.code);
    EXPECT_EQ(b->memory, before);
    const auto t = terminate_of_b();
    EXPECT_FALSE(t.has_rdma_header);
    EXPECT_TRUE(t.length_valid);
    EXPECT_EQ(t.segment_length, 18 + 52);
    EXPECT_EQ(t.ddp_header_size, 18);
    EXPECT_TRUE(std::equal(bad.begin(), bad.begin() + 18, t.ddp_header.begin()));
    EXPECT_EQ(b->counters.faults_protection, 1u);
  }
  // The twin: the last 8 octets of the region.
  restart();
  b->set_word(Node::kSize - 8, 1);
  inject(atomic_request(1, {.stag = b->all, .to = Node::kSize - 8, .data = 1}));
  pair.b.pull_all();
  EXPECT_EQ(b->word(Node::kSize - 8), 2u);
}

// Immediate Data and responses, too.
TEST_F(AtomicTest, ErrorsCarryTheDdpHeaderOnly_R7306_8_01) {
  restart();
  b->post_receive(1, 0, 8);
  inject(ulpdu(wire::DdpUntaggedHeader{.last = true, .rsvd_ulp = 0x48, .qn = 0, .msn = 1}, 7));
  expect_terminate(0, 2, 0xff);
  const auto t = terminate_of_b();
  EXPECT_EQ(t.ddp_header_size, 18);
  EXPECT_FALSE(t.has_rdma_header);
}

// Nothing outstanding; a Read is; the wrong id; the wrong length; another MSN.
TEST_F(AtomicTest, ResponsesThatAnswerNothing_R7306_5_13) {
  inject(atomic_response(1, {.id = 1}));
  expect_terminate(1, 2, 0x02);

  const auto wait = [&](bool read_first) {
    restart();
    SendRequest r = b->work(1, Opcode::Read, 500, 8);
    r.remote.stag = a->all;
    SendRequest f = b->work(2, Opcode::FetchAdd, 600, 8);
    f.remote.stag = a->all;
    b->send(read_first ? r : f);
    b->send(read_first ? f : r);
    pair.b.pull_all();
    pair.b.release_all();
  };
  wait(true);
  inject(atomic_response(1, {.id = 2}));
  expect_terminate(0, 2, 0x06);

  wait(false);
  inject(
      ulpdu(wire::DdpTaggedHeader{.last = true, .rsvd_ulp = 0x42, .stag = b->all, .to = 500}, 8));
  expect_terminate(0, 2, 0x06);

  wait(false);
  const auto before = b->memory;
  inject(atomic_response(1, {.id = 77, .original = 1}));
  expect_terminate(0, 2, 0xff);
  EXPECT_EQ(b->memory, before);
  EXPECT_EQ(b->owner.sends.at(0).status, CompletionStatus::Flushed);

  for (size_t n = 0; n < 14; ++n) {
    wait(false);
    auto octets = atomic_response(1, {.id = 1, .original = 1});
    octets.resize(18 + n);
    inject(octets);
    if (n < 12) expect_terminate(0, 2, 0xff);
    if (n > 12) expect_terminate(1, 2, 0x05);
    EXPECT_EQ(b->owner.sends.size(), n == 12 ? 1u : 2u);
    EXPECT_EQ(b->word(600) == 1, n == 12);
  }
  wait(false);
  inject(atomic_response(2, {.id = 1}));
  expect_terminate(1, 2, 0x02);
}

// Placed out of order, nothing happens; at delivery, in order, once.
TEST_F(AtomicTest, StartsAtDelivery_R7306_5_12) {
  b->set_word(0, 100);
  fetch_add(1, 0, 1);
  compare_swap(2, 0, {.data = 7, .mask = ~0ull, .compare = 101, .compare_mask = ~0ull});
  fetch_add(3, 0, 1);
  pair.a.pull_all();
  pair.a.release_all();
  pair.b.arrive(pair.a, 2);
  pair.b.arrive(pair.a, 1);
  pair.b.pull_all();
  EXPECT_EQ(b->word(0), 100u);
  EXPECT_TRUE(pair.b.sent.empty());
  pair.b.arrive(pair.a, 0);
  pair.b.pull_all();
  EXPECT_EQ(b->word(0), 8u);
  ASSERT_EQ(pair.b.sent.size(), 3u);
  // Responses that are placed in another order complete in this one.
  EXPECT_TRUE(a->owner.sends.empty()) << "acknowledged is not completed";
  pair.a.arrive(pair.b, 2);
  pair.a.arrive(pair.b, 1);
  EXPECT_TRUE(a->owner.sends.empty());
  pair.a.arrive(pair.b, 0);
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].original, 100u);
  EXPECT_EQ(a->owner.sends[1].original, 101u);
  EXPECT_EQ(a->owner.sends[2].original, 7u);
}

// A response that TCP sends again is the same one; the operation is not done again.
TEST_F(AtomicTest, RebuiltResponseIsTheFirstOne_R7306_5_12) {
  b->set_word(0, 5);
  for (uint64_t i = 0; i < 4; ++i) fetch_add(i, 0, 1);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  ASSERT_EQ(pair.b.sent.size(), 4u);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(pair.b.rebuild(i), pair.b.sent[i].octets);
  EXPECT_EQ(b->word(0), 9u);
  EXPECT_EQ(b->counters.atomics_in, 4u);
  ASSERT_TRUE(b->table.remove(mem::Stag{b->all}).has_value());
  EXPECT_EQ(pair.b.rebuild(0), pair.b.sent[0].octets) << "the response holds no user memory";
  EXPECT_EQ(pair.a.rebuild(0), pair.a.sent[0].octets);
}

// Reads and atomics share ORD and IRD.
TEST_F(AtomicTest, SharesOrdWithReads_R7306_5_10) {
  restart({.qp = 9, .pd = 4, .ird = 3, .ord = 3});
  for (uint64_t i = 0; i < 12; ++i) {
    if (i % 2 == 0) {
      read(i, 100 * i, 100, 0);
    } else {
      fetch_add(i, 512, 1);
    }
  }
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 3u);
  pair.pump();
  EXPECT_EQ(a->owner.sends.size(), 12u);
  EXPECT_TRUE(b->owner.events.empty());
  EXPECT_TRUE(a->owner.events.empty());
}
TEST_F(AtomicTest, MoreThanTheIrd_R7306_5_10) {
  restart({.qp = 9, .pd = 4, .ird = 2});
  inject(read_request(1, {.size = 8, .source_stag = b->all}));
  inject(atomic_request(2, {.stag = b->all, .data = 1}));
  inject(atomic_request(3, {.stag = b->all, .data = 1}));
  expect_terminate(1, 2, 0x02);
}
TEST_F(AtomicTest, OrdZero_R7306_5_10) {
  restart({.qp = 9, .pd = 4, .ird = 0, .ord = 0});
  fetch_add(1, 0, 1);
  write(2, 0, 8, 0);
  pair.pump();
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends.at(1).status, CompletionStatus::Success);
}

// Queue 3 wraps its buffers many times.
TEST_F(AtomicTest, ThousandAtomics_R7306_5_09) {
  restart({.qp = 9, .pd = 4, .ird = 5, .ord = 5});
  b->set_word(8, 0);
  for (uint64_t i = 0; i < 1000; ++i) {
    fetch_add(i, 8, 1);
    pair.pump();
  }
  ASSERT_EQ(a->owner.sends.size(), 1000u);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(a->owner.sends[i].original, i);
  EXPECT_EQ(b->word(8), 1000u);
}

// The target is revoked after the request was delivered, before its turn.
TEST_F(AtomicTest, RevokedBeforeItsTurn_R7306_5_14) {
  const uint32_t target = b->add(Access::RemoteAtomic);
  b->set_word(0, 5);
  inject(atomic_request(1, {.stag = target, .data = 1}));
  ASSERT_TRUE(b->table.remove(mem::Stag{target}).has_value());
  expect_terminate(0, 1, 0x00);
  EXPECT_EQ(b->word(0), 5u);
  EXPECT_EQ(b->counters.faults, 1u);
  EXPECT_EQ(b->counters.atomics_in, 0u);
  EXPECT_EQ(wire::parse_ddp_untagged(terminate_of_b().ddp_header)->msn, 1u);
}

// Local errors: where the original should go.
TEST_F(AtomicTest, BadSinks_RDMAP_7_1_02) {
  for (const uint32_t length : {0u, 7u, 9u, 4096u}) {
    restart();
    SendRequest w = a->work(1, Opcode::FetchAdd, 0, 8);
    w.sges[0].length = length;
    w.remote.stag = b->all;
    a->send(w);
    pair.pump();
    EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::LocalLength);
    EXPECT_EQ(b->counters.atomics_in, 0u);
  }
  restart();
  SendRequest w = a->work(1, Opcode::FetchAdd, 0, 8);
  w.sges[0].stag = a->add(Access::RemoteRead);
  w.remote.stag = b->all;
  a->send(w);
  pair.pump();
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::LocalProtection);
  // Revoked while the response is on its way.
  restart();
  const uint32_t sink = a->add(Access::LocalWrite);
  w.sges[0].stag = sink;
  a->send(w);
  pair.a.pull_all();
  ASSERT_TRUE(a->table.remove(mem::Stag{sink}).has_value());
  pair.pump();
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::LocalProtection);
  EXPECT_TRUE(std::holds_alternative<event::TerminateSent>(a->owner.events.at(0)));
}

// R7306-5-12: close and loss treat an atomic as a Read.
// The sink was given up under the request, and its STag now names a region that must not be
// written, as its owner has chosen the same key once more.
TEST_F(AtomicTest, TheSinksRightIsLookedAtWhenTheResponseComes_RDMAP_7_1_01) {
  const uint32_t sink = a->add(Access::LocalWrite);
  SendRequest w = a->work(1, Opcode::FetchAdd, 0, 8);
  w.sges[0].stag = sink;
  w.remote.stag = b->all;
  a->send(w);
  pair.a.pull_all();
  pair.b.arrive_rest(pair.a);
  pair.b.pull_all();
  const mem::Stag former{sink};
  mem::RegionSpec readable{
      .address = a->at(0), .length = 64, .pd = a->pd, .rights = Access::RemoteRead, .offset = 0};
  readable.key = static_cast<uint8_t>(former.key() + 1);
  const auto between = a->table.change(former, readable);
  readable.key = former.key();
  ASSERT_EQ(a->table.change(*between, readable), former);
  const auto before = a->memory;
  pair.a.arrive_rest(pair.b);
  EXPECT_EQ(a->memory, before);
  ASSERT_EQ(a->owner.sends.size(), 1u);
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::LocalProtection);
}

TEST_F(AtomicTest, GracefulCloseWaitsForTheResponse_R7306_5_12) {
  fetch_add(1, 0, 1);
  a->endpoint.disconnect();
  pair.a.pull_all();
  pair.a.release_all();
  EXPECT_EQ(pair.a.close_calls, 0u);
  pair.pump();
  EXPECT_EQ(pair.a.close_calls, 1u);
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Success);
}
TEST_F(AtomicTest, LossEndsIt_BUG_06) {
  fetch_add(1, 0, 1);
  pair.a.pull_all();
  pair.a.release_all();
  pair.a.user().ended(StreamEnd::TimedOut, {});
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Lost);
  EXPECT_EQ(a->owner.sends.at(0).original, 0u);
}
TEST_F(AtomicTest, FenceWaitsForAtomics_BUG_07) {
  fetch_add(1, 0, 1);
  SendRequest w = a->work(2, Opcode::Write, 0, 8);
  w.remote.stag = b->all;
  w.fence = true;
  a->send(w);
  pair.a.pull_all();
  EXPECT_EQ(pair.a.sent.size(), 1u);
  pair.pump();
  EXPECT_EQ(pair.a.sent.size(), 2u);
}

// A Terminate that names the atomic's segment tells which request failed.
TEST_F(AtomicTest, TheTerminateNamesTheRequest_RDMAP_4_8_10) {
  b->set_word(0, 0);
  fetch_add(1, 0, 1);
  fetch_add(2, 3, 1);
  fetch_add(3, 0, 1);
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::RemoteOperation);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Flushed);
  EXPECT_EQ(b->word(0), 1u) << "what was delivered before may be done, what came after may not";
}

}  // namespace
}  // namespace rnic::rdmap
