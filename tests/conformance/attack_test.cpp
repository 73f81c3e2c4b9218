// What a hostile peer may send to a whole device once a connection runs: every field of every
// header at values that are not legal. Each has its Terminate on the wire, its event, its line in
// the log and its counters (Station::expect_rows), completes nothing and writes nothing.

#include "station.hpp"

namespace rnic::conformance {
namespace {

using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;
using AtomicRequest = wire::RdmapAtomicRequest;

class Attack : public Station {
 protected:
  [[nodiscard]] Octets write(uint64_t to, size_t n) const {
    return tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = to}, n);
  }
  static Octets send(uint32_t msn, size_t n) {
    return untagged({.last = true, .rsvd_ulp = 0x43, .msn = msn}, n);
  }
  static Octets sized(Octets ulpdu, size_t payload) {
    ulpdu.resize(18 + payload, 0xee);
    return ulpdu;
  }
  static Octets atomic(const AtomicRequest& request, size_t payload = 52) {
    Octets octets = untagged({.last = true, .rsvd_ulp = 0x4a, .qn = 1, .msn = 1}, 52);
    wire::write_rdmap(octets.data() + 18, request);
    return sized(octets, payload);
  }
};

// Every AOpCode, size, target and alignment.
// UNH-RDMAP-11
TEST_F(Attack, AtomicRequests_R7306_5_01_R7306_5_02_R7306_5_07_R7306_5_14) {
  const auto at = [this](uint64_t to) { return AtomicRequest{.stag = stag_, .to = to, .data = 1}; };
  const auto of = [](uint32_t stag) { return AtomicRequest{.stag = stag, .data = 1}; };
  const uint32_t other_pd = add(Access::RemoteAtomic, *right().device->alloc_pd());
  const uint32_t other_stream = add(Access::RemoteAtomic, {}, 4000);
  const uint32_t no_right = add(Access::RemoteWrite | Access::RemoteRead);
  const std::vector<Octets> good{atomic(at(0))};
  std::vector<Row> rows{
      {"unknown", {atomic(of(stag_ ^ 1))}, {0, 1, 0}, good},
      {"bounds", {atomic(at(kSize - 4))}, {0, 1, 1}, {atomic(at(kSize - 8))}},
      {"no right", {atomic(of(no_right))}, {0, 1, 2}, good},
      {"other domain", {atomic(of(other_pd))}, {0, 1, 3}, good},
      {"other stream", {atomic(of(other_stream))}, {0, 1, 3}, good},
      {"wraps", {atomic(at(UINT64_MAX - 6))}, {0, 1, 4}, good},
  };
  for (uint8_t code = 0; code < 16; ++code) {
    if (code == 0 || code == 2) continue;
    AtomicRequest request = at(0);
    request.code = code;
    rows.push_back({"AOpCode", {atomic(request)}, {0, 2, 6}, good});
  }
  for (uint64_t to = 1; to < 8; ++to) {
    rows.push_back({"unaligned", {atomic(at(to))}, {0, 2, 7}, {atomic(at(8))}});
  }
  for (const size_t n : {size_t{0}, size_t{1}, size_t{28}, size_t{51}}) {
    rows.push_back({"short", {atomic(at(0), n)}, {0, 2, 0xff}, good});
  }
  for (const size_t n : {size_t{53}, size_t{60}, size_t{1000}}) {
    rows.push_back({"long", {atomic(at(0), n)}, {1, 2, 5}, good});
  }
  std::fill(memory_.begin(), memory_.end(), uint8_t{0});
  expect_rows(rows);
}

// Messages of a fixed size at every other one.
TEST_F(Attack, SizesOfFixedMessages_R7306_6_01_RDMAP_4_4_04) {
  std::vector<Row> rows;
  for (const uint8_t control : {0x48, 0x49}) {
    const auto immediate = [&](size_t n) {
      return untagged({.last = true, .rsvd_ulp = control, .msn = 1}, n);
    };
    for (size_t n = 0; n <= 12; ++n) {
      if (n == 8) continue;
      const Code code = n < 8 ? Code{0, 2, 0xff} : Code{1, 2, 5};
      rows.push_back({"immediate", {immediate(n)}, code, {immediate(8)}});
    }
  }
  const Octets good =
      read_request(1, {.sink_stag = 7, .size = 8, .source_stag = stag_, .source_to = 0});
  for (size_t n = 0; n <= 40; n += n > 24 && n < 32 ? 1 : 4) {
    if (n == 28) continue;
    const Code code = n < 28 ? Code{0, 2, 0xff} : Code{1, 2, 5};
    rows.push_back({"Read Request", {sized(good, n)}, code, {good}});
  }
  expect_rows(rows);
}

