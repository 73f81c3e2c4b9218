// Segments of an attacker who knows the sequence numbers of a framed stream (draft s.7.4): the
// peer's TCP takes them. What comes of it is an exception with a name, at this stream alone.

#include <optional>
#include <string>

#include "base/prng.hpp"
#include "framed_path.hpp"
#include "llp/pseudo_header.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/tcp.hpp"
#include "wire/tuf.hpp"

namespace rnic::device {
namespace {

enum class Forgery {
  Noise,       ///< in place of a segment's octets, as long
  OneOctet,    ///< in place of the first one
  Ahead,       ///< beyond the next octet, so that the right ones fill the hole
  Empty,       ///< a framing header that announces no octet, with the right key
  Longest,     ///< one that announces the longest PDU, with the right key
  AnotherKey,  ///< a whole framing PDU with a key that the attacker has guessed
};

struct Injection {
  const char* name;
  Forgery forgery;
  FramedReceiveMode receive;
};

class Injected : public FramedPath, public ::testing::WithParamInterface<Injection> {
 protected:
  static constexpr size_t kAhead = 4000;

  [[nodiscard]] FramingOptions framing() const override {
    FramingOptions setup = FramedPath::framing();
    setup.receive_mode = GetParam().receive;
    setup.send_mode = setup.receive_mode == FramedReceiveMode::Align ? FramedSendMode::Align
                                                                     : FramedSendMode::Markers;
    return setup;
  }

  /// The attacker's octets stand where a header with the key should. Others are as good as the
  /// peer's (draft s.7.4): in a PDU, in a length under the right key, or where there are no keys.
  [[nodiscard]] static bool is_found_out() {
    const Forgery forgery = GetParam().forgery;
    return GetParam().receive == FramedReceiveMode::Align &&
           (forgery == Forgery::Noise || forgery == Forgery::AnotherKey ||
            forgery == Forgery::Empty);
  }

  /// In front of the segment for which it was waited the attacker's goes in.
  bool carry(const Octets& frame) override {
    const size_t tcp = wire::kEtherHeader + wire::kIpv4Header;
    if (base::load_be16(frame.data() + wire::kEtherTypeAt) != wire::kEtherTypeIpv4) return true;
    const size_t data = tcp + 4 * (frame[tcp + 12] >> 4);
    if (data >= frame.size() || !armed_ || *armed_ != 0) {
      if (armed_ && data < frame.size()) --*armed_;
      return true;
    }
    armed_.reset();
    nics_[1]->receive({forged(frame, tcp, data)});
    return true;
  }

  /// The segment with other octets, and with a checksum that is right.
  Octets forged(Octets frame, size_t tcp, size_t data) {
    base::Prng random(seed_);
    const auto noise = [&](size_t from) {
      for (size_t i = from; i < frame.size(); ++i) frame[i] = static_cast<uint8_t>(random.next());
    };
    switch (GetParam().forgery) {
      case Forgery::Noise: noise(data); break;
      case Forgery::OneOctet:
        frame.resize(data + 1);
        noise(data);
        break;
      case Forgery::Ahead:
        noise(data);
        base::store_be32(&frame[tcp + wire::kTcpSequenceAt],
                         base::load_be32(&frame[tcp + wire::kTcpSequenceAt]) + kAhead);
        break;
      case Forgery::Empty:
      case Forgery::Longest:
        wire::store_tuf_header(
            &frame[data],
            {static_cast<uint16_t>(GetParam().forgery == Forgery::Empty ? 0 : 0xffff), kThere});
        break;
      case Forgery::AnotherKey:
        noise(data);
        wire::store_tuf_header(&frame[data],
                               {static_cast<uint16_t>(frame.size() - data - wire::kTufHeaderSize),
                                kThere ^ (wire::TufKey{1} << random.below(48))});
        break;
    }
    base::store_be16(&frame[wire::kEtherHeader + 2],
                     static_cast<uint16_t>(frame.size() - wire::kEtherHeader));
    base::store_be16(&frame[wire::kEtherHeader + wire::kIpv4ChecksumAt], 0);
    base::store_be16(&frame[wire::kEtherHeader + wire::kIpv4ChecksumAt],
                     wire::checksum_fold(
                         wire::checksum_add(0, {&frame[wire::kEtherHeader], wire::kIpv4Header})));
    const auto length = static_cast<uint32_t>(frame.size() - tcp);
    base::store_be16(&frame[tcp + wire::kTcpChecksumAt], 0);
    base::store_be16(&frame[tcp + wire::kTcpChecksumAt],
                     wire::checksum_fold(wire::checksum_add(
                         llp::pseudo_header_sum(address(0), address(1), wire::kProtocolTcp, length),
                         {&frame[tcp], length})));
    return frame;
  }

