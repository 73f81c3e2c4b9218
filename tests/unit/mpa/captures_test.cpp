// Linux siw's own start-ups and FPDUs, recorded, given to our sessions; and what ours answer.
#include <gtest/gtest.h>

#include "start_frames.hpp"
#include "support/capture.hpp"

namespace rnic::mpa {
namespace {

using test::CapturedConnection;
using test::CapturedStream;
using test::MpaEnd;
using test::Octets;

std::vector<CapturedConnection> capture(const std::string& name) {
  return test::read_capture(std::string(RNIC_CAPTURES) + "/" + name + ".pcap");
}

/// The start frame at the beginning of a direction, and the rest.
struct StartFrame {
  explicit StartFrame(const CapturedStream& direction) {
    const Octets& all = direction.octets;
    if (all.size() < wire::kMpaStartHeaderSize) return;
    header = *wire::parse_mpa_start_header(all);
    size = std::min(all.size(), wire::kMpaStartHeaderSize + header.pd_length);
    octets.assign(all.begin(), all.begin() + static_cast<long>(size));
    behind = all.size() - size;
    if (header.enhanced) {
      data = *wire::parse_mpa_enhanced(base::ByteView(octets).subspan(wire::kMpaStartHeaderSize));
    }
  }
  wire::MpaStartHeader header;
  wire::MpaEnhancedData data;
  Octets octets;
  size_t size = 0;
  size_t behind = 0;  ///< octets of FPDUs
};

/// All octets of FPDUs of one side, counted by the lengths they name.
size_t fpdus_of(const CapturedStream& direction, size_t start) {
  const Octets& all = direction.octets;
  size_t count = 0;
  for (size_t at = start; at + 2 <= all.size(); ++count) {
    at += wire::mpa_fpdu_size(base::load_be16(all.data() + at));
  }
  return count;
}

/// Segments as they came, from `start` on.
void replay(MpaEnd& end, const CapturedStream& direction, size_t start) {
  for (const auto& [offset, length] : direction.segments) {
    if (offset + length <= start) continue;
    const uint64_t from = std::max<uint64_t>(offset, start);
    end.receive(from, base::ByteView(direction.octets).subspan(from, offset + length - from));
  }
}

const char* const kGood[] = {"mpa2-start-no-pd",
                             "mpa2-start-pd",
                             "mpa2-start-ird-ord",
                             "mpa2-start-p2p-write-rtr",
                             "mpa2-start-p2p-read-rtr",
                             "mpa2-start-crc",
                             "mpa1-start-no-pd",
                             "mpa1-start-pd-send",
                             "crc-multi-segment",
                             "crc-send-write-read",
                             "read-multi-segment",
                             "read-pipelined",
                             "send-pad",
                             "send-multi-segment",
                             "send-0",
                             "write-0",
                             "write-multi-segment",
                             "rping-3",
                             "ucmatose-2x3"};

Config config_for(const StartFrame& request) {
  Config config;
  config.crc = request.header.crc;
  return config;
}

// BUG-17 BUG-15 CM6581-9.2-03 MPA-A.4-01: siw's Requests and all
// that it sent afterwards, to our responder.
TEST(Captures, SiwAsInitiator_BUG_16_CM6581_10_01_CM6581_9_2_02) {
  for (const char* name : kGood) {
    const auto connections = capture(name);
    ASSERT_FALSE(connections.empty()) << name;
    for (const CapturedConnection& connection : connections) {
      const StartFrame request(connection.from);
      if (request.size == 0) continue;
      MpaEnd b(framing::Role::Responder, config_for(request));
      b.establish();
      ASSERT_TRUE(b.receive(0, request.octets));
      ASSERT_EQ(b.events.requests.size(), 1u) << name;
      const framing::StartOffer& offer = b.events.offers[0];
      EXPECT_EQ(offer.revision, request.header.revision);
      EXPECT_EQ(offer.ird, request.data.ird);
      EXPECT_EQ(offer.ord, request.data.ord);
      b.session->accept({}, b.now, {.ird = 128, .ord = 128});
      const Octets answer = b.pull_all();
      const auto header = *wire::parse_mpa_start_header(answer);
      ASSERT_EQ(answer.size(), wire::kMpaStartHeaderSize + header.pd_length);
      EXPECT_EQ(header.revision, request.header.revision);
      EXPECT_EQ(header.enhanced, request.header.enhanced);
      EXPECT_FALSE(header.reject);
      EXPECT_EQ(header.crc, request.header.crc);
      if (header.enhanced) {
        const auto data =
            *wire::parse_mpa_enhanced(base::ByteView(answer).subspan(wire::kMpaStartHeaderSize));
        EXPECT_EQ(data.peer_to_peer, request.data.peer_to_peer) << name;
        EXPECT_EQ(data.rtr, request.data.rtr);  // siw offers Write, Read or both
        EXPECT_LE(data.ord, request.data.ird);
        EXPECT_GE(data.ird, request.data.ord);
      }
      replay(b, connection.from, request.size);
      EXPECT_EQ(b.user.delivered.size(), fpdus_of(connection.from, request.size)) << name;
      EXPECT_TRUE(b.user.errors.empty());
      EXPECT_EQ(b.user.faults, 0);
      EXPECT_EQ(b.events.rtrs, request.data.peer_to_peer && request.behind != 0 ? 1 : 0);
    }
  }
}

// BUG-15: siw's Replies and all that followed, to our initiator.
TEST(Captures, SiwAsResponder_CM6581_9_1_02_CM6581_9_2_04) {
  for (const char* name : kGood) {
    for (const CapturedConnection& connection : capture(name)) {
      const StartFrame request(connection.from), reply(connection.to);
      if (reply.size == 0) continue;
      const framing::StartOptions start_options{.exchange_reads = request.header.enhanced,
                                                .peer_to_peer = request.data.peer_to_peer,
                                                .ird = request.data.ird,
                                                .ord = request.data.ord};
      Config config = config_for(request);
      config.rtr_send = false;
      config.rtr_write = (request.data.rtr & wire::kMpaRtrWrite) != 0;
      config.rtr_read = (request.data.rtr & wire::kMpaRtrRead) != 0;
      const Octets own(request.octets.begin() + 20 + (request.header.enhanced ? 4 : 0),
                       request.octets.end());
      MpaEnd a(framing::Role::Initiator, config, own, 512u << 10, nullptr, start_options);
      a.establish();
      EXPECT_EQ(a.pull_all(), request.octets) << name << ": the Request octet by octet";
      replay(a, connection.to, 0);
      ASSERT_EQ(a.events.starts.size(), 1u) << name;
      const framing::Negotiated& agreed = a.events.starts[0];
      EXPECT_EQ(agreed.revision, reply.header.revision);
      EXPECT_EQ(agreed.peer_ird.value_or(0), reply.data.ird);
      EXPECT_EQ(agreed.peer_ord.value_or(0), reply.data.ord);
      EXPECT_EQ(agreed.peer_to_peer, reply.data.peer_to_peer);
      if (agreed.peer_to_peer) {
        EXPECT_NE(agreed.rtr_kinds & reply.data.rtr, 0);
      }
      EXPECT_EQ(a.user.delivered.size(), fpdus_of(connection.to, reply.size)) << name;
      EXPECT_TRUE(a.user.errors.empty());
    }
  }
}

// Siw's rejects, their private data and (revision 2) their IRD and ORD.
TEST(Captures, SiwRejects_MPA_7_1_1_09_CM6581_9_1_02) {
  for (const char* name :
       {"mpa1-reject-pd", "mpa2-reject-pd", "mpa2-reject-no-pd", "raw-markers-asked-rejected"}) {
    const auto connections = capture(name);
    ASSERT_FALSE(connections.empty());
    const StartFrame request(connections[0].from), reply(connections[0].to);
    Config config = config_for(request);
    config.markers_receive = request.header.markers;
    MpaEnd a(framing::Role::Initiator, config, {}, 512u << 10, nullptr,
             {.exchange_reads = request.header.enhanced, .ird = 4, .ord = 4});
    a.establish();
    a.pull_all();
    a.receive(0, reply.octets);
    EXPECT_EQ(a.events.failures, std::vector{framing::StartFailure::RejectedByPeer}) << name;
    const size_t prefix = reply.header.enhanced ? 24 : 20;
    EXPECT_EQ(a.events.start_data,
              Octets(reply.octets.begin() + static_cast<long>(prefix), reply.octets.end()));
    EXPECT_EQ(a.session->negotiated().peer_ird.value_or(0), reply.data.ird);
  }
}

// The Replies at which siw gave up: ours does, for the same
// reason.
TEST(Captures, RepliesAtFault_BUG_18_MPA_7_1_1_04_CM6581_9_1_06) {
  const std::pair<const char*, framing::StartFailure> kCases[] = {
      {"raw-reply-bad-key", framing::StartFailure::BadKey},
      {"raw-reply-ord-too-big", framing::StartFailure::InsufficientReads},
      {"raw-reply-v1-to-v2-request", framing::StartFailure::NotEnhanced}};
  for (const auto& [name, failure] : kCases) {
    const auto connections = capture(name);
    ASSERT_FALSE(connections.empty());
    MpaEnd a(framing::Role::Initiator, {}, {}, 512u << 10, nullptr,
             {.exchange_reads = true, .ird = 4, .ord = 4});
    a.establish();
    a.pull_all();
    replay(a, connections[0].to, 0);
    EXPECT_EQ(a.events.failures, std::vector{failure}) << name;
    EXPECT_TRUE(a.events.starts.empty());
  }
}

// The FPDU with a wrong CRC at which siw terminated. Ours drops it silently, or reports
// it.
TEST(Captures, AWrongCrc_MPA_8_02) {
  const auto connections = capture("raw-crc-error-terminate");
  ASSERT_FALSE(connections.empty());
  for (const bool drop : {true, false}) {
    const StartFrame request(connections[0].from);
    Config config;
    config.silent_drop = drop;
    MpaEnd b(framing::Role::Responder, config);
    b.establish();
    b.receive(0, request.octets);
    b.session->accept({}, b.now);
    b.pull_all();
    replay(b, connections[0].from, request.size);
    EXPECT_TRUE(b.user.delivered.empty());
    EXPECT_EQ(b.counters.crc_drops != 0, drop);
    EXPECT_EQ(b.user.errors.size(), drop ? 0u : 1u);
  }
}

}  // namespace
}  // namespace rnic::mpa
