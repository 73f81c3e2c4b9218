// Planned faults of frames between two devices in virtual time: what is missing below, and that the
// devices mend it or tell of it.

#include "faults/faults.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../support/fake_port.hpp"
#include "../device/device_pair.hpp"
#include "tcp_frame.hpp"

namespace rnic::faults {
namespace {

using device::DevicePair;
using device::Host;
using device::QueuePair;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A TCP segment that has passed a Tap.
struct Seen {
  uint32_t seq;
  std::vector<uint8_t> payload;
  uint8_t flags;
  friend bool operator==(const Seen&, const Seen&) = default;
};

/// Keeps the TCP segments with payload that are sent through it.
class Tap final : public port::Port {
 public:
  explicit Tap(port::Port& inner) : inner_(inner) {}
  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override {
    return inner_.rx_burst(out, now);
  }
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override {
    std::vector<Seen> offered;
    std::vector<bool> has_payload;
    for (const port::Packet& packet : packets) {
      const auto at = offload::locate_tcp(packet.view());
      has_payload.push_back(at && at->payload_size() != 0);
      if (!has_payload.back()) continue;
      EXPECT_TRUE(driver_test::checksums_good(packet.view()));
      const auto octets = packet.view().subspan(at->payload, at->payload_size());
      offered.push_back({base::load_be32(packet.data + at->tcp + 4),
                         {octets.begin(), octets.end()},
                         packet.data[at->tcp + 13]});
    }
    const uint32_t taken = inner_.tx_burst(packets, now);
    const auto kept = std::count(has_payload.begin(), has_payload.begin() + taken, true);
    seen.insert(seen.end(), offered.begin(), offered.begin() + kept);
    return taken;
  }
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override { return inner_.next_deadline(); }

  std::vector<Seen> seen;

 private:
  port::Port& inner_;
};

/// Where an FPDU stands in the stream of its sender, and what it is.
struct Found {
  uint32_t begin;  // sequence numbers
  uint32_t end;
  uint32_t message;
  uint32_t fpdu;
  uint8_t opcode;
};

/// The FPDUs of all that has passed, from the first MPA start frame on, without markers.
std::vector<Found> fpdus_of(const std::vector<Seen>& seen) {
  std::map<uint32_t, uint8_t> octets;
  for (const Seen& each : seen) {
    for (uint32_t i = 0; i < each.payload.size(); ++i) octets[each.seq + i] = each.payload[i];
  }
  std::vector<uint8_t> stream;
  for (const auto& [seq, octet] : octets) stream.push_back(octet);
  const uint32_t first = octets.begin()->first;
  std::vector<Found> found;
  uint32_t at = 20 + base::load_be16(stream.data() + 18);
  uint32_t message = 1;
  uint32_t fpdu = 1;
  while (at + 4 <= stream.size()) {
    const uint32_t length = base::load_be16(stream.data() + at);
    const uint32_t end = at + wire::mpa_fpdu_size(length);
    found.push_back(
        {first + at, first + end, message, fpdu, static_cast<uint8_t>(stream[at + 3] & 0x0f)});
    const bool last = (stream[at + 2] & 0x40) != 0;
    message += last ? 1 : 0;
    fpdu = last ? 1 : fpdu + 1;
    at = end;
  }
  return found;
}

/// \return whether octets of it are in the segment
bool has_octets(const Seen& each, const Found& fpdu) {
  return each.seq < fpdu.end && fpdu.begin < each.seq + each.payload.size();
}

/// What stands between the devices and the link; the first base, as it outlives the devices.
class Layers {
 protected:
  port::Port& decorate(uint32_t host, port::Port& end, const std::vector<std::string>& lines) {
    std::vector<PlannedFault> plan;
    for (const std::string& line : lines) plan.push_back(*parse_planned_fault(line));
    Layer& layer = layers_[host];
    layer.below = std::make_unique<Tap>(end);
    layer.faults = std::make_unique<FaultPort>(*layer.below, "rnic", plan);
    layer.above = std::make_unique<Tap>(*layer.faults);
    return *layer.above;
  }

