/// \file
/// An in-memory port for tests: frames sent are kept or cross to a peer; every buffer is accounted
/// for.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "port/port.hpp"

namespace rnic::test {

/// A frame that left a FakePort.
struct SentFrame {
  std::vector<uint8_t> octets;
  port::Checksum ip_checksum = port::Checksum::Unknown;
  port::Checksum l4_checksum = port::Checksum::Unknown;
};

/// Unconnected: what is sent lands in sent(), what is injected is received. Connected: frames cross
/// to the peer at once. Its destructor fails the test when a buffer was not returned; freed buffers
/// are overwritten, so that a late reader sees it.
class FakePort : public port::Port {
 public:
  explicit FakePort(port::PortInfo info, uint32_t buffers = 256)
      : info_(std::move(info)),
        stride_(info_.mtu + port::kLinkHeader),
        store_(size_t{buffers} * stride_),
        out_(buffers, false) {
    for (uint32_t i = buffers; i-- > 0;) free_.push_back(i);
  }
  ~FakePort() override { EXPECT_EQ(outstanding(), 0u) << "buffers not returned to " << info_.name; }
  FakePort(const FakePort&) = delete;
  FakePort& operator=(const FakePort&) = delete;

  static void connect(FakePort& a, FakePort& b) {
    a.peer_ = &b;
    b.peer_ = &a;
  }

  const port::PortInfo& info() const override { return info_; }
  const port::PortCounters& counters() const override { return counters_; }

  uint32_t rx_burst(std::span<port::Packet> out, base::Now) override {
    uint32_t n = 0;
    while (n < out.size() && !received_.empty()) {
      port::Packet packet;
      if (!take_buffer(packet)) {
        ++counters_.rx_dropped;
        received_.pop_front();
        continue;
      }
      const SentFrame& frame = received_.front();
      packet.length = static_cast<uint32_t>(std::min<size_t>(frame.octets.size(), stride_));
      std::memcpy(packet.data, frame.octets.data(), packet.length);
      packet.ip_checksum = frame.ip_checksum;
      packet.l4_checksum = frame.l4_checksum;
      ++counters_.rx_frames;
      counters_.rx_octets += packet.length;
      received_.pop_front();
      out[n++] = packet;
    }
    return n;
  }

  bool alloc(std::span<port::Packet> out) override {
    ++alloc_calls;
    if (free_.size() < out.size() || refuse_alloc) {
      ++counters_.alloc_failed;
      return false;
    }
    for (port::Packet& packet : out) take_buffer(packet);
    return true;
  }

  uint32_t tx_burst(std::span<port::Packet> packets, base::Now) override {
    ++tx_calls;
    const auto taken = static_cast<uint32_t>(std::min<size_t>(packets.size(), tx_room));
    if (tx_room != UINT32_MAX) tx_room -= taken;
    for (port::Packet& packet : packets.first(taken)) {
      EXPECT_LE(packet.length, stride_);
      SentFrame frame{
          {packet.data, packet.data + packet.length}, packet.ip_checksum, packet.l4_checksum};
      ++counters_.tx_frames;
      counters_.tx_octets += packet.length;
      (peer_ != nullptr ? peer_->received_ : sent_).push_back(std::move(frame));
      free({&packet, 1});
    }
    counters_.tx_refused += packets.size() - taken;
    return taken;
  }

  void free(std::span<const port::Packet> packets) override {
    for (const port::Packet& packet : packets) {
      const uint64_t index = reinterpret_cast<uintptr_t>(packet.buffer) - 1;
      if (index >= out_.size() || !out_[index]) {
        ADD_FAILURE() << info_.name << ": freed a buffer that is not out";
        continue;
      }
      std::memset(store_.data() + index * stride_, 0xdb, stride_);
      out_[index] = false;
      free_.push_back(static_cast<uint32_t>(index));
    }
  }

  std::optional<port::LinkState> link() override {
    ++link_calls;
    return link_state;
  }

  /// Queues a frame to be received.
  void inject(std::vector<uint8_t> octets, port::Checksum ip = port::Checksum::Unknown,
              port::Checksum l4 = port::Checksum::Unknown) {
    received_.push_back({std::move(octets), ip, l4});
  }
  [[nodiscard]] std::deque<SentFrame>& sent() { return sent_; }
  /// Takes the oldest sent frame; fails the test when there is none.
  SentFrame take_sent() {
    if (sent_.empty()) {
      ADD_FAILURE() << info_.name << ": nothing was sent";
      return {};
    }
    SentFrame frame = std::move(sent_.front());
    sent_.pop_front();
    return frame;
  }
  [[nodiscard]] size_t waiting() const { return received_.size(); }
  /// Buffers in the hands of the port's user.
  [[nodiscard]] uint32_t outstanding() const {
    return static_cast<uint32_t>(out_.size() - free_.size());
  }

  uint32_t tx_room = UINT32_MAX;  ///< frames that will still be taken; UINT32_MAX: no limit
  bool refuse_alloc = false;
  uint64_t alloc_calls = 0;
  uint64_t tx_calls = 0;
  std::optional<port::LinkState> link_state;  ///< nothing: it cannot tell
  uint64_t link_calls = 0;

 private:
  bool take_buffer(port::Packet& packet) {
    if (free_.empty()) return false;
    const uint32_t index = free_.back();
    free_.pop_back();
    out_[index] = true;
    packet = {};
    packet.data = store_.data() + size_t{index} * stride_;
    packet.room = stride_;
    packet.buffer = reinterpret_cast<port::Buffer*>(uintptr_t{index} + 1);
    return true;
  }

  port::PortInfo info_;
  uint32_t stride_;
  std::vector<uint8_t> store_;
  std::vector<bool> out_;  // by buffer: in the user's hands
  std::vector<uint32_t> free_;
  std::deque<SentFrame> received_;
  std::deque<SentFrame> sent_;
  FakePort* peer_ = nullptr;
  port::PortCounters counters_;
};

}  // namespace rnic::test
