// The ring of posted work: where requests lie, when their places are free, and what is kept of
// them.

#include <deque>
#include <random>
#include <set>

#include "two_nodes.hpp"

namespace rnic::rdmap {
namespace {

/// Each octet of a request says which one it is of.
struct Written {
  WorkPlace place;
  size_t near;
  size_t far;
  std::byte mark;
};

bool whole(const Written& request) {
  const auto is_its = [&](std::byte octet) { return octet == request.mark; };
  return std::all_of(request.place.near, request.place.near + request.near, is_its) &&
         std::all_of(request.place.far, request.place.far + request.far, is_its);
}

// Requests of all sizes in any sequence: none reaches another that is in use, and the worker finds
// each where the application wrote it.
TEST(WorkRing, NoRequestReachesAnother) {
  for (const uint32_t depth : {1u, 2u, 3u, 7u, 16u}) {
    for (const uint32_t near : {8u, 40u, 64u, 320u}) {
      SCOPED_TRACE(::testing::Message() << depth << " of " << near);
      const uint32_t far = 5 * near;
      WorkRing ring(depth, near, far);
      std::mt19937 random(depth * 1000 + near);
      std::deque<Written> posted;
      std::deque<Written> taken;
      uint8_t mark = 0;
      for (int step = 0; step < 4000; ++step) {
        ASSERT_EQ(ring.has_room(), posted.size() + taken.size() < depth);
        switch (random() % 3) {
          case 0:
            if (ring.has_room()) {
              const WorkPlace place = ring.write();
              ASSERT_EQ(reinterpret_cast<uintptr_t>(place.near) % 8, 0u);
              ASSERT_EQ(reinterpret_cast<uintptr_t>(place.far) % 8, 0u);
              posted.push_back({place, 1 + random() % near, random() % (far + 1),
                                std::byte{++mark}});
              std::fill_n(place.near, posted.back().near, posted.back().mark);
              std::fill_n(place.far, posted.back().far, posted.back().mark);
              ring.publish();
            }
            break;
          case 1:
            ASSERT_EQ(ring.front() == nullptr, posted.empty());
            if (posted.empty()) break;
            ASSERT_EQ(ring.front(), posted.front().place.near);
            ring.take();
            taken.push_back(posted.front());
            posted.pop_front();
            break;
          default:
            if (taken.empty()) break;
            ring.retire();
            taken.pop_front();
        }
        ASSERT_TRUE(std::ranges::all_of(posted, whole));
        ASSERT_TRUE(std::ranges::all_of(taken, whole));
      }
    }
  }
}

// A queue that is idle now and then touches few places, whatever its depth.
TEST(WorkRing, AnIdleQueueBeginsAgain) {
  WorkRing ring(1000, 64, 8);
  std::set<const std::byte*> places;
  for (int i = 0; i < 5000; ++i) {
    for (int n = 0; n < 3; ++n) {
      const WorkPlace place = ring.write();
      places.insert(place.near);
      std::memcpy(place.near, &i, sizeof i);
      std::memcpy(place.far, &n, sizeof n);
    }
    ring.publish();
    for (; ring.front() != nullptr; ring.take()) ASSERT_EQ(std::memcmp(ring.front(), &i, 4), 0);
    for (int n = 0; n < 3; ++n) ring.retire();
  }
  EXPECT_LE(places.size(), 3 * 16u);
}

TEST(WorkRing, WhatIsNotPublishedIsNotSeen) {
  WorkRing ring(4, 64, 8);
  std::byte* const first = ring.write().near;
  static_cast<void>(ring.write());
  EXPECT_EQ(ring.front(), nullptr);
  ring.publish();
  EXPECT_EQ(ring.front(), first);
}

SendRequest full_request(Opcode opcode, uint32_t pieces) {
  SendRequest request{.id = 0x1122'3344'5566'7788,
                      .opcode = opcode,
                      .signaled = false,
                      .solicited = true,
                      .fence = true,
                      .remote = {0xa1b2'c3d4, 0x99aa'bbcc'ddee'ff00},
                      .invalidate_stag = 0x0102'0304,
                      .atomic = {1, 2, 3, 4},
                      .immediate = {8, 7, 6, 5, 4, 3, 2, 1},
                      .grant = {0x1234'5678, Access::RemoteRead, 0xfedc'ba98'7654'3210}};
  for (uint32_t i = 0; i < pieces; ++i) request.sges.push_back({0x1000ull + i, 10 + i, 77 + i});
  return request;
}

/// Places as a ring has them, with an octet behind each that nobody may write to.
template <typename Work>
struct Places {
  Places() {
    near.fill(std::byte{0x5a});
    far.fill(std::byte{0x5a});
  }
  [[nodiscard]] WorkPlace place() { return {near.data(), far.data()}; }
  [[nodiscard]] bool overrun() const {
    return near.back() != std::byte{0x5a} || far.back() != std::byte{0x5a};
  }
  alignas(64) std::array<std::byte, Work::kNear + 1> near;
  alignas(64) std::array<std::byte, Work::kFar + 1> far;
};

/// A request that was written, copied twice, and is nowhere else any more.
class Copied {
 public:
  explicit Copied(const SendRequest& request) {
    Places<PostedSend> places;
    PostedSend::write(request, work_row(request.opcode), request.sges.length(), places.place());
    EXPECT_FALSE(places.overrun());
    const std::vector<std::byte> first = copy(PostedSend::at(places.near.data()));
    memory_ = copy(PostedSend::at(first.data()));
  }
  [[nodiscard]] const PostedSend& posted() const { return PostedSend::at(memory_.data()); }

