// What a hostile peer may send while a connection starts, to a whole device: every field of the
// start frames of MPA and of ULP framing, and the first framed octets of the latter. Each ends that
// connection, with its reason in the log and its counters, and no application hears of it.

#include "station.hpp"
#include "wire/tuf.hpp"

namespace rnic::conformance {
namespace {

using mpa::request_frame;
using mpa::start_frame;

struct Bad {
  std::string what;
  Octets octets;
  const char* reason;  // in the log
};

class BadStarts : public Station {
 protected:
  BadStarts() : BadStarts([](device::DeviceConfig&) {}) {}
  explicit BadStarts(const Tweak& tweak) : Station(tweak) {}

  /// `octets` as the first of a connection: it ends, and nothing else happens.
  void expect_refused(const Bad& bad, const std::function<uint64_t()>& failures) {
    SCOPED_TRACE(bad.what);
    const uint64_t before = failures();
    StreamSocket* socket = dial();
    test::Logged log;
    put(socket, bad.octets);
    EXPECT_TRUE(run_until([&] { return failures() == before + 1; }));
    const std::string said = log.take();
    EXPECT_NE(said.find("right: start-up from "), std::string::npos) << said;
    EXPECT_NE(said.find(bad.reason), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    right().collect();
    ASSERT_EQ(right().events.size(), 1u);
    EXPECT_TRUE(std::holds_alternative<event::RequestFailed>(right().events.front()));
    EXPECT_NE(common(right().events.front()).detail.find(bad.reason), std::string::npos);
    right().events.clear();
    EXPECT_EQ(right().device->rdmap_counters().terminates_out, 0u);
    hang_up(socket);
    EXPECT_EQ(right().device->live_connections(), 0u);
  }
  void hang_up(StreamSocket* socket) {
    const uint32_t number = socket->doorbell();
    socket->request(StreamSocket::kAbort | StreamSocket::kRelease);
    left().device->ring_doorbell(number);
    ASSERT_TRUE(run_until([&] { return left().device->streams().live() == 0; }));
    run_for(std::chrono::seconds(2));  // the log takes its next lines
  }
  /// The frame reaches the application.
  void expect_asked(const Octets& octets) {
    StreamSocket* socket = dial();
    put(socket, octets);
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    hang_up(socket);
    right().collect();
    right().events.clear();
  }
};

// The key, the revision, the length of the private data and the flags of a
// Request. UNH-MPA-1-02 UNH-MPA-1-03 UNH-MPA-1-04 UNH-MPA-1-06 UNH-MPA-1-13 UNH-MPA-1-21
TEST_F(BadStarts, OfMpa_MPA_8_06_BUG_04) {
  constexpr const char* kKey = "does not speak MPA";
  constexpr const char* kLength = "length of the private data";
  std::vector<Bad> all;
  for (size_t i = 0; i < 16; ++i) {
    for (const uint8_t mask : {0x01, 0x20, 0x80}) {
      Octets wrong = request_frame(0x40, 1);
      wrong[i] ^= mask;
      all.push_back({"key", wrong, kKey});
    }
  }
  all.push_back({"a Reply", mpa::reply_frame(0x40, 1), kKey});
  all.push_back({"HTTP", Octets{'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P'}, kKey});
  for (const uint8_t revision : {3, 4, 0x7f, 0x80, 0xff}) {
    all.push_back({"revision", request_frame(0x40, revision), "revision is not one"});
  }
  for (const size_t length : {513, 514, 1024, 0x7fff, 0x8000, 0xffff}) {
    all.push_back({"length", start_frame(wire::kMpaRequestKey, 0x40, 1, length), kLength});
    all.push_back({"length", start_frame(wire::kMpaRequestKey, 0x40, 2, length), kLength});
  }
  for (size_t length = 0; length < 4; ++length) {
    all.push_back({"enhanced", request_frame(0x50, 2, Octets(length)), kLength});
  }
  Octets behind = request_frame(0x40, 1);
  behind.push_back(0);
  all.push_back({"octets behind", behind, "octets behind the Request"});
  const auto& counters = right().device->mpa_counters();
  for (const Bad& bad : all) expect_refused(bad, [&] { return counters.start_failures; });
  // What is reserved is ignored, R too; and the lengths next to those above.
  for (uint32_t flags = 0; flags < 256; flags += 9) {
    expect_asked(request_frame(static_cast<uint8_t>(flags), 1));
  }
  expect_asked(request_frame(0x40, 1, Octets(512)));
  expect_asked(request_frame(0x50, 2, Octets(4)));
}

/// Devices over ULP framing; the station speaks for the left one.
class TufStarts : public BadStarts {
 protected:
  static constexpr wire::TufKey kKey = 0x0123'4567'89ab;

