// What two start frames agree on, as functions of values. Every combination that there is.
#include "mpa/negotiation.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "mpa/mpa.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using llp::FramingError;
using test::Octets;

constexpr uint8_t kSend = wire::kMpaRtrSend, kWrite = wire::kMpaRtrWrite, kRead = wire::kMpaRtrRead;

Config supporting(uint8_t kinds) {
  Config config;
  config.rtr_send = (kinds & kSend) != 0;
  config.rtr_write = (kinds & kWrite) != 0;
  config.rtr_read = (kinds & kRead) != 0;
  return config;
}

/// As the other side reads it.
framing::StartOffer read_back(const Config& config, const StartPlan* request,
                              const StartPlan& plan) {
  Octets prefix(prefix_size(plan));
  emit_prefix(plan, prefix.data());
  size_t used = 0;
  const framing::StartOffer offer = read_offer(config, request, plan.header, prefix, used);
  EXPECT_EQ(used, prefix.size());
  return offer;
}

// CM6581-9.2-01 CM6581-9.2-02 CM6581-9.2-04 CM6581-9.2-06: each set of
// kinds of the initiator against each set of the responder, with and without peer to peer.
TEST(Negotiation, EveryCombinationOfFlags_CM6581_9_2_03_CM6581_9_2_05) {
  for (const bool peer_to_peer : {false, true}) {
    for (uint8_t mine = 0; mine < 8; ++mine) {
      for (uint8_t theirs = 1; theirs < 8; ++theirs) {
        const Config a = supporting(mine), b = supporting(theirs);
        const framing::StartOptions start_options{
            .exchange_reads = true, .peer_to_peer = peer_to_peer, .ird = 4, .ord = 4};
        const StartPlan request = plan_request(a, start_options);
        ASSERT_TRUE(request.header.enhanced);
        const framing::StartOffer asked = read_back(b, nullptr, request);
        ASSERT_EQ(asked.peer_to_peer, peer_to_peer);
        ASSERT_EQ(asked.rtr, peer_to_peer ? mine : 0);
        const StartPlan reply = plan_reply(b, start_options, asked);
        const framing::StartOffer answered = read_back(a, &request, reply);
        ASSERT_EQ(answered.peer_to_peer, peer_to_peer);
        if (!peer_to_peer) {
          ASSERT_EQ(answered.rtr, 0);
        } else {
          ASSERT_NE(answered.rtr, 0);
          ASSERT_EQ(answered.rtr & ~theirs, 0) << "only what it supports";
          if ((mine & theirs) != 0) {
            ASSERT_NE(answered.rtr & mine, 0);
          }
        }
        const ReplyVerdict verdict = judge_reply(a, start_options, request, answered);
        if (peer_to_peer && (mine & theirs) == 0) {
          ASSERT_EQ(verdict.error, FramingError::NoMatchingRtr);
          continue;
        }
        ASSERT_EQ(verdict.error, FramingError::None);
        ASSERT_EQ(verdict.agreed.peer_to_peer, peer_to_peer);
        if (!peer_to_peer) continue;
        const uint8_t kind = verdict.agreed.rtr_kinds;
        ASSERT_TRUE(kind == kSend || kind == kWrite || kind == kRead);
        ASSERT_EQ(kind & ~(answered.rtr & mine), 0);
        // Both know whether message 1 of queue 0 is the RTR.
        ASSERT_EQ(kind == kSend, reply.agreed.rtr_kinds == kSend);
      }
    }
  }
}

// CM6581-9.2-05: every Reply that a peer may send, right or wrong, to every Request.
// UNH-MPA-1-16
TEST(Negotiation, EveryReplyToEveryRequest_CM6581_9_2_04) {
  for (uint32_t request_bits = 0; request_bits < 16; ++request_bits) {
    for (uint32_t reply_bits = 0; reply_bits < 16; ++reply_bits) {
      const auto mine = static_cast<uint8_t>(request_bits & 7);
      const bool asked = (request_bits & 8) != 0;
      const framing::StartOptions start_options{
          .exchange_reads = true, .peer_to_peer = asked, .ird = 4, .ord = 4};
      const Config config = supporting(mine);
      const StartPlan request = plan_request(config, start_options);
      StartPlan reply;
      reply.header.enhanced = true;
      reply.header.revision = 2;
      reply.data = {(reply_bits & 8) != 0, static_cast<uint8_t>(reply_bits & 7), 4, 4};
      const framing::StartOffer offer = read_back(config, &request, reply);
      const ReplyVerdict verdict = judge_reply(config, start_options, request, offer);
      if ((reply_bits & 8) == 0) {
        // Flags are ignored; the model is another one when we asked for peer to peer.
        EXPECT_EQ(verdict.error, asked ? FramingError::NoMatchingRtr : FramingError::None);
        EXPECT_FALSE(verdict.agreed.peer_to_peer);
        continue;
      }
      const uint8_t common = mine & reply_bits & 7;
      EXPECT_EQ(verdict.error, common == 0 ? FramingError::NoMatchingRtr : FramingError::None);
      if (common != 0) {
        EXPECT_NE(verdict.agreed.rtr_kinds & common, 0);
        EXPECT_EQ(verdict.agreed.rtr_kinds & ~common, 0);
      }
    }
  }
}

