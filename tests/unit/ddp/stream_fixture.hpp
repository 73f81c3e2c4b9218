/// \file
/// A ddp::Stream with a user that records, and 256 octets of memory of which [64, 192) is a region.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "ddp/ddp.hpp"
#include "support/framing_pair.hpp"

namespace rnic::ddp {

using llp::PlaceVerdict;
using wire::DdpTaggedHeader;
using wire::DdpUntaggedHeader;

struct Delivered {
  bool tagged;
  uint64_t length;
  friend bool operator==(const Delivered&, const Delivered&) = default;
};

class RecordingUser final : public User {
 public:
  llp::PulledUlpdu pull(uint32_t, bool, llp::UlpduWriter&, base::Now) override {
    ++pulls;
    return {};
  }
  bool rebuild(const llp::RecordTag&, llp::UlpduWriter&) override { return false; }
  void released(const llp::RecordTag&) override {}
  [[nodiscard]] uint8_t version() const override { return 1; }
  Fault tagged_target(const DdpTaggedHeader&, uint32_t, TaggedTarget& out) override {
    out.rights = Access::RemoteWrite;
    out.same = same;
    out.quiet = quiet;
    out.messages = messages;
    out.coverage = coverage;
    ++tagged_targets;
    return kNoFault;
  }
  Fault untagged_target(const DdpUntaggedHeader& header, UntaggedTarget& out) override {
    ++untagged_targets;
    out.sges = sges.at(header.msn - first_msn);
    for (const Sge& sge : out.sges) out.length += sge.length;
    return kNoFault;
  }
  Fault deliver_tagged(const DdpTaggedHeader& header, uint32_t payload) override {
    ++tagged_deliveries;
    if (refuses_tagged) return kCatastrophic;
    if (header.last) delivered.push_back({true, payload});
    return kNoFault;
  }
  Fault deliver_untagged(const DdpUntaggedHeader&, uint64_t length, bool alike,
                         const SegmentReport&, base::Now) override {
    delivered.push_back({false, length});
    uniform.push_back(alike);
    return kNoFault;
  }
  void fault(const Fault& fault, const SegmentReport& segment, base::Now) override {
    faults.push_back(fault);
    report = segment;
  }
  void may_send() override {}
  void framing_error(llp::FramingError, base::Now) override {}
  void peer_finished(bool, base::Now) override {}
  void ended(StreamEnd, base::Now) override { ++ends; }

  bool refuses_tagged = false;  ///< at their delivery
  base::Range same{};           ///< TaggedTarget::same of each segment
  bool quiet = false;
  uint64_t* messages = nullptr;  ///< TaggedTarget::messages
  Coverage* coverage = nullptr;
  uint32_t tagged_targets = 0;    ///< calls
  uint32_t untagged_targets = 0;  ///< calls
  uint32_t tagged_deliveries = 0;
  uint32_t first_msn = 1;
  std::vector<std::vector<Sge>> sges;  // of the buffers of queue 0, from first_msn on
  std::vector<Delivered> delivered;
  std::vector<bool> uniform;  // of each untagged message delivered
  uint32_t pulls = 0;
  uint32_t ends = 0;
  std::vector<Fault> faults;
  SegmentReport report;
};

class StreamTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kPd = 3;
  static constexpr uint32_t kQp = 5;
  static constexpr uint8_t kGuard = 0xa5;

  StreamTest() {
    memory.fill(kGuard);
    stag = add(Access::RemoteWrite);
    for (uint32_t i = 0; i < 64; ++i) payload[i] = static_cast<uint8_t>(i + 1);
  }
  uint32_t add(AccessSet rights, uint32_t pd = kPd, std::optional<uint64_t> only = {}) {
    const auto added = table.add({.address = memory.data() + 64,
                                  .length = 128,
                                  .pd = pd,
                                  .rights = rights,
                                  .offset = 0,
                                  .stream = only});
    return added.value().value;
  }
  void provide(std::vector<Sge> sges) {
    user.sges.push_back(std::move(sges));
    stream.provide(0, 1);
  }
  std::vector<uint8_t> tagged(DdpTaggedHeader header, uint32_t length) const {
    std::vector<uint8_t> ulpdu(14 + length);
    wire::write_ddp(ulpdu.data(), header);
    std::copy_n(payload.begin(), length, ulpdu.begin() + 14);
    return ulpdu;
  }
  std::vector<uint8_t> untagged(DdpUntaggedHeader header, uint32_t length) const {
    std::vector<uint8_t> ulpdu(18 + length);
    wire::write_ddp(ulpdu.data(), header);
    std::copy_n(payload.begin() + header.mo % 64, length, ulpdu.begin() + 18);
    return ulpdu;
  }
  PlaceVerdict place(const std::vector<uint8_t>& ulpdu, bool in_order = true,
                     size_t piece = SIZE_MAX) {
    const test::CutView cut(ulpdu, piece);
    return stream.place_ulpdu(cut.view(), in_order, {});
  }
  void deliver(const std::vector<uint8_t>& ulpdu) {
    const auto head = std::min<size_t>(ulpdu.size(), llp::kUlpduHeaderMax);
    stream.deliver_ulpdu(base::ByteView(ulpdu).first(head), static_cast<uint32_t>(ulpdu.size()),
                         {});
  }
  /// Out of order the segment is held, in order it is a fault; not one octet is written either way.
  void expect_fault(const std::vector<uint8_t>& ulpdu, Fault expected) {
    EXPECT_EQ(place(ulpdu, false), PlaceVerdict::Hold);
    EXPECT_EQ(place(ulpdu, true), PlaceVerdict::Fault);
    EXPECT_TRUE(user.faults.empty()) << "told before the order has reached it";
    deliver(ulpdu);
    ASSERT_EQ(user.faults.size(), 1u);
    EXPECT_EQ(user.faults[0].layer, expected.layer);
    EXPECT_EQ(user.faults[0].type, expected.type);
    EXPECT_EQ(user.faults[0].code, expected.code);
    EXPECT_EQ(user.report.length, ulpdu.size());  // DDP-7.1-12
    EXPECT_TRUE(std::ranges::equal(user.report.view(),
                                   base::ByteView(ulpdu).first(user.report.header_size)));
    EXPECT_TRUE(untouched());
    EXPECT_TRUE(user.delivered.empty());
  }
  [[nodiscard]] bool untouched() const {
    return std::ranges::all_of(memory, [](uint8_t o) { return o == kGuard; });
  }

  std::array<uint8_t, 256> memory;  // region: [64, 192); the rest is guard
  std::array<uint8_t, 128> payload{};
  mem::StagTable table{8, {1, 2}};
  RecordingUser user;
  uint64_t segments = 0, octets = 0, postponed = 0;
  uint32_t stag = 0;
  static constexpr StreamConfig config{.who = {kPd, kQp}, .queues = 3, .secret = 77};
  Stream stream{config, table, user, {segments, octets, postponed}};
};

}  // namespace rnic::ddp
