// Access and resources: what a hostile or careless peer costs a device and its other connections.

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/prng.hpp"
#include "station.hpp"
#include "support/long_form.hpp"

namespace rnic::conformance {
namespace {

class Revocation : public device::DevicePair {};

// The sink of a Write is revoked while its segments arrive: not one octet is written
// from then on, and the peer is told. Revoked behind the completion nobody is harmed.
TEST_F(Revocation, WhileInFlight_UNH_SEC_01) {
  constexpr uint32_t kSize = 300'000;
  for (const bool in_flight : {true, false}) {
    device::QueuePair* a = left().make_qp();
    device::QueuePair* b = right().make_qp();
    connect(a, b);
    std::vector<uint8_t> source = octets(kSize, 1), target(kSize);
    const mem::Stag from = left().add(source, a->spec().pd, {});
    const mem::Stag to = right().add(target, b->spec().pd, Access::RemoteWrite);
    auto w = work(Opcode::Write, 1, source, from, kSize);
    w.remote = {to.value, reinterpret_cast<uint64_t>(target.data())};
    ASSERT_EQ(a->post_send(w), device::PostResult::Ok);
    std::vector<Completion> done;
    const auto completed = [&] {
      done = left().completions(a->spec().send_cq);
      return !done.empty();
    };
    const auto begun = [&] { return target[20'000] == source[20'000]; };
    ASSERT_TRUE(in_flight ? run_until(begun) : run_until(completed));
    ASSERT_TRUE(right().device->deregister_memory(to).has_value());
    std::fill(target.begin(), target.end(), uint8_t{0x5a});
    if (in_flight) {
      ASSERT_TRUE(run_until([&] { return left().has<event::TerminateReceived>(); }));
      const auto told = left().take<event::TerminateReceived>();
      EXPECT_EQ(static_cast<int>(told->fault.layer), 1);
      EXPECT_EQ(told->fault.type, 1);
      EXPECT_EQ(told->fault.code, 0);
      EXPECT_TRUE(completed());
      EXPECT_NE(done[0].status, CompletionStatus::Success);
    } else {
      run_for(std::chrono::seconds(1));
      EXPECT_EQ(done[0].status, CompletionStatus::Success);
      EXPECT_FALSE(left().has<event::TerminateReceived>());
    }
    EXPECT_EQ(std::count(target.begin(), target.end(), 0x5a), kSize);
    left().events.clear();
    right().events.clear();
  }
}

/// Three clients of one shared receive queue, whose server posts more when it hears the limit.
class Sharing : public device::DevicePair {
 protected:
  static constexpr uint32_t kDepth = 64;
  static constexpr uint32_t kLimit = 16;

  Sharing() : memory_(64), source_(octets(64, 3)) {
    pd_ = *right().device->alloc_pd();
    cq_ = *right().device->create_cq(4 * kDepth);
    stag_ = right().add(memory_, pd_, Access::LocalWrite);
    srq_ = *right().device->create_srq({.pd = pd_, .depth = kDepth});
    for (Client& client : clients_) {
      device::QueuePairSpec spec;
      spec.answer_close = false;
      spec.pd = pd_;
      spec.send_cq = spec.receive_cq = cq_;
      spec.srq = srq_;
      client.qp = left().make_qp();
      client.served_by = *right().device->create_qp(spec);
      connect(client.qp, client.served_by);
      client.stag = left().add(source_, client.qp->spec().pd, {});
    }
  }
  struct Client {
    device::QueuePair* qp = nullptr;
    device::QueuePair* served_by = nullptr;
    mem::Stag stag;
  };
  void send(const Client& client) {
    ASSERT_EQ(client.qp->post_send(work(Opcode::Send, 1, source_, client.stag, 64)),
              device::PostResult::Ok);
  }
  void fill_up() {
    while (srq_->post_receive(receive(1, memory_, stag_, 64)) == device::PostResult::Ok) {
    }
  }
  /// \return messages that each client's queue pair received within `span`
  std::map<uint32_t, uint32_t> received(base::Duration span) {
    run_for(span);
    std::map<uint32_t, uint32_t> counts;
    for (std::vector<Completion> some; !(some = right().completions(cq_)).empty();) {
      for (const Completion& done : some) {
        if (done.status == CompletionStatus::Success) ++counts[done.qp];
      }
    }
    return counts;
  }

