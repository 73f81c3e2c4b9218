// A thousand queue pairs of mixed work between two devices: every octet, value and completion is
// verified, and all of it is given back. The short form has a tenth of them.

#include <array>
#include <cstring>

#include "base/prng.hpp"
#include "support/long_form.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint32_t kSlice = 4096;  // octets of memory of one talk

/// Memory of one device for all talks, a slice each.
class Store {
 public:
  Store(ProtectionDomain& pd, size_t slices, AccessSet rights)
      : octets_(slices * kSlice),
        region_(must(pd.register_memory(std::as_writable_bytes(std::span(octets_)), rights))) {}
  [[nodiscard]] std::span<uint8_t> slice(size_t index, uint32_t length) {
    return std::span(octets_).subspan(index * kSlice, length);
  }
  [[nodiscard]] Sge sge(size_t index, uint32_t length) const {
    return region_.sge(index * kSlice, length);
  }
  [[nodiscard]] RemoteAddress at(size_t index) const {
    return {region_.stag(), region_.address() + index * kSlice};
  }

 private:
  std::vector<uint8_t> octets_;
  MemoryRegion region_;
};

/// What one device has for all its queue pairs.
struct Party {
  Party(Device the_device, uint32_t talks)
      : device(std::move(the_device)),
        pd(must(device.alloc_pd())),
        sent(must(device.create_cq(2 * talks))),
        received(must(device.create_cq(2 * talks))),
        near(pd, talks, Access::LocalWrite),
        far(pd, talks, kEverything | Access::RemoteAtomic) {}
  [[nodiscard]] QueuePair make() {
    return must(pd.create_qp(sent, received, {.send_depth = 4, .receive_depth = 4}));
  }

  Device device;
  ProtectionDomain pd;
  CompletionQueue sent;
  CompletionQueue received;
  Store near;  // of what this device asks for
  Store far;   // for what the peer asks for
};

enum class Kind : uint8_t { Send, Write, Read, Add, Immediate };

/// One requester and its peer: one request after the other, each verified.
class Talk {
 public:
  Talk(size_t index, Party& from, QueuePair& ours, Party& to, QueuePair& theirs)
      : index_(index), from_(from), ours_(ours), to_(to), theirs_(theirs), prng_(index + 1) {}

  void begin() {
    kind_ = static_cast<Kind>(prng_.below(5));
    length_ = static_cast<uint32_t>(prng_.between(1, kSlice));
    const std::vector<uint8_t> content = octets(length_, prng_.next());
    std::ranges::copy(content, source().begin());
    awaited_ = 1;
    if (kind_ == Kind::Send || kind_ == Kind::Immediate) {
      ++awaited_;
      must(theirs_.post_receive(id(), {to_.far.sge(index_, kSlice)}));
    }
    switch (kind_) {
      case Kind::Send: return must(ours_.post_send(id(), {from_.near.sge(index_, length_)}));
      case Kind::Write:
        return must(ours_.post_write(id(), {from_.near.sge(index_, length_)}, to_.far.at(index_)));
      case Kind::Read:
        std::ranges::fill(from_.near.slice(index_, length_), uint8_t{0});
        return must(ours_.post_read(id(), {from_.near.sge(index_, length_)}, to_.far.at(index_)));
      case Kind::Add:
        std::memcpy(&before_, to_.far.slice(index_, 8).data(), sizeof before_);
        return must(ours_.post_fetch_add(id(), to_.far.at(index_), prng_.next()));
      case Kind::Immediate:
        std::copy_n(content.begin(), std::min<size_t>(length_, 8), immediate_.begin());
        return must(ours_.post_immediate(id(), immediate_));
    }
  }
  /// \return whether the request is over
  bool sent(const Completion& done) {
    expect_good(done);
    if (kind_ == Kind::Add) {
      EXPECT_EQ(done.original, before_) << index_;
    } else if (kind_ == Kind::Write || kind_ == Kind::Read) {
      EXPECT_TRUE(
          std::ranges::equal(from_.near.slice(index_, length_), to_.far.slice(index_, length_)))
          << index_;
    }
    return --awaited_ == 0;
  }
  bool received(const Completion& done) {
    expect_good(done);
    if (kind_ == Kind::Immediate) {
      EXPECT_TRUE(done.has_immediate && done.immediate == immediate_) << index_;
    } else {
      EXPECT_EQ(kind_, Kind::Send) << index_;
      EXPECT_EQ(done.length, length_) << index_;
      EXPECT_TRUE(
          std::ranges::equal(from_.near.slice(index_, length_), to_.far.slice(index_, length_)))
          << index_;
    }
    return --awaited_ == 0;
  }