  const FaultCounters& counters(uint32_t host = 0) {
    return layers_[host].faults->fault_counters();
  }
  Tap& below(uint32_t host = 0) { return *layers_[host].below; }
  Tap& above(uint32_t host = 0) { return *layers_[host].above; }

 private:
  struct Layer {
    std::unique_ptr<Tap> below;
    std::unique_ptr<FaultPort> faults;
    std::unique_ptr<Tap> above;
  };
  std::array<Layer, 2> layers_;
};

class Faults : protected Layers, public DevicePair {
 protected:
  static constexpr uint32_t kRoom = 64 * 1024;

  explicit Faults(
      std::vector<std::vector<std::string>> lines = {{}, {}},
      const Tweak& tweak = [](device::DeviceConfig&) {})
      : DevicePair(tweak, [this, lines](uint32_t host, port::Port& end) -> port::Port& {
          return decorate(host, end, lines[host]);
        }) {
    a_ = left().make_qp(64, 256);
    b_ = right().make_qp(64, 256);
    connect(a_, b_);
    source_ = octets(kRoom, 5);
    target_.assign(kRoom, 0);
    source_stag_ = left().add(source_, a_->spec().pd, Access::LocalWrite);
    target_stag_ = right().add(target_, b_->spec().pd,
                               Access::LocalWrite | Access::RemoteRead | Access::RemoteWrite);
  }

  /// Sends messages of `length` octets, each into a part of the target of its own, and checks what
  /// has come.
  void send_messages(uint32_t count, uint32_t length) {
    for (uint32_t i = 0; i < count; ++i) {
      ReceiveRequest receive = DevicePair::receive(i, target_, target_stag_, length);
      receive.sges = {
          {reinterpret_cast<uint64_t>(target_.data()) + i * length, length, target_stag_.value}};
      ASSERT_EQ(b_->post_receive(receive), device::PostResult::Ok);
    }
    for (uint32_t i = 0; i < count; ++i) {
      SendRequest send = work(Opcode::Send, i, source_, source_stag_, length);
      send.sges = {
          {reinterpret_cast<uint64_t>(source_.data()) + i * length, length, source_stag_.value}};
      ASSERT_EQ(a_->post_send(send), device::PostResult::Ok);
    }
    std::vector<Completion> done;
    ASSERT_TRUE(run_until([&] {
      const auto more = right().completions(b_->spec().receive_cq);
      done.insert(done.end(), more.begin(), more.end());
      return done.size() == count;
    }));
    for (const Completion& each : done) EXPECT_EQ(each.status, CompletionStatus::Success);
    EXPECT_TRUE(std::equal(target_.begin(), target_.begin() + count * length, source_.begin()));
  }

  /// Checks that below exactly the first transmission of these FPDUs is missing, and that it was
  /// sent later.
  void expect_missing(const std::vector<std::pair<uint32_t, uint32_t>>& message_and_fpdu) {
    const std::vector<Found> fpdus = fpdus_of(above().seen);
    size_t named = 0;
    for (const Found& fpdu : fpdus) {
      const auto times = [&](const Tap& tap) {
        return std::count_if(tap.seen.begin(), tap.seen.end(),
                             [&](const Seen& each) { return has_octets(each, fpdu); });
      };
      const bool dropped = std::count(message_and_fpdu.begin(), message_and_fpdu.end(),
                                      std::pair(fpdu.message, fpdu.fpdu)) != 0;
      named += dropped ? 1 : 0;
      EXPECT_EQ(times(above()) - times(below()), dropped ? 1 : 0)
          << "message " << fpdu.message << " fpdu " << fpdu.fpdu;
      EXPECT_GE(times(below()), 1);
    }
    EXPECT_EQ(named, message_and_fpdu.size());
    EXPECT_EQ(counters().fpdus_dropped, named);
    EXPECT_EQ(counters().fpdus, fpdus.size());
  }

