// Recorded streams of Linux siw against our receiver, and its Terminates against our sender.
// What stands for the peer's choice - STags and addresses - is replaced by what our side gave out.

#include <map>
#include <optional>

#include "rdmap/terminate.hpp"
#include "support/capture.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using BitOrder = wire::TerminateBitOrder;

std::string capture_path(const std::string& name) {
  return std::string(RNIC_SOURCE_DIR) + "/tests/captures/" + name + ".pcap";
}

using Ulpdus = std::vector<std::vector<uint8_t>>;

uint8_t opcode_of(const std::vector<uint8_t>& ulpdu) { return ulpdu[1] & 0x0f; }

/// The memory that a recorded STag stood for.
struct RecordedRegion {
  uint64_t first = UINT64_MAX;
  uint64_t end = 0;
  std::vector<uint8_t> memory;
  uint32_t stag = 0;

  void cover(uint64_t to, uint64_t length) {
    first = std::min(first, to);
    end = std::max(end, to + length);
  }
};

/// Our end of a recorded connection. `theirs`: what the recorded peer sent; `ours`: what the side
/// that we stand for sent.
class Replay {
 public:
  struct Limits {
    bool receives = true;  ///< post one for each Send
    bool regions = true;   ///< register what is written and read
    AccessSet rights = Access::RemoteWrite | Access::RemoteRead | Access::RemoteInvalidate;
    std::optional<uint64_t> octets = {};  ///< of a region; otherwise what is touched
    std::optional<uint32_t> receive_length = {};
  };

  Replay(test::FramingPair& pair, Node& node, Ulpdus theirs, Ulpdus ours, const Limits& limits)
      : pair_(pair),
        node_(node),
        theirs_(std::move(theirs)),
        ours_(std::move(ours)),
        limits_(limits) {
    find_regions();
    if (limits.regions) register_regions();
    if (limits.receives) post_receives();
    post_reads();
  }

  void run() {
    size_t read = 0;
    for (auto ulpdu : theirs_) {
      const auto tagged = wire::parse_ddp_tagged(ulpdu);
      const bool request = !tagged && opcode_of(ulpdu) == 1 && ulpdu.size() == 46;
      if (request) set_source(ulpdu, read++);
      translate(ulpdu);
      pair_.a.sent.push_back({std::move(ulpdu), {}, true});
      pair_.b.arrive_rest(pair_.a);
      pair_.b.pull_all();
      pair_.b.release_all();
    }
  }

  /// Everything arrived as it was recorded.
  void expect_all() {
    for (const Event& event : node_.owner.events) ADD_FAILURE() << event::common(event).detail;
    ASSERT_EQ(node_.owner.receives.size(), sends_.size());
    for (size_t i = 0; i < sends_.size(); ++i) {
      EXPECT_EQ(node_.owner.receives[i].status, CompletionStatus::Success);
      ASSERT_EQ(node_.owner.receives[i].length, sends_[i].size());
      EXPECT_TRUE(std::equal(sends_[i].begin(), sends_[i].end(), buffers_[i].begin()));
    }
    EXPECT_EQ(node_.owner.sends.size(), reads_posted_);
    for (const Completion& c : node_.owner.sends) EXPECT_EQ(c.status, CompletionStatus::Success);
    expect_last_octets();
    expect_responses();
  }

  size_t sends() const { return sends_.size(); }

 private:
  static wire::RdmapReadRequest request_of(const std::vector<uint8_t>& ulpdu) {
    return *wire::parse_rdmap_read_request(base::ByteView(ulpdu).subspan(18));
  }

