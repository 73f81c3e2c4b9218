// Each two kinds of handles that one program may have, ended one behind the other while traffic
// runs: what is left works on, and where a region or window has ended nobody writes any more.

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "framed_world.hpp"
#include "rnic/blocking.hpp"
#include "rnic/consumer.hpp"
#include "support/long_form.hpp"
#include "support/threads.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

enum class Kind : uint8_t {
  OfContext,
  OfConsumer,
  OfDomain,
  OfRegion,
  OfAllocatedRegion,
  OfWindowType1,
  OfWindowType2,
  OfCompletionQueue,
  OfSharedReceiveQueue,
  OfQueuePair,
  OfPort,
  OfConsumersPort,
  OfStreamListener,
  OfStream,
  OfFramedListener,
  OfFramedStream,
  OfAdapter,
  OfBlockingListener,
  OfBlockingConnection,
};
constexpr size_t kKinds = static_cast<size_t>(Kind::OfBlockingConnection) + 1;

/// Where the peer writes: each a quarter of the memory, by a connection of its own, so that the end
/// of one leaves the others alone. Behind them is what receives take.
enum Target : uint8_t { kDirect, kAllocated, kWindow1, kWindow2, kTargets };

constexpr uint32_t kQuarter = 20'000;
constexpr uint16_t kVerbsPort = 7471;
constexpr uint64_t kFlow = 99;

/// A handle of each kind, of which most belong to a consumer, in the middle of traffic.
class Everything {
 public:
  Everything(const Config& config, bool has_streams)
      : world_(std::in_place, config), left_(world_->left), right_(world_->right) {
    consumer_ = must(left_.create_consumer({.name = "one"}));
    pd_ = must(consumer_->alloc_pd());
    cq_ = must(consumer_->create_cq(1024));
    srq_ = must(pd_->create_srq({.depth = 256}));
    region_ = must(pd_->register_memory(std::as_writable_bytes(std::span(memory_)),
                                        kEverything | Access::Bind));
    for (uint8_t target = 0; target < kTargets; ++target) connect(target);
    share();
    port_ = must(left_.reserve());
    consumers_port_ = must(consumer_->reserve());
    if (has_streams) open_streams();
    open_blocking();
    use();
    expect_flow();
  }

  void end(Kind kind) {
    switch (kind) {
      case Kind::OfContext: world_.reset(); break;
      case Kind::OfConsumer: consumer_.reset(); break;
      case Kind::OfDomain: pd_.reset(); break;
      case Kind::OfRegion: region_.reset(); break;
      case Kind::OfAllocatedRegion: allocated_.reset(); break;
      case Kind::OfWindowType1: window1_.reset(); break;
      case Kind::OfWindowType2: window2_.reset(); break;
      case Kind::OfCompletionQueue: cq_.reset(); break;
      case Kind::OfSharedReceiveQueue: srq_.reset(); break;
      case Kind::OfQueuePair: qps_[kDirect].reset(); break;
      case Kind::OfPort: give_back(port_); break;
      case Kind::OfConsumersPort: give_back(consumers_port_); break;
      case Kind::OfStreamListener: stream_listener_.reset(); break;
      case Kind::OfStream: stream_.reset(); break;
      case Kind::OfFramedListener: framed_listener_.reset(); break;
      case Kind::OfFramedStream: framed_.reset(); break;
      case Kind::OfAdapter: adapter_.reset(); break;
      case Kind::OfBlockingListener: blocking_listener_.reset(); break;
      case Kind::OfBlockingConnection: near_link_.reset(); break;
    }
    for (uint8_t target = 0; target < kTargets; ++target) {
      if (ends(kind, target) && frozen_[target].empty()) frozen_[target] = quarter(target);
    }
    use();
  }
  /// Writes of the peer go on wherever nothing of this side has ended that they need.
  void expect_flow() {
    for (uint8_t target = 0; target < kTargets; ++target) {
      if (!frozen_[target].empty()) continue;
      SendRequest work = request(Opcode::Write, from_->all(), kFlow);
      work.remote = targets_[target];
      must(far_[target].post_send(work));
      bool came = false;
      const auto end = std::chrono::steady_clock::now() + kPatience;
      while (!came && std::chrono::steady_clock::now() < end) {
        poll_devices();
        poll_completions(far_cq_, [&](const Completion& done) {
          if (done.id != kFlow) return;
          came = true;
          EXPECT_EQ(done.status, CompletionStatus::Success) << describe(done);
        });
      }
      EXPECT_TRUE(came) << "target " << int{target};
    }
  }
  /// What has lost its region, its window or its queue pair is as it was then.
  void expect_untouched() {
    for (uint8_t target = 0; target < kTargets; ++target) {
      if (frozen_[target].empty()) continue;
      EXPECT_EQ(frozen_[target], quarter(target)) << "target " << int{target};
    }
  }

