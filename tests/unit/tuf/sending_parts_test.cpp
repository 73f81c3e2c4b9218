// What a FramedSender is made of: the ring of submissions, the EMSS on offer, batches.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tuf/batch.hpp"
#include "tuf/offered_emss.hpp"
#include "tuf/submission_ring.hpp"

namespace rnic::tuf {
namespace {

using Octets = std::vector<uint8_t>;

Octets sample(size_t n, uint32_t seed) {
  Octets octets(n);
  for (size_t i = 0; i < n; ++i) octets[i] = static_cast<uint8_t>(i * 31 + seed * 7);
  return octets;
}

Octets read_back(const SubmissionRing& ring, const Submission& submission) {
  Octets out(submission.length);
  ring.read(submission, 0, out);
  return out;
}

// --- SubmissionRing ---

TEST(SubmissionRing, KeepsLengthsAndModesAcrossItsEnd) {
  Octets memory(61);
  SubmissionRing ring(memory.data(), 61);
  uint64_t position = 0;
  for (uint32_t i = 0; i < 500; ++i) {
    const auto mode = static_cast<FramedSendMode>(i % 4);
    const Octets octets = sample(1 + i % 57, i);
    ASSERT_TRUE(ring.has_room(octets.size()));
    ring.submit(mode, octets);
    const Submission submission = ring.at(position);
    EXPECT_EQ(submission.begin, position);
    EXPECT_EQ(submission.length, octets.size());
    EXPECT_EQ(submission.mode, mode);
    EXPECT_EQ(read_back(ring, submission), octets);
    EXPECT_EQ(submission.end(), ring.written());
    position = submission.end();
    ring.free_to(position);
    EXPECT_EQ(ring.freed(), position);
    EXPECT_EQ(ring.unacknowledged(), 0u);
  }
}

TEST(SubmissionRing, RoomIsWhatIsNotKeptLessAHead) {
  Octets memory(100);
  SubmissionRing ring(memory.data(), 100);
  EXPECT_TRUE(ring.has_room(96));
  EXPECT_FALSE(ring.has_room(97));
  ring.submit(FramedSendMode::Plain, sample(40, 1));
  EXPECT_EQ(ring.unacknowledged(), 44u);
  EXPECT_TRUE(ring.has_room(52));
  EXPECT_FALSE(ring.has_room(53));
  ring.submit(FramedSendMode::Plain, sample(52, 2));
  EXPECT_FALSE(ring.has_room(0));
  ring.free_to(ring.at(0).end());
  EXPECT_TRUE(ring.has_room(40));
  EXPECT_FALSE(ring.has_room(41));
}

// A part of a submission can be read from any octet on.
TEST(SubmissionRing, FromHeadToHeadOneComesToTheEnd) {
  Octets memory(64);
  SubmissionRing ring(memory.data(), 64);
  ring.submit(FramedSendMode::Align, sample(20, 3));
  ring.submit(FramedSendMode::Align, sample(7, 4));
  ring.validate();
  ++memory[1];  // the length of the first
  EXPECT_DEATH(ring.validate(), "position");
  --memory[1];
  ring.free_to(1);
  EXPECT_DEATH(ring.validate(), "position") << "no head begins there";
  ring.free_to(ring.written() + 1);
  EXPECT_DEATH(ring.validate(), "freed");
}

TEST(SubmissionRing, ReadsFromWithin) {
  Octets memory(64);
  SubmissionRing ring(memory.data(), 64);
  const Octets octets = sample(20, 3);
  ring.submit(FramedSendMode::Align, octets);
  for (uint32_t from = 0; from < 20; ++from) {
    Octets out(20 - from);
    ring.read(ring.at(0), from, out);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), octets.begin() + from));
  }
}

