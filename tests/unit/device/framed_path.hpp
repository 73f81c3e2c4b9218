/// \file
/// Two devices with a framed stream between them, on a path that a test may bend, in virtual time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "support/fake_nic.hpp"

namespace rnic::device {

class FramedPath : public ::testing::Test {
 protected:
  using Octets = std::vector<uint8_t>;
  static constexpr uint16_t kFramedPort = 9100;
  static constexpr uint32_t kMtu = 1500;
  static constexpr wire::TufKey kThere = 0x0123'4567'89ab, kBack = 0xfedc'ba98'7654;

  void SetUp() override {
    nics_ = test::connected_nics(kMtu);
    for (uint32_t i = 0; i < 2; ++i) {
      DeviceConfig config;
      config.net.address = address(i);
      config.seed = i + 1;
      devices_.push_back(std::make_unique<Device>(config, nics_[i]->queue(0), now_));
    }
    nics_[1]->passes = [this](const Octets& frame) { return carry(frame); };
    const FramingOptions setup = framing();
    FramingOptions mirrored = setup;
    std::swap(mirrored.send_key, mirrored.receive_key);
    listener_ =
        *devices_[1]->listen_framed({{}, kFramedPort}, 4, devices_[0]->default_options(), mirrored);
    connect();
  }
  void TearDown() override { devices_.clear(); }

  /// The options of the left end; the right one has the keys the other way round.
  [[nodiscard]] virtual FramingOptions framing() const {
    FramingOptions setup;
    setup.send_key = kThere;
    setup.receive_key = kBack;
    return setup;
  }
  /// Asked about each frame from the left to the right: false, and it is lost.
  virtual bool carry(const Octets&) { return true; }

  static IpAddress address(uint32_t i) { return IpAddress::v4(0x0a000001 + i); }

  /// A new stream takes the place of the one there was.
  void connect() {
    near_ = *devices_[0]->connect_framed({address(1), kFramedPort}, devices_[0]->default_options(),
                                         framing(), now_);
    run(std::chrono::seconds(1));
    far_ = listener_->next();
    ASSERT_NE(far_, nullptr);
    sent_ = received_ = 0;
    sizes_.clear();
  }
  void run(base::Duration span) {
    using std::chrono::milliseconds;
    const base::Now end = now_ + span;
    while (now_ < end) {
      const uint32_t work = devices_[0]->poll(now_) + devices_[1]->poll(now_);
      const base::Now next =
          base::earlier(devices_[0]->next_deadline(), devices_[1]->next_deadline());
      now_ = work != 0 ? now_ + milliseconds(1)
                       : std::clamp(next, now_ + milliseconds(1), now_ + milliseconds(100));
    }
  }
  static Octets frame(size_t size, uint32_t seed) {
    Octets out(size);
    for (size_t i = 0; i < size; ++i) out[i] = static_cast<uint8_t>(seed * 31 + i * 7);
    base::store_be16(out.data(), static_cast<uint16_t>(size - 2));
    return out;
  }
  tuf::SendResult send(size_t size) {
    const tuf::SendResult result = near_->send(frame(size, sent_));
    if (result == tuf::SendResult::Ok) sizes_.push_back(size), ++sent_;
    devices_[0]->ring_doorbell(near_->doorbell());
    return result;
  }
  [[nodiscard]] tuf::Counters counters(uint32_t device) const {
    return devices_[device]->framed().shared().with_own({});
  }
  /// All that was sent has come, whole and in order.
  void expect_all_received() {
    for (int i = 0; i < 2000 && received_ < sent_; ++i) {
      run(std::chrono::milliseconds(20));
      std::array<uint8_t, 4096> piece;
      for (auto got = far_->receive(piece); got.kind == tuf::ReceiveKind::Pdu;
           got = far_->receive(piece)) {
        ASSERT_LT(received_, sent_);
        EXPECT_EQ(Octets(piece.begin(), piece.begin() + got.length),
                  frame(sizes_[received_], received_));
        ++received_;
      }
      devices_[1]->ring_doorbell(far_->doorbell());
    }
    EXPECT_EQ(received_, sent_);
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  std::vector<std::unique_ptr<test::FakeNic>> nics_;
  std::vector<std::unique_ptr<Device>> devices_;
  FramedListener* listener_ = nullptr;
  FramedSocket* near_ = nullptr;
  FramedSocket* far_ = nullptr;
  uint32_t sent_ = 0, received_ = 0;
  std::vector<size_t> sizes_;
};

}  // namespace rnic::device
