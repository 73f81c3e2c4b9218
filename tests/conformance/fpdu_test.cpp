// FPDU streams that a network has rearranged, at the level of one session.

#include <gtest/gtest.h>

#include "support/mpa_fakes.hpp"
#include "unit/mpa/start_frames.hpp"

namespace rnic::mpa {
namespace {

using test::MpaEnd;
using test::numbered_ulpdu;
using test::Octets;
using test::SlowEncoder;

constexpr uint64_t kStart = 20;

Config config_of(bool markers) {
  Config config;
  config.markers_receive = markers;
  return config;
}

/// A responder in full operation.
MpaEnd& begun(MpaEnd& end) {
  end.establish();
  end.receive(0, request_frame(0x40, 1));
  end.session->accept({}, end.now);
  end.pull_all();
  return end;
}

// What is exactly the MULPDU is built and fits its segment; one octet more never is.
TEST(FpduRows, TheLongestUlpdu_UNH_MPA_2_01) {
  for (const bool markers : {false, true}) {
    for (uint32_t emss = 200; emss < 9000; emss += 331) {
      test::MpaPair pair({}, config_of(markers));
      pair.start(emss);
      const uint32_t mulpdu = pair.a.session->mulpdu();
      pair.a.user.to_send = {numbered_ulpdu(1, mulpdu + 1)};
      EXPECT_FALSE(pair.a.pull(emss));
      pair.a.user.to_send = {numbered_ulpdu(2, mulpdu)};
      const auto record = pair.a.pull(emss);
      ASSERT_TRUE(record) << emss;
      EXPECT_LE(record->octets.size(), emss);
      EXPECT_TRUE(pair.b.receive(kStart, record->octets));
      EXPECT_EQ(pair.b.user.delivered.size(), 1u);
      // The receiver has no such limit.
      SlowEncoder encoder(kStart, markers);
      encoder.add(numbered_ulpdu(3, mulpdu + 1));
      MpaEnd other(framing::Role::Responder, config_of(markers));
      EXPECT_TRUE(begun(other).receive(kStart, encoder.stream));
      EXPECT_EQ(other.user.delivered.size(), 1u);
    }
  }
}

// Segments are lost and come again cut elsewhere, over what has arrived.
TEST(FpduRows, RetransmissionsCutElsewhere_UNH_MPA_2_15) {
  constexpr size_t kSegment = 700;
  for (const bool markers : {false, true}) {
    SlowEncoder encoder(kStart, markers);
    std::vector<Octets> expected;
    for (uint32_t i = 0; i < 5; ++i) expected.push_back(numbered_ulpdu(i, 500 + i));
    for (const Octets& ulpdu : expected) encoder.add(ulpdu);
    const base::ByteView stream(encoder.stream);
    const auto piece = [&](size_t from, size_t n) {
      return stream.subspan(from, std::min(n, stream.size() - from));
    };
    for (uint32_t lost = 0; lost < 16; ++lost) {
      for (const size_t again : {1u, 7u, 333u, 512u, 701u, 1460u}) {
        MpaEnd end(framing::Role::Responder, config_of(markers));
        begun(end);
        for (size_t i = 0; i * kSegment < stream.size(); ++i) {
          if ((lost >> i & 1) == 0) {
            end.receive(kStart + i * kSegment, piece(i * kSegment, kSegment));
          }
        }
        EXPECT_EQ(end.user.delivered.size() == expected.size(), lost == 0);
        for (int pass = 0; pass < 3; ++pass) {  // a cut that looks suspicious is dropped twice
          for (size_t at = 0; at < stream.size(); at += again) {
            end.receive(kStart + at, piece(at, again));
          }
        }
        ASSERT_EQ(end.user.delivered, expected) << lost << " " << again;
        EXPECT_EQ(end.user.placed.size(), expected.size());
        EXPECT_TRUE(end.user.errors.empty());
        EXPECT_EQ(held_octets(*end.own_store), 0u);
      }
    }
  }
}

// Sessions that share hold space, their segments interleaved, each from its end
// backwards; one of them has a fault of its own.
TEST(FpduRows, SessionsDoNotMix_UNH_MPA_2_16) {
  for (const bool markers : {false, true}) {
    for (const bool fault : {false, true}) {
      Config config = config_of(markers);
      config.silent_drop = false;
      const framing::HoldStorePtr store = framing::make_hold_store(1u << 20);
      struct One {
        std::unique_ptr<MpaEnd> end;
        SlowEncoder encoder;
        std::vector<Octets> expected;
      };
      std::vector<One> all;
      for (uint32_t k = 0; k < 3; ++k) {
        all.push_back({std::make_unique<MpaEnd>(framing::Role::Responder, config, base::ByteView{},
                                                0, store.get()),
                       SlowEncoder(kStart, markers),
                       {}});
        begun(*all[k].end);
        for (uint32_t i = 0; i < 6; ++i) {
          all[k].expected.push_back(numbered_ulpdu(100 * k + i, 900));
          all[k].encoder.add(all[k].expected.back());
        }
        if (fault && k == 1) all[k].encoder.stream[1500] ^= 1;  // in the second FPDU
      }
      for (size_t at = 5400; at != size_t(-600); at -= 600) {
        for (One& one : all) {
          const base::ByteView stream(one.encoder.stream);
          if (at >= stream.size()) continue;
          one.end->receive(kStart + at,
                           stream.subspan(at, std::min<size_t>(600, stream.size() - at)));
        }
      }
      for (size_t k = 0; k < 3; ++k) {
        const bool bad = fault && k == 1;
        if (bad) {
          EXPECT_EQ(all[k].end->user.delivered.size(), 1u);
          EXPECT_EQ(all[k].end->user.errors, std::vector{llp::FramingError::Crc});
        } else {
          EXPECT_EQ(all[k].end->user.delivered, all[k].expected);
          EXPECT_TRUE(all[k].end->user.errors.empty());
        }
      }
      EXPECT_EQ(held_octets(*store), 0u);
      all.clear();
    }
  }
}

}  // namespace
}  // namespace rnic::mpa