  TufStarts() : TufStarts([](device::DeviceConfig&) {}) {}
  explicit TufStarts(const Tweak& tweak)
      : BadStarts([&](device::DeviceConfig& config) {
          config.framing = Framing::Tuf;
          tweak(config);
        }) {}

  static wire::TufStart start() {
    wire::TufStart s;
    s.receive_modes = s.send_modes = wire::kTufModeAlign | wire::kTufModeMarkers;
    s.marker_interval = 2048;
    s.max_pdu = 65528;
    s.key = kKey;
    return s;
  }
  static Octets frame(const wire::TufStart& s, size_t private_data = 0) {
    Octets octets(wire::kTufStartSize + private_data);
    wire::TufStart whole = s;
    if (private_data != 0) whole.private_data = static_cast<uint16_t>(private_data);
    wire::write_tuf_start(octets.data(), wire::kTufRequestMagic, whole);
    return octets;
  }
  /// A connection behind Go, in alignment mode, packed, or in marker mode.
  Talk running(const wire::TufStart& s) {
    Talk talk(0, false, false);
    talk.socket = dial();
    put(talk.socket, frame(s));
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto request = right().take<event::ConnectRequest>();
    talk.qp = make_target();
    EXPECT_TRUE(right().device->accept(request->request, *talk.qp, {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return talk.socket->readable() >= wire::kTufStartSize; }));
    put(talk.socket, Octets(wire::kTufGoMagic.begin(), wire::kTufGoMagic.end()));
    EXPECT_TRUE(run_until([&] { return right().has<event::Established>(); }));
    right().take<event::Established>();
    return talk;
  }
  /// A Write of `n` octets with its 16 bits of length.
  [[nodiscard]] Octets pdu(uint64_t to, size_t n) const {
    const Octets ulpdu = tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = to}, n);
    Octets octets{static_cast<uint8_t>(ulpdu.size() >> 8), static_cast<uint8_t>(ulpdu.size())};
    octets.insert(octets.end(), ulpdu.begin(), ulpdu.end());
    return octets;
  }
  static Octets framed(const Octets& content, wire::TufKey key = kKey, int64_t length = -1) {
    Octets octets(wire::kTufHeaderSize);
    const auto told = length < 0 ? content.size() : static_cast<size_t>(length);
    wire::store_tuf_header(octets.data(), {static_cast<uint16_t>(told), key});
    octets.insert(octets.end(), content.begin(), content.end());
    return octets;
  }
  /// A legal PDU, then `bad`: error 3 of the framing, by its name, and nothing of `bad` is taken.
  void expect_broken(const std::string& what, const wire::TufStart& s, const Octets& good,
                     const Octets& bad, framing::PduError error, uint64_t tuf::Counters::*counter) {
    SCOPED_TRACE(what);
    std::fill(memory_.begin(), memory_.end(), kUntouched);
    Talk talk = running(s);
    put(talk.socket, good);
    run_for(std::chrono::milliseconds(1));
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee), 10) << "the legal one";
    const uint64_t before = right().device->tuf_counters().*counter;
    const uint64_t faults = right().device->rdmap_counters().faults_llp;
    test::Logged log;
    put(talk.socket, bad);
    EXPECT_TRUE(run_until([&] { return right().has<event::TerminateSent>(); }));
    const std::string said = log.take();
    const auto told = right().take<event::TerminateSent>();
    ASSERT_TRUE(told);
    EXPECT_EQ(told->fault.layer, FaultLayer::Llp);
    EXPECT_EQ(told->fault.code, 3);
    EXPECT_NE(said.find(framing::to_string(error)), std::string::npos) << said;
    EXPECT_NE(said.find(told->detail), std::string::npos) << said;
    EXPECT_EQ(right().device->tuf_counters().*counter, before + 1);
    EXPECT_EQ(right().device->rdmap_counters().faults_llp, faults + 1);
    EXPECT_EQ(std::count(memory_.begin(), memory_.end(), 0xee), 10);
    Station::hang_up(talk);
  }
};

