#include "base/prng.hpp"
#include "crowd.hpp"
#include "pair.hpp"
#include "raw_peer.hpp"
#include "tcp/record_queue.hpp"
#include "tcp/saved_records.hpp"

namespace rnic::testing {
namespace {

TEST(Limits, RecordsPerConnectionStopPulling) {
  tcp::Config config;
  config.max_records_per_connection = 8;
  Pair p(config, {});
  ASSERT_TRUE(p.open());
  for (int i = 0; i < 500; ++i) p.a.queue(100);
  uint64_t most = 0;
  ASSERT_TRUE(p.link.run_until(
      [&] {
        most = std::max(most, (p.a.pulled - p.a.released_to) / 100);
        return p.a.released_to == 50000;
      },
      seconds(60)));
  EXPECT_EQ(most, 8u);
  EXPECT_GT(p.link.a.counters().record_limit_waits, 0u);
}

TEST(Limits, RecordsOfTheStackAreShared) {
  tcp::Config config;
  config.max_records = 10;
  Crowd c(6, 50, 1000, config);
  ASSERT_TRUE(c.link.run_until(
      [&] {
        uint64_t out = 0;
        for (const auto& u : c.users) out += (u->pulled - u->released_to) / 1000;
        EXPECT_LE(out, 10u);
        return c.all_released();
      },
      seconds(60)));
  c.expect_clean_peers();
  EXPECT_GT(c.link.a.counters().record_limit_waits, 0u);
}

TEST(Limits, ConnectionsAreBoundedAtBothEnds) {
  tcp::Config config;
  config.max_connections = 4;
  TcpLink link(config, config);
  UserAcceptor acceptor;
  ASSERT_TRUE(link.b.listen({kAddressB, kPort}, acceptor).has_value());
  std::vector<std::unique_ptr<RecordUser>> users;
  for (int i = 0; i < 4; ++i) {
    users.push_back(std::make_unique<RecordUser>(1, 2));
    ASSERT_TRUE(link.a.connect({kAddressA, 0}, {kAddressB, kPort}, *users.back(), link.now));
  }
  RecordUser extra(1, 2);
  const auto fifth = link.a.connect({kAddressA, 0}, {kAddressB, kPort}, extra, link.now);
  ASSERT_FALSE(fifth.has_value());
  EXPECT_EQ(fifth.error().code, ErrorCode::ResourceExhausted);
}

TEST(Limits, ASynFloodIsBounded_TCP_SYN_01) {
  tcp::Config config = RawPeer::bare();
  config.max_half_open = 10;
  config.syn_cookies = false;
  RawPeer p(config);
  for (uint16_t port = 1; port <= 500; ++port) {
    p.inject({.seq = kIrs, .flags = flag::kSyn, .source_port = port});
  }
  EXPECT_EQ(p.stack.live_connections(), 10u);
  EXPECT_EQ(p.stack.counters().half_open_displaced, 490u);
  EXPECT_EQ(p.stack.counters().syn_dropped, 0u);
  p.wait(seconds(400));  // they time out
  EXPECT_EQ(p.stack.live_connections(), 0u);
  EXPECT_TRUE(p.stack.quiescent());
  p.egress.sent.clear();
  p.accept();
}

TEST(Limits, SavedCopiesAreBounded) {
  tcp::SavedRecords saved(3 * tcp::SavedRecords::kBlockOctets);
  std::vector<uint8_t> octets(5000);
  for (size_t i = 0; i < octets.size(); ++i) octets[i] = octet_at(i, 1);
  const uint32_t first = saved.save(octets);
  ASSERT_NE(first, UINT32_MAX);
  EXPECT_EQ(saved.save(octets), UINT32_MAX);
  std::vector<uint8_t> out(3000);
  saved.copy(first, 1500, 3000, out.data());
  EXPECT_TRUE(std::equal(out.begin(), out.end(), octets.begin() + 1500));
  EXPECT_FALSE(saved.fits(1)) << "three blocks are taken";
  saved.release(first);
  EXPECT_EQ(saved.blocks_in_use(), 0u);
  EXPECT_TRUE(saved.fits(3 * tcp::SavedRecords::kBlockOctets));
  EXPECT_FALSE(saved.fits(3 * tcp::SavedRecords::kBlockOctets + 1));
  EXPECT_NE(saved.save(octets), UINT32_MAX);
}

// Half of the store takes what fills its blocks to the last octet, and not an octet more.
TEST(Limits, HalfOfTheCopiesIsCountedInWholeBlocks) {
  constexpr uint32_t kBlock = tcp::SavedRecords::kBlockOctets;
  tcp::SavedRecords saved(4 * kBlock);
  EXPECT_TRUE(saved.fits_half(4 * kBlock)) << "nothing is saved: one record may take all";
  const std::vector<uint8_t> octets(kBlock);
  const uint32_t first = saved.save(octets);
  EXPECT_EQ(saved.blocks_in_use(), 1u);
  EXPECT_TRUE(saved.fits_half(1));
  EXPECT_TRUE(saved.fits_half(kBlock - 1));
  EXPECT_TRUE(saved.fits_half(kBlock));
  EXPECT_FALSE(saved.fits_half(kBlock + 1));
  const uint32_t second = saved.save(octets);
  EXPECT_FALSE(saved.fits_half(1));
  EXPECT_TRUE(saved.fits(2 * kBlock)) << "the other half is for what has to be sent again";
  saved.release(first);
  saved.release(second);
}

// Peers with tiny windows hold a copy of a record each for as long as they like. Half of the store
// stays for records that have to be sent again in pieces.
TEST(Limits, PeersWithTinyWindowsLeaveHalfOfTheCopies) {
  tcp::Config config = RawPeer::bare();
  config.max_saved_octets = 8 * 2048;
  RawPeer p(config);
  p.accept(option_mss(1460), {}, 65535);
  std::deque<RecordUser> tiny;
  for (uint16_t i = 0; i < 8; ++i) {
    p.acceptor.next.push_back(&tiny.emplace_back(11, 22));
    const auto port = static_cast<uint16_t>(2000 + i);
    p.inject({.seq = kIrs,
              .flags = flag::kSyn,
              .window = 100,
              .options = option_mss(1460),
              .source_port = port});
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1,
              .flags = flag::kAck,
              .window = 100,
              .source_port = port});
    tiny[i].queue(1460);
  }
  p.stack.output(p.now);
  uint64_t pulled = 0;
  for (const RecordUser& user : tiny) pulled += user.pulled;
  EXPECT_EQ(pulled, 4u * 1460);
  EXPECT_GT(p.stack.counters().record_limit_waits, 0u);
  // The path of the first one gets narrower: three records have to be cut.
  for (int i = 0; i < 3; ++i) p.user.queue(1460);
  p.stack.output(p.now);
  p.egress.mtu = 900;
  p.egress.sent.clear();
  p.wait(milliseconds(250));
  uint32_t again = 0;
  for (const Segment& s : p.egress.sent) again += s.payload > 100 ? s.payload : 0;
  EXPECT_GE(again, 1460u);
  EXPECT_GT(p.stack.counters().resegmented_records, 0u);
}

