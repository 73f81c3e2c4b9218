/// \file
/// A test station: it speaks MPA, DDP and RDMAP octet by octet over a streaming socket of the left
/// device with the right device, which is under test. Terminates are read from the wire.
#pragma once

#include <algorithm>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "support/logged.hpp"
#include "support/mpa_fakes.hpp"
#include "unit/device/device_pair.hpp"
#include "unit/mpa/start_frames.hpp"
#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"

namespace rnic::conformance {

using device::Host;
using device::QueuePair;
using device::StreamSocket;
using test::Octets;

/// Layer, type and code of a Terminate as they stand on the wire.
struct Code {
  int layer = -1, type = -1, code = -1;
  friend bool operator==(const Code&, const Code&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Code& c) {
    return out << c.layer << "/" << c.type << "/" << c.code;
  }
};
inline constexpr Code kNoTerminate{};

class Station : public device::DevicePair {
 protected:
  static constexpr uint32_t kSize = 4096;   // of the region
  static constexpr uint32_t kBuffer = 64;   // of each receive
  static constexpr uint32_t kReceives = 4;  // posted on each queue pair
  static constexpr uint8_t kUntouched = 0x5a;

  /// One connection, as the station has it.
  struct Talk {
    Talk(size_t start, bool markers, bool crc) : encoder(start, markers, crc) {}
    StreamSocket* socket = nullptr;
    QueuePair* qp = nullptr;  // of the device under test
    test::SlowEncoder encoder;
    size_t put = 0;  // octets of the encoder's stream that were sent
    Octets heard;    // everything that came, the Reply first
    size_t reply = 0;
  };

  Station() : Station([](device::DeviceConfig&) {}) {}
  explicit Station(const Tweak& tweak)
      : DevicePair([&](device::DeviceConfig& config) {
          config.limits.max_connections = 256;
          config.tcp.max_connections = 512;
          config.limits.max_qps = 256;
          config.tcp.time_wait = std::chrono::milliseconds(1);
          tweak(config);
        }) {
    pd_ = *right().device->alloc_pd();
    cq_ = *right().device->create_cq(1024);
    memory_.assign(kSize, kUntouched);
    buffers_.assign(kSize, kUntouched);
    stag_ = add(Access::RemoteWrite | Access::RemoteRead | Access::RemoteAtomic);
  }

  uint32_t add(AccessSet rights, std::optional<uint32_t> pd = {},
               std::optional<uint64_t> stream = {}) {
    mem::RegionSpec spec;
    spec.address = memory_.data();
    spec.length = kSize;
    spec.pd = pd.value_or(pd_);
    spec.rights = rights;
    spec.offset = 0;
    spec.stream = stream;
    return right().device->register_memory(spec)->value;
  }

  /// That of the connection that is opened after `others` more.
  [[nodiscard]] uint64_t stream_to_come(uint64_t others = 0) const { return targets_ + others + 1; }

  QueuePair* make_target() {
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = pd_;
    spec.send_cq = spec.receive_cq = cq_;
    spec.send_depth = spec.receive_depth = 16;
    spec.ird = spec.ord = 2;
    const uint64_t stream = stream_to_come();
    QueuePair* qp = *right().device->create_qp(spec);
    ++targets_;
    EXPECT_EQ(qp->stream(), stream);
    mem::RegionSpec region;
    region.address = buffers_.data();
    region.length = kSize;
    region.pd = pd_;
    region.rights = Access::LocalWrite;
    if (buffers_stag_.value == 0) buffers_stag_ = *right().device->register_memory(region);
    for (uint32_t i = 0; i < kReceives; ++i) {
      auto work = receive(i, buffers_, buffers_stag_, kBuffer);
      work.sges[0].address += uint64_t{i} * kBuffer;
      EXPECT_EQ(qp->post_receive(work), device::PostResult::Ok);
    }
    return qp;
  }

  StreamSocket* dial() {
    auto socket = left().device->connect_stream(right_end(), {}, now_);
    EXPECT_TRUE(socket.has_value());
    EXPECT_TRUE(run_until([&] { return (*socket)->is_established(); }));
    EXPECT_TRUE((*socket)->reserve_ring().has_value());
    return *socket;
  }
  void put(StreamSocket* socket, base::ByteView octets) {
    for (size_t at = 0; at < octets.size();) {
      at += socket->put(octets.subspan(at));
      left().device->ring_doorbell(socket->doorbell());
      if (at < octets.size()) run_for(std::chrono::milliseconds(1));
    }
  }

