// Handles: empty ones, moved ones, and those that end before what stands on them.

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "framed_world.hpp"
#include "rnic/consumer.hpp"
#include "support/long_form.hpp"
#include "support/threads.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

template <typename T>
void expect_empty(const Result<T>& result, const char* call) {
  ASSERT_FALSE(result) << call;
  EXPECT_EQ(result.error().code, ErrorCode::WrongState) << call;
  EXPECT_NE(result.error().message.find("empty"), std::string::npos) << result.error().message;
}
void expect_empty(const Status& status, const char* call) {
  ASSERT_FALSE(status) << call;
  EXPECT_EQ(status.error().code, ErrorCode::WrongState) << call;
  EXPECT_NE(status.error().message.find("empty"), std::string::npos) << status.error().message;
}

void expect_empty(QueuePair& qp) {
  EXPECT_EQ(qp.number(), 0u);
  expect_empty(qp.post_send(SendRequest{}), "post_send");
  expect_empty(qp.post_receive(ReceiveRequest{}), "post_receive");
  expect_empty(qp.post_send(std::span<const SendRequest>{}).status, "post_send");
  expect_empty(qp.post_receive(std::span<const ReceiveRequest>{}).status, "post_receive");
  expect_empty(qp.post_send(1, {}), "post_send");
  expect_empty(qp.post_send_invalidate(1, {}, 2), "post_send_invalidate");
  expect_empty(qp.post_write(1, {}, {}), "post_write");
  expect_empty(qp.post_write_immediate(1, {}, {}, {}), "post_write_immediate");
  expect_empty(qp.post_read(1, {}, {}), "post_read");
  expect_empty(qp.post_read_invalidate(1, {}, {}), "post_read_invalidate");
  expect_empty(qp.post_local_invalidate(1, 2), "post_local_invalidate");
  expect_empty(qp.post_receive(1, {}), "post_receive");
  expect_empty(qp.post_fetch_add(1, {}, 1), "post_fetch_add");
  expect_empty(qp.post_compare_swap(1, {}, 1, 2), "post_compare_swap");
  expect_empty(qp.post_immediate(1, {}), "post_immediate");
  expect_empty(qp.connect(at("10.0.0.2", 7471)), "connect");
  Stream stream;
  expect_empty(qp.connect(stream), "connect");
  expect_empty(qp.accept({}), "accept");
  expect_empty(qp.disconnect(), "disconnect");
  expect_empty(qp.start_trace(1), "start_trace");
  expect_empty(qp.take_trace(), "take_trace");
  EXPECT_TRUE(qp.destroy()) << "there is nothing to destroy";
}
void expect_empty(CompletionQueue& cq) {
  Completion out;
  EXPECT_EQ(cq.number(), 0u);
  expect_empty(cq.info(), "info");
  expect_empty(cq.resize(1), "resize");
  expect_empty(cq.moderate({}), "moderate");
  EXPECT_EQ(cq.poll({&out, 1}), 0u);
  expect_empty(cq.fd(), "fd");
  expect_empty(cq.arm(), "arm");
  EXPECT_TRUE(cq.destroy());
}
void expect_empty(SharedReceiveQueue& srq) {
  EXPECT_EQ(srq.number(), 0u);
  expect_empty(srq.post_receive({}), "post_receive");
  expect_empty(srq.arm_limit(1), "arm_limit");
  expect_empty(srq.arm_high_water(1), "arm_high_water");
  expect_empty(srq.resize(1), "resize");
  expect_empty(srq.info(), "info");
  EXPECT_TRUE(srq.destroy());
}
void expect_empty(MemoryRegion& region) {
  EXPECT_EQ(region.stag(), 0u);
  EXPECT_EQ(region.address(), 0u);
  EXPECT_EQ(region.length(), 0u);
  EXPECT_EQ(region.sge(0, 1).stag, 0u);
  EXPECT_TRUE(region.deregister());
}
void expect_empty(MemoryWindow& window) {
  EXPECT_EQ(window.stag(), 0u);
  expect_empty(window.bind(MemoryRegion(), 0, 1, Access::RemoteRead), "bind");
  expect_empty(window.unbind(), "unbind");
  EXPECT_TRUE(window.destroy());
}
void expect_empty(PortReservation& port) {
  EXPECT_EQ(port.local(), Endpoint{});
  EXPECT_TRUE(port.destroy());
}
void expect_empty(Consumer& consumer) {
  expect_empty(consumer.alloc_pd(), "alloc_pd");
  expect_empty(consumer.create_cq(1), "create_cq");
  expect_empty(consumer.listen(at("10.0.0.1", 7471)), "listen");
  expect_empty(consumer.unlisten(at("10.0.0.1", 7471)), "unlisten");
  expect_empty(consumer.reserve(), "reserve");
  expect_empty(consumer.info(), "info");
  EXPECT_TRUE(consumer.destroy());
}
void expect_closed(const Status& status) {
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::WrongState);
}
template <typename T>
void expect_closed(const Result<T>& result) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::WrongState);
}
void expect_no_connection(const TcpHandle& handle) {
  EXPECT_FALSE(handle.is_valid());
  EXPECT_EQ(handle.local(), Endpoint{});
  EXPECT_EQ(handle.remote(), Endpoint{});
  EXPECT_EQ(handle.state(), StreamState::Ended);
  EXPECT_EQ(handle.unacknowledged(), 0u);
  EXPECT_TRUE(handle.at_end());
}
void expect_empty(Stream& stream) {
  std::array<uint8_t, 4> some{};
  expect_no_connection(stream);
  expect_closed(stream.send(some));
  expect_closed(stream.receive(some));
  expect_closed(stream.await_rdma());
  expect_closed(stream.set_options({}));
  EXPECT_EQ(stream.readable() + stream.writable(), 0u);
  EXPECT_FALSE(stream.is_converted());
  stream.finish_sending();
  stream.abort();
  stream.close();
}
void expect_empty(FramedStream& stream) {
  std::array<uint8_t, 4> some{};
  expect_no_connection(stream);
  expect_closed(stream.send(some));
  expect_closed(stream.receive(some));
  expect_closed(stream.read(some));
  expect_closed(stream.set_packing(true));
  expect_closed(stream.set_max_frame(100));
  EXPECT_EQ(stream.readable(), 0u);
  EXPECT_FALSE(stream.writable(1));
  EXPECT_EQ(stream.frame_limit() + stream.usable_emss() + stream.emss_changes(), 0u);
  stream.finish_sending();
  stream.abort();
  stream.close();
}
void expect_empty(ProtectionDomain& pd) {
  std::byte memory{};
  expect_empty(pd.register_memory({&memory, 1}, kEverything), "register_memory");
  CompletionQueue cq;
  expect_empty(pd.create_qp(cq, cq), "create_qp");
  expect_empty(pd.create_srq(), "create_srq");
  expect_empty(pd.create_window(WindowType::Domain), "create_window");
  expect_empty(pd.allocate_region(), "allocate_region");
  MemoryRegion region;
  expect_empty(pd.reregister(region, {}), "reregister");
  EXPECT_TRUE(pd.destroy());
}
void expect_empty(Context& context) {
  EXPECT_TRUE(context.device_names().empty());
  expect_empty(context.device("rnic0"), "device");
  EXPECT_FALSE(context.threaded());
  EXPECT_EQ(context.poll(), 0u);
  expect_empty(context.fd(), "fd");
  EXPECT_FALSE(context.arm());
  EXPECT_FALSE(context.wait_until([] { return false; }, kForever)) << "it would wait for ever";
  EXPECT_TRUE(context.wait_until([] { return true; }, std::chrono::seconds(0)));
  EXPECT_FALSE(context.next_deadline());
  EXPECT_EQ(context.now(), std::chrono::nanoseconds(0));
  EXPECT_EQ(context.environment(), "");
}