// A peer that answers the probes of its shut window keeps a connection (RFC 9293 MUST-37), but not
// one that its user has closed.
TEST(Limits, WhatIsClosedDoesNotWaitForEver) {
  for (const bool half_close : {false, true}) {
    for (const bool fin_sent : {false, true}) {
      tcp::Config config = RawPeer::bare();
      config.orphan_timeout = seconds(60);
      RawPeer p(config);
      p.accept();
      tcp::ConnectionOptions options = p.stack.default_options();
      options.half_close = half_close;
      ASSERT_TRUE(p.stack.set_options(*p.user.stream, options, p.now).has_value());
      p.send_record(1000);
      const Segment shut{.seq = kIrs + 1, .ack = kIss + 1001, .flags = flag::kAck, .window = 0};
      p.inject(shut);
      if (!fin_sent) p.user.queue(1000);
      llp::Stream* const stream = p.user.stream;
      stream->close();
      const auto stall = [&](int time) {
        for (int i = 0; i < time && !p.user.how_ended; ++i) {
          p.wait(seconds(1));
          p.egress.sent.clear();
          p.inject(shut);
        }
      };
      stall(50);
      ASSERT_FALSE(p.user.how_ended);
      stall(90);
      ASSERT_EQ(p.user.how_ended.has_value(), !half_close) << fin_sent;
      EXPECT_EQ(p.stack.counters().orphans_aborted, half_close ? 0u : 1u);
      if (!half_close) {
        EXPECT_EQ(*p.user.how_ended, StreamEnd::TimedOut);
        EXPECT_TRUE(p.stack.quiescent());
        continue;
      }
      // Let go: it has its time from then on.
      options.half_close = false;
      ASSERT_TRUE(p.stack.set_options(*stream, options, p.now).has_value());
      stall(50);
      EXPECT_FALSE(p.user.how_ended);
      stall(90);
      EXPECT_TRUE(p.user.how_ended);
    }
  }
}