// The MSNs of queues 1 and 2, and what is far from them.
TEST_F(Attack, MsnsOfTheRequestsAndTheTerminate_DDP_7_1_03) {
  const auto read = [&](uint32_t msn, uint32_t mo = 0) {
    Octets octets = read_request(msn, {.size = 8, .source_stag = stag_});
    base::store_be32(&octets[14], mo);
    return octets;
  };
  const auto terminate = [](uint32_t msn) {
    return untagged({.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = msn}, 4);
  };
  expect_rows({
      {"Request 0", {read(0)}, {1, 2, 3}, {read(1)}},
      {"Request one ahead of its turn", {read(2)}, {1, 2, 3}, {read(1), read(2)}},
      {"Request beyond the IRD", {read(3)}, {1, 2, 2}, {read(1), read(2)}},
      {"Request far beyond", {read(UINT32_MAX)}, {1, 2, 3}, {read(1)}},
      {"Request again", {read(1), read(1)}, {1, 2, 3}, {read(1), read(2)}},
      {"Request at an offset", {read(1, 1)}, {1, 2, 5}, {read(1)}},
      {"Request behind its buffer", {read(1, 53)}, {1, 2, 4}, {read(1)}},
      {"Terminate 0", {terminate(0)}, {1, 2, 3}, {read(1)}},
      {"Terminate 2", {terminate(2)}, {1, 2, 2}, {read(1)}},
      {"Terminate far beyond", {terminate(1u << 31)}, {1, 2, 3}, {read(1)}},
  });
}

// The segments of one message that disagree about what it is, or about what it
// invalidates. It completes nothing and invalidates nothing; those that agree do both.
// UNH-DDP-13
TEST_F(Attack, AMessageThatDisagreesWithItself_RDMAP_3_02) {
  const auto part = [](uint8_t control, uint32_t tail, uint32_t mo, bool last) {
    return untagged({.last = last, .rsvd_ulp = control, .rsvd_ulp_tail = tail, .msn = 1, .mo = mo},
                    10);
  };
  for (const uint8_t first : {0x43, 0x44, 0x45, 0x46}) {
    for (const uint8_t second : {0x43, 0x44, 0x45, 0x46}) {
      for (const uint32_t differs : {0u, 1u}) {
        const uint32_t victim = add(Access::RemoteInvalidate, {}, stream_to_come());
        Talk talk = open();
        say(talk, part(first, victim ^ differs, 0, false));
        run_for(std::chrono::milliseconds(1));
        const rdmap::Counters before = right().device->rdmap_counters();
        test::Logged log;
        say(talk, part(second, victim, 10, true));
        const bool agrees = first == second && differs == 0;
        EXPECT_EQ(terminate_heard(talk, std::chrono::milliseconds(20)),
                  agrees ? kNoTerminate : (Code{0, 2, 6}));
        const std::string said = log.take();
        if (!agrees) expect_named({0, 2, 6}, *talk.qp, before, said);
        const auto done = right().completions(cq_);
        EXPECT_EQ(
            std::count_if(done.begin(), done.end(),
                          [](const auto& c) { return c.status == CompletionStatus::Success; }),
            agrees ? 1 : 0);
        const bool invalidated = agrees && (first == 0x44 || first == 0x46);
        static_cast<void>(right().device->deregister_memory(mem::Stag{victim}));
        if (invalidated) {
          EXPECT_EQ(done.at(0).invalidated_stag, victim);
        }
        hang_up(talk);
      }
    }
  }
}

