// A stream whose user changes: every octet, record and notice reaches the user whose part it is.
#include "llp/stream_switch.hpp"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace rnic::llp {
namespace {

using base::Range;

class FakeStream final : public Stream {
 public:
  [[nodiscard]] StreamTraits traits() const override { return {}; }
  [[nodiscard]] uint32_t emss() const override { return 1460; }
  [[nodiscard]] Endpoint local() const override { return {}; }
  [[nodiscard]] Endpoint remote() const override { return {}; }
  void ready() override {}
  void close() override {}
  void abort() override { ++aborts; }
  void room_grew() override {}
  void set_user(StreamUser& next) override { user = &next; }
  void set_trace(base::TraceSink*) override {}
  [[nodiscard]] base::TraceSink* trace() const override { return nullptr; }

  StreamUser* user = nullptr;
  int aborts = 0;
};

/// Writes down, with its name, whatever it is told.
class Scribe final : public StreamUser {
 public:
  Scribe(char name, std::vector<std::string>& log) : name_(name), log_(log) {}

  void established(uint32_t emss, base::Now) override { say("established", emss); }
  Pulled pull(uint32_t n, uint64_t offset, Frame& out, base::Now) override {
    say("pull", offset);
    const uint32_t length = std::min(n, waiting);
    if (length != 0) out.append(length);
    waiting -= length;
    return {.length = length};
  }
  bool rebuild(const RecordTag&, uint64_t offset, uint32_t, Frame&) override {
    say("rebuild", offset);
    return true;
  }
  void released(const RecordTag&, uint64_t end) override { say("released", end); }
  void clipped(Range range) override { say("clipped", range.begin); }
  InspectVerdict inspect(Range range, base::ByteView, base::Now) override {
    say("inspect", range.begin);
    return verdict;
  }
  void place(Range range, base::ByteView octets, bool in_order, base::Now) override {
    say(in_order ? "place" : "place-early", range.begin);
    EXPECT_EQ(octets.size(), range.size());
    EXPECT_EQ(octets[0], static_cast<uint8_t>(range.begin));
    if (on_place) on_place();
  }
  void ordered(uint64_t offset, base::Now) override {
    say("ordered", offset);
    if (on_ordered) on_ordered();
  }
  void emss_changed(uint32_t emss) override { say("emss", emss); }
  [[nodiscard]] uint32_t receive_room() const override { return 100u + name_; }
  [[nodiscard]] uint32_t pending() const override { return waiting; }
  [[nodiscard]] uint32_t unread() const override { return 200u + name_; }
  void urgent(uint64_t end, base::Now) override { say("urgent", end); }
  void peer_finished(base::Now) override { say("finished", 0); }
  void ended(StreamEnd, base::Now) override { say("ended", 0); }

  uint32_t waiting = 0;  // octets that pull() still has
  InspectVerdict verdict = InspectVerdict::Accept;
  std::function<void()> on_place, on_ordered;

 private:
  void say(const char* what, uint64_t at) {
    log_.push_back(std::string(1, name_) + " " + what + " " + std::to_string(at));
  }
  char name_;
  std::vector<std::string>& log_;
};

class Switch : public ::testing::Test {
 protected:
  using Log = std::vector<std::string>;