  QueuePair* a_ = nullptr;
  QueuePair* b_ = nullptr;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  mem::Stag source_stag_;
  mem::Stag target_stag_;
};

TEST_F(Faults, WithoutAPlanNothingChanges) {
  send_messages(10, 5000);
  EXPECT_EQ(above().seen, below().seen);
  EXPECT_EQ(counters().frames_dropped + counters().frames_cut + counters().bad_crcs_sent, 0u);
  EXPECT_EQ(counters().fpdus, fpdus_of(above().seen).size());
  EXPECT_EQ(counters().connections, 1u);
}

struct DropsThirdOfSeventh : Faults {
  DropsThirdOfSeventh() : Faults({{"drop fpdu 3 of message 7"}, {}}) {}
};

TEST_F(DropsThirdOfSeventh, ExactlyThatFpduIsMissingOnce) {
  send_messages(10, 5000);
  expect_missing({{7, 3}});
  EXPECT_EQ(counters().frames_dropped, 1u);
  EXPECT_EQ(counters().frames_cut, 0u);
  EXPECT_GE(left().device->tcp_counters().retransmitted_segments, 1u);
  // The next connection suffers the same.
  QueuePair* first = a_;
  a_ = left().make_qp(64, 256);
  b_ = right().make_qp(64, 256);
  EXPECT_EQ(first->state(), QueuePairState::Rts);
  connect(a_, b_);
  source_stag_ = left().add(source_, a_->spec().pd, Access::LocalWrite);
  target_stag_ = right().add(target_, b_->spec().pd, Access::LocalWrite);
  send_messages(10, 5000);
  EXPECT_EQ(counters().fpdus_dropped, 2u);
  EXPECT_EQ(counters().connections, 2u);
}

TEST_F(DropsThirdOfSeventh, AMessageWithoutSuchAnFpduIsLeftAlone) {
  send_messages(20, 1000);
  expect_missing({});
  EXPECT_EQ(above().seen, below().seen);
}

struct DropsOfSmallOnes : Faults {
  DropsOfSmallOnes()
      : Faults({{"drop fpdu 1 of message 12", "drop fpdu 1 of message 14",
                 "drop fpdu 1 of message 15", "drop fpdu 1 of message 15"},
                {}}) {}
};

TEST_F(DropsOfSmallOnes, AFrameWithSeveralFpdusGoesOutAroundThem) {
  send_messages(40, 100);
  expect_missing({{12, 1}, {14, 1}, {15, 1}});
  EXPECT_EQ(counters().frames_dropped, 0u);
  EXPECT_GE(counters().frames_cut, 1u);
  EXPECT_EQ(counters().no_buffer, 0u);
}

struct DropsWithMarkers : Faults {
  DropsWithMarkers()
      : Faults({{"drop fpdu 2 of message 3"}, {}},
               [](device::DeviceConfig& config) { config.mpa.markers_receive = true; }) {}
};

TEST_F(DropsWithMarkers, MarkersAreCountedIn) {
  send_messages(10, 5000);
  EXPECT_GT(left().device->mpa_counters().markers_out, 50u);
  EXPECT_EQ(counters().fpdus_dropped, 1u);
  EXPECT_EQ(counters().fpdus, left().device->mpa_counters().fpdus_out);
  EXPECT_EQ(counters().lost_track, 0u);
  EXPECT_EQ(right().device->mpa_counters().crc_errors, 0u);
}

struct SpoilsSecondResponse : Faults {
  explicit SpoilsSecondResponse(bool silent = true)
      : Faults({{}, {"bad crc on read response 2"}},
               [silent](device::DeviceConfig& config) { config.mpa.silent_drop = silent; }) {}