// One thread submits, another reads and frees: what written() shows is there, what free_to() gave
// back is not touched before.
TEST(SubmissionRing, TwoThreads) {
  constexpr uint32_t kCount = 20000;
  Octets memory(997);
  SubmissionRing ring(memory.data(), 997);
  std::thread application([&] {
    for (uint32_t i = 0; i < kCount;) {
      const Octets octets = sample(1 + i % 300, i);
      if (!ring.has_room(octets.size())) {
        std::this_thread::yield();
        continue;
      }
      ring.submit(FramedSendMode::Align, octets);
      ++i;
    }
  });
  uint64_t position = 0;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < kCount;) {
    if (ring.written() == position) {
      std::this_thread::yield();
      continue;
    }
    const Submission submission = ring.at(position);
    wrong += read_back(ring, submission) != sample(1 + i % 300, i);
    position = submission.end();
    ring.free_to(position);
    ++i;
  }
  application.join();
  EXPECT_EQ(wrong, 0u);
}

// --- OfferedEmss (s.5.1) ---

TEST(OfferedEmss, AnOfferStandsUntilSomethingOfItsSizeIsSent) {
  OfferedEmss emss;
  emss.establish(1000);
  EXPECT_EQ(emss.visible(), 1000u);
  emss.report(1400);  // a probe: for one pull
  EXPECT_EQ(emss.current(), 1400u);
  EXPECT_FALSE(emss.is_offered());
  emss.report(1000);
  EXPECT_EQ(emss.current(), 1000u);
  EXPECT_TRUE(emss.is_offered());
  EXPECT_EQ(emss.visible(), 1400u);
  emss.report(1400);
  emss.record_sent(1400);
  emss.report(1000);
  EXPECT_FALSE(emss.is_offered());
  EXPECT_EQ(emss.visible(), 1000u);
}

TEST(OfferedEmss, AnotherEmssEndsTheOffer) {
  OfferedEmss emss;
  emss.establish(1000);
  emss.report(1400);
  emss.report(1000);
  ASSERT_TRUE(emss.is_offered());
  emss.report(900);
  EXPECT_FALSE(emss.is_offered());
  EXPECT_EQ(emss.visible(), 900u);
}

TEST(OfferedEmss, ASmallerEmssThatWasNeverReportedIsNoOffer) {
  OfferedEmss emss;
  emss.establish(1000);
  emss.report(1400);
  emss.report(1200);
  EXPECT_FALSE(emss.is_offered());
  EXPECT_EQ(emss.visible(), 1200u);
}

// Appendix A.2: growth is told once, and the first report is none.
TEST(OfferedEmss, GrowthIsToldOnce) {
  OfferedEmss emss;
  emss.establish(1000);
  EXPECT_FALSE(emss.take_growth());
  emss.report(1400);
  EXPECT_TRUE(emss.take_growth());
  EXPECT_FALSE(emss.take_growth());
  emss.report(1000);  // the offer stands: nothing has changed for the ULP
  emss.report(1400);
  EXPECT_FALSE(emss.take_growth());
  emss.report(900);
  EXPECT_FALSE(emss.take_growth());
  emss.report(901);
  EXPECT_TRUE(emss.take_growth());
}

// --- BatchWriter ---

constexpr wire::TufKey kDirectionKey = 0x123456789abc;

struct Writing {
  Octets memory = Octets(4096);
  SubmissionRing ring{memory.data(), 4096};
  SendLayout layout;
  BatchWriter writer{ring, layout};

  Octets part(const Batch& b, uint64_t begin, uint32_t from, uint32_t n) const {
    Octets out(n);
    writer.write(b, begin, from, n, out.data());
    return out;
  }
  /// Whatever is asked for, alone, is what stands there in the whole.
  void expect_parts(const Batch& b, uint64_t begin) const {
    const Octets whole = part(b, begin, 0, b.size);
    for (uint32_t from = 0; from < b.size; ++from) {
      for (uint32_t n = 1; n <= b.size - from; ++n) {
        const Octets some = part(b, begin, from, n);
        ASSERT_TRUE(std::equal(some.begin(), some.end(), whole.begin() + from)) << from << " " << n;
      }
    }
  }
};