  std::vector<uint8_t> memory_;
  std::vector<uint8_t> source_;
  uint32_t pd_ = 0;
  device::CompletionQueue* cq_ = nullptr;
  mem::Stag stag_;
  device::SharedReceiveQueue* srq_ = nullptr;
  std::array<Client, 3> clients_;
};

// One of them sends as fast as it can. The limit tells before the queue is empty; what is there
// then serves the others; the statistics name the one, who is disconnected.
TEST_F(Sharing, AGreedyPeer_UNH_SEC_04) {
  fill_up();
  srq_->arm_limit(kLimit);
  const Client& greedy = clients_[0];
  for (uint32_t i = 0; i < kDepth - kLimit + 1; ++i) send(greedy);
  ASSERT_TRUE(run_until([&] { return right().has<event::SrqLimitReached>(); }));
  EXPECT_EQ(right().take<event::SrqLimitReached>()->posted, kLimit - 1);
  for (int i = 0; i < 5; ++i) {
    send(clients_[1]);
    send(clients_[2]);
  }
  auto counts = received(std::chrono::milliseconds(50));
  EXPECT_EQ(counts[clients_[1].served_by->number()], 5u);
  EXPECT_EQ(counts[clients_[2].served_by->number()], 5u);
  const SrqInfo info = right().device->info(*srq_);
  const auto most = std::ranges::max_element(info.queue_pairs, {}, &SrqUse::taken);
  ASSERT_EQ(most->qp, greedy.served_by->number());
  EXPECT_EQ(most->taken, kDepth - kLimit + 1);
  ASSERT_TRUE(right().device->destroy_qp(greedy.served_by).has_value());
  fill_up();
  for (int i = 0; i < 5; ++i) send(clients_[1]);
  counts = received(std::chrono::milliseconds(50));
  EXPECT_EQ(counts[clients_[1].served_by->number()], 5u);
  EXPECT_EQ(right().count<event::Disconnected>(), 0u);
}

class Guessing : public Station {
 protected:
  [[nodiscard]] static Octets write(uint32_t stag) {
    return tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag, .to = 0}, 8);
  }
};

TEST_F(Guessing, EachGuessCostsAConnection_UNH_SEC_02) {
  base::Prng prng(7);
  constexpr uint32_t kGuesses = 100;
  for (uint32_t i = 0; i < kGuesses; ++i) {
    const uint32_t guess = i < 50 ? stag_ ^ (i + 1) : static_cast<uint32_t>(prng.next32());
    ASSERT_NE(guess, stag_);
    Talk talk = open();
    say(talk, write(guess));
    say(talk, write(stag_));  // no second try on this connection, not even with the right one
    EXPECT_EQ(terminate_heard(talk), (Code{1, 1, 0}));
    hang_up(talk);
    EXPECT_EQ(right().device->live_connections(), 0u);
  }
  EXPECT_EQ(right().device->rdmap_counters().faults_tagged, kGuesses);
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), kUntouched), kSize);
  Talk honest = open();
  say(honest, write(stag_));
  EXPECT_EQ(terminate_heard(honest), kNoTerminate);
  EXPECT_EQ(memory_[7], 0xee);
  hang_up(honest);
  // A slot's next STag is not the last one plus something: all keys occur.
  std::set<uint32_t> steps;
  uint32_t last = 0;
  for (uint32_t i = 0; i < 4000; ++i) {
    const uint32_t stag = add({});
    steps.insert((stag - last) & 0xff);
    last = stag;
    ASSERT_TRUE(right().device->deregister_memory(mem::Stag{stag}).has_value());
  }
  EXPECT_GT(steps.size(), 250u);
}

class Stalling : public Station {
 protected:
  static constexpr uint64_t kHold = 64u << 10;

  Stalling() : Station([](device::DeviceConfig& config) { config.limits.hold_octets = kHold; }) {}
  [[nodiscard]] Octets write() const {
    return tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 0}, kSize);
  }
};

