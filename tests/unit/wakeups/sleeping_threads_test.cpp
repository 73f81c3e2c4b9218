// Threads that post, poll, arm completion queues and sleep on their descriptors, in a threaded
// context. Work comes in bursts that are waited for, so that everybody sleeps again and again; each
// request completes once at either end, and a watchdog names a wake-up that was lost.

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "../verbs/verbs_pair.hpp"
#include "support/long_form.hpp"

namespace rnic::test {
namespace {

using std::chrono::steady_clock;

constexpr uint32_t kPairs = 2;                // connections; each has a poster at either end
constexpr uint32_t kPosters = 2 * kPairs;     // the number of one is that of its queue pair
constexpr uint32_t kSleepers = 2;             // threads that sleep on each of the four queues
constexpr uint32_t kMostPosted = 4;           // requests of a burst
constexpr uint32_t kSlots = 2 * kMostPosted;  // receives of a queue pair

/// What a request says of itself: who posted it, in which burst, as which of it.
struct Label {
  uint32_t poster;
  uint32_t burst;
  uint32_t number;

  [[nodiscard]] uint64_t id() const {
    return uint64_t{poster} << 40 | uint64_t{burst} << 8 | number;
  }
  static Label of(uint64_t id) {
    return {static_cast<uint32_t>(id >> 40), static_cast<uint32_t>(id >> 8),
            static_cast<uint32_t>(id & 0xff)};
  }
};

/// The latest burst of a poster, each of whose requests has to be told of once at either end.
class Account {
 public:
  void begin(uint32_t burst, uint32_t requests) {
    const std::lock_guard lock(mutex_);
    burst_ = burst;
    missing_ = (1u << requests) - 1;
    missing_ |= missing_ << kMostPosted;
  }
  /// \param received or else sent
  void note(const Label& label, bool received) {
    const std::lock_guard lock(mutex_);
    const uint32_t bit = 1u << (label.number + (received ? kMostPosted : 0));
    EXPECT_EQ(label.burst, burst_) << "a request of another burst has completed";
    EXPECT_NE(missing_ & bit, 0u) << "a request has completed twice";
    missing_ &= ~bit;
    if (missing_ == 0) settled_.notify_all();
  }
  /// Waits until that burst is over, or given up.
  void wait_for(uint32_t burst) {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [&] { return missing_ == 0 || burst_ != burst || given_up_; });
  }
  /// Waits for all of the burst. \return false: it was given up
  bool wait() {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [this] { return missing_ == 0 || given_up_; });
    return !given_up_;
  }
  void give_up() {
    const std::lock_guard lock(mutex_);
    given_up_ = true;
    settled_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable settled_;
  uint32_t burst_ = 0;
  uint32_t missing_ = 0;  // a bit for each: those that were sent, and those that were received
  bool given_up_ = false;
};

/// A completion queue and what its threads do.
struct Queue {
  std::string name;
  CompletionQueue handle;
  Notify what;
  bool receives;
  std::atomic<uint32_t> asleep{0};

  Queue(const Device& device, CompletionQueue cq, bool of_receives)
      : name(device.name() + (of_receives ? "'s receives" : "'s sends")),
        handle(std::move(cq)),
        what(of_receives ? Notify::Solicited : Notify::Next),
        receives(of_receives) {}
};

/// A device's queue pairs, which complete in two queues.
struct End {
  ProtectionDomain pd;
  Queue sends;
  Queue receives;
  Memory slots;
  std::vector<QueuePair> pairs;