 private:
  static bool ends(Kind kind, uint8_t target) {
    switch (kind) {
      case Kind::OfRegion: return true;
      case Kind::OfQueuePair: return target == kDirect;
      case Kind::OfAllocatedRegion: return target == kAllocated;
      case Kind::OfWindowType1: return target == kWindow1;
      case Kind::OfWindowType2: return target == kWindow2;
      default: return false;
    }
  }
  [[nodiscard]] std::vector<uint8_t> quarter(uint8_t target) const {
    const auto from = memory_.begin() + target * kQuarter;
    return {from, from + kQuarter};
  }
  [[nodiscard]] Sge part(uint8_t target) const {
    return region_->sge(uint64_t{target} * kQuarter, kQuarter);
  }

  void connect(uint8_t target) {
    far_[target] = must(far_pd_.create_qp(far_cq_, far_cq_, {.send_depth = 64}));
    QueuePairOptions options;
    options.send_depth = 64;
    options.srq = &*srq_;
    qps_[target] = must(pd_->create_qp(*cq_, *cq_, options));
    must(right_.listen(kVerbsPort));
    must(qps_[target]->connect({right_.address(), kVerbsPort}));
    const auto asked = world_->await<event::ConnectRequest>(right_);
    if (!asked) throw std::runtime_error("no connection request came");
    must(far_[target].accept(asked->request));
    if (!world_->await<event::Established>(left_, qps_[target]->number())) {
      throw std::runtime_error("no connection");
    }
    must(right_.unlisten(kVerbsPort));
  }
  /// Gives the peer its targets.
  void share() {
    constexpr AccessSet kPeers = Access::RemoteWrite | Access::RemoteRead;
    from_.emplace(far_pd_, octets(kQuarter, 1), kEverything);
    targets_[kDirect] = {region_->stag(), part(kDirect).address};
    window1_ = must(pd_->create_window(WindowType::Domain));
    must(window1_->bind(*region_, part(kWindow1).address, kQuarter, kPeers));
    targets_[kWindow1] = {window1_->stag(), part(kWindow1).address};
    window2_ = must(pd_->create_window(WindowType::QueuePair));
    const MemoryGrant bind{.stag = next_key(window2_->stag()), .access = kPeers};
    must(qps_[kWindow2]->post_bind_window(1, bind, part(kWindow2)));
    targets_[kWindow2] = {bind.stag, 0};
    allocated_ = must(pd_->allocate_region(1));
    const MemoryGrant fast{.stag = next_key(allocated_->stag()), .access = kPeers};
    must(qps_[kAllocated]->post_fast_register(2, fast, {part(kAllocated)}));
    targets_[kAllocated] = {fast.stag, 0};
    for (int done = 0; done < 2; ++done) {
      const auto one = world_->await(*cq_);
      if (!one || one->status != CompletionStatus::Success) throw std::runtime_error("not bound");
    }
    // A responder may send once it was spoken to.
    for (auto& qp : qps_) must(qp->post_write(3, {}, {}, {.signaled = false}));
  }
  void open_streams() {
    const FramingOptions mode = framing(FramedSendMode::Align, FramedReceiveMode::Align);
    stream_listener_ = must(right_.listen_stream(7100));
    framed_listener_ = must(right_.listen_framed(kFramedPort, {.framing = mirrored(mode)}));
    stream_ = must(left_.connect_stream({right_.address(), 7100}));
    framed_ = must(left_.connect_framed({right_.address(), kFramedPort}, mode));
    const bool done = world_->wait([&] {
      if (!far_stream_) far_stream_ = stream_listener_->accept();
      if (!far_framed_) far_framed_ = framed_listener_->accept();
      return far_stream_ && far_framed_ && stream_->state() == StreamState::Open &&
             framed_->state() == StreamState::Open;
    });
    if (!done) throw std::runtime_error("no streams");
  }
  void open_blocking() {
    adapter_ = must(blocking::Adapter::open(world_->context, "rnic0"));
    auto far = must(blocking::Adapter::open(world_->context, "rnic1"));
    auto [near_link, far_link] = must(adapter_->connect_pair(far, 7300, kPatience));
    near_link_ = std::move(near_link);
    far_link_ = std::move(far_link);
    blocking_listener_ = must(adapter_->listen(uint16_t{7301}));
  }