// Every field of the Request.
TEST_F(TufStarts, TheRequest) {
  constexpr const char* kOther = "does not speak ULP framing";
  constexpr const char* kMode = "no mode of ULP framing";
  std::vector<Bad> all;
  for (size_t i = 0; i < 8; ++i) {
    for (const uint8_t mask : {0x01, 0x80}) {
      Octets wrong = frame(start());
      wrong[i] ^= mask;
      all.push_back({"magic", wrong, kOther});
    }
  }
  all.push_back({"MPA", request_frame(0x40, 1), kOther});
  for (const uint8_t version : {0, 2, 0x81, 0xff}) {
    wire::TufStart s = start();
    s.version = version;
    all.push_back({"version", frame(s), kOther});
  }
  for (const uint16_t length : {513, 0x7fff, 0xffff}) {
    wire::TufStart s = start();
    s.private_data = length;
    all.push_back({"private data", frame(s), kOther});
  }
  for (const uint8_t modes : {0x00, 0x04, 0xfc}) {
    wire::TufStart s = start();
    s.receive_modes = modes;
    all.push_back({"receives nothing", frame(s), kMode});
    s = start();
    s.send_modes = modes;
    all.push_back({"sends nothing", frame(s), kMode});
  }
  for (const uint16_t interval : {0, 4, 511}) {
    wire::TufStart s = start();
    s.receive_modes = wire::kTufModeMarkers;
    s.marker_interval = interval;
    all.push_back({"interval", frame(s), kMode});
  }
  for (const uint16_t most : {0, 1, 255}) {
    wire::TufStart s = start();
    s.receive_modes = wire::kTufModeMarkers;
    s.max_pdu = most;
    all.push_back({"longest PDU", frame(s), kMode});
  }
  const auto& counters = right().device->tuf_counters();
  for (const Bad& bad : all) expect_refused(bad, [&] { return counters.start_failures; });
  expect_asked(frame(start()));
  expect_asked(frame(start(), 512));
  wire::TufStart least = start();
  least.receive_modes = wire::kTufModeMarkers;
  least.marker_interval = 512;
  least.max_pdu = 256;
  expect_asked(frame(least));
}

// Every bit of the key, and lengths that do not fit what is inside.
TEST_F(TufStarts, FramingPdus) {
  const Octets good = framed(pdu(0, 10));
  for (int bit = 0; bit < 48; ++bit) {
    expect_broken("key", start(), good, framed(pdu(100, 10), kKey ^ 1ull << bit),
                  framing::PduError::BadKey, &tuf::Counters::bad_key_errors);
  }
  const Octets inside = pdu(100, 10);
  const auto size = static_cast<int64_t>(inside.size());
  for (const int64_t length : {int64_t{0}, int64_t{1}, size - 1}) {
    expect_broken("frame length " + std::to_string(length), start(), good,
                  framed(inside, kKey, length), framing::PduError::BadLength,
                  &tuf::Counters::bad_length_errors);
  }
  for (const int add : {1, 100, 65000}) {
    Octets wrong = inside;
    base::store_be16(wrong.data(), static_cast<uint16_t>(size - 2 + add));
    expect_broken("PDU length", start(), good, framed(wrong), framing::PduError::BadLength,
                  &tuf::Counters::bad_length_errors);
  }
}

/// The right device asks for markers every 512 octets.
class TufMarkers : public TufStarts {
 protected:
  TufMarkers()
      : TufStarts([](device::DeviceConfig& config) {
          config.tuf.align_receive = false;
          config.tuf.marker_interval = 512;
          config.tuf.max_pdu = 1024;
        }) {}
};

// The first marker stands in front of the first PDU; both copies at values that do not
// point to the next PDU; a PDU longer than what was agreed.
TEST_F(TufMarkers, MarkersAndLengths) {
  Octets good{0, 0, 0, 0};
  const Octets first = pdu(0, 10);
  good.insert(good.end(), first.begin(), first.end());
  // Up to the next marker at 512 + 4 octets: one PDU that begins before it and ends behind it.
  const auto with_marker = [&](uint16_t one, uint16_t two) {
    const Octets second = pdu(1000, 600);
    const size_t until = 512 + 4 - good.size();
    Octets out(second.begin(), second.begin() + static_cast<long>(until));
    for (const uint16_t copy : {one, two}) {
      out.push_back(static_cast<uint8_t>(copy >> 8));
      out.push_back(static_cast<uint8_t>(copy));
    }
    out.insert(out.end(), second.begin() + static_cast<long>(until), second.end());
    return out;
  };
  Octets longest = pdu(100, 1024);
  longest.resize(600);
  expect_broken("too long", start(), good, longest, framing::PduError::PduTooLong,
                &tuf::Counters::pdu_too_long_errors);
  for (const uint16_t wrong : {1, 2, 0x7fff, 0xffff}) {
    expect_broken("marker", start(), good, with_marker(wrong, wrong), framing::PduError::BadMarker,
                  &tuf::Counters::bad_marker_errors);
  }
}

}  // namespace
}  // namespace rnic::conformance