  explicit End(Device device)
      : pd(must(device.alloc_pd())),
        sends(device, must(device.create_cq(64, {.several_threads = true})), false),
        receives(device, must(device.create_cq(64, {.several_threads = true})), true),
        slots(pd, std::vector<uint8_t>(kPairs * kSlots * sizeof(Label)), Access::LocalWrite) {
    for (uint32_t i = 0; i < kPairs; ++i) {
      pairs.push_back(must(pd.create_qp(sends.handle, receives.handle,
                                        {.send_depth = 2 * kMostPosted,
                                         .receive_depth = kSlots,
                                         .receive_wait = kPatience,
                                         .several_threads = true})));
      for (uint32_t slot = 0; slot < kSlots; ++slot) post_receive(i * kSlots + slot);
    }
  }
  void post_receive(uint64_t slot) {
    const Sge sge = slots.region.sge(slot * sizeof(Label), sizeof(Label));
    must(pairs[slot / kSlots].post_receive(receive(sge, slot)));
  }
  [[nodiscard]] Label received(uint64_t slot) const {
    Label label{};
    std::memcpy(&label, slots.data.data() + slot * sizeof label, sizeof label);
    return label;
  }
};

/// How the threads sleep.
enum class Sleep : uint8_t { Armed, Unarmed };

/// Two devices, and the threads that work on them.
class Workshop {
 public:
  explicit Workshop(const Config& config, Sleep how = Sleep::Armed)
      : world_(config), how_(how), over_(eventfd(0, EFD_CLOEXEC)) {
    for (uint32_t i = 0; i < kPairs; ++i) connect(i);
  }
  ~Workshop() { close(over_); }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  /// Each poster has so many bursts carried out, or as many as come within a time.
  /// \return what the watchdog has to say
  std::string run(uint32_t bursts, std::chrono::seconds time, std::chrono::seconds patience) {
    bursts_ = bursts;
    end_ = steady_clock::now() + time;
    for (End* end : {&left_, &right_}) {
      for (Queue* queue : {&end->sends, &end->receives}) {
        for (uint32_t i = 0; i < kSleepers; ++i) {
          const bool slow = i == 0;
          threads_.emplace_back([this, end, queue, slow] { sleep_and_serve(*end, *queue, slow); });
        }
      }
    }
    for (uint32_t i = 0; i < kPosters; ++i) threads_.emplace_back([this, i] { post(i); });
    const std::string said = watch(patience);
    for (Account& account : accounts_) account.give_up();
    eventfd_write(over_, 1);
    for (std::thread& thread : threads_) thread.join();
    return said;
  }
  [[nodiscard]] uint64_t bursts() const { return carried_out_; }
  [[nodiscard]] uint64_t sleeps() const { return sleeps_; }

 private:
  void connect(uint32_t pair) {
    const auto port = static_cast<uint16_t>(7471 + pair);
    must(world_.right.listen(port));
    must(left_.pairs[pair].connect({world_.right.address(), port}));
    const auto asked = world_.await<event::ConnectRequest>(world_.right);
    if (!asked) throw std::runtime_error("no connection request came");
    must(right_.pairs[pair].accept(asked->request));
    for (Device* device : {&world_.left, &world_.right}) {
      if (!world_.await<event::Established>(*device)) throw std::runtime_error("not established");
    }
  }

  /// Says of which queue a wake-up was lost once nothing has come about for a while.
  std::string watch(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    for (uint64_t before = 0; ended_ < kPosters; before = carried_out_) {
      const auto moved = [&] { return ended_ == kPosters || carried_out_ != before; };
      if (!changed_.wait_for(lock, patience, moved)) return what_is_wrong();
    }
    return {};
  }
  std::string what_is_wrong() {
    std::string said;
    for (End* end : {&left_, &right_}) {
      for (Queue* queue : {&end->sends, &end->receives}) {
        const uint32_t waiting = must(queue->handle.info()).waiting;
        const uint32_t asleep = queue->asleep;
        if (waiting == 0) continue;
        said += asleep != 0 ? "a lost wake-up: " : "nothing moves: ";
        said += std::to_string(waiting) + " of " + queue->name + " wait, and " +
                std::to_string(asleep) + " of " + std::to_string(kSleepers) + " threads sleep; ";
      }
    }
    return said.empty() ? "nothing moves, and no completion waits" : said;
  }

  // --- threads ---

  [[nodiscard]] End& end_of(uint32_t poster) { return poster < kPairs ? left_ : right_; }