// Its time begins anew with each octet that the peer acknowledges; and an end is one event.
TEST(Limits, AnOrphanThatGetsOnHasItsTimeAnew) {
  tcp::Config config = RawPeer::bare();
  config.orphan_timeout = seconds(60);
  RawPeer p(config);
  p.accept();
  for (int i = 0; i < 3; ++i) p.user.queue(1000);
  p.stack.output(p.now);
  p.user.stream->close();
  p.stack.output(p.now);
  for (uint32_t i = 1; i <= 2; ++i) {
    p.wait(seconds(45));
    ASSERT_FALSE(p.user.how_ended) << i;
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 1000 * i, .flags = flag::kAck});
  }
  uint64_t timeouts = 0;
  for (int second = 0; second < 200 && !p.user.how_ended; ++second) {
    timeouts = p.stack.counters().timeouts;
    p.wait(seconds(1));
  }
  EXPECT_EQ(p.user.how_ended, StreamEnd::TimedOut);
  EXPECT_EQ(p.stack.counters().orphans_aborted, 1u);
  EXPECT_EQ(p.stack.counters().connections_timed_out, 0u);
  EXPECT_EQ(p.stack.counters().timeouts, timeouts) << "nothing is sent again behind the end";
}

// After our FIN was acknowledged no octet of ours is outstanding, so the connection is no orphan,
// however long the peer goes on sending.
TEST(Limits, APeerThatGoesOnBehindOurFinIsNoOrphan) {
  tcp::Config config = RawPeer::bare();
  config.orphan_timeout = seconds(60);
  config.close_timeout = seconds(20);
  RawPeer p(config);
  p.accept();
  p.user.stream->close();
  p.stack.output(p.now);
  for (uint32_t i = 0; i < 30; ++i) {
    p.inject({.seq = kIrs + 1 + i * 10, .ack = kIss + 2, .flags = flag::kAck, .payload = 10});
    p.wait(seconds(10));
    ASSERT_FALSE(p.user.how_ended) << i;
  }
  EXPECT_EQ(p.user.ordered_to, 300u);
  p.wait(seconds(11));  // it says nothing any more
  EXPECT_EQ(p.user.how_ended, StreamEnd::TimedOut);
  EXPECT_EQ(p.stack.counters().orphans_aborted, 0u);
}

TEST(Limits, ALinkThatIsTooSmallForTcpIsNamed) {
  RawPeer p;
  p.egress.mtu = 255;
  const auto result = p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, 80}, p.user, p.now);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message,
            "connect: an MTU of 255 towards 10.0.0.2:80 is too small; give the device one of at "
            "least 256");
  p.inject({.seq = kIrs, .flags = flag::kSyn});
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().syn_dropped, 1u);
  p.egress.mtu = 256;
  p.connect();
}

TEST(Limits, TheRecordRingGrowsShrinksAndFinds) {
  tcp::RecordPool pool(1000, 2, 600);
  tcp::RecordQueue one(pool);
  tcp::RecordQueue two(pool);
  uint64_t offset = 0;
  uint64_t front = 0;
  base::Prng random(6);
  for (int i = 0; i < 20000; ++i) {
    if (!one.full() && random.chance(0.52)) {
      tcp::Record r;
      r.offset = offset;
      r.length = 10;
      offset += 10;
      one.push_back(r);
    } else if (!one.empty()) {
      ASSERT_EQ(one.front().offset, front);
      front += 10;
      one.pop_front();
    }
    if (!one.empty()) {
      const uint64_t at = random.between(front, offset - 1);
      ASSERT_EQ(one.at(one.find(at)).offset, at / 10 * 10);
    }
  }
  EXPECT_EQ(pool.live(), one.size());
  while (!two.full()) two.push_back({{.offset = 0, .length = 1}});
  EXPECT_LE(one.size() + two.size(), 1000u);
  one.clear();
  two.clear();
  EXPECT_EQ(pool.live(), 0u);
}