TEST(Handles, AnEmptyOneAnswers) {
  QueuePair qp;
  SharedReceiveQueue srq;
  CompletionQueue cq;
  MemoryRegion region;
  MemoryWindow window;
  ProtectionDomain pd;
  PortReservation port;
  Consumer consumer;
  Stream stream;
  FramedStream framed;
  expect_empty(window);
  expect_empty(port);
  expect_empty(consumer);
  expect_empty(stream);
  expect_empty(framed);
  expect_empty(qp);
  expect_empty(srq);
  expect_empty(cq);
  expect_empty(region);
  expect_empty(pd);
}

TEST(Handles, OneThatWasMovedFromIsEmptyAndTheOtherWorks) {
  World world;
  Side a(world.left);
  Side b(world.right);
  Memory near(a.pd, octets(64, 1), Access::LocalWrite);

  QueuePair qp = std::move(a.qp);
  CompletionQueue cq = std::move(a.send_cq);
  ProtectionDomain pd = std::move(a.pd);
  MemoryRegion region = std::move(near.region);
  Context context = std::move(world.context);
  expect_empty(a.qp);
  expect_empty(a.send_cq);
  expect_empty(a.pd);
  expect_empty(near.region);
  expect_empty(world.context);

  Device moved = std::move(a.device);
  EXPECT_EQ(a.device.name(), "rnic0") << "a device is a view";
  EXPECT_EQ(moved.name(), "rnic0");
  a.device = std::move(moved);
  world.context = std::move(context);
  a.qp = std::move(qp);
  a.send_cq = std::move(cq);
  a.pd = std::move(pd);
  near.region = std::move(region);
  world.connect(a, b);
  exchange(world, a, b, 100, 1);
}