  /// The port is another one's at once.
  void give_back(std::optional<PortReservation>& port) {
    const Endpoint there = port->local();
    EXPECT_FALSE(left_.reserve(there)) << "it is reserved";
    port.reset();
    EXPECT_TRUE(left_.reserve(there)) << to_string(there);
  }

  /// Adds to the traffic, and makes calls of all that is left.
  void use() {
    for (int round = 0; round < 3; ++round) {
      use_queues();  // whose receives come before the peer's Sends
      for (uint8_t target = 0; target < kTargets; ++target) write_to(target);
      use_streams();
      for (int i = 0; i < 5; ++i) poll_devices();
    }
    static_cast<void>(left_.poll_event());
    static_cast<void>(left_.limits());
    expect_untouched();
  }
  /// Posts as much as there is room for: the peer writes, reads and sends.
  void write_to(uint8_t target) {
    SendRequest work = request(Opcode::Write, from_->all());
    work.remote = targets_[target];
    static_cast<void>(far_[target].post_send(work));
    work.opcode = Opcode::Read;
    static_cast<void>(far_[target].post_send(work));
    const Sge some{from_->all().address, 100, from_->all().stag};
    static_cast<void>(far_[target].post_send(1, {some}));
    poll_completions(far_cq_, [](const Completion&) {});
  }
  template <typename F>
  static void poll_completions(CompletionQueue& queue, F&& each) {
    std::array<Completion, 64> done;
    while (const uint32_t n = queue.poll(done)) {
      for (uint32_t i = 0; i < n; ++i) each(done[i]);
    }
  }
  void poll_devices() {
    left_.poll();
    right_.poll();
  }
  void use_queues() {
    if (cq_) poll_completions(*cq_, [](const Completion&) {});
    const Sge mine = region_ ? part(kTargets) : Sge{0, 100, 1};
    while (srq_ && srq_->post_receive(receive(mine))) {
    }
    for (auto& qp : qps_) {
      if (!qp) continue;
      static_cast<void>(qp->post_send(request(Opcode::Write, mine, *from_)));
      EXPECT_NE(qp->number(), 0u);
    }
    if (consumer_) must(consumer_->info());
    for (const auto* port : {&port_, &consumers_port_}) {
      if (!*port) continue;
      EXPECT_NE((*port)->local().port, 0);
      // A peer that connects there is refused.
      static_cast<void>(right_.connect_stream({left_.address(), (*port)->local().port}));
    }
  }
  void use_streams() {
    for (auto* stream : {&stream_, &far_stream_}) {
      if (!*stream) continue;
      static_cast<void>((*stream)->send(piece_));
      static_cast<void>((*stream)->receive(buffer_));
    }
    for (auto* stream : {&framed_, &far_framed_}) {
      if (!*stream) continue;
      static_cast<void>((*stream)->send(piece_));
      static_cast<void>((*stream)->receive(buffer_));
    }
    if (near_link_) {
      EXPECT_TRUE(near_link_->send(std::as_bytes(std::span(piece_)), kPatience));
      EXPECT_TRUE(far_link_->receive(std::as_writable_bytes(std::span(buffer_)), kPatience));
    }
  }