  void post(uint32_t poster) {
    std::minstd_rand random(poster + 1);
    for (uint32_t burst = 1; bursts_ == 0 ? steady_clock::now() < end_ : burst <= bursts_;
         ++burst) {
      const auto requests = static_cast<uint32_t>(1 + random() % kMostPosted);
      accounts_[poster].begin(burst, requests);
      for (uint32_t number = 0; number < requests; ++number) send({poster, burst, number});
      if (random() % 16 == 0) moderate(poster, random());
      // One who posts takes, now and then, what others were woken for.
      if (random() % 4 == 0) serve(end_of(poster), end_of(poster).sends);
      if (!accounts_[poster].wait()) break;
      const std::lock_guard lock(mutex_);
      ++carried_out_;
      changed_.notify_all();
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }
  void send(const Label& label) {
    SendRequest request{.id = label.id(), .solicited = true};
    request.inline_data = std::as_bytes(std::span(&label, 1));
    must(end_of(label.poster).pairs[label.poster % kPairs].post_send(request));
  }
  void moderate(uint32_t poster, uint32_t number) {
    End& end = end_of(poster);
    CompletionQueue& queue = (number & 1) == 0 ? end.sends.handle : end.receives.handle;
    must(queue.moderate({.count = 1 + number / 2 % 3, .period = std::chrono::microseconds(200)}));
  }

  /// Takes one completion. \return what it was of; nothing: there is none
  std::optional<Label> serve(End& end, Queue& queue) {
    Completion done;
    if (queue.handle.poll({&done, 1}) == 0) return std::nullopt;
    EXPECT_EQ(done.status, CompletionStatus::Success) << describe(done);
    const Label label = queue.receives ? end.received(done.id) : Label::of(done.id);
    if (queue.receives) end.post_receive(done.id);
    accounts_.at(label.poster).note(label, queue.receives);
    return label;
  }
  /// \param slow what it finds once it has armed the queue takes it as long as the burst: the other
  ///        threads have to be woken for what else there is
  void sleep_and_serve(End& end, Queue& queue, bool slow) {
    std::array<pollfd, 2> descriptors{{{must(queue.handle.fd()), POLLIN, 0}, {over_, POLLIN, 0}}};
    for (;;) {
      if (serve(end, queue)) continue;
      if (how_ == Sleep::Armed) {
        must(queue.handle.arm(queue.what));
        if (const auto label = serve(end, queue)) {
          if (slow) accounts_.at(label->poster).wait_for(label->burst);
          continue;
        }
      }
      ++queue.asleep;
      ::poll(descriptors.data(), descriptors.size(), -1);
      --queue.asleep;
      ++sleeps_;
      if (descriptors[1].revents != 0) return;
    }
  }

  World world_;
  const Sleep how_;
  const int over_;  // readable: the threads that sleep end
  End left_{world_.left};
  End right_{world_.right};
  std::array<Account, kPosters> accounts_;
  uint32_t bursts_ = 0;  // of each poster; 0: until end_
  steady_clock::time_point end_;
  std::deque<std::thread> threads_;
  std::atomic<uint64_t> sleeps_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<uint64_t> carried_out_{0};  // changes under mutex_
  uint32_t ended_ = 0;                    // guarded by mutex_
};

/// \param on sockets, or else on a wire
class SleepingThreads : public testing::TestWithParam<bool> {
 protected:
  [[nodiscard]] static Config config() {
    Config out = GetParam() ? socket_config(true) : loopback_config(true);
    out.set("worker.idle=sleep");
    return out;
  }
};

// VERBS-15, VERBS-28
TEST_P(SleepingThreads, NoWakeUpIsLost) {
  Workshop workshop(config());
  EXPECT_EQ(workshop.run(is_long_form() ? 0 : 300, std::chrono::seconds(10), kPatience), "");
  EXPECT_GE(workshop.sleeps(), workshop.bursts() / 4) << "nobody slept: nothing was tried";
  RecordProperty("bursts", std::to_string(workshop.bursts()));
  RecordProperty("sleeps", std::to_string(workshop.sleeps()));
}

// Threads that do not arm the queue sleep for ever.
TEST_P(SleepingThreads, TheWatchdogNamesALostWakeUp) {
  Workshop workshop(config(), Sleep::Unarmed);
  const std::string said = workshop.run(300, {}, std::chrono::seconds(1));
  EXPECT_NE(said.find("a lost wake-up: "), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Ports, SleepingThreads, testing::Bool(),
                         [](const auto& sockets) { return sockets.param ? "Sockets" : "Wire"; });

}  // namespace
}  // namespace rnic::test