 private:
  /// Where the content stands that the peer is to have, or has for a Read.
  std::span<uint8_t> source() {
    return kind_ == Kind::Read ? to_.far.slice(index_, length_) : from_.near.slice(index_, length_);
  }
  [[nodiscard]] uint64_t id() const { return index_; }
  void expect_good(const Completion& done) {
    EXPECT_EQ(done.status, CompletionStatus::Success) << index_ << " " << to_string(done.status);
    EXPECT_EQ(done.id, index_);
  }

  const size_t index_;
  Party& from_;
  QueuePair& ours_;
  Party& to_;
  QueuePair& theirs_;
  base::Prng prng_;
  Kind kind_ = Kind::Send;
  uint32_t length_ = 0;
  uint32_t awaited_ = 0;  // completions
  uint64_t before_ = 0;
  ImmediateData immediate_{};
};

/// Two parties, and pairs of queue pairs that talk both ways.
class Crowd {
 public:
  explicit Crowd(uint32_t pairs)
      : world_(config_of(pairs)), left_(world_.left, 2 * pairs), right_(world_.right, 2 * pairs) {
    must(right_.device.listen(7471));
    for (uint32_t i = 0; i < pairs; ++i) {
      near_.push_back(left_.make());
      far_.push_back(right_.make());
      connect(near_.back(), far_.back());
    }
    for (uint32_t i = 0; i < pairs; ++i) {
      talks_.emplace_back(2 * i, left_, near_[i], right_, far_[i]);
      talks_.emplace_back(2 * i + 1, right_, far_[i], left_, near_[i]);
    }
  }

  void talk(uint64_t rounds) {
    std::vector<uint64_t> begun(talks_.size(), 1);
    size_t talking = talks_.size();
    for (Talk& talk : talks_) talk.begin();
    const auto went_on = [&](uint64_t index) {
      if (begun[index]++ == rounds) return void(--talking);
      talks_[index].begin();
    };
    const auto take = [&](CompletionQueue& queue, auto&& which) {
      std::array<Completion, 64> some;
      const uint32_t n = queue.poll(some);
      for (uint32_t i = 0; i < n; ++i) {
        ASSERT_LT(some[i].id, talks_.size());
        if ((talks_[some[i].id].*which)(some[i])) went_on(some[i].id);
      }
    };
    const auto progress = [&] {
      for (Party* party : {&left_, &right_}) {
        take(party->sent, &Talk::sent);
        take(party->received, &Talk::received);
      }
      return talking == 0 || ::testing::Test::HasFailure();
    };
    EXPECT_TRUE(world_.context.wait_until(progress, std::chrono::minutes(10)));
  }

  void end() {
    for (QueuePair& qp : near_) must(qp.disconnect());
    for (QueuePair& qp : near_) await_end(left_.device, qp);
    for (QueuePair& qp : far_) await_end(right_.device, qp);
    near_.clear();
    far_.clear();
    EXPECT_TRUE(world_.becomes_quiescent());
    for (const Party* party : {&left_, &right_}) {
      const DeviceLimits limits = must(party->device.limits());
      EXPECT_EQ(limits.qps + limits.connections, 0u);
      EXPECT_EQ(limits.held_octets, 0u);
    }
  }

 private:
  static Config config_of(uint32_t pairs) {
    Config config = loopback_config();
    config.set("limits.max_qps=" + std::to_string(pairs));
    config.set("limits.max_connections=" + std::to_string(pairs));
    return config;
  }
  void await_end(Device& device, const QueuePair& qp) {
    EXPECT_TRUE(world_.await<event::Disconnected>(device, qp.number()));
  }
  void connect(QueuePair& near, QueuePair& far) {
    must(near.connect({right_.device.address(), 7471}));
    const auto asked = world_.await<event::ConnectRequest>(right_.device);
    if (!asked) throw std::runtime_error("no connection request came");
    must(far.accept(asked->request));
    if (!world_.await<event::Established>(left_.device, near.number()) ||
        !world_.await<event::Established>(right_.device, far.number())) {
      throw std::runtime_error("the connection was not established");
    }
  }

  World world_;
  Party left_;
  Party right_;
  std::vector<QueuePair> near_;
  std::vector<QueuePair> far_;
  std::deque<Talk> talks_;
};

TEST(ManyPairs, MixedWorkIsVerifiedAndGivenBack) {
  Crowd crowd(by_form(100u, 1000u));
  crowd.talk(by_form(40u, 3000u));
  crowd.end();
}

}  // namespace
}  // namespace rnic::test
