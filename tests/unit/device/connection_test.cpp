// Connection management of whole devices: connect, accept, reject, limits, ends.

#include <atomic>
#include <thread>

#include "device_pair.hpp"
#include "offload/offload.hpp"
#include "support/long_form.hpp"

namespace rnic::device {
namespace {

using Connections = DevicePair;

// Work that is flushed at once leaves its place before its completion can be seen.
TEST_F(Connections, AFlushedPlaceIsFreeForTheNextPost_BUG_09) {
  constexpr uint32_t kDepth = 64;
  QueuePair* qp = left().make_qp(kDepth);
  SendRequest work;
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    base::Now now = now_;
    while (!stop.load()) left().device->poll(now += base::Duration(100));
  });
  const uint64_t enough = test::by_form(20'000, 200'000);
  uint64_t completed = 0;
  for (uint64_t posted = 0; completed < enough;) {
    const PostResult result = qp->post_send(work);
    if (posted - completed < kDepth) {
      EXPECT_EQ(result, PostResult::Ok);
    }
    if (result == PostResult::Ok) ++posted;
    std::array<Completion, kDepth> done;
    const uint32_t n = qp->spec().send_cq->poll(done);
    for (uint32_t i = 0; i < n; ++i) EXPECT_EQ(done[i].status, CompletionStatus::Flushed);
    completed += n;
    EXPECT_LE(completed, posted);
  }
  stop.store(true);
  worker.join();
}

// RFC 5044 s.7.1.4, RFC 6581 s.9: private data of both sides, up to 508 octets.
TEST_F(Connections, PrivateDataArrivesWhole) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  connect(a, b, octets(508, 9), octets(508, 77));
}

TEST_F(Connections, PrivateDataMayBeEmpty) { connect(left().make_qp(), right().make_qp(), {}, {}); }

TEST_F(Connections, PrivateDataAboveTheLimitIsRefused) {
  const auto status = left().device->connect(*left().make_qp(), right_end(), octets(509, 1), now_);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::InvalidArgument);
  EXPECT_NE(status.error().message.find("508"), std::string::npos);
  expect_all_returned();
}

// RFC 5044 s.7.1.2 rule 2: the Reply says no and carries the reason.
// UNH-MPA-1-10
TEST_F(Connections, RejectCarriesPrivateData) {
  QueuePair* a = left().make_qp();
  const auto why = octets(100, 3);
  ASSERT_TRUE(left().device->connect(*a, right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(right().device->reject(request->request, why, now_).has_value());
  ASSERT_TRUE(run_until([&] { return left().has<event::Rejected>(); }));
  EXPECT_EQ(left().take<event::Rejected>()->private_data, why);
  run_for(std::chrono::seconds(10));
  EXPECT_FALSE(left().has<event::Established>());
  EXPECT_TRUE(left().take<event::Disconnected>().has_value());  // once
  EXPECT_FALSE(left().has<event::Disconnected>());
  // The side that has rejected the request is not told that it is gone.
  EXPECT_FALSE(right().has<event::RequestWithdrawn>());
  EXPECT_FALSE(right().device->accept(request->request, *right().make_qp(), {}, now_).has_value());
  expect_all_returned();
}

// A peer that reads the Reply's private data only while the connection stands (Linux siw): the FIN
// of the rejecting side follows when the peer has closed, or when 100 ms have gone.
TEST_F(Connections, TheFinFollowsTheRejectLate) {
  for (const bool peer_closes : {true, false}) {
    ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
    ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    const auto request = right().take<event::ConnectRequest>();
    ASSERT_TRUE(right().device->reject(request->request, octets(100, 3), now_).has_value());
    const base::Now rejected = now_;
    if (peer_closes) {
      ASSERT_TRUE(run_until([&] { return right().device->live_connections() == 0; }));
      EXPECT_LT(now_ - rejected, std::chrono::milliseconds(10));
      EXPECT_TRUE(left().take<event::Rejected>().has_value());
      continue;
    }
    // The other device is not polled: nothing is acknowledged, and nothing closed.
    bool fin = false;
    const auto poll_until = [&](base::Duration since) {
      for (; now_ < rejected + since; now_ += std::chrono::microseconds(100)) {
        right().device->poll(now_);
        port::Packet packet;
        while (link_.a().rx_burst({&packet, 1}, now_) != 0) {
          const auto at = offload::locate_tcp(packet.view());
          fin = fin || (at && (packet.data[at->tcp + 13] & 0x01) != 0);
          link_.a().free({&packet, 1});
        }
      }
    };
    poll_until(std::chrono::milliseconds(99));
    EXPECT_FALSE(fin);
    poll_until(std::chrono::milliseconds(102));
    EXPECT_TRUE(fin);
  }
  run_for(std::chrono::seconds(10));
  EXPECT_EQ(right().device->live_connections(), 0u);
  EXPECT_TRUE(left().has<event::Rejected>());
}

// The responder's application is silent, and its device is patient.
class PatientResponder : public DevicePair {
 protected:
  PatientResponder()
      : DevicePair([](DeviceConfig& config) {
          if (config.name == "right") config.mpa.start_timeout = std::chrono::hours(24);
        }) {}
};

// UNH-MPA-1-14
TEST_F(PatientResponder, AnInitiatorGivesUpOnASilentPeer_MPA_7_1_2_16) {
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
  const base::Duration patience = 3 * left().device->config().mpa.start_timeout;
  EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }, patience));
}