  void find_regions() {
    for (const auto& ulpdu : theirs_) {
      if (const auto tagged = wire::parse_ddp_tagged(ulpdu)) {
        if (ulpdu.size() > 14) regions_[tagged->stag].cover(tagged->to, ulpdu.size() - 14);
      } else if (opcode_of(ulpdu) == 1 && ulpdu.size() == 46) {
        const auto r = request_of(ulpdu);
        if (r.size != 0) regions_[r.source_stag].cover(r.source_to, r.size);
      } else if (opcode_of(ulpdu) == 4 || opcode_of(ulpdu) == 6) {
        regions_[wire::parse_ddp_untagged(ulpdu)->rsvd_ulp_tail].cover(0, 64);
      }
      const auto untagged = wire::parse_ddp_untagged(ulpdu);
      if (!untagged || untagged->qn != 0) continue;
      if (untagged->mo == 0) sends_.emplace_back();
      sends_.back().insert(sends_.back().end(), ulpdu.begin() + 18, ulpdu.end());
    }
    for (const auto& ulpdu : ours_) {
      if (ulpdu.size() != 46 || opcode_of(ulpdu) != 1) continue;
      const auto r = request_of(ulpdu);
      if (r.size != 0) regions_[r.sink_stag].cover(r.sink_to, r.size);
    }
  }
  void register_regions() {
    for (auto& [recorded, region] : regions_) {
      region.memory.assign(region.end - region.first + 32, 0x5a);
      region.stag = node_.table
                        .add({.address = region.memory.data() + 16,
                              .length = limits_.octets.value_or(region.end - region.first),
                              .pd = node_.pd,
                              .rights = limits_.rights | Access::LocalWrite,
                              .offset = 0,
                              .stream = node_.stream_for(limits_.rights)})
                        .value()
                        .value;
    }
  }
  void post_receives() {
    buffers_.resize(sends_.size());
    for (size_t i = 0; i < sends_.size(); ++i) {
      const auto length = limits_.receive_length.value_or(static_cast<uint32_t>(sends_[i].size()));
      buffers_[i].assign(length + 16, 0x5a);
      const auto stag = node_.table.add({.address = buffers_[i].data(),
                                         .length = buffers_[i].size(),
                                         .pd = node_.pd,
                                         .rights = Access::LocalWrite,
                                         .offset = 0});
      ReceiveRequest work{.id = i};
      work.sges = {{0, length, stag->value}};
      node_.receive(work);
    }
  }
  void post_reads() {
    for (const auto& ulpdu : ours_) {
      if (ulpdu.size() != 46 || opcode_of(ulpdu) != 1) continue;
      const auto r = request_of(ulpdu);
      SendRequest work{.id = reads_posted_++, .opcode = Opcode::Read};
      const RecordedRegion& sink = regions_[r.sink_stag];
      work.sges = {{r.sink_to - sink.first, r.size, sink.stag}};
      work.remote = {r.source_stag, r.source_to};
      node_.send(work);
    }
    pair_.b.pull_all();
    pair_.b.release_all();
    pair_.b.sent.clear();
  }
  /// What siw answered to the `index`-th Read Request is what our memory holds.
  void set_source(const std::vector<uint8_t>& ulpdu, size_t index) {
    const auto r = request_of(ulpdu);
    std::vector<uint8_t> answer;
    for (const auto& response : ours_) {
      const auto tagged = wire::parse_ddp_tagged(response);
      if (!tagged || opcode_of(response) != 2) continue;
      if (index == 0) answer.insert(answer.end(), response.begin() + 14, response.end());
      if (tagged->last && index-- == 0) break;
    }
    if (answer.size() != r.size) return;
    const auto found = regions_.find(r.source_stag);
    if (r.size != 0 && (found == regions_.end() || found->second.memory.empty())) return;
    if (r.size != 0) {
      std::copy(answer.begin(), answer.end(),
                found->second.memory.begin() + 16 +
                    static_cast<ptrdiff_t>(r.source_to - found->second.first));
    }
    answers_.push_back(answer);
  }
  void replace(uint8_t* stag, uint8_t* to) {
    const auto found = regions_.find(base::load_be32(stag));
    if (found == regions_.end() || found->second.stag == 0) return;
    base::store_be32(stag, found->second.stag);
    if (to != nullptr) base::store_be64(to, base::load_be64(to) - found->second.first);
  }
  void translate(std::vector<uint8_t>& ulpdu) {
    if (wire::parse_ddp_tagged(ulpdu)) {
      replace(&ulpdu[wire::kDdpStagAt], &ulpdu[wire::kDdpToAt]);
    } else if (opcode_of(ulpdu) == 1 && ulpdu.size() == 46) {
      replace(&ulpdu[18 + wire::kRdmapSourceStagAt], &ulpdu[18 + wire::kRdmapSourceToAt]);
    } else if (opcode_of(ulpdu) == 4 || opcode_of(ulpdu) == 6) {
      replace(&ulpdu[wire::kDdpRsvdUlpTailAt], nullptr);
    }
  }
  /// Tagged memory holds what came last, and nothing beside it was written.
  void expect_last_octets() {
    std::map<uint32_t, std::vector<std::optional<uint8_t>>> expected;
    for (const auto& ulpdu : theirs_) {
      const auto tagged = wire::parse_ddp_tagged(ulpdu);
      if (!tagged || ulpdu.size() == 14) continue;
      const RecordedRegion& region = regions_.at(tagged->stag);
      auto& octets = expected[tagged->stag];
      octets.resize(region.end - region.first);
      for (size_t i = 14; i < ulpdu.size(); ++i) {
        octets[tagged->to - region.first + i - 14] = ulpdu[i];
      }
    }
    for (const auto& [recorded, octets] : expected) {
      const RecordedRegion& region = regions_.at(recorded);
      for (size_t i = 0; i < octets.size(); ++i) {
        if (octets[i]) {
          ASSERT_EQ(region.memory[16 + i], *octets[i]) << i;
        }
      }
      for (size_t i = 0; i < 16; ++i) {
        EXPECT_EQ(region.memory[i], 0x5a);
        EXPECT_EQ(region.memory[region.memory.size() - 1 - i], 0x5a);
      }
    }
  }
  /// Our Read Responses carry the octets of siw's.
  void expect_responses() {
    std::vector<std::vector<uint8_t>> sent(1);
    for (const test::SentUlpdu& ulpdu : pair_.b.sent) {
      if (opcode_of(ulpdu.octets) != 2) continue;
      sent.back().insert(sent.back().end(), ulpdu.octets.begin() + 14, ulpdu.octets.end());
      if (ulpdu.last) sent.emplace_back();
    }
    sent.pop_back();
    EXPECT_EQ(sent, answers_);
  }