// Small and special values of all four.
// UNH-MPA-1-16
TEST(Negotiation, EveryDepth_CM6581_9_1_01_CM6581_9_1_03_CM6581_9_1_06_CM6581_9_1_07) {
  const uint16_t values[] = {0, 1, 2, 3, 16, 127, 128, kReadsByApplication};
  const Config config;
  for (const uint16_t a_ird : values) {
    for (const uint16_t a_ord : values) {
      for (const uint16_t b_ird : values) {
        for (const uint16_t b_ord : values) {
          const framing::StartOptions a{.exchange_reads = true, .ird = a_ird, .ord = a_ord};
          const framing::StartOptions b{.ird = b_ird, .ord = b_ord};
          const StartPlan request = plan_request(config, a);
          const StartPlan reply = plan_reply(config, b, read_back(config, nullptr, request));
          const framing::StartOffer offer = read_back(config, &request, reply);
          const ReplyVerdict verdict = judge_reply(config, a, request, offer);
          ASSERT_EQ(verdict.error, FramingError::None);
          if (a_ord == kReadsByApplication) {
            // Mirrored in the opposite field, and nothing changes on either side.
            ASSERT_EQ(offer.ird, kReadsByApplication);
            ASSERT_FALSE(verdict.agreed.ord || reply.agreed.ird);
          } else {
            ASSERT_NE(offer.ird, kReadsByApplication);
            ASSERT_LE(*verdict.agreed.ord, offer.ird);
            if (b_ird != kReadsByApplication) {
              ASSERT_EQ(*verdict.agreed.ord, std::min(a_ord, b_ird));
            }
            ASSERT_EQ(reply.agreed.ird.has_value(), b_ird != kReadsByApplication);
          }
          if (a_ird == kReadsByApplication) {
            ASSERT_EQ(offer.ord, kReadsByApplication);
            ASSERT_FALSE(verdict.agreed.ird || reply.agreed.ord);
          } else {
            ASSERT_LE(offer.ord, a_ird);
            ASSERT_EQ(*verdict.agreed.ird, a_ird);
            if (b_ord != kReadsByApplication) {
              ASSERT_EQ(*reply.agreed.ord, std::min(b_ord, a_ird));
            }
          }
        }
      }
    }
  }
}

// A responder that takes more than was offered.
TEST(Negotiation, TooManyReadsOfThePeer_CM6581_9_1_06) {
  const Config config;
  const framing::StartOptions start_options{.exchange_reads = true, .ird = 4, .ord = 4};
  const StartPlan request = plan_request(config, start_options);
  for (uint32_t ord = 0; ord < 10; ++ord) {
    framing::StartOffer reply{.revision = 2, .enhanced = true, .ird = 4, .ord = ord};
    EXPECT_EQ(judge_reply(config, start_options, request, reply).error,
              ord > 4 ? FramingError::InsufficientIrd : FramingError::None);
  }
}

// A Read as RTR has a place in the queue, and only then.
TEST(Negotiation, IrdIsRaisedForAReadAsRtr_CM6581_9_1_04) {
  for (const uint8_t kinds : {kSend, kWrite, kRead}) {
    const framing::StartOffer request{
        .revision = 2, .enhanced = true, .peer_to_peer = true, .rtr = kinds, .ird = 0, .ord = 0};
    const StartPlan reply = plan_reply({}, {.ird = 0, .ord = 0}, request);
    EXPECT_EQ(reply.data.rtr, kinds);
    EXPECT_EQ(reply.data.ird, kinds == kRead ? 1 : 0);
    EXPECT_EQ(*reply.agreed.ird, kinds == kRead ? 1 : 0);
  }
  // An initiator does not choose it where the responder left no place.
  const framing::StartOptions start_options{
      .exchange_reads = true, .peer_to_peer = true, .ird = 1, .ord = 0};
  const StartPlan request = plan_request({}, start_options);
  framing::StartOffer reply{
      .revision = 2, .enhanced = true, .peer_to_peer = true, .rtr = kRead, .ird = 0};
  EXPECT_EQ(judge_reply({}, start_options, request, reply).error, FramingError::NoMatchingRtr);
  reply.rtr = kRead | kSend;
  EXPECT_EQ(judge_reply({}, start_options, request, reply).agreed.rtr_kinds, kSend);
}