// A ULPDU of 0 octets up to one less than its header, for every opcode, tagged and not.
TEST_F(Attack, ShorterThanTheHeader_BUG_02) {
  std::vector<Row> rows;
  for (uint8_t opcode = 0; opcode < 16; ++opcode) {
    for (const uint8_t control : {0xc1, 0x41}) {
      const size_t header = control == 0xc1 ? 14 : 18;
      for (size_t n = opcode == 0 || opcode == 3 ? 0 : header - 1; n < header; ++n) {
        Octets ulpdu(n, 0);
        if (n > 0) ulpdu[0] = control;
        if (n > 1) ulpdu[1] = static_cast<uint8_t>(0x40 | opcode);
        rows.push_back({std::to_string(n), {ulpdu}, {1, 0, 0}, {send(1, 0)}});
      }
    }
  }
  expect_rows(rows);
}

// An FPDU cut into two segments at each octet of its headers: what is legal is taken and
// what is at fault gives the same Terminate as in one piece.
TEST_F(Attack, HeadersCutAtEveryOctet_BUG_03) {
  struct Case {
    Octets ulpdu;
    Code code;
    long placed;
  };
  Octets bad_stag = write(0, 30);
  bad_stag[5] ^= 1;
  Octets bad_qn = send(1, 30);
  bad_qn[9] = 9;
  for (const Case& c : {Case{write(0, 30), kNoTerminate, 30}, Case{bad_stag, {1, 1, 0}, 0},
                        Case{send(1, 30), kNoTerminate, 30}, Case{bad_qn, {1, 2, 1}, 0}}) {
    for (size_t cut = 1; cut <= 21; ++cut) {
      std::fill(memory_.begin(), memory_.end(), kUntouched);
      std::fill(buffers_.begin(), buffers_.end(), kUntouched);
      Talk talk = open();
      const uint64_t segments = left().device->tcp_counters().data_segments_out;
      talk.encoder.add(c.ulpdu);
      const base::ByteView all(talk.encoder.stream);
      put(talk.socket, all.first(cut));
      run_for(std::chrono::milliseconds(1));
      talk.put = cut;
      flush(talk);
      EXPECT_EQ(terminate_heard(talk, std::chrono::milliseconds(5)), c.code) << cut;
      EXPECT_GE(left().device->tcp_counters().data_segments_out, segments + 2);
      EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee) +
                    std::count(buffers_.begin(), buffers_.end(), 0xee),
                c.placed);
      hang_up(talk);
    }
  }
}

// A Terminate with any first octet, code and flags ends the stream once, is told once
// and logged, and is never answered.
TEST_F(Attack, EveryTerminate_RDMAP_5_4_06) {
  for (uint32_t first = 0; first < 256; first += 7) {
    for (const uint8_t code : {0, 5, 0x7f, 0xff}) {
      for (const uint8_t flags : {0x00, 0x40, 0xe0, 0x07}) {
        Talk talk = open();
        Octets terminate = untagged({.last = true, .rsvd_ulp = 0x47, .qn = 2, .msn = 1}, 4);
        terminate[18] = static_cast<uint8_t>(first);
        terminate[19] = code;
        terminate[20] = flags;
        terminate[21] = 0;
        const uint64_t before = right().device->rdmap_counters().terminates_in;
        test::Logged log;
        say(talk, terminate);
        EXPECT_EQ(terminate_heard(talk, std::chrono::milliseconds(2)), kNoTerminate);
        const std::string said = log.take();
        EXPECT_EQ(right().device->rdmap_counters().terminates_in, before + 1);
        const auto told = right().take<event::TerminateReceived>();
        ASSERT_TRUE(told) << first;
        EXPECT_FALSE(right().has<event::TerminateReceived>());
        EXPECT_NE(said.find(told->detail), std::string::npos) << said;
        expect_no_success();
        hang_up(talk);
      }
    }
  }
}

/// The device under test asks; the station answers.
class Answers : public Station {
 protected:
  static constexpr uint32_t kSink = 500, kAsked = 100;