TEST(Handles, MovingIntoOneEndsWhatItStoodFor) {
  Config config = loopback_config();
  config.set("limits.max_pds=2");
  config.set("limits.max_cqs=2");
  config.set("limits.max_qps=2");
  config.set("limits.max_regions=2");
  World world(config);
  ProtectionDomain pd = must(world.left.alloc_pd());
  CompletionQueue cq = must(world.left.create_cq(16));
  QueuePair qp = must(pd.create_qp(cq, cq));
  std::vector<std::byte> memory(16);
  MemoryRegion region = must(pd.register_memory(memory, kEverything));
  Stream stream;
  StreamListener listener;
  for (int i = 0; i < 20; ++i) {
    qp = must(pd.create_qp(cq, cq));
    region = must(pd.register_memory(memory, kEverything));
    listener = must(world.left.listen_stream(static_cast<uint16_t>(7000 + i % 2)));
  }
  EXPECT_FALSE(must(world.left.alloc_pd()).destroy().has_value() &&
               !world.left.alloc_pd().has_value());
  pd = ProtectionDomain();  // its region and queue pair go on
  EXPECT_TRUE(world.left.alloc_pd()) << "of two domains one is in use";
  cq = CompletionQueue();
  QueuePair& itself = qp;
  qp = std::move(itself);
  EXPECT_NE(qp.number(), 0u);
}

TEST(Handles, DestroyingWhatIsUsedIsRefusedAndNamesTheUser_VERBS_01_VERBS_23) {
  World world;
  Side a(world.left);
  std::vector<std::byte> memory(16);
  MemoryRegion region = must(a.pd.register_memory(memory, kEverything));
  const auto refused = [](const Status& status, const char* user) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::WrongState);
    EXPECT_NE(status.error().message.find(user), std::string::npos) << status.error().message;
  };
  refused(a.pd.destroy(), "2 regions, queue pairs or shared receive queues");
  refused(a.send_cq.destroy(), "1 queue pairs");
  SharedReceiveQueue srq = must(a.pd.create_srq());
  QueuePairOptions options;
  options.srq = &srq;
  QueuePair sharer = must(a.pd.create_qp(a.send_cq, a.receive_cq, options));
  refused(srq.destroy(), "1 queue pairs");
  must(sharer.destroy());
  must(srq.destroy());
  expect_empty(srq);
  must(region.deregister());
  EXPECT_NE(a.qp.number(), 0u);
  must(a.qp.destroy());
  expect_empty(a.qp);
  must(a.pd.destroy());
  must(a.send_cq.destroy());
  expect_empty(a.pd);
  expect_empty(a.send_cq);
}