// The search begins where the record would be if all were as long as the first one.
TEST(Limits, ARecordIsFoundWhateverTheLengthsOfOthers) {
  tcp::RecordPool pool(1000, 1, 600);
  tcp::RecordQueue queue(pool);
  base::Prng random(7);
  for (const uint32_t longest : {1u, 2u, 40u, 1000u}) {
    uint64_t end = 0;
    for (int i = 0; i < 300; ++i) {
      const auto length = static_cast<uint32_t>(random.between(1, longest));
      queue.push_back({{.offset = end, .length = length}});
      end += length;
    }
    uint64_t number = queue.first();
    for (uint64_t at = 0; at < end; ++at) {
      number += at == queue.at(number).end() ? 1 : 0;
      ASSERT_EQ(queue.find(at), number) << at << " of " << longest;
    }
    EXPECT_EQ(queue.find(end), queue.past_last());
    EXPECT_EQ(queue.find(end + 100000), queue.past_last());
    queue.clear();
  }
}

// Records that are appended together lie where they would lie if each were appended by itself,
// across the ends of chunks and from an empty queue on.
TEST(Limits, RecordsAreAppendedTogetherAsOneByOne) {
  tcp::RecordPool pool(1000, 2, 600);
  tcp::RecordQueue queue(pool);
  base::Prng random(7);
  uint64_t offset = 0;
  uint64_t front = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto count = static_cast<uint32_t>(1 + random.below(tcp::RecordPool::kChunkRecords));
    if (!queue.full() && queue.places(count) == count && random.chance(0.5)) {
      queue.push_back(count, [&](tcp::Record& record, uint32_t n) {
        ASSERT_LT(n, count);
        record = {};
        record.offset = offset;
        record.length = 10;
        offset += 10;
      });
    }
    for (uint64_t left = random.below(40); left != 0 && !queue.empty(); --left) {
      ASSERT_EQ(queue.front().offset, front);
      front += 10;
      queue.pop_front();
    }
    ASSERT_EQ(queue.size(), (offset - front) / 10);
    ASSERT_EQ(pool.live(), queue.size());
    ASSERT_TRUE(queue.empty() || queue.back().offset == offset - 10);
    queue.validate();
  }
}

// A queue names four chunks by itself and asks the pool for a larger directory when it needs a
// fifth. Where none is left it is full at its fourth chunk, and goes on once one came back.
TEST(Limits, AQueueWithoutALargerDirectoryIsFull) {
  constexpr uint32_t kOwn = 4 * tcp::RecordPool::kChunkRecords;
  tcp::RecordPool pool(1000, 1, 1000);  // one connection: one larger directory
  tcp::RecordQueue wide(pool);
  tcp::RecordQueue narrow(pool);
  const auto fill = [](tcp::RecordQueue& queue, uint64_t records) {
    while (queue.size() < records && !queue.full()) {
      queue.push_back({{.offset = queue.past_last(), .length = 1}});
    }
    return queue.size();
  };
  EXPECT_EQ(fill(wide, kOwn + 1), kOwn + 1);
  EXPECT_EQ(fill(narrow, kOwn + 1), kOwn);
  EXPECT_TRUE(narrow.full());
  EXPECT_FALSE(wide.full());
  narrow.pop_front();
  EXPECT_TRUE(narrow.full()) << "the first chunk is still in use";
  wide.clear();
  EXPECT_EQ(fill(narrow, kOwn + 1), kOwn + 1);
  for (uint64_t n = narrow.first(); n < narrow.past_last(); ++n) {
    EXPECT_EQ(narrow.at(n).offset, n);
  }
}