// The reject names the ORD that would have been needed.
TEST(Negotiation, RequiredOrd_CM6581_9_1_05) {
  const framing::StartOffer request{.revision = 2, .enhanced = true, .ird = 3, .ord = 3};
  for (uint16_t required = 0; required < 8; ++required) {
    const framing::StartOptions start_options{.ird = 8, .ord = 8, .ord_required = required};
    StartPlan reply = plan_reply({}, start_options, request);
    EXPECT_EQ(reply.reads_suffice, required <= 3);
    if (required <= 3) continue;
    make_reject(reply);
    EXPECT_TRUE(reply.header.reject);
    EXPECT_EQ(reply.data.ord, required);
  }
}

// BUG-19-a BUG-19-b: what is told stays within the limit, and so does what is used; but for what is
// left to the ULPs, and for what a reject asks for.
TEST(Negotiation, ReadsLimit_BUG_19) {
  for (const uint32_t limit : {1u, 5u, 128u}) {
    Config config;
    EXPECT_EQ(config.reads_limit, 128u);
    config.reads_limit = limit;
    for (const uint16_t own : {uint16_t{0}, uint16_t{4}, uint16_t{1000}}) {
      const framing::StartOptions start_options{.exchange_reads = true, .ird = own, .ord = own};
      const StartPlan request = plan_request(config, start_options);
      EXPECT_EQ(request.data.ird, std::min<uint32_t>(own, limit));
      EXPECT_EQ(request.data.ord, std::min<uint32_t>(own, limit));
      const framing::StartOffer offer{.revision = 2, .enhanced = true, .ird = 16000, .ord = 16000};
      const StartPlan reply = plan_reply(config, start_options, offer);
      EXPECT_EQ(reply.data.ird, std::min<uint32_t>(own, limit));
      EXPECT_EQ(reply.data.ord, std::min<uint32_t>(own, limit));
      EXPECT_LE(*reply.agreed.ird, limit);
      EXPECT_LE(*reply.agreed.ord, limit);
      const ReplyVerdict verdict =
          judge_reply(config, start_options, request,
                      {.revision = 2, .enhanced = true, .ird = 16000, .ord = 0});
      EXPECT_EQ(*verdict.agreed.ord, std::min<uint32_t>(own, limit));
    }
    const framing::StartOptions by_ulp{
        .exchange_reads = true, .ird = kReadsByApplication, .ord = kReadsByApplication};
    EXPECT_EQ(plan_request(config, by_ulp).data.ird, kReadsByApplication);
    EXPECT_EQ(plan_request(config, by_ulp).data.ord, kReadsByApplication);
    const framing::StartOffer few{.revision = 2, .enhanced = true, .ird = 2, .ord = 2};
    EXPECT_LE(plan_reply(config, by_ulp, few).data.ird, limit) << "an answer is a number";
    StartPlan refusal = plan_reply(config, {.ird = 1, .ord = 1, .ord_required = 300}, few);
    make_reject(refusal);
    EXPECT_EQ(refusal.data.ord, 300) << "CM6581-9.1-05";
  }
}

