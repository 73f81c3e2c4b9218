// validate() of the parts of an endpoint: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include "rdmap/endpoint.hpp"
#include "rdmap/shared_receive_queue.hpp"
#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

using test::notices;

RNIC_OPEN(Completions, flushing_)
RNIC_OPEN(Endpoint, impl_)
RNIC_OPEN_HIDDEN(Endpoint::Impl, completions_)
RNIC_OPEN_HIDDEN(Endpoint::Impl, inbound_)
RNIC_OPEN_HIDDEN(Endpoint::Impl, life_)
RNIC_OPEN_HIDDEN(Endpoint::Impl, outbound_)
RNIC_OPEN(Inbound, send_rtr_in_)
RNIC_OPEN(Inbound, wait_)
RNIC_OPEN(InboundRequests, provided_)
RNIC_OPEN(InboundRequests, serve_)
RNIC_OPEN(InboundRequests, allowed_)
RNIC_OPEN(InboundRequests, begun_)
RNIC_OPEN(InboundRequests, ring_)
RNIC_OPEN(Life, state_)
RNIC_OPEN(Outbound, current_)
RNIC_OPEN(OutboundRequests, count_)
RNIC_OPEN(OutboundRequests, ring_)
RNIC_OPEN(RingPool<InboundRequest>, back_)
RNIC_OPEN(RingPool<InboundRequest>, fresh_)
RNIC_OPEN(RingPool<InboundRequest>, taken_)
RNIC_OPEN(ReceiveQueue, tail_)
RNIC_OPEN(ReceiveQueue, waiter_)
RNIC_OPEN(ReceiveWait, going_)
RNIC_OPEN(ReceiveWaiter, listed_)
RNIC_OPEN(ReceiveWaiter, next_)
RNIC_OPEN(ReceiveWaiters, last_)
RNIC_OPEN(SendQueue, end_)
RNIC_OPEN(SendQueue, report_)
RNIC_OPEN(SendQueue, slots_)
RNIC_OPEN(SharedReceiveQueue, depth_)
RNIC_OPEN(SharedReceiveQueue, taken_)
RNIC_OPEN(WorkRing, seen_)

class Damage : public TwoNodes {};

TEST_F(Damage, OfAnEndpoint) {
  auto& impl = *impl_(a->endpoint);
  const Life& life = life_(impl);
  const auto notes = [&](std::string_view check, auto damage) {
    notices(a->endpoint, check, damage);
  };
  notes("rdmap/endpoint.cpp: !completions_.is_flushing()",
        [&] { flushing_(completions_(impl)) = true; });
  read(1, 0, 8, 0);
  pair.a.pull_all();
  notes("rdmap/endpoint.cpp: requester_.outstanding() == 0",
        [&] { state_(life) = EndpointState::Error; });
  pair.pump();
  a->post_receive(2, 0, 8);
  notes("rdmap/endpoint.cpp: life_.state() == EndpointState::Idle || idle()",
        [&] { state_(life) = EndpointState::Error; });
  notes("rdmap/inbound.cpp: !send_rtr_in_ ||", [&] {
    state_(life) = EndpointState::Idle;
    send_rtr_in_(inbound_(impl)) = true;
  });
  notes("rdmap/inbound.cpp: !wait_.is_going() ||", [&] {
    state_(life) = EndpointState::Idle;
    going_(wait_(inbound_(impl))) = true;
  });
  notes("rdmap/inbound.cpp: !receives_.waits() ||", [&] { listed_(waiter_(a->receives)) = true; });
  Life alone;
  notices(alone, "rdmap/life.hpp: !running() || is_bound()",
          [&] { state_(alone) = EndpointState::Connected; });
}

TEST_F(Damage, OfTheMessageThatIsSent) {
  auto& current = current_(outbound_(*impl_(a->endpoint)));
  using Kind = std::remove_reference_t<decltype(current.kind)>;
  const auto notes = [&](std::string_view check, auto damage) {
    notices(a->endpoint, check, damage);
  };
  notes("rdmap/outbound.cpp: sends_.next() == current_.seq", [&] {
    current.kind = Kind::Send;
    current.seq = 99;
  });
  notes("rdmap/outbound.cpp: responder_.ready() == current_.seq", [&] {
    current.kind = Kind::Response;
    current.seq = 99;
  });
}

