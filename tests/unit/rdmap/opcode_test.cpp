// Every opcode in every buffer model, queue and version.

#include "rdmap/opcodes.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;

constexpr int kTagged = -1;
constexpr int kNowhere = -2;

/// RFC 5040 figure 4 and RFC 7306 figure 2, read again: the queue of each opcode.
constexpr std::array<int, 16> kHome{kTagged, 1, kTagged, 0, 0,        0,        0,        2,
                                    0,       0, 1,       3, kNowhere, kNowhere, kNowhere, kNowhere};
constexpr bool is_of_7306(uint8_t opcode) { return opcode >= 8 && opcode <= 11; }

constexpr std::array<uint32_t, 6> kQns{0, 1, 2, 3, 4, UINT32_MAX};

// RDMAP-3-01 RDMAP-4.1-02 RDMAP-4.1-04 RDMAP-4.1-06 RDMAP-7.2-01 RDMAP-7.2-04
// R7306-4-01
TEST(OpcodeTable, EveryControlOctetEverywhere_RDMAP_4_1_01) {
  for (int control = 0; control < 256; ++control) {
    const auto version = static_cast<uint8_t>(control >> 6);
    const auto opcode = static_cast<uint8_t>(control & 0x0f);  // two reserved bits between them
    for (const uint8_t spoken : {0, 1}) {
      for (const bool extensions : {false, true}) {
        for (int where = kTagged; where <= 5; ++where) {
          const OpcodeRow* row = nullptr;
          const Fault fault = check_control(static_cast<uint8_t>(control),
                                            {.version = spoken,
                                             .extensions = extensions,
                                             .tagged = where == kTagged,
                                             .qn = static_cast<uint32_t>(where)},
                                            row);
          const bool known = !is_of_7306(opcode) || (extensions && spoken == 1);
          if (version != spoken) {
            EXPECT_EQ(fault.code, 0x05);
          } else if (!known || kHome[opcode] != where) {
            EXPECT_EQ(fault.code, 0x06);
          } else {
            EXPECT_FALSE(fault.failed());
            ASSERT_NE(row, nullptr);
            EXPECT_EQ(row->solicited, opcode == 5 || opcode == 6 || opcode == 9);
            EXPECT_EQ(row->invalidates, opcode == 4 || opcode == 6);
            continue;
          }
          EXPECT_TRUE(fault.failed());
          EXPECT_EQ(fault.layer, FaultLayer::Rdmap);
          EXPECT_EQ(fault.type, 0x2);
        }
      }
    }
  }
}

// A row has the one function of its buffer model, and the size where RFC 5040 s.4 and RFC 7306 give
// one: figure 5's Read Request, the atomics' figures 4 and 6, Immediate Data's figure 10.
TEST(OpcodeTable, EachRowSaysWhatIsDone) {
  constexpr std::array<uint32_t, 12> kSizes{0, 28, 0, 0, 0, 0, 0, 0, 8, 8, 52, 12};
  for (uint8_t opcode = 0; opcode < 16; ++opcode) {
    SCOPED_TRACE(int{opcode});
    const OpcodeRow* row = opcode_row(opcode);
    ASSERT_EQ(row != nullptr, opcode < kSizes.size());
    if (row == nullptr) continue;
    EXPECT_EQ(row->deliver_segment != nullptr, kHome[opcode] == kTagged);
    EXPECT_EQ(row->deliver_message != nullptr, kHome[opcode] != kTagged);
    EXPECT_EQ(row->size, kSizes[opcode]);
    EXPECT_EQ(row->asked, opcode == 2);
  }
}

class OpcodeTest : public TwoNodes {
 protected:
  /// b has a buffer in every queue, and waits for a Read's and an atomic's response.
  void prepare(bool atomic_first, bool extensions) {
    EndpointConfig config{.qp = 9, .pd = 4};
    restart(config);
    b->post_receive(1, 3000, 100);
    const auto read = [&] {
      SendRequest w = b->work(2, Opcode::Read, 500, 8);
      w.remote.stag = a->all;
      b->send(w);
    };
    const auto atomic = [&] {
      SendRequest w = b->work(3, Opcode::FetchAdd, 0, 0);
      w.remote.stag = a->all;
      b->send(w);
    };
    if (!extensions) return;
    if (atomic_first) {
      atomic();
      read();
    } else {
      read();
      atomic();
    }
    pair.b.pull_all();
    pair.b.release_all();
    pair.b.sent.clear();
  }
  /// The payload that a legal message of this opcode has.
  [[nodiscard]] std::vector<uint8_t> body(uint8_t opcode) const {
    std::vector<uint8_t> octets(8, 0xee);
    if (opcode == 1) {
      octets.resize(28);
      wire::write_rdmap(octets.data(),
                        wire::RdmapReadRequest{.sink_stag = 7, .size = 8, .source_stag = b->all});
    } else if (opcode == 7) {
      octets = {0x11, 0x01, 0, 0};
    } else if (opcode == 10) {
      octets.resize(52);
      wire::write_rdmap(octets.data(), wire::RdmapAtomicRequest{.id = 5, .stag = b->all});
    } else if (opcode == 11) {
      octets.resize(12);
      wire::write_rdmap(octets.data(), wire::RdmapAtomicResponse{.id = 1, .original = 9});
    }
    return octets;
  }
  [[nodiscard]] std::vector<uint8_t> message(uint8_t opcode, bool tagged, uint32_t qn) const {
    const auto control = static_cast<uint8_t>(0x40 | opcode);
    const auto payload = body(opcode);
    const uint32_t tail = opcode == 4 || opcode == 6 ? b->all : 0;
    auto octets =
        tagged
            ? ulpdu(DdpTaggedHeader{.last = true, .rsvd_ulp = control, .stag = b->all, .to = 500},
                    payload.size())
            : ulpdu(
                  DdpUntaggedHeader{
                      .last = true, .rsvd_ulp = control, .rsvd_ulp_tail = tail, .qn = qn, .msn = 1},
                  payload.size());
    std::copy(payload.begin(), payload.end(),
              octets.end() - static_cast<ptrdiff_t>(payload.size()));
    return octets;
  }
};