  std::vector<uint8_t> memory_ =
      std::vector<uint8_t>((kTargets + 1) * kQuarter);  // outlives its region
  std::array<std::vector<uint8_t>, kTargets> frozen_;
  const Octets piece_ = frame(1000, 1);
  Octets buffer_ = Octets(65536);
  std::optional<World> world_;
  Device left_;
  Device right_;
  ProtectionDomain far_pd_ = must(right_.alloc_pd());
  CompletionQueue far_cq_ = must(right_.create_cq(4096));
  std::array<QueuePair, kTargets> far_;
  std::array<RemoteAddress, kTargets> targets_;
  std::optional<Memory> from_;
  std::optional<Consumer> consumer_;
  std::optional<ProtectionDomain> pd_;
  std::optional<CompletionQueue> cq_;
  std::optional<SharedReceiveQueue> srq_;
  std::optional<MemoryRegion> region_, allocated_;
  std::optional<MemoryWindow> window1_, window2_;
  std::array<std::optional<QueuePair>, kTargets> qps_;
  std::optional<PortReservation> port_, consumers_port_;
  std::optional<StreamListener> stream_listener_;
  std::optional<Stream> stream_, far_stream_;
  std::optional<FramedStreamListener> framed_listener_;
  std::optional<FramedStream> framed_, far_framed_;
  std::optional<blocking::Adapter> adapter_;
  std::optional<blocking::Connection> near_link_, far_link_;
  std::optional<blocking::Listener> blocking_listener_;
};

struct Place {
  const char* name;
  bool sockets;
  bool threaded;
};
/// Over sockets of the system there are none.
bool is_stream(size_t kind) {
  return kind >= static_cast<size_t>(Kind::OfStreamListener) &&
         kind <= static_cast<size_t>(Kind::OfFramedStream);
}

class Pairs : public testing::TestWithParam<Place> {};

TEST_P(Pairs, OfEndsAreSafeUnderTraffic) {
  const auto config = [] {
    return GetParam().sockets ? socket_config(GetParam().threaded)
                              : loopback_config(GetParam().threaded);
  };
  { const World first(config()); }  // DPDK keeps threads of its own
  const size_t before = live_threads();
  // Eleven has no divisor in common with the kinds. Under the thread sanitizer all pairs would take
  // a quarter of an hour on two busy cores, and these take 80 s: there, too, all of them are for
  // the long form (./scripts/test --sanitize tsan --long pairs-of-ends-long).
  const size_t step = by_form(11u, 1u);
  size_t number = 0;
  for (size_t first = 0; first < kKinds; ++first) {
    for (size_t second = 0; second < kKinds; ++second) {
      if (first == second || ++number % step != 0) continue;
      if (GetParam().sockets && (is_stream(first) || is_stream(second))) continue;
      SCOPED_TRACE(std::to_string(first) + " and then " + std::to_string(second));
      {
        Everything all(config(), !GetParam().sockets);
        all.end(static_cast<Kind>(first));
        all.expect_flow();
        all.end(static_cast<Kind>(second));
        all.expect_flow();
      }
      EXPECT_EQ(live_threads(), before) << "the devices go with the last handle";
    }
  }
  EXPECT_EQ(number, kKinds * (kKinds - 1));
}

INSTANTIATE_TEST_SUITE_P(
    Everywhere, Pairs,
    testing::Values(Place{"WireInline", false, false}, Place{"WireThreaded", false, true},
                    Place{"SocketsInline", true, false}, Place{"SocketsThreaded", true, true}),
    [](const testing::TestParamInfo<Place>& place) { return std::string(place.param.name); });

}  // namespace
}  // namespace rnic::test