// A chunk belongs to one queue, however few records it holds there. Whatever the queues hold and
// wherever they begin, one of few records gets another, and those that are longer have at most the
// records of the limit together.
TEST(Limits, EachQueueHasRecordsOfItsOwn) {
  constexpr uint32_t kOwn = tcp::RecordPool::kOwnRecords;
  base::Prng random(19);
  for (const auto& [records, connections] :
       std::vector<std::pair<uint32_t, uint32_t>>{{64, 1}, {640, 10}, {640, 6}, {2000, 30}}) {
    tcp::RecordPool pool(records, connections, 1000);
    std::deque<tcp::RecordQueue> queues;
    while (queues.size() < connections) queues.emplace_back(pool);
    for (int i = 0; i < 50000; ++i) {
      tcp::RecordQueue& queue = queues[random.below(connections)];
      // Now and then all are filled, which uses the most chunks where each begins elsewhere.
      const bool fills = i / 1000 % 2 != 0;
      if (!queue.empty() && random.chance(fills ? 0.05 : 0.6)) {
        queue.pop_front();
        continue;
      }
      const bool had_few = queue.size() < kOwn;
      ASSERT_EQ(queue.full(), !had_few && pool.live() >= records);
      if (!queue.full()) queue.push_back({{.offset = 0, .length = 1}});
    }
    uint64_t beyond_their_own = 0;
    for (tcp::RecordQueue& queue : queues) {
      while (queue.size() < kOwn) queue.push_back({{.offset = 0, .length = 1}});
      queue.validate();
      if (queue.size() > kOwn) beyond_their_own += queue.size();
    }
    EXPECT_LE(beyond_their_own, records);
    pool.validate();
  }
}

// A chunk belongs to one queue, however few records it holds there. There are as many as full
// queues need for all records, and for those that are part filled that many and 64 again, or two a
// connection where this is less; and the memory named for the limit is that of these chunks.
TEST(Limits, ChunksForPartFilledQueuesAreBounded) {
  constexpr uint32_t kRecords = 10 * tcp::RecordPool::kChunkRecords;
  constexpr uint32_t kWhole = 11;
  for (const auto& [connections, chunks] : std::vector<std::pair<uint32_t, uint32_t>>{
           {1000, kWhole + kWhole + 64}, {37, kWhole + 2 * 37}, {38, kWhole + kWhole + 64}}) {
    tcp::RecordPool pool(kRecords, connections, 100);
    std::deque<tcp::RecordQueue> queues;
    for (; !pool.full(); queues.back().push_back({{.offset = 0, .length = 1}})) {
      ASSERT_LE(queues.size(), kRecords);
      queues.emplace_back(pool);
    }
    EXPECT_EQ(queues.size(), chunks) << connections;
    EXPECT_LT(pool.live(), kRecords);
    EXPECT_EQ(tcp::RecordPool::chunk_octets_for(kRecords, connections),
              base::ZeroArray<tcp::Record>::octets_for(chunks * tcp::RecordPool::kChunkRecords) +
                  base::FreeNumbers::octets_for(chunks));
  }
}

TEST(Limits, ManyConnectionsShareFairly) {
  Crowd c(100, 30, 1448);
  ASSERT_TRUE(c.drain(seconds(60)));
  c.expect_clean_peers();
  for (const auto& u : c.users) u->stream->close();
  for (const auto& u : c.peers) u->stream->close();
  c.link.run(seconds(10));
  EXPECT_TRUE(c.link.a.quiescent() && c.link.b.quiescent());
  EXPECT_EQ(c.link.a.live_connections() + c.link.b.live_connections(), 0u);
}

class EndsAnother : public RecordUser {
 public:
  using RecordUser::RecordUser;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override {
    if (victim->stream != nullptr) victim->stream->abort();
    return RecordUser::pull(n, offset, out, now);
  }
  RecordUser* victim = nullptr;
};

// output() goes round once among those that a limit holds back, and the first of them may end then.
TEST(Limits, ATurnEndsThoughTheFirstThatWaitsIsEnded) {
  tcp::Config config = RawPeer::bare();
  config.max_saved_octets = tcp::SavedRecords::kBlockOctets;
  RawPeer p(config);
  RecordUser holder{11, 22};
  RecordUser first{11, 22};
  RecordUser last{11, 22};
  EndsAnother ender{11, 22};
  ender.victim = &first;
  uint16_t port = 2000;
  for (RecordUser* user : {&holder, &first, static_cast<RecordUser*>(&ender), &last}) {
    p.acceptor.next.push_back(user);
    const uint16_t window = user == &ender ? 65535 : 500;  // smaller than a record: it is copied
    p.inject({.seq = kIrs,
              .flags = flag::kSyn,
              .window = window,
              .options = option_mss(1460),
              .source_port = ++port});
    p.inject({.seq = kIrs + 1,
              .ack = kIss + 1,
              .flags = flag::kAck,
              .window = window,
              .source_port = port});
    ASSERT_TRUE(user->is_established);
  }
  holder.queue(1460);
  p.stack.output(p.now);  // the only copy that there is room for
  first.queue(1460);
  ender.queue(1460);
  last.queue(1460);
  p.stack.output(p.now);
  EXPECT_EQ(first.how_ended, StreamEnd::Aborted);
  EXPECT_EQ(ender.pulled, 1460u);
  EXPECT_EQ(last.pulled, 0u);
  EXPECT_FALSE(last.how_ended);
}