  /// a until here, then b from 10 sent and 20 received octets on.
  void begin_with_b() {
    users_.begin(stream_, a_, 7);
    users_.push(b_, 10, 20, {});
  }
  Log told() { return std::exchange(log_, {}); }
  uint32_t pull(uint64_t offset, uint32_t n) {
    std::array<uint8_t, 64> room{};
    Frame frame(room.data(), room.size());
    return users_.pull(n, offset, frame, {}).length;
  }
  static std::vector<uint8_t> octets(Range range) {
    std::vector<uint8_t> all(range.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(range.begin + i);
    return all;
  }
  void place(Range range, bool in_order) { users_.place(range, octets(range), in_order, {}); }

  FakeStream stream_;
  Log log_;
  Scribe a_{'a', log_}, b_{'b', log_}, c_{'c', log_};
  StreamSwitch users_;
};

TEST_F(Switch, RecordsBelongToWhoHasTheirOctets) {
  begin_with_b();
  EXPECT_EQ(stream_.user, &users_);
  EXPECT_EQ(users_.users(), 2u);
  a_.waiting = 3;
  b_.waiting = 6;
  EXPECT_EQ(pull(7, 64), 3u);
  EXPECT_EQ(pull(10, 4), 4u);
  EXPECT_EQ(pull(14, 64), 2u);
  users_.push(c_, 16, 20, {});
  EXPECT_EQ(pull(16, 64), 0u);
  EXPECT_EQ(told(), (Log{"a pull 7", "b pull 10", "b pull 14", "c pull 16"}));
  std::array<uint8_t, 8> room{};
  Frame frame(room.data(), room.size());
  for (const uint64_t offset : {0, 9, 10, 15, 16}) {
    EXPECT_TRUE(users_.rebuild({}, offset, 1, frame));
  }
  for (const uint64_t end : {7, 10, 11, 16, 17}) users_.released({}, end);
  EXPECT_EQ(told(), (Log{"a rebuild 0", "a rebuild 9", "b rebuild 10", "b rebuild 15",
                         "c rebuild 16", "a released 7", "a released 10", "b released 11",
                         "b released 16", "c released 17"}));
}

TEST_F(Switch, WhatIsReceivedIsTheLatestUsers) {
  begin_with_b();
  const auto some = octets({20, 24});
  EXPECT_EQ(users_.inspect({20, 24}, some, {}), InspectVerdict::Accept);
  users_.clipped({20, 22});
  place({20, 24}, true);
  users_.ordered(24, {});
  place({30, 34}, false);
  users_.emss_changed(500);
  users_.urgent(33, {});
  users_.peer_finished({});
  EXPECT_EQ(users_.receive_room(), 100u + 'b');
  EXPECT_EQ(users_.unread(), 200u + 'b');
  EXPECT_EQ(told(), (Log{"b inspect 20", "b clipped 20", "b place 20", "b ordered 24",
                         "b place-early 30", "b emss 500", "b urgent 33", "b finished 0"}));
}

// The silly window rule looks at all that waits: what users before have not sent goes first.
TEST_F(Switch, AllFitsCountsWhatGoesAhead) {
  begin_with_b();  // a has pulled to 7 and has 3 octets left
  a_.waiting = 3;
  b_.waiting = 5;
  EXPECT_FALSE(users_.all_fits(2));
  EXPECT_FALSE(users_.all_fits(7));
  EXPECT_TRUE(users_.all_fits(8));
  EXPECT_EQ(pull(7, 64), 3u);
  EXPECT_TRUE(users_.all_fits(5));
  EXPECT_FALSE(users_.all_fits(4));
}

// A start frame may end b's turn in the middle of a segment, in order or when the order catches up.
TEST_F(Switch, TheRestOfASegmentGoesToTheNextUser) {
  begin_with_b();
  b_.on_place = [&] { users_.push(c_, 10, 25, {}); };
  place({20, 30}, true);
  users_.ordered(30, {});
  EXPECT_EQ(told(), (Log{"b place 20", "c inspect 25", "c place 25", "c ordered 30"}));
  EXPECT_EQ(stream_.aborts, 0);
}

TEST_F(Switch, WhoTakesOverWhenTheOrderCatchesUpHearsOfIt) {
  begin_with_b();
  b_.on_ordered = [&] {
    users_.push(c_, 10, 25, {});
    users_.pass_on({25, 30}, octets({25, 30}), false, {});
  };
  users_.ordered(30, {});
  EXPECT_EQ(told(), (Log{"b ordered 30", "c inspect 25", "c place-early 25", "c ordered 30"}));
}

// Octets that were committed cannot come again: without room for them the stream is useless.
TEST_F(Switch, WhatTheNextUserCannotTakeEndsTheStream) {
  for (const InspectVerdict verdict : {InspectVerdict::Drop, InspectVerdict::NoRoom}) {
    StreamSwitch users;
    users.begin(stream_, a_, 0);
    users.push(b_, 0, 0, {});
    b_.verdict = verdict;
    stream_.aborts = 0;
    users.pass_on({5, 9}, octets({5, 9}), true, {});
    EXPECT_EQ(stream_.aborts, 1);
    EXPECT_EQ(told(), (Log{"b inspect 5"}));
  }
}

// A peer that had finished before says no more: the next user hears it at once.
TEST_F(Switch, TheEndOfThePeersHalfIsToldToTheNextUserToo) {
  begin_with_b();
  users_.peer_finished({});
  users_.push(a_, 10, 20, {});
  EXPECT_EQ(told(), (Log{"b finished 0", "a finished 0"}));
}

TEST_F(Switch, EachUserHearsTheEndOnceAndTheFirstOneLast) {
  begin_with_b();
  users_.push(a_, 10, 20, {});
  users_.ended(StreamEnd::Closed, {});
  EXPECT_EQ(told(), (Log{"b ended 0", "a ended 0"}));
}

}  // namespace
}  // namespace rnic::llp