// What a handle has said of its object, it does not say any more.
TEST(Handles, OneWhoseObjectWasDestroyedIsEmpty) {
  World world;
  Side a(world.left);
  std::vector<std::byte> memory(16);
  MemoryRegion region = must(a.pd.register_memory(memory, Access::Bind | Access::LocalWrite));
  MemoryRegion allocated = must(a.pd.allocate_region(2));
  MemoryWindow window = must(a.pd.create_window(WindowType::Domain));
  MemoryWindow moved = must(a.pd.create_window(WindowType::QueuePair));
  PortReservation port = must(world.left.reserve());
  Consumer consumer = must(world.left.create_consumer({.name = "one"}));
  EXPECT_NE(region.stag(), 0u);
  EXPECT_NE(window.stag(), 0u);
  must(window.bind(region, region.address(), 8, Access::RemoteRead));
  EXPECT_FALSE(region.deregister()) << "a window is bound to it";
  EXPECT_EQ(region.length(), 16u) << "nothing has changed";
  must(window.destroy());
  must(region.deregister());
  must(allocated.deregister());
  must(port.destroy());
  must(consumer.destroy());
  const MemoryWindow other = std::move(moved);
  expect_empty(window);
  expect_empty(region);
  expect_empty(allocated);
  expect_empty(port);
  expect_empty(consumer);
  expect_empty(moved);
}

TEST(Handles, WhatLostItsNameGoesWithItsLastUser) {
  Config config = loopback_config();
  config.set("limits.max_pds=1");
  config.set("limits.max_cqs=1");
  World world(config);
  auto pd = std::optional(must(world.left.alloc_pd()));
  auto cq = std::optional(must(world.left.create_cq(16)));
  std::optional<QueuePair> qp = must(pd->create_qp(*cq, *cq));
  std::vector<std::byte> memory(16);
  std::optional<MemoryRegion> region = must(pd->register_memory(memory, kEverything));
  pd.reset();
  cq.reset();
  EXPECT_FALSE(world.left.alloc_pd()) << "a region and a queue pair are in it";
  EXPECT_FALSE(world.left.create_cq(16)) << "a queue pair completes there";
  region.reset();
  EXPECT_FALSE(world.left.alloc_pd());
  qp.reset();
  EXPECT_TRUE(world.left.alloc_pd());
  EXPECT_TRUE(world.left.create_cq(16));
}

/// A set of handles of each kind, in the middle of traffic, whose ends come in a given order.
class Set {
 public:
  static constexpr size_t kKinds = 6;

  explicit Set(const Config& config)
      : world_(std::in_place, config), left_(world_->left), right_(world_->right), far_(right_) {
    pd_ = must(left_.alloc_pd());
    cq_ = must(left_.create_cq(128));
    srq_ = must(pd_->create_srq());
    Side near(left_);
    QueuePairOptions options;
    options.srq = &*srq_;
    near.qp = must(pd_->create_qp(*cq_, *cq_, options));
    region_ = must(pd_->register_memory(std::as_writable_bytes(std::span(memory_)), kEverything));
    world_->connect(near, far_);
    qp_ = std::move(near.qp);
    from_.emplace(far_.pd, octets(kOctets, 1), kEverything);
    traffic();
  }