TEST(Limits, ListenersAreBounded) {
  tcp::Config config = RawPeer::bare();
  config.max_listeners = 1;  // that of the peer's own
  RawPeer p(config);
  const auto second = p.stack.listen({RawPeer::kUs, 4421}, p.acceptor);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(second.error().message, "listen: all listeners in use; raise tcp.max_listeners");
  ASSERT_TRUE(p.stack.unlisten({RawPeer::kUs, RawPeer::kOurPort}).has_value());
  EXPECT_TRUE(p.stack.listen({RawPeer::kUs, 4421}, p.acceptor).has_value());
}

TEST(Limits, APairOfEndpointsHasOneConnection) {
  RawPeer p;
  const Endpoint local{RawPeer::kUs, 5000};
  ASSERT_TRUE(p.stack.connect(local, {RawPeer::kPeer, 80}, p.user, p.now).has_value());
  RecordUser other{11, 22};
  const auto again = p.stack.connect(local, {RawPeer::kPeer, 80}, other, p.now);
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code, ErrorCode::AlreadyExists);
  EXPECT_EQ(again.error().message,
            "connect: 10.0.0.1:5000 to 10.0.0.2:80 exists; use another local port");
  EXPECT_TRUE(p.stack.connect(local, {RawPeer::kPeer, 81}, other, p.now).has_value());
}

TEST(Limits, LocalPortsTowardsAPeerAreBounded) {
  tcp::Config config = RawPeer::bare();
  config.ephemeral_first = 65535;
  RawPeer p(config);
  RecordUser extra{11, 22};
  ASSERT_TRUE(p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, 80}, p.user, p.now).has_value());
  const auto second = p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, 80}, extra, p.now);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::ResourceExhausted);
  EXPECT_EQ(second.error().message,
            "connect: no free local port towards 10.0.0.2:80; lower tcp.ephemeral_first or close "
            "connections");
  EXPECT_TRUE(p.stack.connect({RawPeer::kUs, 0}, {RawPeer::kPeer, 81}, extra, p.now).has_value());
}

// The peer sends it again, and by then there may be a place.
TEST(Limits, ASynFindsNoPlaceAmongEstablishedConnections) {
  tcp::Config config = RawPeer::bare();
  config.max_connections = 1;
  RawPeer p(config);
  p.accept();
  const Segment syn{.seq = kIrs, .flags = flag::kSyn, .source_port = 2000};
  p.inject(syn);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().syn_dropped, 1u);
  EXPECT_EQ(p.stack.live_connections(), 1u);
  p.inject({.seq = kIrs + 1, .flags = flag::kRst});
  EXPECT_EQ(p.user.how_ended, StreamEnd::PeerReset);
  p.inject(syn);
  p.expect({.flags = flag::kSyn | flag::kAck});
  EXPECT_EQ(p.stack.counters().syn_dropped, 1u);
}

/// A second connection of the stack from port 2000, which `user` has.
void accept_another(RawPeer& p, RecordUser& user, uint16_t window = 65535) {
  p.acceptor.next.push_back(&user);
  p.inject({.seq = kIrs,
            .flags = flag::kSyn,
            .window = window,
            .options = option_mss(1460),
            .source_port = 2000});
  p.inject({.seq = kIrs + 1,
            .ack = kIss + 1,
            .flags = flag::kAck,
            .window = window,
            .source_port = 2000});
  RNIC_CHECK(user.is_established);
  p.egress.sent.clear();
}

// A FIN has a descriptor, too.
TEST(Limits, AFinWaitsForARecord) {
  tcp::Config config = RawPeer::bare();
  config.max_records = 4;
  RawPeer p(config);
  p.accept();
  RecordUser other{11, 22};
  accept_another(p, other);
  for (int i = 0; i < 4; ++i) other.queue(1000);
  p.stack.output(p.now);
  p.egress.sent.clear();
  const uint64_t waits = p.stack.counters().record_limit_waits;
  p.user.stream->close();
  p.stack.output(p.now);
  EXPECT_TRUE(p.silent());
  EXPECT_EQ(p.stack.counters().record_limit_waits, waits + 2) << "that one's, and the FIN";
  p.inject({.seq = kIrs + 1, .ack = kIss + 4001, .flags = flag::kAck, .source_port = 2000});
  p.expect({.flags = kFinAck, .seq = kIss + 1});
}