  test::FramingPair& pair_;
  Node& node_;
  Ulpdus theirs_, ours_;
  Limits limits_;
  std::map<uint32_t, RecordedRegion> regions_;
  std::vector<std::vector<uint8_t>> sends_, buffers_, answers_;
  uint64_t reads_posted_ = 0;
};

class SiwReplay : public TwoNodes {
 protected:
  /// `client`: the recorded peer is the side that connected.
  Replay replay(const test::CapturedConnection& c, bool client, const Replay::Limits& limits = {}) {
    restart({.qp = 9, .pd = 4, .ird = 64, .ord = 64}, {.send = 256, .receive = 256});
    const auto& theirs = client ? c.from : c.to;
    const auto& ours = client ? c.to : c.from;
    return Replay(pair, *b, theirs.ulpdus(), ours.ulpdus(), limits);
  }
};

// RDMAP-3-01 RDMAP-4.4-01 RDMAP-5.2.2-05 RDMAP-5.5-06: every message that siw sent
// is taken as siw's own peer took it, in both directions.
TEST_F(SiwReplay, EverythingThatSiwSaidIsUnderstood_DDP_5_2_05) {
  size_t ulpdus = 0, sends = 0;
  for (const char* name : {"send-0",
                           "send-64",
                           "send-pad",
                           "send-multi-segment",
                           "send-invalidate",
                           "write-0",
                           "write-64",
                           "write-multi-segment",
                           "read-64",
                           "read-multi-segment",
                           "read-pipelined",
                           "crc-send-write-read",
                           "crc-multi-segment",
                           "raw-zero-read-ok",
                           "rping-3",
                           "ucmatose-2x3",
                           "perftest-read-bw",
                           "perftest-write-bw",
                           "perftest-send-bw",
                           "perftest-write-lat",
                           "mpa2-start-p2p-read-rtr",
                           "mpa2-start-p2p-write-rtr",
                           "mpa1-start-pd-send"}) {
    const auto connections = test::read_capture(capture_path(name));
    ASSERT_FALSE(connections.empty()) << name;
    for (const auto& connection : connections) {
      for (const bool client : {true, false}) {
        SCOPED_TRACE(std::string(name) + (client ? ", client" : ", server"));
        Replay one = replay(connection, client);
        one.run();
        one.expect_all();
        ulpdus += (client ? connection.from : connection.to).ulpdus().size();
        sends += one.sends();
      }
    }
  }
  EXPECT_GT(ulpdus, 200u) << "the recordings were read";
  EXPECT_GT(sends, 50u);
}