TEST(DamageOfQueues, OfRequests) {
  RequestStore store;
  InboundRequests in(2, store.inbound);
  in.provide();
  in.deliver({}, false);
  in.served();
  const auto of_in = [&](std::string_view check, auto damage) { notices(in, check, damage); };
  of_in("rdmap/requests.cpp: slots <= ring_.size()", [&] { provided_(in) += 100; });
  of_in("rdmap/requests.cpp: serve_ - free_ <= deliver_ - free_", [&] { ++serve_(in); });
  of_in("rdmap/requests.cpp: begun_ - free_ <= slots", [&] { begun_(in) += 2; });
  of_in("rdmap/requests.cpp: allowed_ - serve_ <= deliver_ - serve_", [&] { ++allowed_(in); });
  of_in("rdmap/requests.cpp: ring_.is_taken() == (free_ != begun_)", [&] { ring_(in).give(); });
  of_in("rdmap/requests.cpp: free_ == serve_ ||", [&] { ring_(in)[0].released = true; });
  OutboundRequests out(2, 7, store.outbound);
  const auto of_out = [&](std::string_view check, auto damage) { notices(out, check, damage); };
  of_out("rdmap/requests.cpp: count_ <= capacity_", [&] { count_(out) = 100; });
  of_out("rdmap/requests.cpp: ring_.is_taken() == (count_ != 0)", [&] { ring_(out).take(); });
  of_out("rdmap/requests.cpp: request.coverage.octets() <= request.length", [&] {
    out.push({});
    ring_(out)[0].request.coverage.add(0, 1, 7);
  });
  of_out("rdmap/requests.cpp: i == 0 || request.coverage", [&] {
    out.push({});
    out.push({.length = 1});
    ring_(out)[1].request.coverage.add(0, 1, 7);
  });
}

TEST(DamageOfQueues, OfRings) {
  RingPool<InboundRequest> pool(4);
  pool.promise();
  pool.promise();
  InboundRequest* const ring = pool.take();
  pool.give(ring);
  const auto notes = [&](std::string_view check, auto damage) { notices(pool, check, damage); };
  notes("rdmap/ring_store.hpp: taken_ <= promised_", [&] { taken_(pool) = 3; });
  notes("rdmap/ring_store.hpp: back_.capacity() >= capacity_", [&] {
    back_(pool).clear();
    back_(pool).shrink_to_fit();
  });
  notes("rdmap/ring_store.hpp: back_.size() + taken_ == fresh_", [&] { ++fresh_(pool); });
}

TEST(DamageOfQueues, OfSends) {
  WorkRing ring(4, 64, 64);
  notices(ring, "rdmap/work_ring.hpp: in_hand() +", [&] { seen_(ring) = 5; });
  SendQueue queue(4);
  const SendRequest work{.id = 1, .opcode = Opcode::Write};
  for (int i = 0; i < 2; ++i) {
    queue.post(work, work_row(work.opcode));
    queue.accept();
  }
  const auto notes = [&](std::string_view check, auto damage) { notices(queue, check, damage); };
  notes("rdmap/send_queue.hpp: slots <= mask_ + 1", [&] { end_(queue) += 100; });
  notes("rdmap/send_queue.hpp: next_ - free_ >= report_ - free_", [&] { ++report_(queue); });
  notes("rdmap/send_queue.hpp: ring_.in_hand() == end_ - report_", [&] { ++end_(queue); });
  notes("rdmap/send_queue.hpp: !at(seq).started", [&] { slots_(queue)[1].started = true; });
  queue.start(0);
  queue.retire();
  notes("rdmap/send_queue.hpp: free_ == report_ ||", [&] { slots_(queue)[0].released = true; });
}

TEST(DamageOfQueues, OfThoseThatWait) {
  ReceiveWaiter first;
  ReceiveWaiter second;
  ReceiveWaiters waiters;
  waiters.add(first, 1);
  waiters.add(second, 2);
  const auto notes = [&](std::string_view check, auto damage) { notices(waiters, check, damage); };
  notes("rdmap/receive_waiters.hpp: next_ == nullptr ||", [&] { next_(second) = &second; });
  notes("rdmap/receive_waiters.hpp: at->is_listed()", [&] { listed_(second) = false; });
  notes("rdmap/receive_waiters.hpp: last == last_", [&] { last_(waiters) = &first; });
  waiters.remove(first);
  waiters.remove(second);
}

TEST(DamageOfQueues, OfReceives) {
  ReceiveQueue queue(4);
  notices(queue, "rdmap/receive_queue.hpp: tail_ - head_ <= mask_ + 1",
          [&] { tail_(queue) += 100; });
  notices(queue, "rdmap/receive_queue.hpp: ring_.in_hand() ==", [&] { ++tail_(queue); });
  struct Nobody final : SharedReceiveOwner {
    void limit_reached(uint32_t) override {}
    void high_water_passed(uint32_t, uint32_t) override {}
  } owner;
  SharedReceiveQueue shared(4, kMaxSge, owner);
  notices(shared, "rdmap/shared_receive_queue.hpp: posted_.size() + taken_",
          [&] { taken_(shared) = 5; });
  notices(shared, "rdmap/shared_receive_queue.hpp: free_.size() <=", [&] { depth_(shared) = 0; });
}

}  // namespace
}  // namespace rnic::rdmap
