/// \file
/// Around a tuf::Session: a stream below it, a DDP endpoint above it, its owner beside it.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>

#include "arrivals.hpp"
#include "base/prng.hpp"
#include "support/mpa_fakes.hpp"
#include "tuf/tuf.hpp"

namespace rnic::tuf {

using Octets = std::vector<uint8_t>;
using test::numbered_ulpdu;

struct MoreEvents final : SessionEvents {
  void middlebox_suspected(base::Now) override { ++middleboxes; }
  void stream_broken(framing::PduError error, base::Now) override { errors.push_back(error); }
  int middleboxes = 0;
  std::vector<framing::PduError> errors;
};

class SessionEnd {
 public:
  struct Record {
    uint64_t offset;
    Octets octets;
    llp::Pulled pulled;
  };

  SessionEnd(framing::Role role, const Config& config, wire::TufKey key,
             base::ByteView private_data = {}, uint64_t hold = 512u << 10, uint32_t pack = 64)
      : hold_store(framing::make_hold_store(hold)),
        pack_store(make_pack_store(pack)),
        session(std::make_unique<Session>(config, role, key, *hold_store, *pack_store, counters,
                                          events, private_data, &more)),
        in(*session) {
    session->attach(stream);
    session->bind(user);
  }

  void establish(uint32_t emss_in = 1460) {
    emss = emss_in;
    session->established(emss, in.now);
  }
  std::optional<Record> pull(uint32_t n) {
    Octets room(n);
    llp::Frame frame(room.data(), n);
    const llp::Pulled pulled = session->pull(n, sent, frame, in.now);
    if (pulled.length == 0) return std::nullopt;
    EXPECT_EQ(pulled.length, frame.length());
    room.resize(pulled.length);
    const Record record{sent, room, pulled};
    Octets again(pulled.length);
    llp::Frame twice(again.data(), pulled.length);
    EXPECT_TRUE(session->rebuild(pulled.tag, sent, pulled.length, twice));
    EXPECT_EQ(again, room);
    sent += pulled.length;
    records.push_back(record);
    return record;
  }
  Octets pull_all() {
    Octets all;
    while (auto record = pull(emss)) {
      all.insert(all.end(), record->octets.begin(), record->octets.end());
    }
    return all;
  }
  void release_all() {
    for (; released < records.size(); ++released) {
      const Record& r = records[released];
      session->released(r.pulled.tag, r.offset + r.octets.size());
    }
  }

  framing::HoldStorePtr hold_store;
  PackStorePtr pack_store;
  Counters counters;
  test::FakeStartEvents events;
  MoreEvents more;
  test::FakeFramingUser user;
  test::FakeStream stream;
  std::unique_ptr<Session> session;
  Arrivals in;
  uint32_t emss = 1460;
  uint64_t sent = 0;
  size_t released = 0;
  std::vector<Record> records;
};

/// Both ends of one connection without a network.
class SessionPair {
 public:
  static constexpr wire::TufKey kKeyA = 0x0123'4567'89ab;
  static constexpr wire::TufKey kKeyB = 0xfedc'ba98'7654;

  explicit SessionPair(const Config& config_a = {}, const Config& config_b = {},
                       uint64_t hold = 512u << 10)
      : a(framing::Role::Initiator, config_a, kKeyA, {}, hold),
        b(framing::Role::Responder, config_b, kKeyB, {}, hold) {}

  /// The three frames of the start-up.
  void start(uint32_t emss = 1460) {
    a.establish(emss);
    b.establish(emss);
    b.in.receive(0, a.pull_all());
    b.session->accept({}, b.in.now);
    a.in.receive(0, b.pull_all());
    b.in.receive(wire::kTufStartSize, a.pull_all());
    ASSERT_TRUE(a.session->full_operation());
    ASSERT_TRUE(b.session->full_operation());
    first_octet = a.sent;
  }
  /// What a has to send, as records.
  std::vector<SessionEnd::Record> send(const std::vector<Octets>& ulpdus) {
    const size_t before = a.records.size();
    for (const Octets& one : ulpdus) a.user.to_send.push_back(one);
    a.pull_all();
    return {a.records.begin() + static_cast<long>(before), a.records.end()};
  }
  /// a's octets from the first framed one on.
  [[nodiscard]] Octets framed() const {
    Octets all;
    for (const auto& r : a.records) {
      if (r.offset >= first_octet) all.insert(all.end(), r.octets.begin(), r.octets.end());
    }
    return all;
  }

  SessionEnd a, b;
  uint64_t first_octet = 0;
};

/// Alignment mode, one ULPDU in each framing PDU, nothing in front of it.
inline Config aligned(bool packing = false) {
  Config config;
  config.packing = packing;
  return config;
}
inline Config marked(uint16_t interval) {
  Config config;
  config.align_receive = false;
  config.marker_interval = interval;
  return config;
}

}  // namespace rnic::tuf