  /// Request and Reply of revision 1, without private data.
  Talk open(uint8_t flags = 0x40) {
    const bool markers = right().device->config().mpa.markers_receive;
    const bool crc = (flags & 0x40) != 0 || right().device->config().mpa.crc;
    Talk talk(20, markers, crc);
    talk.socket = dial();
    put(talk.socket, mpa::request_frame(flags, 1));
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto request = right().take<event::ConnectRequest>();
    talk.qp = make_target();
    EXPECT_TRUE(right().device->accept(request->request, *talk.qp, {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return right().has<event::Established>(); }));
    right().take<event::Established>();
    EXPECT_TRUE(run_until([&] { return talk.socket->readable() >= 20; }));
    listen_to(talk);
    talk.reply = 20;
    return talk;
  }
  /// Sends one ULPDU as an FPDU.
  void say(Talk& talk, base::ByteView ulpdu) {
    talk.encoder.add(ulpdu);
    flush(talk);
  }
  /// Sends what was encoded, and perhaps changed, since.
  void flush(Talk& talk) {
    const base::ByteView all(talk.encoder.stream);
    put(talk.socket, all.subspan(talk.put));
    talk.put = all.size();
  }
  void listen_to(Talk& talk) {
    std::array<uint8_t, 4096> piece;
    while (const size_t n = talk.socket->take(piece)) {
      talk.heard.insert(talk.heard.end(), piece.begin(), piece.begin() + static_cast<long>(n));
    }
    left().device->ring_doorbell(talk.socket->doorbell());
  }
  /// The ULPDUs that came behind the Reply; the device under test was not asked for markers.
  [[nodiscard]] static std::vector<Octets> ulpdus(const Talk& talk) {
    std::vector<Octets> all;
    for (size_t at = talk.reply; at + 6 <= talk.heard.size();) {
      const size_t length = base::load_be16(talk.heard.data() + at);
      const size_t next = at + ((2 + length + 3) & ~size_t{3}) + 4;
      if (next > talk.heard.size()) break;
      all.emplace_back(talk.heard.begin() + static_cast<long>(at) + 2,
                       talk.heard.begin() + static_cast<long>(at + 2 + length));
      at = next;
    }
    return all;
  }
  [[nodiscard]] static bool is_terminate(const Octets& ulpdu) {
    const auto header = wire::parse_ddp_untagged(ulpdu);
    return header && header->qn == 2 && (header->rsvd_ulp & 0x0f) == 7;
  }
  /// Lets the world run a while. \return the Terminate that came, which must be the last message
  Code terminate_heard(Talk& talk, base::Duration span = std::chrono::milliseconds(200)) {
    run_until([&] { return right().has<event::TerminateSent>(); }, span);
    run_for(std::chrono::milliseconds(20));
    listen_to(talk);
    const std::vector<Octets> all = ulpdus(talk);
    Code code;
    for (size_t i = 0; i < all.size(); ++i) {
      if (!is_terminate(all[i])) continue;
      EXPECT_EQ(i + 1, all.size()) << "nothing follows a Terminate";
      EXPECT_EQ(base::load_be32(&all[i][10]), 1u) << "its MSN";
      code = {all[i][18] >> 4, all[i][18] & 0x0f, all[i][19]};
    }
    const auto event = right().take<event::TerminateSent>();
    EXPECT_EQ(event.has_value(), code != kNoTerminate);
    if (event) {
      EXPECT_EQ((Code{static_cast<int>(event->fault.layer), event->fault.type, event->fault.code}),
                code);
      EXPECT_FALSE(event->detail.empty());
    }
    return code;
  }
  void hang_up(Talk& talk) {
    const uint32_t number = talk.socket->doorbell();
    talk.socket->request(StreamSocket::kAbort | StreamSocket::kRelease);
    left().device->ring_doorbell(number);
    run_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(talk.qp == nullptr || right().device->destroy_qp(talk.qp).has_value());
    run_for(std::chrono::milliseconds(50));
    right().completions(cq_);
    right().collect();
    right().events.clear();
  }