  /// Takes what has come into a buffer between two guards.
  /// \return how many frames it was before nothing more came, or the stream was broken
  uint32_t receive_all() {
    static constexpr size_t kGuard = 64, kRoom = 4096;
    uint32_t frames = 0;
    for (int idle = 0; idle < 100;) {
      run(std::chrono::milliseconds(100));
      Octets memory(kRoom + 2 * kGuard, 0xa5);
      const tuf::Received got = far_->receive(base::ByteSpan(memory).subspan(kGuard, kRoom));
      devices_[1]->ring_doorbell(far_->doorbell());
      const size_t taken = got.kind == tuf::ReceiveKind::Pdu ? got.length : 0;
      EXPECT_LE(taken, kRoom);
      for (size_t i = 0; i < memory.size(); ++i) {
        const bool ours = i >= kGuard && i < kGuard + kRoom;
        if (!ours || taken == 0) {
          EXPECT_EQ(memory[i], 0xa5) << "octet " << i;
        }
      }
      if (got.kind == tuf::ReceiveKind::Broken) break;
      idle = got.kind == tuf::ReceiveKind::Pdu ? 0 : idle + 1;
      if (got.kind != tuf::ReceiveKind::Pdu) continue;
      ++frames;
      if (!is_found_out()) continue;
      EXPECT_LT(received_, sent_);
      EXPECT_EQ(Octets(memory.begin() + kGuard, memory.begin() + kGuard + taken),
                frame(sizes_[received_], received_));
      ++received_;
    }
    return frames;
  }
  /// The stream's both ends are let go.
  void abort() {
    for (const auto& [device, socket] : {std::pair{0, near_}, {1, far_}}) {
      const uint32_t number = socket->doorbell();
      socket->request(AppSocket::kAbort | AppSocket::kRelease);
      devices_[device]->ring_doorbell(number);
    }
    run(std::chrono::seconds(1));
  }

  std::optional<uint32_t> armed_;  // segments with octets that still go in front of the attack
  uint64_t seed_ = 0;
};

TEST_P(Injected, NothingButAnException_TUF_7_03) {
  uint32_t disturbed = 0;
  for (seed_ = 1; seed_ <= 24; ++seed_) {
    SCOPED_TRACE("seed " + std::to_string(seed_));
    const tuf::Counters before = counters(1);
    const auto armed_at = static_cast<uint32_t>(seed_ % 5);
    armed_ = armed_at;
    for (int i = 0; i < 12; ++i) ASSERT_EQ(send(1000), tuf::SendResult::Ok);
    const uint32_t frames = receive_all();
    ASSERT_FALSE(armed_) << "nothing was injected";
    const tuf::Counters after = counters(1);
    const uint64_t errors = after.bad_key_errors - before.bad_key_errors + after.bad_length_errors -
                            before.bad_length_errors + after.bad_marker_errors -
                            before.bad_marker_errors + after.pdu_too_long_errors -
                            before.pdu_too_long_errors;
    EXPECT_EQ(errors, far_->error() == framing::PduError::None ? 0u : 1u);
    if (is_found_out()) {
      EXPECT_EQ(errors, 1u);
      EXPECT_EQ(received_, armed_at) << "what came in front of it, and no more";
    }
    disturbed +=
        errors != 0 || frames != 12 || after.unaligned_segments_in != before.unaligned_segments_in
            ? 1
            : 0;
    abort();
    EXPECT_TRUE(devices_[1]->quiescent());
    // The next stream of the same devices knows nothing of it.
    ASSERT_NO_FATAL_FAILURE(connect());
    for (int i = 0; i < 3; ++i) ASSERT_EQ(send(1000), tuf::SendResult::Ok);
    expect_all_received();
    abort();
    ASSERT_NO_FATAL_FAILURE(connect());
  }
  EXPECT_GT(disturbed, 0u) << "no injection did anything";
}

INSTANTIATE_TEST_SUITE_P(
    Align, Injected,
    ::testing::Values(Injection{"Noise", Forgery::Noise, FramedReceiveMode::Align},
                      Injection{"OneOctet", Forgery::OneOctet, FramedReceiveMode::Align},
                      Injection{"Ahead", Forgery::Ahead, FramedReceiveMode::Align},
                      Injection{"Empty", Forgery::Empty, FramedReceiveMode::Align},
                      Injection{"Longest", Forgery::Longest, FramedReceiveMode::Align},
                      Injection{"AnotherKey", Forgery::AnotherKey, FramedReceiveMode::Align}),
    [](const auto& p) { return std::string(p.param.name); });
INSTANTIATE_TEST_SUITE_P(
    Markers, Injected,
    ::testing::Values(Injection{"Noise", Forgery::Noise, FramedReceiveMode::Markers},
                      Injection{"OneOctet", Forgery::OneOctet, FramedReceiveMode::Markers},
                      Injection{"Ahead", Forgery::Ahead, FramedReceiveMode::Markers}),
    [](const auto& p) { return std::string(p.param.name); });

}  // namespace
}  // namespace rnic::device