  void read(uint64_t id) {
    SendRequest request = work(Opcode::Read, id, source_, source_stag_, 3000);
    request.remote = {target_stag_.value, reinterpret_cast<uint64_t>(target_.data())};
    ASSERT_EQ(a_->post_send(request), device::PostResult::Ok);
  }
  /// Three Reads, of which the second ends the connection. \return what has completed
  std::vector<Completion> read_three() {
    for (uint64_t id = 1; id <= 3; ++id) read(id);
    std::vector<Completion> done;
    EXPECT_TRUE(run_until([&] {
      const auto more = left().completions(a_->spec().send_cq);
      done.insert(done.end(), more.begin(), more.end());
      return done.size() == 3 && right().has<event::TerminateReceived>();
    }));
    return done;
  }
  void expect_crc_error(const std::vector<Completion>& done) {
    constexpr FaultCode kCrc{FaultLayer::Llp, 0, 2};
    ASSERT_EQ(done.size(), 3u);
    EXPECT_EQ(done[0].status, CompletionStatus::Success);
    for (size_t i : {1, 2}) {
      EXPECT_EQ(done[i].id, i + 1);
      EXPECT_EQ(done[i].status, CompletionStatus::Flushed);
      EXPECT_EQ(done[i].cause, CompletionCause::PeerFault);
      EXPECT_EQ(done[i].fault, kCrc);
    }
    const auto sent = left().take<event::TerminateSent>();
    ASSERT_TRUE(sent.has_value());
    EXPECT_EQ(code_of(sent->fault), kCrc);
    EXPECT_NE(sent->detail.find("CRC mismatch"), std::string::npos) << sent->detail;
    const auto received = right().take<event::TerminateReceived>();
    ASSERT_TRUE(received.has_value());
    EXPECT_EQ(code_of(received->fault), kCrc);
    EXPECT_EQ(left().device->mpa_counters().crc_errors, 1u);
    EXPECT_EQ(counters(1).crcs_spoiled, 1u);
  }
};

// A receiver that drops silently gives the sender tcp's retransmissions to mend it: they are as
// bad.
TEST_F(SpoilsSecondResponse, EachTransmissionIsBadUntilTheReceiverSaysSo) {
  expect_crc_error(read_three());
  EXPECT_GE(left().device->mpa_counters().crc_drops, 8u);
  EXPECT_GT(counters(1).bad_crcs_sent, left().device->mpa_counters().crc_drops)
      << "also of what was under way when it said so";
}

struct SpoilsForAStrictReceiver : SpoilsSecondResponse {
  SpoilsForAStrictReceiver() : SpoilsSecondResponse(false) {}
};

TEST_F(SpoilsForAStrictReceiver, TheFirstTransmissionEndsTheConnection) {
  expect_crc_error(read_three());
  EXPECT_EQ(left().device->mpa_counters().crc_drops, 0u);
  EXPECT_EQ(counters(1).bad_crcs_sent, 1u);
  // It is the first FPDU of the second response.
  const std::vector<Found> fpdus = fpdus_of(above(1).seen);
  uint32_t responses = 0;
  for (const Found& fpdu : fpdus) {
    const bool begins = fpdu.opcode == 2 && fpdu.fpdu == 1;
    responses += begins ? 1 : 0;
    for (size_t i = 0; i < above(1).seen.size(); ++i) {
      const Seen& made = above(1).seen[i];
      const Seen& sent = below(1).seen[i];
      ASSERT_EQ(made.seq, sent.seq);
      if (!has_octets(made, fpdu)) continue;
      const size_t last = fpdu.end - 1 - made.seq;
      EXPECT_EQ(made.payload[last] == sent.payload[last], !(begins && responses == 2));
    }
  }
  EXPECT_GE(responses, 2u);
}

struct SpoilsAFpdu : Faults {
  SpoilsAFpdu()
      : Faults({{"bad crc on fpdu 2 of message 4", "drop fpdu 2 of message 4"}, {}},
               [](device::DeviceConfig& config) { config.mpa.silent_drop = false; }) {}
};

TEST_F(SpoilsAFpdu, ADroppedOneIsBadWhenItComesAgain) {
  ASSERT_EQ(b_->post_receive(receive(1, target_, target_stag_, 5000)), device::PostResult::Ok);
  for (uint64_t id = 1; id <= 6; ++id) {
    SendRequest write = work(Opcode::Write, id, source_, source_stag_, 5000);
    write.remote = {target_stag_.value, reinterpret_cast<uint64_t>(target_.data())};
    ASSERT_EQ(a_->post_send(write), device::PostResult::Ok);
  }
  ASSERT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
  EXPECT_EQ(counters().fpdus_dropped, 1u);
  EXPECT_EQ(counters().crcs_spoiled, 1u);
  EXPECT_EQ(counters().bad_crcs_sent, 2u) << "the one that was dropped counts as made";
  const auto received = right().completions(b_->spec().receive_cq);
  ASSERT_EQ(received.size(), 1u);
  EXPECT_EQ(received[0].status, CompletionStatus::Flushed);
  EXPECT_EQ(received[0].cause, CompletionCause::PeerFault);
}

// --- the decorator alone ---

/// A segment of the connection of tcp_frame.hpp with these octets.
void send(FaultPort& port, uint32_t seq, const std::vector<uint8_t>& payload,
          uint8_t flags = driver_test::kAck | driver_test::kPsh) {
  std::array<port::Packet, 1> packet;
  ASSERT_TRUE(port.alloc(packet));
  driver_test::write_segment(packet[0], seq, static_cast<uint32_t>(payload.size()), 0, flags);
  std::copy(payload.begin(), payload.end(), packet[0].data + driver_test::kHeaders);
  ASSERT_EQ(port.tx_burst(packet, {}), 1u);
}

std::vector<uint8_t> request_frame() {
  std::vector<uint8_t> out(wire::kMpaStartHeaderSize);
  wire::write_mpa_start_header(out.data(), wire::kMpaRequestKey, {.crc = true});
  return out;
}

/// An FPDU of an untagged segment that ends its message, with a ULPDU of `length` octets.
std::vector<uint8_t> fpdu(uint16_t length) {
  std::vector<uint8_t> out(wire::mpa_fpdu_size(length), 0x11);
  base::store_be16(out.data(), length);
  out[2] = 0x41;
  out[3] = 0x43;
  return out;
}

const std::vector<PlannedFault> kSecond{
    {.kind = PlannedFaultKind::DropFpdu, .message = 2, .fpdu = 1}};
constexpr uint8_t kSyn = 0x02;

TEST(FaultPort, AnFpduInPiecesIsTakenOutOfEachFrame) {
  test::FakePort below({.name = "below"});
  FaultPort port(below, "rnic", kSecond);
  send(port, 99, {}, kSyn);
  std::vector<uint8_t> stream = request_frame();
  for (const uint16_t length : {20, 100, 20}) {
    const auto next = fpdu(length);
    stream.insert(stream.end(), next.begin(), next.end());
  }
  // Seven octets at a time: the head of each FPDU is cut, too.
  std::vector<uint8_t> sent(stream.size(), 0);
  for (uint32_t at = 0; at < stream.size(); at += 7) {
    const auto size = std::min<size_t>(7, stream.size() - at);
    send(port, 100 + at, {stream.begin() + at, stream.begin() + static_cast<ptrdiff_t>(at + size)});
  }
  for (const test::SentFrame& frame : below.sent()) {
    const auto at = *offload::locate_tcp(frame.octets);
    EXPECT_TRUE(driver_test::checksums_good(frame.octets));
    const uint32_t seq = driver_test::segment_seq(frame.octets);
    for (uint32_t i = 0; i < at.payload_size(); ++i) ++sent[seq - 100 + i];
  }
  const size_t begin = 20 + fpdu(20).size();
  const size_t end = begin + fpdu(100).size();
  for (size_t i = 0; i < sent.size(); ++i) {
    EXPECT_EQ(sent[i], i >= begin && i < end ? 0 : 1) << i;
  }
  EXPECT_EQ(port.fault_counters().fpdus_dropped, 1u);
  EXPECT_EQ(port.fault_counters().fpdus, 3u);
}

TEST(FaultPort, ASegmentThatBringsOldAndNewOctetsLosesNewOnesAlone) {
  test::FakePort below({.name = "below"});
  FaultPort port(below, "rnic", kSecond);
  send(port, 99, {}, kSyn);
  send(port, 100, request_frame());
  const auto first = fpdu(20);
  send(port, 120, first);
  std::vector<uint8_t> both = first;
  const auto second = fpdu(40);
  both.insert(both.end(), second.begin(), second.end());
  const size_t before = below.sent().size();
  send(port, 120, both);
  ASSERT_EQ(below.sent().size(), before + 1);
  EXPECT_EQ(offload::locate_tcp(below.sent().back().octets)->payload_size(), first.size());
  send(port, 120, both);
  EXPECT_EQ(offload::locate_tcp(below.sent().back().octets)->payload_size(), both.size())
      << "now all of it was sent before";
  EXPECT_EQ(port.fault_counters().frames_cut, 1u);
}

TEST(FaultPort, WhatIsNoMpaIsLeftAlone) {
  test::FakePort below({.name = "below"});
  FaultPort port(below, "rnic", kSecond);
  send(port, 99, {}, kSyn);
  send(port, 100, std::vector<uint8_t>(400, 0x40));
  send(port, 500, std::vector<uint8_t>(400, 0x40));
  EXPECT_EQ(below.sent().size(), 3u);
  EXPECT_EQ(port.fault_counters().fpdus, 0u);
}

TEST(FaultPort, OctetsThatHaveGonePastEndTheTrack) {
  test::FakePort below({.name = "below"});
  FaultPort port(below, "rnic", kSecond);
  send(port, 99, {}, kSyn);
  send(port, 100, request_frame());
  send(port, 130, fpdu(20));
  send(port, 160, fpdu(20));
  EXPECT_EQ(port.fault_counters().lost_track, 1u) << "once";
  EXPECT_EQ(below.sent().size(), 4u);
}

TEST(FaultPort, WhatThePortBelowRefusesIsSentLater) {
  sim::LinkConfig small;
  small.a_to_b.bits_per_second = 1'000'000;
  small.a_to_b.queue_limit = 2;
  sim::Link link(small);
  FaultPort port(link.a(), "rnic", kSecond);
  base::Now now = base::from_nanos(1000);
  std::array<port::Packet, 8> packets;
  ASSERT_TRUE(port.alloc(packets));
  for (uint32_t i = 0; i < packets.size(); ++i) driver_test::write_segment(packets[i], i * 9, 9);
  EXPECT_EQ(port.tx_burst(packets, now), packets.size());
  EXPECT_GT(port.held(), 0u);
  std::array<port::Packet, 8> none;
  uint32_t received = 0;
  while (port.held() != 0) {
    ASSERT_NE(port.next_deadline(), base::kNever);
    now = std::max(now + base::Duration(1), port.next_deadline());
    EXPECT_EQ(port.rx_burst(none, now), 0u);
    std::array<port::Packet, 8> arrived;
    const uint32_t count = link.b().rx_burst(arrived, now);
    received += count;
    link.b().free(std::span(arrived).first(count));
  }
  now += seconds(1);
  std::array<port::Packet, 8> arrived;
  const uint32_t count = link.b().rx_burst(arrived, now);
  link.b().free(std::span(arrived).first(count));
  EXPECT_EQ(received + count, packets.size());
  EXPECT_EQ(port.next_deadline(), base::kNever);
  EXPECT_GT(port.fault_counters().retries, 0u);
}

TEST(FlowTable, ASetThatIsFullLetsTheOldestGo) {
  FlowTable table;
  std::vector<FlowEnds> all;
  bool lost = false;
  for (uint32_t port = 1; port <= 4 * FlowTable::kSets * FlowTable::kWays && !lost; ++port) {
    all.push_back({{IpAddress::v4(1), static_cast<uint16_t>(port)}, {IpAddress::v4(2), 7}});
    const FlowTable::Added added = table.add(all.back(), base::Seq32(port));
    EXPECT_TRUE(added.is_new);
    lost = added.displaced.has_value();
    ASSERT_NE(table.find(all.back()), nullptr);
    EXPECT_FALSE(table.add(all.back(), base::Seq32(port)).is_new) << "the same SYN again";
    if (!lost) continue;
    EXPECT_EQ(table.find(*added.displaced), nullptr);
    EXPECT_NE(*added.displaced, all.back());
  }
  EXPECT_TRUE(lost);
  const auto found = std::count_if(
      all.begin(), all.end(), [&](const FlowEnds& ends) { return table.find(ends) != nullptr; });
  EXPECT_EQ(static_cast<size_t>(found), all.size() - 1);
  // The same two ends again, and a set with one that is over: nobody is told.
  EXPECT_FALSE(table.add(all.back(), base::Seq32(7)).displaced.has_value());
  for (const FlowEnds& ends : all) {
    if (Flow* flow = table.find(ends)) flow->set_over();
  }
  EXPECT_FALSE(table.add(all.back().reversed(), base::Seq32(7)).displaced.has_value());
}

}  // namespace
}  // namespace rnic::faults