// RDMAP-4.1-04 RDMAP-7.2-01 RDMAP-7.2-04 RDMAP-3-01 RDMAP-5.4-01 DDP-7.1-01
// DDP-4.1-02: what belongs nowhere gives a Terminate and not one octet of memory is changed; the
// same message in its place is accepted.
// UNH-RDMAP-02 UNH-DDP-06
TEST_F(OpcodeTest, EveryOpcodeInEveryModelAndQueue_RDMAP_4_1_06) {
  for (uint8_t opcode = 0; opcode < 16; ++opcode) {
    for (size_t where = 0; where <= kQns.size(); ++where) {
      const bool tagged = where == kQns.size();
      const uint32_t qn = tagged ? 0 : kQns[where];
      prepare(opcode == 11, true);
      const auto before = b->memory;
      inject(message(opcode, tagged, qn));
      if (!tagged && qn > 3) {
        expect_terminate(1, 2, 0x01);
        EXPECT_EQ(b->memory, before);
      } else if (kHome[opcode] != (tagged ? kTagged : static_cast<int>(qn))) {
        expect_terminate(0, 2, 0x06);
        EXPECT_EQ(b->memory, before);
        EXPECT_EQ(b->counters.faults_operation, 1u);
        EXPECT_EQ(b->counters.octets_placed, 0u);
      } else if (opcode == 7) {
        EXPECT_TRUE(std::holds_alternative<event::TerminateReceived>(b->owner.events.at(0)));
      } else {
        EXPECT_TRUE(b->owner.events.empty())
            << int{opcode} << ": " << event::common(b->owner.events[0]).detail;
        EXPECT_EQ(b->endpoint.state(), EndpointState::Connected);
      }
    }
  }
}

// R7306-4-01: without RFC 7306 its opcodes are reserved ones.
TEST_F(OpcodeTest, ExtensionsSwitchedOff_RDMAP_7_2_01) {
  for (const uint8_t opcode : {8, 9, 10}) {
    restart({.qp = 9, .pd = 4, .extensions = false});
    b->post_receive(1, 3000, 100);
    inject(message(opcode, false, opcode == 10 ? 1 : 0));
    expect_terminate(0, 2, 0x06);
  }
  // UNH-DDP-06: then there is no queue 3 either.
  restart({.qp = 9, .pd = 4, .extensions = false});
  inject(message(11, false, 3));
  expect_terminate(1, 2, 0x01);
  restart({.qp = 9, .pd = 4, .extensions = false});
  fetch_add(1, 0, 1);
  immediate(2, {1});
  write(3, 0, 8, 0);
  pair.pump();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3}));
  EXPECT_EQ(a->owner.sends[0].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends[1].status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends[2].status, CompletionStatus::Success);
}

// R7306-4-01: a revision 0 peer speaks RDMAP version 0, which has no atomics.
TEST_F(OpcodeTest, VersionZeroStreams_RDMAP_4_1_02) {
  pair.a.version_ = pair.b.version_ = 0;
  start();
  fetch_add(1, 0, 1);
  write(2, 0, 8, 0);
  pair.pump();
  EXPECT_EQ(a->owner.sends.at(0).status, CompletionStatus::Flushed);
  EXPECT_EQ(a->owner.sends.at(1).status, CompletionStatus::Success);
  ASSERT_EQ(pair.a.sent.size(), 1u);
  EXPECT_EQ(pair.a.sent[0].octets[0] & 3, 0);
  EXPECT_EQ(pair.a.sent[0].octets[1], 0x00);
  auto request = atomic_request(1, {.stag = b->all});
  request[0] &= 0xfc;
  request[1] = 0x0a;
  inject(request);
  pair.b.pull_all();
  EXPECT_EQ(b->owner.fault(0).code, 0x06);
}

// DDP-4.3-02 DDP-5.4-03: RsvdULP goes from end to end; segments of one message that
// disagree about it are no message.
// UNH-DDP-13
TEST_F(OpcodeTest, SegmentsOfOneMessageAgree_RDMAP_3_02) {
  for (const bool other_opcode : {false, true}) {
    for (const bool other_tail : {false, true}) {
      restart();
      b->post_receive(1, 3000, 100);
      DdpUntaggedHeader header{.rsvd_ulp = 0x43, .rsvd_ulp_tail = 7, .qn = 0, .msn = 1};
      inject(ulpdu(header, 10));
      header.last = true;
      header.mo = 10;
      header.rsvd_ulp = other_opcode ? 0x45 : 0x43;
      header.rsvd_ulp_tail = other_tail ? 8 : 7;
      inject(ulpdu(header, 10));
      if (other_opcode || other_tail) {
        expect_terminate(0, 2, 0x06);
        EXPECT_EQ(b->owner.receives.at(0).status, CompletionStatus::Flushed);
      } else {
        EXPECT_EQ(b->owner.receives.at(0).length, 20u);
      }
    }
  }
}

}  // namespace
}  // namespace rnic::rdmap