// RDMAP-4.8-10 DDP-7.1-07: what siw refused is refused, with RFC 5040's code; where
// siw's is another one, the text says so (docs/decisions).
TEST_F(SiwReplay, WhatSiwRefusedIsRefused_RDMAP_7_1_03) {
  struct Case {
    const char* name;
    Replay::Limits limits;
    uint8_t layer, type, code;
    bool same;  ///< siw's Terminate says it, too
  };
  const Replay::Limits none{.receives = false, .regions = false};
  for (const Case& c : {
           Case{"term-write-bad-stag", none, 1, 1, 0x00, true},
           Case{"term-write-bad-stag-crc", none, 1, 1, 0x00, true},
           Case{"term-write-out-of-bounds", {.octets = 16}, 1, 1, 0x01, true},
           Case{"term-write-no-permission", {.rights = Access::RemoteRead}, 0, 1, 0x02, false},
           Case{"term-read-bad-stag", none, 0, 1, 0x00, true},
           Case{"term-read-out-of-bounds", {.octets = 16}, 0, 1, 0x01, true},
           Case{"term-send-no-recv-buffer", none, 1, 2, 0x02, true},
           Case{"term-send-too-long", {.receive_length = 32}, 1, 2, 0x05, false},
           Case{"term-send-too-long-segments", {.receive_length = 1000}, 1, 2, 0x05, false},
           Case{"raw-ddp-version-terminate", {}, 1, 2, 0x06, true},
           Case{"raw-msn-range-terminate", {}, 1, 2, 0x03, true},
           Case{"raw-unexpected-read-resp", {}, 0, 2, 0x06, false},
           Case{"raw-rdmap-opcode-terminate", {}, 0, 2, 0x06, true},
       }) {
    SCOPED_TRACE(c.name);
    const auto connections = test::read_capture(capture_path(c.name));
    ASSERT_EQ(connections.size(), 1u);
    Replay one = replay(connections[0], true, c.limits);
    one.run();
    expect_terminate(c.layer, c.type, c.code);
    EXPECT_EQ(b->owner.sends.size(), 0u);
    for (const Completion& r : b->owner.receives) EXPECT_NE(r.status, CompletionStatus::Success);
    // siw's own, in its order of bits.
    const Ulpdus theirs = connections[0].to.ulpdus();
    ASSERT_FALSE(theirs.empty());
    const auto siw =
        wire::parse_terminate(base::ByteView(theirs.back()).subspan(18), BitOrder::Siw);
    ASSERT_TRUE(siw);
    EXPECT_EQ(siw->layer == c.layer && siw->type == c.type && siw->code == c.code, c.same);
  }
}

// Siw's Terminates, as it sent them, to the one whose work they are about.
TEST_F(SiwReplay, TerminatesOfSiw_BUG_13) {
  struct Case {
    const char* name;
    bool to_client;
    uint8_t layer, type, code;
    BitOrder order;
  };
  for (const Case& c : {
           Case{"term-write-bad-stag", true, 1, 1, 0x00, BitOrder::Siw},
           Case{"term-write-bad-stag-crc", true, 1, 1, 0x00, BitOrder::Siw},
           Case{"term-write-out-of-bounds", true, 1, 1, 0x01, BitOrder::Siw},
           Case{"term-write-no-permission", true, 1, 1, 0x00, BitOrder::Siw},
           Case{"term-read-bad-stag", true, 0, 1, 0x00, BitOrder::Siw},
           Case{"term-read-out-of-bounds", true, 0, 1, 0x01, BitOrder::Siw},
           Case{"term-send-no-recv-buffer", true, 1, 2, 0x02, BitOrder::Siw},
           Case{"term-send-too-long", true, 1, 2, 0x02, BitOrder::Siw},
           Case{"raw-crc-error-terminate", true, 2, 0, 0x02, BitOrder::Siw},
           Case{"raw-ddp-version-terminate", true, 1, 2, 0x06, BitOrder::Siw},
           Case{"raw-msn-range-terminate", true, 1, 2, 0x03, BitOrder::Siw},
           Case{"raw-unexpected-read-resp", true, 1, 0, 0x00, BitOrder::Siw},
           Case{"raw-reply-bad-key", false, 2, 0, 0x04, BitOrder::Siw},
           Case{"raw-reply-ord-too-big", false, 2, 0, 0x06, BitOrder::Siw},
           // 20 06 00 00 is a right MPA error by RFC 5040: nothing tells that siw meant 0/2/06.
           Case{"raw-rdmap-opcode-terminate", true, 2, 0, 0x06, BitOrder::Rfc},
       }) {
    SCOPED_TRACE(c.name);
    const auto connection = test::read_capture(capture_path(c.name)).at(0);
    const Ulpdus theirs = (c.to_client ? connection.to : connection.from).ulpdus();
    ASSERT_FALSE(theirs.empty());
    const auto received = read_terminate(base::ByteView(theirs.back()).subspan(18));
    ASSERT_TRUE(received);
    EXPECT_EQ(received->order, c.order);
    EXPECT_EQ(static_cast<uint8_t>(received->fault.layer), c.layer);
    EXPECT_EQ(received->fault.type, c.type);
    EXPECT_EQ(received->fault.code, c.code);
    EXPECT_NE(received->detail.find(c.order == BitOrder::Siw ? "RFC 5040's order" : "siw's order"),
              std::string::npos)
        << "both readings: " << received->detail;

    restart();
    pair.b.pull_all();
    b->post_receive(70, 0, 8);
    inject(theirs.back());
    ASSERT_EQ(b->owner.events.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(b->owner.events[0]));
    EXPECT_EQ(b->counters.siw_terminates, c.order == BitOrder::Siw ? 1u : 0u);
    EXPECT_EQ(b->owner.receives.at(0).status, CompletionStatus::Flushed);
    EXPECT_EQ(b->endpoint.state(), EndpointState::Error);
  }
}