 private:
  static std::vector<std::byte> copy(const PostedSend& posted) {
    std::vector<std::byte> octets(posted.size() + 1, std::byte{0x5a});
    posted.copy_to(octets.data());
    EXPECT_EQ(octets.back(), std::byte{0x5a});
    return octets;
  }

  std::vector<std::byte> memory_;
};

// A request with as many SGEs as most have touches no second line.
TEST(PostedWork, FewPiecesLieWithTheHead) {
  for (uint32_t pieces = 0; pieces <= 3; ++pieces) {
    const SendRequest send = full_request(Opcode::Write, pieces);
    Places<PostedSend> sent;
    PostedSend::write(send, work_row(send.opcode), send.sges.length(), sent.place());
    EXPECT_EQ(sent.far.front() != std::byte{0x5a}, pieces > 2) << pieces;
    const ReceiveRequest receive{.id = 5, .sges = send.sges};
    Places<PostedReceive> received;
    PostedReceive::write(receive, receive.sges.length(), received.place());
    EXPECT_EQ(received.far.front() != std::byte{0x5a}, pieces > 1) << pieces;
  }
}

// Every opcode with every number of pieces is read as it was written.
TEST(PostedWork, IsReadAsItWasWritten) {
  for (uint8_t number = 0; number <= static_cast<uint8_t>(Opcode::FastRegister); ++number) {
    for (uint32_t pieces = 0; pieces <= kMaxSge; ++pieces) {
      const auto opcode = static_cast<Opcode>(number);
      SCOPED_TRACE(::testing::Message() << to_string(opcode) << ", " << pieces);
      const SendRequest request = full_request(opcode, pieces);
      const Copied copied(request);
      const PostedSend& posted = copied.posted();
      EXPECT_EQ(posted.id, request.id);
      EXPECT_EQ(posted.opcode, opcode);
      EXPECT_FALSE(posted.signaled);
      EXPECT_TRUE(posted.solicited);
      EXPECT_TRUE(posted.fence);
      const bool invalidates =
          opcode == Opcode::SendInvalidate || opcode == Opcode::LocalInvalidate;
      EXPECT_EQ(posted.remote_stag, invalidates ? request.invalidate_stag : request.remote.stag);
      EXPECT_EQ(posted.remote_offset, request.remote.offset);
      ASSERT_EQ(posted.sges().size(), pieces);
      for (uint32_t i = 0; i < pieces; ++i) {
        EXPECT_EQ(posted.sges()[i].address, request.sges[i].address);
        EXPECT_EQ(posted.sges()[i].length, request.sges[i].length);
        EXPECT_EQ(posted.sges()[i].stag, request.sges[i].stag);
      }
      if (opcode == Opcode::BindWindow || opcode == Opcode::FastRegister) {
        EXPECT_EQ(posted.grant().stag, request.grant.stag);
        EXPECT_EQ(posted.grant().access, request.grant.access);
        EXPECT_EQ(posted.grant().offset, request.grant.offset);
      }
      if (is_atomic(opcode)) {
        EXPECT_EQ(posted.length, 8u);
        const AtomicOperands operands = posted.atomic();
        EXPECT_EQ(operands.data, 1u);
        EXPECT_EQ(operands.mask, 2u);
        EXPECT_EQ(operands.compare, 3u);
        EXPECT_EQ(operands.compare_mask, 4u);
      } else if (opcode == Opcode::Immediate) {
        EXPECT_EQ(posted.length, 8u);
        EXPECT_EQ(posted.immediate(), request.immediate);
      } else {
        EXPECT_EQ(posted.length, request.sges.length());
      }
      if (opcode == Opcode::WriteImmediate) {
        EXPECT_EQ(posted.immediate(), request.immediate);
      }
    }
  }
}

TEST(PostedWork, InlineDataIsReadAsItWasWritten) {
  for (const Opcode opcode : {Opcode::Send, Opcode::WriteImmediate}) {
    for (size_t octets = 1; octets <= kMaxInline; ++octets) {
      SCOPED_TRACE(::testing::Message() << to_string(opcode) << ", " << octets);
      SendRequest request = full_request(opcode, 0);
      std::vector<std::byte> data(octets, std::byte{7});
      data.back() = std::byte{9};
      request.inline_data = data;
      const Copied copied(request);
      const PostedSend& posted = copied.posted();
      EXPECT_EQ(posted.length, octets);
      EXPECT_TRUE(posted.is_inline);
      EXPECT_TRUE(posted.sges().empty());
      EXPECT_TRUE(std::ranges::equal(posted.inline_data(), data));
      if (opcode == Opcode::WriteImmediate) {
        EXPECT_EQ(posted.immediate(), request.immediate);
      }
    }
  }
}

TEST(PostedWork, OfTheReceiveQueue) {
  for (uint32_t pieces = 0; pieces <= kMaxSge; ++pieces) {
    const ReceiveRequest request{.id = 5, .sges = full_request(Opcode::Send, pieces).sges};
    Places<PostedReceive> places;
    PostedReceive::write(request, request.sges.length(), places.place());
    EXPECT_FALSE(places.overrun());
    const PostedReceive& posted = PostedReceive::at(places.near.data());
    EXPECT_EQ(posted.id, 5u);
    EXPECT_EQ(posted.length, request.sges.length());
    ASSERT_EQ(posted.sges().size(), pieces);
    for (uint32_t i = 0; i < pieces; ++i) {
      EXPECT_EQ(posted.sges()[i].address, request.sges[i].address);
      EXPECT_EQ(posted.sges()[i].stag, request.sges[i].stag);
    }
  }
}

TEST(SgeList, KeepsTheSizeOfAListThatIsTooLong) {
  SgeList list{{1, 2, 3}};
  EXPECT_EQ(list.length(), 2u);
  while (list.size() < kMaxSge) list.push_back({0, 5, 0});
  EXPECT_FALSE(list.too_long());
  list.push_back({0, 100, 0});
  EXPECT_TRUE(list.too_long());
  EXPECT_EQ(list.size(), kMaxSge + 1);
  EXPECT_EQ(list.view().size(), kMaxSge);
  EXPECT_EQ(list.length(), 2u + (kMaxSge - 1) * 5u);
  const SgeList copied = list;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(copied.size(), kMaxSge + 1);
  SgeList assigned;
  assigned = list;
  EXPECT_EQ(assigned.size(), kMaxSge + 1);
  EXPECT_EQ(assigned[0].stag, 3u);
}

// A queue pair is flushed twice where a Terminate comes first and the end of its stream behind it.
// What the first flush has kept is all that the second one has to copy from: its octets are
// compared whole, since what an allocator does with memory that was given back is only seen in some
// of them.
TEST(SendQueue, WhatIsAbandonedTwiceIsKeptAsItWasPosted) {
  SendQueue queue(4);
  std::vector<SendRequest> posted;
  for (uint64_t id = 1; id <= 3; ++id) {
    SendRequest work{.id = id * 0x0101010101010101, .opcode = Opcode::Write};
    work.remote = {0x11111111, id * 0x2020202020202020};
    for (uint32_t i = 0; i < id; ++i) work.sges.push_back({id * 1000 + i, 10 * i + 1, 7});
    queue.post(work, work_row(work.opcode));
    const uint32_t seq = queue.accept();
    queue.start(seq);
    posted.push_back(work);
  }
  for (int flush = 1; flush <= 3; ++flush) {
    queue.abandon();
    for (uint32_t seq = 0; seq < 3; ++seq) {
      SCOPED_TRACE(::testing::Message() << "request " << seq << " after flush " << flush);
      const PostedSend& kept = *queue.at(seq).work;
      EXPECT_EQ(kept.id, posted[seq].id);
      EXPECT_EQ(kept.remote_offset, posted[seq].remote.offset);
      EXPECT_EQ(kept.length, posted[seq].sges.length());
      ASSERT_EQ(kept.sges().size(), posted[seq].sges.size());
      EXPECT_EQ(std::memcmp(kept.sges().data(), posted[seq].sges.view().data(),
                            kept.sges().size_bytes()),
                0);
    }
  }
}

using KeptWork = TwoNodes;

// Behind a flush the places of requests are the application's, and what is still to be acknowledged
// of them is built again as it was, whatever it posts there.
TEST_F(KeptWork, AFlushLeavesWhatARetransmissionNeeds) {
  restart({.qp = 9, .pd = 4}, {.send = 4});
  a->fill(0, 3000, 5);
  b->post_receive(1, 0, 100);
  send(1, 0, 100);
  SendRequest gathers = a->work(2, Opcode::Write, 100, 50);
  while (gathers.sges.size() < 3)
    gathers.sges.push_back({200ull * gathers.sges.size(), 60, a->all});
  gathers.remote = {b->all, 2000};
  a->send(gathers);
  fetch_add(3, 4096, 7);
  pair.a.pull_all();
  const size_t before = pair.a.sent.size();
  ASSERT_EQ(before, 3u);
  SendRequest bad = a->work(4, Opcode::Write, Node::kSize, 8);  // behind the region: a Terminate
  bad.remote.stag = b->all;
  a->send(bad);
  pair.a.pull_all();
  ASSERT_EQ(a->owner.send_ids(), (std::vector<uint64_t>{1, 2, 3, 4}));
  for (uint64_t id = 5; id < 30; ++id) write(id, 3000, 8, 0);  // each is flushed at once
  EXPECT_EQ(a->owner.sends.size(), 29u);
  for (size_t i = 0; i < before; ++i) {
    EXPECT_EQ(pair.a.rebuild(i), pair.a.sent[i].octets) << i;
  }
}

}  // namespace
}  // namespace rnic::rdmap