// Peers that send most of an FPDU and no more. What is held stays below the limit and
// the one FPDU that is kept back for the delivery point; a connection beside them works; when they
// are gone the space is there again, and the last of them may go on.
TEST_F(Stalling, InsideAnFpdu_UNH_SEC_05) {
  std::vector<Talk> talks;
  for (uint32_t i = 0; i < 40; ++i) {
    talks.push_back(open());
    Talk& talk = talks.back();
    talk.encoder.add(write());
    const base::ByteView all(talk.encoder.stream);
    put(talk.socket, all.first(all.size() - 100));
    talk.put = all.size() - 100;
    run_for(std::chrono::milliseconds(2));
    EXPECT_LE(held_octets(right().device->hold_store()), kHold + 66'064);
  }
  EXPECT_GT(held_octets_peak(right().device->hold_store()), kHold / 2) << "the stalling holds";
  EXPECT_GT(right().device->mpa_counters().hold_refused, 0u) << "and the limit was reached";
  EXPECT_EQ(std::count(memory_.begin(), memory_.end(), kUntouched), kSize);
  Talk honest = open();
  say(honest, tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 0}, 500));
  EXPECT_EQ(terminate_heard(honest, std::chrono::milliseconds(50)), kNoTerminate);
  EXPECT_EQ(memory_[499], 0xee);
  hang_up(honest);
  while (talks.size() > 1) {
    hang_up(talks.back());
    talks.pop_back();
  }
  flush(talks[0]);
  EXPECT_TRUE(run_until([&] { return memory_[kSize - 1] == 0xee; }));
  hang_up(talks[0]);
  EXPECT_EQ(held_octets(right().device->hold_store()), 0u);
}

class HalfOpen : public Station {
 protected:
  static constexpr uint32_t kAtOnce = 3500;

  HalfOpen()
      : Station([](device::DeviceConfig& config) {
          config.limits.max_connections = kAtOnce + 2;
          config.limits.max_starting = kAtOnce + 1;
          config.limits.max_streams = 4096;
          config.tcp.max_connections = 2 * kAtOnce;
          config.tcp.max_half_open = config.tcp.max_half_open_per_listener = 4096;
          config.mpa.start_timeout = std::chrono::seconds(20);
        }) {}
};

// 10,500 connections in three waves that never send a Request. Beyond the device's
// limit the oldest give way; an honest peer gets in; the start-up's timer ends them all.
TEST_F(HalfOpen, WithoutARequest_UNH_SEC_06) {
  const uint32_t waves = test::by_form(1u, 3u);
  for (uint32_t wave = 0; wave < waves; ++wave) {
    std::vector<StreamSocket*> idle;
    for (uint32_t i = 0; i < kAtOnce; ++i) {
      auto socket = left().device->connect_stream(right_end(), {}, now_);
      ASSERT_TRUE(socket.has_value());
      idle.push_back(*socket);
      if (i % 100 == 99) run_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(run_until([&] { return right().device->live_connections() == kAtOnce; },
                          std::chrono::seconds(10)));
    Talk honest = open();
    say(honest, tagged({.last = true, .rsvd_ulp = 0x40, .stag = stag_, .to = 0}, 8));
    EXPECT_EQ(terminate_heard(honest, std::chrono::milliseconds(20)), kNoTerminate);
    EXPECT_EQ(memory_[7], 0xee);
    std::vector<StreamSocket*> more;
    for (int i = 0; i < 3; ++i) more.push_back(dial());
    run_for(std::chrono::milliseconds(20));
    EXPECT_LE(right().device->live_connections(), kAtOnce + 2);
    EXPECT_EQ(right().device->device_counters().starts_displaced, 2 * (wave + 1));
    hang_up(honest);
    ASSERT_TRUE(run_until([&] { return right().device->live_connections() == 0; },
                          std::chrono::seconds(60)));
    idle.insert(idle.end(), more.begin(), more.end());
    for (StreamSocket* socket : idle) {
      const uint32_t number = socket->doorbell();
      socket->request(StreamSocket::kAbort | StreamSocket::kRelease);
      left().device->ring_doorbell(number);
    }
    run_for(std::chrono::seconds(10));
  }
  EXPECT_EQ(right().device->mpa_counters().start_timeouts, waves * (kAtOnce + 1));
  EXPECT_FALSE(right().has<event::ConnectRequest>());
}

}  // namespace
}  // namespace rnic::conformance