// BUG-13: siw's Terminate names our Write by its STag, and our Read by the Read
// Request (its MSN field holds the size).
TEST_F(SiwReplay, TheWorkAtFaultIsFound_RDMAP_4_8_10) {
  for (const char* name :
       {"term-write-bad-stag", "term-read-bad-stag", "term-send-no-recv-buffer"}) {
    SCOPED_TRACE(name);
    const auto connection = test::read_capture(capture_path(name)).at(0);
    const auto blamed = connection.from.ulpdus().at(0);
    restart();
    for (uint64_t id = 1; id <= 3; ++id) {  // of Sends there is one, otherwise the second is named
      const bool send = opcode_of(blamed) == 3;
      SendRequest w = b->work(id, Opcode::Write, 64 * id, 64);
      if (const auto tagged = wire::parse_ddp_tagged(blamed)) {
        w.remote = {tagged->stag + (id == 2 ? 0 : 1), tagged->to};
      } else if (send) {
        w = b->work(id, id == 1 ? Opcode::Send : Opcode::Write, 0, 64);
      } else {
        const auto r = *wire::parse_rdmap_read_request(base::ByteView(blamed).subspan(18));
        w.opcode = Opcode::Read;
        w.remote = {r.source_stag, r.source_to};
      }
      b->send(w);
    }
    pair.b.pull_all();
    auto terminate = connection.to.ulpdus().back();
    const bool read = opcode_of(blamed) == 1;
    if (read) {
      // The sink that siw quotes becomes that of our second Read.
      base::store_be32(&terminate[18 + 6 + 18], b->all);
      base::store_be64(&terminate[18 + 6 + 18 + 4], 128);
    }
    inject(terminate);
    ASSERT_EQ(b->owner.sends.size(), 3u);
    const size_t expected = opcode_of(blamed) == 3 ? 0 : 1;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(b->owner.sends[i].status, i != expected ? CompletionStatus::Flushed
                                          : opcode_of(blamed) == 3
                                              ? CompletionStatus::RemoteInvalidRequest
                                              : CompletionStatus::RemoteAccess)
          << i;
    }
  }
}

// A Read Request that is none of ours names nobody.
TEST_F(SiwReplay, AQuotedReadThatIsNotOursBlamesNobody_RDMAP_4_8_10) {
  const auto connection = test::read_capture(capture_path("term-read-bad-stag")).at(0);
  auto terminate = connection.to.ulpdus().back();
  base::store_be32(&terminate[18 + 6 + 18], b->all ^ 0xff);
  for (uint64_t id = 1; id <= 2; ++id) {
    SendRequest w = b->work(id, Opcode::Read, 64 * id, 64);
    w.remote.stag = a->all;
    b->send(w);
  }
  pair.b.pull_all();
  inject(terminate);
  ASSERT_EQ(b->owner.sends.size(), 2u);
  for (const Completion& told : b->owner.sends) EXPECT_EQ(told.status, CompletionStatus::Flushed);
}

}  // namespace
}  // namespace rnic::rdmap