  // --- ULPDUs ---

  static Octets tagged(const wire::DdpTaggedHeader& header, size_t payload) {
    Octets octets(14 + payload, 0xee);
    wire::write_ddp(octets.data(), header);
    return octets;
  }
  static Octets untagged(const wire::DdpUntaggedHeader& header, size_t payload) {
    Octets octets(18 + payload, 0xee);
    wire::write_ddp(octets.data(), header);
    return octets;
  }
  static Octets read_request(uint32_t msn, const wire::RdmapReadRequest& request) {
    Octets octets = untagged({.last = true, .rsvd_ulp = 0x41, .qn = 1, .msn = msn}, 28);
    wire::write_rdmap(octets.data() + 18, request);
    return octets;
  }

  // --- Rows that one ULPDU, or a few, are enough for ---

  struct Row {
    std::string what;
    std::vector<Octets> said;  // the last one is at fault
    Code code;
    std::vector<Octets> legal;  // the nearest that is allowed
  };
  /// The fault has one line in the log, with its name and its queue pair, and one count of its
  /// kind.
  void expect_named(const Code& code, const QueuePair& qp, const rdmap::Counters& before,
                    const std::string& said) {
    const Fault fault{static_cast<FaultLayer>(code.layer), static_cast<uint8_t>(code.type),
                      static_cast<uint8_t>(code.code), ""};
    const std::string line =
        "right qp " + std::to_string(qp.number()) + ": Terminate sent: " + describe(fault);
    EXPECT_NE(said.find(line), std::string::npos) << line << "\n" << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    const rdmap::Counters& now = right().device->rdmap_counters();
    EXPECT_EQ(now.faults, before.faults + 1);
    EXPECT_EQ(now.terminates_out, before.terminates_out + 1);
    using Count = uint64_t rdmap::Counters::*;
    const Count kind = code.layer == 2   ? &rdmap::Counters::faults_llp
                       : code.type == 0  ? &rdmap::Counters::faults_local
                       : code.layer == 0 ? (code.type == 1 ? &rdmap::Counters::faults_protection
                                                           : &rdmap::Counters::faults_operation)
                       : code.type == 1  ? &rdmap::Counters::faults_tagged
                                         : &rdmap::Counters::faults_untagged;
    for (const Count each :
         {&rdmap::Counters::faults_llp, &rdmap::Counters::faults_local,
          &rdmap::Counters::faults_protection, &rdmap::Counters::faults_operation,
          &rdmap::Counters::faults_tagged, &rdmap::Counters::faults_untagged}) {
      EXPECT_EQ(now.*each, before.*each + (each == kind ? 1 : 0));
    }
  }
  void expect_no_success() {
    for (const auto& done : right().completions(cq_)) {
      EXPECT_NE(done.status, CompletionStatus::Success);
    }
  }
  /// What is at fault gives its Terminate, completes nothing and changes no octet of any memory
  /// from there on, and is named; what is legal gives none.
  void expect_rows(const std::vector<Row>& rows) {
    for (const Row& row : rows) {
      SCOPED_TRACE(row.what);
      Talk bad = open();
      for (size_t i = 0; i + 1 < row.said.size(); ++i) say(bad, row.said[i]);
      run_for(std::chrono::milliseconds(5));
      const auto memory = memory_, buffers = buffers_;
      const rdmap::Counters before = right().device->rdmap_counters();
      right().completions(cq_);
      test::Logged log;
      say(bad, row.said.back());
      EXPECT_EQ(terminate_heard(bad), row.code);
      expect_named(row.code, *bad.qp, before, log.take());
      expect_no_success();
      EXPECT_TRUE(memory == memory_ && buffers == buffers_);
      hang_up(bad);
      Talk good = open();
      for (const Octets& ulpdu : row.legal) say(good, ulpdu);
      EXPECT_EQ(terminate_heard(good, std::chrono::milliseconds(20)), kNoTerminate);
      hang_up(good);
    }
  }

  uint32_t pd_ = 0;
  device::CompletionQueue* cq_ = nullptr;
  Octets memory_, buffers_;
  mem::Stag buffers_stag_;
  uint32_t stag_ = 0;
  uint64_t targets_ = 0;  // queue pairs that were made
};

}  // namespace rnic::conformance