TEST_F(Connections, AQueuePairAndItsConnectionNameEachOther) {
  QueuePair* a = left().make_qp();
  connect(a, right().make_qp());
  left().device->validate();
  const auto part = [&] {
    a->end_connection();
    left().device->validate();
  };
  EXPECT_DEATH(part(), "connection\\(\\) == handle\\(\\)");
}

TEST_F(Connections, NobodyListens) {
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(9), {}, now_).has_value());
  EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  EXPECT_EQ(right().device->tcp_counters().resets_out, 1u);
  expect_all_returned();
}

TEST_F(Connections, ListenPortIsTaken) {
  const auto status = right().device->listen(kPort);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::AlreadyExists);
  EXPECT_TRUE(right().device->unlisten({{}, kPort}).has_value());
  EXPECT_TRUE(right().device->listen(kPort).has_value());
}

TEST_F(Connections, AQueuePairServesOneConnection) {
  QueuePair* a = left().make_qp();
  connect(a, right().make_qp());
  const auto status = left().device->connect(*a, right_end(), {}, now_);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, ErrorCode::WrongState);
}

TEST_F(Connections, GracefulEndFlushesReceivesAndReturnsEverything) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  connect(a, b);
  std::vector<uint8_t> memory(100);
  const mem::Stag stag = right().add(memory, b->spec().pd, Access::LocalWrite);
  ASSERT_EQ(b->post_receive(receive(5, memory, stag, 100)), PostResult::Ok);
  run_for(std::chrono::milliseconds(1));
  ASSERT_TRUE(left().device->disconnect(*a).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::PeerClosed>(); }));
  ASSERT_TRUE(right().device->disconnect(*b).has_value());
  ASSERT_TRUE(run_until(
      [&] { return left().has<event::Disconnected>() && right().has<event::Disconnected>(); }));
  EXPECT_EQ(left().take<event::Disconnected>()->end, StreamEnd::Closed);
  EXPECT_EQ(right().take<event::Disconnected>()->end, StreamEnd::Closed);
  const auto flushed = right().completions(b->spec().receive_cq);
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].id, 5u);
  EXPECT_EQ(flushed[0].status, CompletionStatus::Flushed);
  EXPECT_TRUE(left().device->destroy_qp(a).has_value());
  EXPECT_TRUE(right().device->destroy_qp(b).has_value());
  expect_all_returned();
}

TEST_F(Connections, DestroyingAConnectedQueuePairResetsThePeer) {
  QueuePair* a = left().make_qp();
  QueuePair* b = right().make_qp();
  connect(a, b);
  std::vector<uint8_t> memory = octets(50'000, 1);
  const mem::Stag stag = left().add(memory, a->spec().pd, {});
  for (uint64_t i = 0; i < 8; ++i) {
    auto w = work(Opcode::Write, i, memory, stag, 50'000);
    ASSERT_EQ(a->post_send(w), PostResult::Ok);
  }
  left().device->poll(now_);
  ASSERT_TRUE(left().device->destroy_qp(a).has_value());
  ASSERT_TRUE(left().device->deregister_memory(stag).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::Disconnected>(); }));
  EXPECT_EQ(right().take<event::Disconnected>()->end, StreamEnd::PeerReset);
  EXPECT_FALSE(left().has<event::Disconnected>());
  EXPECT_TRUE(right().device->destroy_qp(b).has_value());
  expect_all_returned();
}

TEST_F(Connections, DestroyingAQueuePairDuringItsConnect) {
  QueuePair* a = left().make_qp();
  ASSERT_TRUE(left().device->connect(*a, right_end(), {}, now_).has_value());
  left().device->poll(now_);
  ASSERT_TRUE(left().device->destroy_qp(a).has_value());
  run_for(std::chrono::seconds(5));
  EXPECT_FALSE(left().has<event::Established>());
  right().device->unlisten({{}, kPort});
  expect_all_returned();
}

class FewRequests : public DevicePair {
 protected:
  FewRequests() : DevicePair([](DeviceConfig& c) { c.limits.max_pending_requests = 2; }) {}
};

TEST_F(FewRequests, TheThirdUnansweredRequestIsRefused) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  }
  ASSERT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  // Also the second attempt with revision 1 (RFC 6581 s.10).
  EXPECT_EQ(right().device->device_counters().requests_refused, 2u);
  // An answer makes room again.
  const auto request = right().take<event::ConnectRequest>();
  ASSERT_TRUE(right().device->accept(request->request, *right().make_qp(), {}, now_).has_value());
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  const auto asked = [&] { return right().device->device_counters().connect_requests == 3; };
  EXPECT_TRUE(run_until(asked));
}

class ShortPatience : public DevicePair {
 protected:
  ShortPatience()
      : DevicePair([](DeviceConfig& c) { c.mpa.start_timeout = std::chrono::seconds(2); }) {}
};

TEST_F(ShortPatience, AnUnansweredRequestIsWithdrawn) {
  ASSERT_TRUE(left().device->connect(*left().make_qp(), right_end(), {}, now_).has_value());
  ASSERT_TRUE(run_until([&] { return right().has<event::RequestWithdrawn>(); }));
  const auto request = right().take<event::ConnectRequest>();
  EXPECT_FALSE(right().device->accept(request->request, *right().make_qp(), {}, now_).has_value());
  EXPECT_TRUE(run_until([&] { return left().has<event::ConnectFailed>(); }));
  expect_all_returned();
}

}  // namespace
}  // namespace rnic::device
