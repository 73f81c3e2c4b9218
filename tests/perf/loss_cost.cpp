// Goodput of one connection over a wire that loses or reorders frames both ways, as a share of what
// the same wire carries without that.
//
//   loss_cost [--seconds S] [--seed N] [--strict] [--pristine] [--exact N [--perfect]] [ROW...]
//
// Two devices in one thread, CRC on, Writes of 1 MiB, kDepth outstanding. Time is what the thread's
// processor needed for both ends, plus what they waited for: where neither has anything to do, the
// clock jumps to the next frame or timer. Processes beside this one thus change no figure by being
// there, and a time-out costs what it lasts. Looking at the time is part of the figure, some 25 ns
// for each end's turn. The perfect wire and the bad one are measured in turn,
// S seconds (4) of that time each. Every octet of every Write is compared with what was sent, and
// its place filled with something else before it is written again; that is outside of the clock. A
// run in which one octet differs has no figure, and the program fails.
//
// The perfect wire has lost frames, too, before it is measured. What is lost or held changes the
// order in which the pool's buffers go out, for good; on a wire that never lost they go out as they
// lie in memory, and a segment costs less there for that alone (decision 88). --pristine: it has
// never lost any.
//
// --exact N: N Writes over the bad wire, or with --perfect over the other, by a clock that counts
// frames instead of time, so that each run is like the one before: callgrind counts what
// measured_carry() takes. Goodput and shares are then those of this clock.
//
// --strict: to the letter of RFC 8985, one ACK for a burst, and bursts taken as they come
// (tcp.loss_acks, tcp.reordering_max, tcp.recovery_probe and device.order_bursts off). Exit status:
// 0 measured, whatever the figures are; 1 wrong octets; 2 usage, or it hangs.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string_view>
#include <vector>

#include "device/device.hpp"
#include "impair/impair.hpp"
#include "sim/sim.hpp"