  Answers() {
    mem::RegionSpec region;
    region.address = memory_.data();
    region.length = kSize;
    region.pd = pd_;
    region.rights = Access::LocalWrite;
    region.offset = 0;
    sink_ = right().device->register_memory(region)->value;
  }
  [[nodiscard]] Octets response(uint64_t to, size_t n, bool last) const {
    return tagged({.last = last, .rsvd_ulp = 0x42, .stag = sink_, .to = to}, n);
  }
  /// A connection on which one Read, or one atomic, waits for its answer.
  Talk asked(Opcode opcode) {
    std::fill(memory_.begin(), memory_.end(), kUntouched);
    Talk talk = open();
    say(talk, tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 0}, 0));
    run_for(std::chrono::milliseconds(1));  // the first FPDU lets it speak
    SendRequest w;
    w.id = 99;
    w.opcode = opcode;
    w.sges = {{kSink, opcode == Opcode::Read ? kAsked : 8, sink_}};
    EXPECT_EQ(talk.qp->post_send(w), device::PostResult::Ok);
    EXPECT_TRUE(run_until([&] {
      listen_to(talk);
      return !ulpdus(talk).empty();
    }));
    EXPECT_EQ(ulpdus(talk)[0][1], opcode == Opcode::Read ? 0x41 : 0x4a);
    return talk;
  }
  /// \param code kNoTerminate: the request completes
  void expect_answer(const std::string& what, Opcode opcode, const std::vector<Octets>& answer,
                     Code code) {
    SCOPED_TRACE(what);
    Talk talk = asked(opcode);
    right().completions(cq_);
    const rdmap::Counters before = right().device->rdmap_counters();
    test::Logged log;
    for (const Octets& ulpdu : answer) say(talk, ulpdu);
    EXPECT_EQ(terminate_heard(talk, std::chrono::milliseconds(50)), code);
    const std::string said = log.take();
    if (code == kNoTerminate) {
      EXPECT_EQ(said, "");
    } else {
      expect_named(code, *talk.qp, before, said);
    }
    const auto done = right().completions(cq_);
    ASSERT_FALSE(done.empty());
    EXPECT_EQ(std::count_if(done.begin(), done.end(), [](const auto& c) { return c.id == 99; }), 1);
    for (const auto& c : done) {
      EXPECT_EQ(c.status == CompletionStatus::Success, c.id == 99 && code == kNoTerminate);
    }
    const auto untouched = [](uint8_t o) { return o == kUntouched; };
    const long asked_for = opcode == Opcode::Read ? kAsked : 8;
    EXPECT_TRUE(std::all_of(memory_.begin(), memory_.begin() + kSink, untouched));
    EXPECT_TRUE(std::all_of(memory_.begin() + kSink + asked_for, memory_.end(), untouched));
    hang_up(talk);
  }

  uint32_t sink_ = 0;
};

// No octet outside of what was asked for, though the region is larger; and
// no completion of a Read whose octets did not all come.
// UNH-RDMAP-06
TEST_F(Answers, ReadResponses_BUG_01_RDMAP_5_2_2_04) {
  const auto read = [&](const char* what, const std::vector<Octets>& answer, Code code) {
    expect_answer(what, Opcode::Read, answer, code);
  };
  read("whole", {response(500, 100, true)}, kNoTerminate);
  read("in two", {response(500, 60, false), response(560, 40, true)}, kNoTerminate);
  read("one too many", {response(500, 101, true)}, {1, 1, 1});
  read("one too many, without L", {response(500, 101, false)}, {1, 1, 1});
  read("in its second segment", {response(500, 60, false), response(560, 41, false)}, {1, 1, 1});
  read("one too early", {response(499, 10, false)}, {1, 1, 1});
  read("one behind", {response(600, 1, false)}, {1, 1, 1});
  read("far behind", {response(3000, 10, false)}, {1, 1, 1});
  read("wraps", {response(UINT64_MAX - 3, 10, false)}, {1, 1, 1});
  read("the same twice", {response(500, 50, false), response(500, 50, true)}, {1, 1, 1});
  read("ends too early", {response(500, 99, true)}, {1, 1, 1});
  read("ends with nothing", {response(500, 0, true)}, {1, 1, 1});
  Octets other = response(500, 100, true);
  base::store_be32(&other[2], stag_);
  read("to another STag", {other}, {1, 1, 0});
  Octets version = response(500, 100, true);
  version[1] = 0x82;
  read("of another version", {version}, {0, 2, 5});
}

