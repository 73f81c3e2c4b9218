// The machine refuses one piece of memory, each in turn, in the middle of a start-up.

#include "device_pair.hpp"
#include "support/live_memory.hpp"
#include "support/logged.hpp"

namespace rnic::device {
namespace {

class RefusedMemory : public DevicePair {
 protected:
  RefusedMemory() = default;
  explicit RefusedMemory(const Tweak& tweak) : DevicePair(tweak) {}

  /// A Request has come to the right device.
  event::ConnectRequest request(QueuePair* from) {
    EXPECT_TRUE(left().device->connect(*from, right_end(), {}, now_).has_value());
    EXPECT_TRUE(run_until([&] { return right().has<event::ConnectRequest>(); }));
    return *right().take<event::ConnectRequest>();
  }
  /// Twenty turns of both devices, in each of which the right one is refused all memory behind its
  /// n-th request for some.
  void turns_with_memory_for(int64_t n) {
    for (int turn = 0; turn < 20; ++turn) {
      now_ += std::chrono::microseconds(25);
      left().device->poll(now_);
      test::refuse_memory_after(n);
      try {
        right().device->poll(now_);
      } catch (const std::bad_alloc&) {  // the turn ends, and the next goes on
      }
      test::refuse_no_more();
    }
  }
  void destroy(Host& host, QueuePair* qp) {
    const QueuePairSpec spec = qp->spec();
    EXPECT_TRUE(host.device->destroy_qp(qp).has_value());
    EXPECT_TRUE(host.device->destroy_cq(spec.send_cq).has_value());
    EXPECT_TRUE(host.device->destroy_cq(spec.receive_cq).has_value());
    EXPECT_TRUE(host.device->free_pd(spec.pd).has_value());
  }
};

// An answer that could not be given can be given again, by the same queue pair.
TEST_F(RefusedMemory, AnAcceptCanBeRepeated) {
  int64_t n = 0;
  for (bool refused = true; refused; ++n) {
    QueuePair* near = left().make_qp(4, 16);
    QueuePair* far = right().make_qp(4, 16);
    const auto event = request(near);
    const std::vector<uint8_t> reply(200, 7);
    const auto accept = [&] {
      try {
        return right().device->accept(event.request, *far, reply, now_, {}).has_value();
      } catch (const std::bad_alloc&) {
        return false;
      }
    };
    test::refuse_memory_after(n);
    const bool accepted = accept();
    refused = test::refuse_no_more();
    EXPECT_TRUE(accepted || refused);
    if (!accepted) {
      EXPECT_TRUE(accept()) << n;
    }
    EXPECT_TRUE(run_until([&] { return left().has<event::Established>(); })) << n;
    left().take<event::Established>();
    destroy(left(), near);
    destroy(right(), far);
    run_for(std::chrono::milliseconds(100));
  }
  EXPECT_GT(n, 1);
}

// The same of a reject.
TEST_F(RefusedMemory, ARejectCanBeRepeated) {
  int64_t n = 0;
  for (bool refused = true; refused; ++n) {
    QueuePair* near = left().make_qp(4, 16);
    const auto event = request(near);
    const std::vector<uint8_t> reply(200, 7);
    const auto reject = [&] {
      try {
        return right().device->reject(event.request, reply, now_).has_value();
      } catch (const std::bad_alloc&) {
        return false;
      }
    };
    test::refuse_memory_after(n);
    const bool rejected = reject();
    refused = test::refuse_no_more();
    EXPECT_TRUE(rejected || refused);
    if (!rejected) {
      EXPECT_TRUE(reject()) << n;
    }
    EXPECT_TRUE(run_until([&] { return left().has<event::Rejected>(); })) << n;
    EXPECT_EQ(left().take<event::Rejected>()->private_data, reply);
    destroy(left(), near);
    run_for(std::chrono::milliseconds(200));
  }
  EXPECT_GT(n, 1);
}

// A connection of which the private data finds no room is given up, counted and told of.
TEST_F(RefusedMemory, AStartThatCannotGoOnIsGivenUpAndCounted) {
  constexpr int64_t kTrials = 40;
  test::Logged log;
  for (int64_t n = 0; n < kTrials; ++n) {
    QueuePair* near = left().make_qp(4, 16);
    QueuePair* far = right().make_qp(4, 16);
    const auto event = request(near);
    const std::vector<uint8_t> reply(200, 7);
    ASSERT_TRUE(right().device->accept(event.request, *far, reply, now_, {}).has_value());
    right().device->poll(now_);
    test::refuse_memory_after(n);
    for (int turn = 0; turn < 20; ++turn) {
      now_ += std::chrono::microseconds(1);
      try {
        left().device->poll(now_);
      } catch (const std::bad_alloc&) {  // the turn ends, and the next goes on
      }
    }
    test::refuse_no_more();
    run_for(std::chrono::milliseconds(100));
    destroy(left(), near);
    destroy(right(), far);
    run_for(std::chrono::milliseconds(100));
    left().collect();
    right().collect();
    left().events.clear();
    right().events.clear();
  }
  const uint64_t given_up = left().device->device_counters().starved_connections;
  EXPECT_GE(given_up, 1u);
  EXPECT_LE(given_up, static_cast<uint64_t>(kTrials));
  const std::string said = log.take();
  EXPECT_NE(said.find("left: the connection with 10.0.0.2:7471 was given up: out of memory"),
            std::string::npos)
      << said;
}

// Whoever is given up is reset, and need not wait for an answer: here a Request whose private data
// finds no room.
TEST_F(RefusedMemory, WhoIsGivenUpIsReset) {
  std::string said;
  for (int64_t n = 0; n < 60 && said.find("was given up") == std::string::npos; ++n) {
    QueuePair* qp = left().make_qp(4, 16);
    const std::vector<uint8_t> data(200, 7);
    const ConnectOptions once{.start = {.revision = 1}};
    ASSERT_TRUE(left().device->connect(*qp, right_end(), data, now_, once).has_value());
    test::Logged log;
    const uint64_t resets = right().device->tcp_counters().resets_out;
    turns_with_memory_for(n);
    said = log.take();
    if (said.find("was given up") != std::string::npos) {
      EXPECT_EQ(right().device->live_connections(), 0u);
      EXPECT_EQ(right().device->tcp_counters().resets_out, resets + 1);
    }
    destroy(left(), qp);
    run_for(std::chrono::milliseconds(100));
    right().collect();
    right().events.clear();
  }
  EXPECT_NE(said.find("was given up: out of memory"), std::string::npos) << said;
}

// A listener for which there is no memory is none: the same call goes well when there is some.
TEST_F(RefusedMemory, AListenOfStreamsCanBeRepeated) {
  for (const bool framed : {true, false}) {
    uint16_t port = framed ? 9100 : 9000;
    for (bool refused = true; refused; ++port) {
      const auto listen = [&] {
        const Endpoint local{{}, port};
        const auto options = right().device->default_options();
        try {
          const auto framing = FramingOptions::plain();
          return framed ? right().device->listen_framed(local, 4, options, framing).has_value()
                        : right().device->listen_stream(local, 4, options).has_value();
        } catch (const std::bad_alloc&) {
          return false;
        }
      };
      test::refuse_memory_after(port % 100);
      const bool listens = listen();
      refused = test::refuse_no_more();
      EXPECT_TRUE(listens || refused);
      if (!listens) {
        EXPECT_TRUE(listen()) << port;
      }
    }
    EXPECT_GE(port % 100, 2) << "memory was refused";
  }
}

// A newcomer for whom there is no memory is reset, and the next one served.
TEST_F(RefusedMemory, AnAssociationWithoutAPlaceIsRefusedAndCounted) {
  test::Logged log;
  for (int64_t n = 0; n < 20; ++n) {
    QueuePair* qp = left().make_qp(4, 16);
    ASSERT_TRUE(left().device->connect(*qp, right_end(), {}, now_).has_value());
    turns_with_memory_for(n);
    run_for(std::chrono::milliseconds(100));
    destroy(left(), qp);
    run_for(std::chrono::milliseconds(100));
    for (Host* host : {&left(), &right()}) {
      host->collect();
      host->events.clear();
    }
  }
  EXPECT_GE(right().device->device_counters().starved_connections, 1u);
  EXPECT_LE(right().device->device_counters().starved_connections, 20u * 20) << "one in each turn";
  EXPECT_EQ(right().device->live_connections(), 0u);
  const std::string said = log.take();
  EXPECT_NE(said.find("refused: out of memory"), std::string::npos) << said;
  QueuePair* near = left().make_qp(4, 16);
  connect(near, right().make_qp(4, 16));
}

/// The left device asks with revision 0, of which private data may be long.
class RefusedDraft : public RefusedMemory {
 protected:
  RefusedDraft()
      : RefusedMemory([](DeviceConfig& config) {
          config.mpa.permissive = true;
          if (config.name == "left") config.mpa.revision = 0;
        }) {}
};

// The start-up fails by this side's trouble, and the application is told so.
TEST_F(RefusedDraft, ARequestThatFindsNoRoomIsTold) {
  const std::vector<uint8_t> data(1000, 7);
  std::optional<event::RequestFailed> failed;
  for (int64_t n = 0; n < 20 && !failed; ++n) {
    QueuePair* qp = left().make_qp(4, 16);
    ASSERT_TRUE(left().device->connect(*qp, right_end(), data, now_).has_value());
    const uint64_t before = left().device->tcp_counters().octets_out;
    const auto asked = [&] {
      return left().device->tcp_counters().octets_out >= before + data.size();
    };
    ASSERT_TRUE(run_until(asked));
    test::refuse_memory_after(n);
    for (int turn = 0; turn < 20; ++turn) {
      now_ += std::chrono::microseconds(10);
      try {
        right().device->poll(now_);
      } catch (const std::bad_alloc&) {  // the turn ends, and the next goes on
      }
    }
    test::refuse_no_more();
    failed = right().take<event::RequestFailed>();
    destroy(left(), qp);
    run_for(std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(failed);
  EXPECT_EQ(failed->detail, "this side has no memory for the start-up");
  EXPECT_EQ(failed->fault.value().layer, FaultLayer::Llp);
  EXPECT_EQ(failed->fault.value().code, static_cast<uint8_t>(llp::FramingError::LocalCatastrophic));
  EXPECT_EQ(right().device->live_connections(), 0u);
}

// A turn that an exception has ended is told by whoever has called it.
TEST_F(RefusedMemory, TurnsThatEndEarlyAreCounted) {
  for (uint64_t n = 1; n <= 3; ++n) {
    left().device->count_starved_turn();
    EXPECT_EQ(left().device->device_counters().starved_turns, n);
  }
}

}  // namespace
}  // namespace rnic::device