  void end(size_t kind) {
    switch (kind) {
      case 0: world_.reset(); break;
      case 1: pd_.reset(); break;
      case 2:
        region_.reset();
        kept_ = memory_;
        break;
      case 3: cq_.reset(); break;
      case 4: srq_.reset(); break;
      case 5: qp_.reset(); break;
    }
    for (int i = 0; i < 20; ++i) {
      left_.poll();
      right_.poll();
    }
  }
  /// The memory is as it was when its region ended.
  [[nodiscard]] bool is_untouched() const { return memory_ == kept_; }

 private:
  static constexpr uint32_t kOctets = 100'000;

  /// Writes and Reads of both ends, and Sends of one, none of which is waited for.
  void traffic() {
    const Sge mine = region_->sge(0, kOctets);
    const RemoteAddress me{region_->stag(), region_->address()};
    for (uint64_t id = 1; id <= 4; ++id) {
      SendRequest theirs = request(id % 2 == 0 ? Opcode::Write : Opcode::Read, from_->all(), id);
      theirs.remote = me;
      must(far_.qp.post_send(theirs));
      must(far_.qp.post_send(request(Opcode::Send, from_->all(), 10 + id)));
      must(qp_->post_send(request(id % 2 == 0 ? Opcode::Read : Opcode::Write, mine, *from_, id)));
      must(srq_->post_receive(receive(mine, id)));
    }
    for (int i = 0; i < 5; ++i) world_->context.poll();
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(kOctets);  // outlives its region
  std::vector<uint8_t> kept_;
  std::optional<World> world_;
  Device left_;
  Device right_;
  Side far_;
  std::optional<Memory> from_;
  std::optional<ProtectionDomain> pd_;
  std::optional<CompletionQueue> cq_;
  std::optional<SharedReceiveQueue> srq_;
  std::optional<MemoryRegion> region_;
  std::optional<QueuePair> qp_;
};

struct Place {
  const char* name;
  bool sockets;
  bool threaded;
};

class Orders : public testing::TestWithParam<Place> {};

TEST_P(Orders, OfTheEndsOfOneSetAllAreSafe) {
  std::array<size_t, Set::kKinds> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  // Seven has no divisor in common with any number of orders that begin alike.
  const size_t step = by_form(7u, 1u);
  size_t number = 0;
  do {
    if (++number % step != 0) continue;
    Config config = GetParam().sockets ? socket_config(GetParam().threaded)
                                       : loopback_config(GetParam().threaded);
    Set set(config);
    for (const size_t kind : order) set.end(kind);
    EXPECT_TRUE(set.is_untouched()) << "order " << number;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(number, 720u);
}

struct PlainKind {
  using Handle = Stream;
  using Listener = StreamListener;
  static Listener listen(Device& device) { return must(device.listen_stream(kFramedPort)); }
  static Handle connect(Device& device, const Endpoint& to) {
    return must(device.connect_stream(to));
  }
};
struct FramedKind {
  using Handle = FramedStream;
  using Listener = FramedStreamListener;
  static FramingOptions mode() { return framing(FramedSendMode::Align, FramedReceiveMode::Align); }
  static Listener listen(Device& device) {
    return must(device.listen_framed(kFramedPort, {.framing = mirrored(mode())}));
  }
  static Handle connect(Device& device, const Endpoint& to) {
    return must(device.connect_framed(to, mode()));
  }
};

/// Two ends of a connection full of traffic, a listener at which another connection waits, and
/// their context, whose ends come in a given order.
template <class Kind>
class StreamSet {
 public:
  static constexpr size_t kKinds = 4;

  explicit StreamSet(const Config& config) : world_(std::in_place, config) {
    const Endpoint there{world_->right.address(), kFramedPort};
    listener_ = Kind::listen(world_->right);
    near_ = Kind::connect(world_->left, there);
    const bool done = world_->wait([&] {
      if (!far_) far_ = listener_->accept();
      return far_ && near_->state() == StreamState::Open;
    });
    if (!done) throw std::runtime_error("no connection");
    waiting_ = Kind::connect(world_->left, there);
    if (!world_->wait([&] { return waiting_->state() == StreamState::Open; })) {
      throw std::runtime_error("no second connection");
    }
    waiting_.reset();
    use();
  }

  void end(size_t kind) {
    switch (kind) {
      case 0: world_.reset(); break;
      case 1: listener_.reset(); break;
      case 2: near_.reset(); break;
      case 3: far_.reset(); break;
    }
    use();
  }
  /// Waits until an octet has come from one end to the other, without the context.
  [[nodiscard]] bool flows() {
    const uint64_t before = got_;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (got_ == before && std::chrono::steady_clock::now() < end) use();
    return got_ != before;
  }

 private:
  /// Makes each call of the handles that are left.
  void use() {
    for (int i = 0; i < 10; ++i) {
      for (auto* const stream : {&near_, &far_}) {
        if (!*stream) continue;
        static_cast<void>((*stream)->send(piece_));
        got_ += (*stream)->receive(buffer_).value_or(0);
        static_cast<void>((*stream)->status());
        static_cast<void>((*stream)->unacknowledged());
        EXPECT_NE((*stream)->local(), Endpoint{});
      }
      if (listener_) {
        EXPECT_EQ(listener_->local().port, kFramedPort);
      }
      if (world_) world_->context.poll();
    }
  }

  const Octets piece_ = frame(1000, 1);
  Octets buffer_ = Octets(65536);
  uint64_t got_ = 0;
  std::optional<World> world_;
  std::optional<typename Kind::Listener> listener_;
  std::optional<typename Kind::Handle> near_;
  std::optional<typename Kind::Handle> far_;
  std::optional<typename Kind::Handle> waiting_;
};

template <class Kind>
void end_in_all_orders(bool threaded) {
  using Ends = StreamSet<Kind>;
  { const World first(loopback_config(threaded)); }  // DPDK keeps threads of its own
  const size_t before = live_threads();
  std::array<size_t, Ends::kKinds> order{};
  std::iota(order.begin(), order.end(), size_t{0});
  do {
    Ends ends(loopback_config(threaded));
    for (size_t i = 0; i < order.size(); ++i) {
      ends.end(order[i]);
      // Workers go on without the context as long as there is a handle.
      if (threaded && i == 0 && order[0] == 0) {
        EXPECT_TRUE(ends.flows());
      }
    }
    EXPECT_EQ(live_threads(), before) << "the devices go with the last handle";
  } while (std::next_permutation(order.begin(), order.end()));
}

class StreamOrders : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(InlineAndThreaded, StreamOrders, testing::Bool());

TEST_P(StreamOrders, OfAContextAListenerAndStreamsAllAreSafe) {
  end_in_all_orders<PlainKind>(GetParam());
}
TEST_P(StreamOrders, OfAContextAListenerAndFramedStreamsAllAreSafe) {
  end_in_all_orders<FramedKind>(GetParam());
}

// A handle that was closed is empty: it does not keep the devices of its context.
TEST(Handles, AClosedStreamKeepsNoDevice) {
  { const World first(loopback_config(true)); }
  const size_t before = live_threads();
  Stream plain;
  FramedStream framed;
  {
    World world(loopback_config(true));
    const Endpoint there{world.right.address(), kFramedPort};
    plain = PlainKind::connect(world.left, there);
    framed = FramedKind::connect(world.left, there);
    EXPECT_GT(live_threads(), before);
  }
  EXPECT_GT(live_threads(), before);
  plain.close();
  EXPECT_GT(live_threads(), before);
  framed.close();
  EXPECT_EQ(live_threads(), before);
}

INSTANTIATE_TEST_SUITE_P(
    Everywhere, Orders,
    testing::Values(Place{"WireInline", false, false}, Place{"WireThreaded", false, true},
                    Place{"SocketsInline", true, false}, Place{"SocketsThreaded", true, true}),
    [](const testing::TestParamInfo<Place>& place) { return std::string(place.param.name); });

}  // namespace
}  // namespace rnic::test