/// A PDU that begins with its length.
Octets sample_pdu(size_t n, uint32_t seed) {
  Octets octets = sample(n, seed);
  base::store_be16(octets.data(), static_cast<uint16_t>(n - 2));
  return octets;
}

TEST(BatchWriter, AFramingPduOfSeveralPdus) {
  Writing w;
  w.layout.key = kDirectionKey;
  Octets all;
  for (const size_t n : {10u, 3u, 20u, 5u}) {
    const Octets one = sample_pdu(n, static_cast<uint32_t>(n));
    w.ring.submit(FramedSendMode::Align, one);
    if (all.size() < 33) all.insert(all.end(), one.begin(), one.end());
  }
  const Batch b = w.writer.packed(0, 8 + 37, 5000);  // the fourth is an octet too long
  EXPECT_EQ(b.count, 3u);
  EXPECT_EQ(b.body, 33u);
  EXPECT_EQ(b.size, 41u);
  const Octets wire = w.part(b, 5000, 0, b.size);
  const wire::TufHeader header = wire::load_tuf_header(wire.data());
  EXPECT_EQ(header.length, 33u);
  EXPECT_EQ(header.key, kDirectionKey);
  EXPECT_TRUE(std::equal(all.begin(), all.end(), wire.begin() + 8));
  w.expect_parts(b, 5000);
  const Batch again = w.writer.batch(b.at, b.count, 5000);
  EXPECT_EQ(again.size, b.size);
  EXPECT_EQ(again.past, b.past);
}

TEST(BatchWriter, NothingOfAnotherModeIsPackedWithAPdu) {
  Writing w;
  w.layout.key = kDirectionKey;
  w.ring.submit(FramedSendMode::Align, sample_pdu(10, 1));
  w.ring.submit(FramedSendMode::Atomic, sample_pdu(10, 2));
  EXPECT_EQ(w.writer.packed(0, 1000, 0).count, 1u);
}

TEST(BatchWriter, APduWithItsMarkers) {
  Writing w;
  w.layout.grid = MarkerGrid(100, 16);
  const Octets one = sample_pdu(40, 1);
  w.ring.submit(FramedSendMode::Markers, one);
  const Batch b = w.writer.batch(0, 1, 100);
  // A marker in front of the PDU, and one before each further 12 octets of it.
  EXPECT_EQ(b.size, 40u + 4 * 4);
  const Octets wire = w.part(b, 100, 0, b.size);
  Octets content;
  for (uint32_t i = 0; i < wire.size(); ++i) {
    if (i % 16 >= 4) content.push_back(wire[i]);
  }
  EXPECT_EQ(content, one);
  EXPECT_EQ(base::load_be32(wire.data()), 0u);
  for (uint32_t marker = 16; marker < b.size; marker += 16) {
    const uint16_t next = base::load_be16(&wire[marker]);
    EXPECT_EQ(next, base::load_be16(&wire[marker + 2]));
    EXPECT_EQ(marker + 4 + next, b.size);
  }
  w.expect_parts(b, 100);
}

// A buffer of the modes without PDUs goes as it is.
TEST(BatchWriter, ABufferIsItself) {
  for (const FramedSendMode mode : {FramedSendMode::Plain, FramedSendMode::Atomic}) {
    Writing w;
    const Octets one = sample(30, 5);
    w.ring.submit(mode, one);
    w.ring.submit(mode, one);
    const Batch b = w.writer.packed(0, 1000, 0);
    EXPECT_EQ(b.count, 1u);
    EXPECT_EQ(b.size, 30u);
    EXPECT_EQ(w.part(b, 0, 0, 30), one);
    w.expect_parts(b, 0);
  }
}

}  // namespace
}  // namespace rnic::tuf