// The Response's size, MSN and id.
// UNH-RDMAP-11
TEST_F(Answers, AtomicResponses_R7306_5_09_R7306_5_13) {
  for (size_t n = 0; n <= 16; ++n) {
    for (const int wrong : {0, 1, 2, 3}) {
      if (wrong != 0 && n != 12) continue;
      Talk talk = asked(Opcode::FetchAdd);
      const uint32_t id = base::load_be32(&ulpdus(talk)[0][18 + 4]);
      right().completions(cq_);
      const uint32_t msn = wrong == 1 ? 2 : wrong == 2 ? 0 : 1;
      Octets answer = untagged({.last = true, .rsvd_ulp = 0x4b, .qn = 3, .msn = msn}, n);
      if (n >= 4) base::store_be32(&answer[18], wrong == 3 ? id + 1 : id);
      say(talk, answer);
      const Code code = wrong == 1   ? Code{1, 2, 2}
                        : wrong == 2 ? Code{1, 2, 3}
                        : wrong == 3 ? Code{0, 2, 0xff}
                        : n < 12     ? Code{0, 2, 0xff}
                        : n > 12     ? Code{1, 2, 5}
                                     : kNoTerminate;
      EXPECT_EQ(terminate_heard(talk, std::chrono::milliseconds(50)), code) << n << " " << wrong;
      const auto done = right().completions(cq_);
      ASSERT_FALSE(done.empty());
      EXPECT_EQ(done[0].id, 99u);
      EXPECT_EQ(done[0].status == CompletionStatus::Success, code == kNoTerminate);
      const long written = kSize - std::count(memory_.begin(), memory_.end(), kUntouched);
      EXPECT_EQ(written, code == kNoTerminate ? 8 : 0);
      hang_up(talk);
    }
  }
}

/// A device that tells a bad CRC at once.
class FpduLengths : public Station {
 protected:
  FpduLengths() : Station([](device::DeviceConfig& config) { config.mpa.silent_drop = false; }) {}
};

// ULPDU_Length at every value around the true one, and at the largest: nothing of
// the FPDU or of what lies behind it is taken. Where the octets that it asks for do not come, the
// end of the stream is an unclean one.
TEST_F(FpduLengths, TheLengthOfAnFpdu_BUG_02_MPA_8_02) {
  constexpr uint32_t kTrue = 54, kBehind = 214;
  std::vector<uint32_t> lengths{1000, 1460, 0x7fff, 0x8000, 64768, 64769, 65534, 65535};
  for (uint32_t n = 0; n <= 200; n += n < 64 ? 1 : 9) lengths.push_back(n);
  for (const uint32_t n : lengths) {
    SCOPED_TRACE(n);
    std::fill(memory_.begin(), memory_.end(), kUntouched);
    Talk talk = open();
    say(talk, tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 4000}, 0));
    run_for(std::chrono::milliseconds(1));
    const size_t begin = talk.encoder.stream.size();
    talk.encoder.add(tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 0}, kTrue - 14));
    talk.encoder.add(
        tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 1000}, kBehind - 14));
    base::store_be16(&talk.encoder.stream[begin], static_cast<uint16_t>(n));
    const size_t there = talk.encoder.stream.size() - begin;
    flush(talk);
    const bool whole = ((2 + n + 3) & ~3u) + 4 <= there;
    const Code code = n == kTrue || !whole ? kNoTerminate : Code{2, 0, 2};
    EXPECT_EQ(terminate_heard(talk, std::chrono::milliseconds(5)), code);
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee),
              n == kTrue ? kTrue + kBehind - 28 : 0);
    if (!whole) {
      const uint32_t number = talk.socket->doorbell();
      talk.socket->request(StreamSocket::kFinish);
      left().device->ring_doorbell(number);
      EXPECT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
      const auto end = right().take<event::Disconnected>();
      EXPECT_EQ(end->fault.value().layer, FaultLayer::Llp);
      EXPECT_EQ(end->fault.value().code, 1);
      EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee), 0);
    }
    hang_up(talk);
  }
}

}  // namespace
}  // namespace rnic::conformance