namespace {

using namespace rnic;
using std::chrono::microseconds;

constexpr uint16_t kPort = 7471;
constexpr uint32_t kMessage = 1u << 20;     // octets
constexpr uint32_t kDepth = 8;              // messages outstanding
constexpr uint32_t kSliceMessages = 64;     // of one wire, before it is the other's turn
constexpr uint32_t kTurnsMax = 50'000'000;  // without a message that ends: something hangs
constexpr base::Duration kWarmUp = std::chrono::milliseconds(300);

struct Row {
  std::string_view name;
  double must;  // least share
  double drop = 0;
  double reorder = 0;                  // share of the frames that are held back, ...
  microseconds reorder_timeout{1000};  // by 1 to 32 places and so long at most
  microseconds rtt{0};                 // that the wire adds
  bool markers = false;
};
constexpr std::array kRows{
    Row{"loss-0.1", 0.95, 0.001},
    Row{"loss-1", 0.75, 0.01},
    Row{"loss-0.1-rtt20", 0.80, 0.001, 0, {}, microseconds(20)},
    Row{"loss-1-rtt20", 0.80, 0.01, 0, {}, microseconds(20)},
    Row{"loss-0.1-rtt100", 0.80, 0.001, 0, {}, microseconds(100)},
    Row{"loss-1-rtt100", 0.80, 0.01, 0, {}, microseconds(100)},
    Row{"reorder-20us", 0.90, 0, 0.2, microseconds(20), {}, true},
    Row{"reorder-1ms", 0.60, 0, 0.2, microseconds(1000), {}, true},
};

struct Options {
  double seconds = 4;
  uint64_t seed = 1;
  uint64_t exact = 0;  // messages; 0: by time
  bool perfect = false;
  bool strict = false;
  bool pristine = false;
  std::vector<const Row*> rows;
};

/// Ends the program: what cannot be measured has no figure.
[[noreturn]] void fail(const char* what, int status = 1) {
  std::fflush(stdout);
  std::fprintf(stderr, "loss_cost: %s\n", what);
  std::exit(status);
}

template <typename T>
auto must(T&& result, const char* what) -> decltype(*std::forward<T>(result)) {
  if (!result) fail(what);
  return *std::forward<T>(result);
}

int64_t read_clock(clockid_t which) {
  timespec time{};
  clock_gettime(which, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

/// The processor time of this thread, ns. It takes a system call, and what that displaces in the
/// core costs as much again: looked at in each turn, it would be a quarter of a short one.
int64_t processor_time() { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

/// Two times. What both ends see goes on with the time of day from turn to turn; where that has
/// gone on without this thread for long, the processor's says how far. The figure's is the
/// processor's, from go() to stop(). What is waited for is added to both.
class Clock {
 public:
  void go() {
    if (virtual_) return;
    went_at_ = looked_at_ = processor_time();
    at_look_ = now_;
    day_ = read_clock(CLOCK_MONOTONIC);
  }
  void stop() {
    if (virtual_) return;
    spent_ += base::Duration(processor_time() - went_at_);
    tick();
  }
  /// From now on both times are what spend() says.
  void count_frames() { virtual_ = true; }
  /// A turn of both ends is over. \param served frames that came
  void spend(uint32_t served) {
    if (virtual_) advance(base::Duration(100 + 300 * served));
  }
  base::Now tick() {
    if (virtual_) return now_;
    const int64_t day = read_clock(CLOCK_MONOTONIC);
    if (day - day_ > kLongTurn) {
      look();
    } else {
      now_ += base::Duration(day - day_);
    }
    day_ = day;
    return now_;
  }
  void wait_until(base::Now then) {
    if (then <= now_) return;
    waited_ += then - now_;
    at_look_ += then - now_;
    advance(then - now_);
  }
  [[nodiscard]] base::Now now() const { return now_; }
  [[nodiscard]] base::Duration spent() const { return spent_; }
  [[nodiscard]] base::Duration waited() const { return waited_; }

 private:
  // ns. Half a turn is 15 us; in a longer one others have had the processor. Let through, that
  // would look like a round trip in which all was late, and call for probes of the tail.
  static constexpr int64_t kLongTurn = 20'000;

  void advance(base::Duration by) {
    now_ += by;
    spent_ += by;
  }
  void look() {
    const int64_t read = processor_time();
    now_ = std::max(now_, at_look_ + base::Duration(read - looked_at_));
    looked_at_ = read;
    at_look_ = now_;
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  base::Duration spent_{0};
  base::Duration waited_{0};
  bool virtual_ = false;
  int64_t went_at_ = 0;    // processor time of go()
  int64_t looked_at_ = 0;  // processor time of the last look at it, and what now_ was then, with
  base::Now at_look_{};    // what was waited since
  int64_t day_ = 0;        // time of day of the last tick
};

struct Host {
  Host(const device::DeviceConfig& config, port::Port& port, base::Now now)
      : device(config, port, now), memory(size_t{kMessage} * kDepth) {
    const uint32_t pd = must(device.alloc_pd(), "no protection domain");
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = pd;
    spec.send_cq = send_cq = must(device.create_cq(2 * kDepth), "no completion queue");
    spec.receive_cq = must(device.create_cq(2 * kDepth), "no completion queue");
    spec.send_depth = spec.receive_depth = kDepth;
    qp = must(device.create_qp(spec), "no queue pair");
    mem::RegionSpec region;
    region.address = memory.data();
    region.length = memory.size();
    region.pd = pd;
    region.rights = AccessSet::all().without(Access::RemoteInvalidate);
    stag = must(device.register_memory(region), "no region");
  }

  [[nodiscard]] uint8_t* place(uint64_t number) {
    return memory.data() + number % kDepth * kMessage;
  }
  [[nodiscard]] uint64_t address(uint64_t number) {
    return reinterpret_cast<uint64_t>(place(number));
  }

  device::Device device;
  std::vector<uint8_t> memory;
  device::CompletionQueue* send_cq = nullptr;
  device::QueuePair* qp = nullptr;
  mem::Stag stag;
};

/// The network before one end of the link. A perfect one takes as many frames aside as a bad one
/// that holds them back, and lets them go on at once: what taking them aside costs is the wire's.
impair::Config faults(const Row& row, bool bad) {
  impair::Config config;
  config.reorder = row.reorder;
  config.reorder_timeout = bad ? row.reorder_timeout : microseconds(0);
  if (bad) config.drop = row.drop;
  return config;
}

class World {
 public:
  World(const Row& row, const Options& options, bool bad = true)
      : row_(row),
        options_(options),
        link_(link_config()),
        left_port_(link_.a(), faults(row, bad), options.seed * 2),
        right_port_(link_.b(), faults(row, bad), options.seed * 2 + 1),
        left_(config(0), left_port_, clock_.now()),
        right_(config(1), right_port_, clock_.now()) {
    for (size_t i = 0; i < left_.memory.size(); ++i) {
      left_.memory[i] = static_cast<uint8_t>(i * 7 + i / 251 + i / kMessage);
    }
    if (options.exact != 0) clock_.count_frames();
    clock_.go();
    connect();
    clock_.stop();
  }

  /// From the next frame on the wire is the perfect one.
  void mend_wire() {
    left_port_.set_config(faults(row_, false));
    right_port_.set_config(faults(row_, false));
  }

  /// Carries `messages` over the wire, and with --exact empties it. By time the wire stays full
  /// until this world goes on, or each slice would end with a segment that nothing follows: a
  /// transfer of seconds has one of these.
  void carry(uint64_t messages) {
    clock_.go();
    const base::Duration begin = clock_.spent();
    const uint64_t first = done_;
    const uint64_t end = first + messages;
    const uint64_t posts_end = options_.exact != 0 ? end : UINT64_MAX;
    uint64_t last = done_;
    for (uint32_t idle = 0; done_ < end; ++idle) {
      for (; posted_ < posts_end && posted_ - done_ < kDepth; ++posted_) post();
      turn();
      reap();
      if (done_ != last) idle = 0;
      if (idle == kTurnsMax) fail("messages do not end");
      last = done_;
    }
    clock_.stop();
    elapsed_ += clock_.spent() - begin;
    octets_ += (done_ - first) * kMessage;
  }
  void forget() {
    elapsed_ = base::Duration(0);
    octets_ = 0;
    waited_before_ = clock_.waited();
    before_ = left_.device.tcp_counters();
  }
  [[nodiscard]] base::Duration elapsed() const { return elapsed_; }
  /// The share of it that both ends waited for.
  [[nodiscard]] double waited() const {
    return static_cast<double>((clock_.waited() - waited_before_).count()) /
           static_cast<double>(elapsed_.count());
  }
  [[nodiscard]] double gbps() const {
    return static_cast<double>(octets_) * 8 / static_cast<double>(elapsed_.count());
  }
  /// Since forget().
  [[nodiscard]] uint64_t counted(uint64_t tcp::Counters::*counter) const {
    return left_.device.tcp_counters().*counter - before_.*counter;
  }

 private:
  [[nodiscard]] sim::LinkConfig link_config() const {
    sim::LinkConfig config;
    config.a_to_b.delay = config.b_to_a.delay = row_.rtt / 2;
    config.a_to_b.queue_limit = config.b_to_a.queue_limit = 4096;
    config.slots = 16384;
    return config;
  }
  [[nodiscard]] device::DeviceConfig config(uint32_t side) const {
    device::DeviceConfig made;
    made.net.address = IpAddress::v4(0x0a000001u + side);
    made.seed = side + 1;
    if (options_.strict) {
      made.tcp.loss_acks = 0;
      made.tcp.reordering_max = base::Duration(0);
      made.tcp.recovery_probe = false;
      made.order_bursts = false;
    }
    made.mpa.markers_receive = row_.markers;
    made.limits.max_connections = made.tcp.max_connections = 16;
    return made;
  }

  void turn() {
    uint32_t served = left_.device.poll(clock_.tick());
    served += right_.device.poll(clock_.tick());
    clock_.spend(served);
    if (served != 0) return;
    const base::Now next =
        base::earlier(left_.device.next_deadline(), right_.device.next_deadline());
    if (next == base::kNever) fail("nothing will ever happen");
    clock_.wait_until(next);
  }
  void post() {
    SendRequest request;
    request.id = posted_;
    request.opcode = Opcode::Write;
    request.sges = {{left_.address(posted_), kMessage, left_.stag.value}};
    request.remote = {right_.stag.value, right_.address(posted_)};
    if (left_.qp->post_send(request) != device::PostResult::Ok) fail("a post was refused");
  }
  void reap() {
    const uint32_t got = left_.send_cq->poll(batch_);
    if (got == 0) return;
    clock_.stop();
    for (uint32_t i = 0; i < got; ++i) {
      if (batch_[i].status != CompletionStatus::Success) fail("a completion tells of an error");
      if (std::memcmp(left_.place(done_), right_.place(done_), kMessage) != 0) {
        fail("an octet is not what was sent: NO FIGURE");
      }
      std::memset(right_.place(done_), static_cast<int>(done_ % 255), kMessage);
      ++done_;
    }
    clock_.go();
  }
  template <typename Kind>
  Kind await(Host& host) {
    for (uint32_t i = 0; i < kTurnsMax; ++i) {
      if (auto event = host.device.poll_event()) {
        if (auto* found = std::get_if<Kind>(&*event)) return std::move(*found);
        fail("another event than awaited");
      }
      turn();
    }
    fail("an event did not come");
  }
  void connect() {
    const Endpoint far{IpAddress::v4(0x0a000002u), kPort};
    if (!right_.device.listen(kPort)) fail("cannot listen");
    if (!left_.device.connect(*left_.qp, far, {}, clock_.now())) fail("cannot connect");
    const auto request = await<event::ConnectRequest>(right_);
    if (!right_.device.accept(request.request, *right_.qp, {}, clock_.now())) {
      fail("cannot accept");
    }
    await<event::Established>(left_);
    await<event::Established>(right_);
  }

  const Row& row_;
  const Options& options_;
  Clock clock_;
  sim::Link link_;
  impair::ImpairedPort left_port_;
  impair::ImpairedPort right_port_;
  Host left_;
  Host right_;
  std::array<Completion, 32> batch_;
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  uint64_t octets_ = 0;
  base::Duration elapsed_{0};
  base::Duration waited_before_{0};
  tcp::Counters before_;
};

/// What congestion control lets through, Gbit/s: 1.22 * EMSS / (RTT * sqrt(p)), from RFC 9438 s.4.3
/// and RFC 5681, with the RTT of the wire alone. Infinite where the wire adds none.
double bound(const Row& row) {
  constexpr double kEmss = 1448;  // octets: MTU 1500, timestamps
  if (row.rtt.count() == 0 || row.drop == 0) return INFINITY;
  const auto rtt = static_cast<double>(base::Duration(row.rtt).count());
  return 1.22 * kEmss * 8 / (rtt * std::sqrt(row.drop));
}

void report(const Row& row, const World& good, const World& bad) {
  using C = tcp::Counters;
  const double share = bad.gbps() / std::min(good.gbps(), bound(row));
  const double resent = static_cast<double>(bad.counted(&C::retransmitted_segments)) /
                        static_cast<double>(bad.counted(&C::data_segments_out));
  std::printf("%-15.*s %5.3f  %4.2f  %-6s  %6.2f  %6.2f ", static_cast<int>(row.name.size()),
              row.name.data(), share, row.must, share >= row.must ? "met" : "MISSED", bad.gbps(),
              good.gbps());
  std::isinf(bound(row)) ? std::printf("      -") : std::printf(" %6.2f", bound(row));
  for (uint64_t C::*counter : {&C::timeouts, &C::spurious_timeouts, &C::fast_recoveries,
                               &C::dsack_undos, &C::eifel_undos}) {
    std::printf("  %9llu", static_cast<unsigned long long>(bad.counted(counter)));
  }
  std::printf("  %6.2f  %6.2f\n", 100 * resent, 100 * bad.waited());
  std::fflush(stdout);
}

[[gnu::noinline]] void measured_carry(World& world, uint64_t messages) { world.carry(messages); }

void count(const Row& row, const Options& options) {
  const auto world = std::make_unique<World>(row, options, !(options.perfect && options.pristine));
  world->carry(options.exact);
  if (options.perfect) {
    world->mend_wire();
    world->carry(options.exact);
  }
  world->forget();
  measured_carry(*world, options.exact);
  report(row, *world, *world);
  const uint64_t segments = world->counted(&tcp::Counters::data_segments_out);
  std::printf("%llu segments\n", static_cast<unsigned long long>(segments));
}

void measure(const Row& row, const Options& options) {
  const auto good = std::make_unique<World>(row, options, !options.pristine);
  const auto bad = std::make_unique<World>(row, options);
  const auto span = base::Duration(static_cast<int64_t>(options.seconds * 1e9));
  const auto warm_up = [&] {
    for (World* world : {good.get(), bad.get()}) {
      while (world->elapsed() < kWarmUp) world->carry(kDepth);
      world->forget();
    }
  };
  warm_up();
  good->mend_wire();
  warm_up();
  while (good->elapsed() < span || bad->elapsed() < span) {
    good->carry(kSliceMessages);
    while (bad->elapsed() < good->elapsed()) bad->carry(kSliceMessages);
  }
  report(row, *good, *bad);
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--perfect") {
      options.perfect = true;
    } else if (word == "--strict") {
      options.strict = true;
    } else if (word == "--pristine") {
      options.pristine = true;
    } else if ((word == "--seconds" || word == "--seed" || word == "--exact") && i + 1 < argc) {
      const double value = std::atof(argv[++i]);
      if (value <= 0) fail("a number above 0 is wanted", 2);
      if (word == "--exact") {
        options.exact = static_cast<uint64_t>(value);
      } else if (word == "--seed") {
        options.seed = static_cast<uint64_t>(value);
      } else {
        options.seconds = value;
      }
    } else {
      const auto* row = std::find_if(kRows.begin(), kRows.end(),
                                     [&](const Row& one) { return one.name == word; });
      if (row == kRows.end()) {
        fail(
            "usage: loss_cost [--seconds S] [--seed N] [--strict] [--pristine] "
            "[--exact N [--perfect]] [ROW...]",
            2);
      }
      options.rows.push_back(&*row);
    }
  }
  if (options.rows.empty()) {
    for (const Row& row : kRows) options.rows.push_back(&row);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = options_of(argc, argv);
  std::puts(
      "row             share  must          Gbit/s  perfect bound  time-outs   spurious recoveries"
      "  dsack-und  eifel-und  resent%  waited%");
  for (const Row* row : options.rows) {
    options.exact != 0 ? count(*row, options) : measure(*row, options);
  }
  return 0;
}