// Peers that acknowledge nothing hold all records of the stack: the others send on, a FIN included.
TEST(Limits, PeersThatAcknowledgeNothingStopNoOther) {
  constexpr uint32_t kOwn = tcp::RecordPool::kOwnRecords;
  tcp::Config config = RawPeer::bare();
  config.max_records = 128;
  config.max_connections = 2;
  RawPeer p(config);
  p.accept();
  RecordUser greedy{11, 22};
  accept_another(p, greedy);
  for (int i = 0; i < 200; ++i) greedy.queue(10);
  p.stack.output(p.now);
  EXPECT_EQ(greedy.pulled, 1280u) << "all that there are";
  for (uint32_t i = 0; i < 3 * kOwn; ++i) p.user.queue(10);
  p.stack.output(p.now);
  EXPECT_EQ(p.user.pulled, 10 * kOwn);
  for (uint32_t round = 1; round < 3; ++round) {
    p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 10 * kOwn * round, .flags = flag::kAck});
    p.stack.output(p.now);
    EXPECT_EQ(p.user.pulled, 10 * kOwn * (round + 1));
  }
  p.user.stream->close();
  p.inject({.seq = kIrs + 1, .ack = kIss + 1 + 30 * kOwn, .flags = flag::kAck});
  compare(p.egress.sent.back(), {.flags = kFinAck, .seq = kIss + 1 + 30 * kOwn});
  EXPECT_EQ(greedy.pulled, 1280u);
  p.stack.validate();
}

// A record that the peer has taken in part goes again from a copy, and there is room for one.
TEST(Limits, ARetransmissionWaitsForTheCopyOfAnother) {
  tcp::Config config = RawPeer::bare();
  config.max_saved_octets = tcp::SavedRecords::kBlockOctets;
  RawPeer p(config);
  p.accept();
  RecordUser tiny{11, 22};
  accept_another(p, tiny, 100);
  tiny.queue(1460);
  p.send_record(1000);
  p.inject({.seq = kIrs + 1, .ack = kIss + 401, .flags = flag::kAck});
  p.egress.sent.clear();
  p.wait(milliseconds(250));
  EXPECT_EQ(p.stack.counters().timeouts, 2u) << "one of each connection";
  for (const Segment& s : p.egress.sent) EXPECT_EQ(s.payload, 100u) << "the tiny one's";
  EXPECT_GT(p.stack.counters().record_limit_waits, 0u);
  EXPECT_FALSE(p.user.how_ended);
  p.egress.sent.clear();
  p.inject({.seq = kIrs + 1, .ack = kIss + 101, .flags = flag::kAck, .source_port = 2000});
  p.inject({.seq = kIrs + 1, .ack = kIss + 1461, .flags = flag::kAck, .source_port = 2000});
  ASSERT_EQ(tiny.released_to, 1460u);
  compare(p.egress.sent.back(), {.flags = kPshAck, .seq = kIss + 401, .payload = 600});
}

// A reply that waits for the port has nobody to wait for where the route is gone.
TEST(Limits, AReplyWithoutARouteIsForgotten) {
  for (const bool route : {true, false}) {
    RawPeer p;
    p.egress.full = true;
    p.egress.mtu = route ? 1500 : 0;
    p.our_port = 9;  // nobody is there
    p.inject({.seq = kIrs, .flags = flag::kSyn});
    EXPECT_EQ(p.stack.counters().no_connection, 1u);
    EXPECT_EQ(p.stack.counters().send_waits, route ? 1u : 0u);
    EXPECT_EQ(p.stack.quiescent(), !route);
    p.egress.full = false;
    p.egress.mtu = 1500;
    p.stack.output(p.now);
    EXPECT_EQ(p.egress.sent.size(), route ? 1u : 0u);
    EXPECT_EQ(p.stack.counters().resets_out, route ? 1u : 0u);
  }
}

}  // namespace
}  // namespace rnic::testing