// Eight octets of revision 1.
TEST(Negotiation, ReadsInPrivateData_BUG_12) {
  Config config;
  config.revision = 1;
  config.reads_in_private_data = true;
  const framing::StartOptions start_options{.exchange_reads = true, .ird = 0x0102, .ord = 0x03};
  config.reads_limit = 0x3ffe;
  const StartPlan request = plan_request(config, start_options);
  EXPECT_FALSE(request.header.enhanced);
  Octets prefix(prefix_size(request));
  ASSERT_EQ(prefix.size(), 8u);
  emit_prefix(request, prefix.data());
  EXPECT_EQ(prefix, (Octets{0, 0, 1, 2, 0, 0, 0, 3}));
  EXPECT_EQ(private_data_max(request), 504u);
  const framing::StartOffer offer = read_back(config, nullptr, request);
  EXPECT_TRUE(offer.reads_in_data);
  EXPECT_EQ(offer.ird, 0x102u);
  const StartPlan reply = plan_reply(config, {.ird = 9, .ord = 9}, offer);
  const ReplyVerdict verdict =
      judge_reply(config, start_options, request, read_back(config, &request, reply));
  EXPECT_EQ(verdict.agreed.rtr_kinds, kRead);
  EXPECT_EQ(reply.agreed.rtr_kinds, kRead);
  EXPECT_TRUE(verdict.agreed.peer_to_peer && reply.agreed.peer_to_peer);
  EXPECT_EQ(*verdict.agreed.ord, 3);
  EXPECT_EQ(*reply.agreed.ord, 9);
  // A peer without the option sends fewer octets, and nobody takes them away.
  size_t used = 7;
  const Octets few(7);
  EXPECT_FALSE(read_offer(config, nullptr, request.header, few, used).reads_in_data);
  EXPECT_EQ(used, 0u);
  config.reads_in_private_data = false;
  const Octets many(100);
  EXPECT_FALSE(read_offer(config, nullptr, request.header, many, used).reads_in_data);
}

// S exactly when something enhanced is wanted; the revision
// is the one that was asked for, or the lowest that will do (s.6).
TEST(Negotiation, EnhancedOnlyWhenWanted_CM6581_10_03_CM6581_6_01_CM6581_6_04) {
  for (uint8_t revision = 0; revision <= 2; ++revision) {
    for (const bool reads : {false, true}) {
      for (const bool peer : {false, true}) {
        Config config;
        config.revision = revision;
        framing::StartOptions start_options{.exchange_reads = reads, .peer_to_peer = peer};
        const bool enhanced = revision == 2 && (reads || peer);
        EXPECT_EQ(plan_request(config, start_options).header.enhanced, enhanced);
        EXPECT_EQ(plan_request(config, start_options).header.revision,
                  enhanced ? 2 : std::min<uint8_t>(revision, 1));
        // Nobody changes what was asked for.
        start_options.revision = revision;
        const StartPlan plan = plan_request(config, start_options);
        EXPECT_EQ(plan.header.enhanced, enhanced);
        EXPECT_EQ(plan.header.revision, revision);
        EXPECT_EQ(private_data_max(plan), revision == 0 ? 65535u : enhanced ? 508u : 512u);
      }
    }
  }
}

// The Reply has the Request's form.
TEST(Negotiation, TheReplyHasTheRequestsForm_CM6581_10_01) {
  for (uint8_t revision = 0; revision <= 2; ++revision) {
    for (const bool enhanced : {false, true}) {
      if (enhanced && revision != 2) continue;
      const StartPlan plan = plan_reply({}, {}, {.revision = revision, .enhanced = enhanced});
      EXPECT_EQ(plan.header.revision, revision);
      EXPECT_EQ(plan.header.enhanced, enhanced);
      EXPECT_EQ(plan.agreed.revision, revision);
    }
  }
  EXPECT_TRUE(revision_fits({}, 2, 1));
}

// C of the Reply repeats the Request's, for a peer (Linux siw) that refuses its own
// CRC otherwise; in the draft's profile it is the responder's own wish.
TEST(Negotiation, TheReplyRepeatsTheRequestsC_MPA_7_1_1_07) {
  for (uint8_t revision = 0; revision <= 2; ++revision) {
    for (const bool own : {false, true}) {
      for (const bool asked : {false, true}) {
        Config config;
        config.crc = own;
        config.revision = revision;
        const StartPlan plan = plan_reply(config, {}, {.revision = revision, .crc = asked});
        EXPECT_EQ(plan.header.crc, own || (asked && revision != 0));
        EXPECT_EQ(plan.agreed.crc, own || asked);
      }
    }
  }
}

TEST(Negotiation, WhichRevisionsAreServed_MPA_7_1_1_11_MPA00_8_1_01_CM6581_10_02) {
  for (uint8_t own = 0; own <= 2; ++own) {
    for (const bool permissive : {false, true}) {
      Config config;
      config.revision = own;
      config.permissive = permissive;
      for (int revision = 0; revision < 256; ++revision) {
        const bool served = own == 0 ? revision == 0 : revision == 0 ? permissive : revision <= own;
        EXPECT_EQ(revision_fits(config, own, static_cast<uint8_t>(revision)), served);
      }
    }
  }
}

}  // namespace
}  // namespace rnic::mpa
