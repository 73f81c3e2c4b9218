// A thread that has slept reads the connection that woke it the last times, and asks epoll later.
// Of a connection that takes octets again epoll tells only where that is waited for.

#include <gtest/gtest.h>

#include "on_kernel.hpp"
#include "socket/lone_waker.hpp"

namespace rnic::socket {
namespace {

TEST(LoneWaker, IsGuessedOnceItWasAloneOftenEnough) {
  LoneWaker waker;
  EXPECT_FALSE(waker.take_guess());
  for (uint32_t i = 1; i < LoneWaker::kSure; ++i) waker.note(7);
  EXPECT_FALSE(waker.take_guess());
  waker.note(7);
  EXPECT_TRUE(waker.take_guess());
  EXPECT_EQ(waker.word(), 7u);
  waker.note(8);
  EXPECT_FALSE(waker.take_guess()) << "another one, once";
  for (uint32_t i = 0; i < LoneWaker::kSure; ++i) waker.note(7);
  EXPECT_TRUE(waker.take_guess());
  waker.forget();
  EXPECT_FALSE(waker.take_guess());
}

TEST(LoneWaker, OthersAreLookedForNowAndThen) {
  LoneWaker waker;
  for (uint32_t i = 0; i < LoneWaker::kSure; ++i) waker.note(7);
  for (uint32_t i = 0; i < LoneWaker::kGuesses; ++i) EXPECT_TRUE(waker.take_guess());
  EXPECT_FALSE(waker.take_guess());
  waker.note(7);
  EXPECT_TRUE(waker.take_guess()) << "it is still the only one";
}

/// The right transport sleeps, and the left one sends it something.
class Guess : public OnRefusing {
 protected:
  void SetUp() override {
    OnRefusing::SetUp();
    system_ = &refuse(1);
    ASSERT_TRUE(right().listen({{}, kPort}, acceptor_).has_value());
    connect(near_, far_);
    turns(10);
  }
  /// The sender has its octets taken by the system, and they cross.
  void send(RecordUser& from) {
    from.queue(88);
    for (int i = 0; i < 100; ++i) {
      now_ += std::chrono::microseconds(1);
      left().receive(now_, nothing_);
      left().output(now_);
      network_.advance(now_);
    }
  }
  /// One turn behind a sleep. \return how often epoll was asked in it
  uint32_t waits_of_turn() {
    right().arm();
    const uint32_t before = system_->waits;
    right().receive(now_, nothing_);
    return system_->waits - before;
  }
  void make_sure() {
    for (uint32_t i = 0; i < LoneWaker::kSure; ++i) {
      send(near_);
      EXPECT_EQ(waits_of_turn(), 1u);
    }
  }

  Refusing* system_ = nullptr;
};

TEST_F(Guess, SparesTheQuestionWhoItWas) {
  make_sure();
  for (uint32_t i = 0; i < LoneWaker::kGuesses; ++i) {
    send(near_);
    const uint64_t before = far_.ordered_to;
    EXPECT_EQ(waits_of_turn(), 0u);
    EXPECT_GT(far_.ordered_to, before);
  }
  send(near_);
  EXPECT_EQ(waits_of_turn(), 1u) << "others are looked for";
  send(near_);
  EXPECT_EQ(waits_of_turn(), 0u);
  EXPECT_TRUE(far_.clean());
}

TEST_F(Guess, WithoutASleepEpollIsAsked) {
  make_sure();
  send(near_);
  const uint32_t before = system_->waits;
  right().receive(now_, nothing_);
  EXPECT_EQ(system_->waits, before + 1);
}

TEST_F(Guess, AWrongOneCostsOneReadAndDelaysNobody) {
  RecordUser other_near{5, 6};
  RecordUser other_far{6, 5};
  connect(other_near, other_far);
  turns(10);
  make_sure();
  send(other_near);
  const uint32_t reads = system_->reads;
  EXPECT_EQ(waits_of_turn(), 1u);
  EXPECT_EQ(other_far.ordered_to, 88u) << "in the same turn";
  EXPECT_EQ(system_->reads, reads + 2);
  send(near_);
  EXPECT_EQ(waits_of_turn(), 1u) << "nothing is guessed behind a wrong guess";
  other_near.stream->abort();
  turns(20);
}

TEST_F(Guess, AnotherConnectionWaitsForAFewTurnsAtMost) {
  RecordUser other_near{5, 6};
  RecordUser other_far{6, 5};
  connect(other_near, other_far);
  turns(10);
  make_sure();
  for (uint32_t turn = 0; other_far.ordered_to == 0; ++turn) {
    ASSERT_LE(turn, LoneWaker::kGuesses);
    if (turn == 0) other_near.queue(88);
    send(near_);
    waits_of_turn();
  }
  other_near.stream->abort();
  turns(20);
}

TEST_F(Guess, OneThatHasEndedIsNotRead) {
  make_sure();
  near_.stream->close();
  for (int i = 0; i < 100 && !far_.peer_has_finished; ++i) {
    turn();
    right().arm();
  }
  EXPECT_TRUE(far_.peer_has_finished);
  far_.stream->close();
  ASSERT_TRUE(run_until([&] { return far_.how_ended && near_.how_ended; }));
  EXPECT_EQ(waits_of_turn(), 1u);
}

/// The right transport sleeps in epoll itself.
class Sleep : public Guess {
 protected:
  /// \return how often epoll was asked, the sleep included
  uint32_t waits_of_sleep_and_turn() {
    const uint32_t before = system_->waits;
    sleep();
    right().receive(now_, nothing_);
    return system_->waits - before;
  }
  void sleep() {
    right().arm();
    kernels_[1]->may_sleep(true);
    right().sleep();
    kernels_[1]->may_sleep(false);
  }
};

TEST_F(Sleep, TheTurnBehindItAsksNobody) {
  for (int i = 0; i < 40; ++i) {
    send(near_);
    const uint64_t before = far_.ordered_to;
    EXPECT_EQ(waits_of_sleep_and_turn(), 1u);
    EXPECT_GT(far_.ordered_to, before);
  }
  EXPECT_TRUE(far_.clean());
}

TEST_F(Sleep, ThatWasForNothingIsNoLook) {
  sleep();
  EXPECT_GT(right().next_deadline(), now_);
  send(near_);
  const uint32_t before = system_->waits;
  right().receive(now_, nothing_);
  EXPECT_EQ(far_.ordered_to, 88u);
  EXPECT_EQ(system_->waits, before + 1);
}

// epoll has told of it once, and does not tell of it again.
TEST_F(Sleep, WhatItWasToldOfIsThereUntilTheNextTurn) {
  send(near_);
  sleep();
  EXPECT_LE(right().next_deadline(), now_) << "who arms does not fall asleep";
  sleep();
  EXPECT_LE(right().next_deadline(), now_);
  right().receive(now_, nothing_);
  EXPECT_EQ(far_.ordered_to, 88u);
  right().output(now_);
  EXPECT_GT(right().next_deadline(), now_);
}

// What epoll was told of in a sleep is of a connection that is gone when its turn comes.
TEST_F(Sleep, OneThatHasEndedMeanwhileIsNotRead) {
  send(near_);
  sleep();
  far_.stream->abort();
  EXPECT_TRUE(run_until([&] { return near_.how_ended.has_value(); }));
  EXPECT_EQ(right().live_connections(), 0u);
}

// The system's buffer is full again and again: each time epoll has to tell when it has room.
TEST_F(OnRefusing, OutputIsWatchedWhileItIsWaitedFor) {
  Refusing& system = refuse(0);
  connect(near_, far_);
  for (int i = 0; i < 2000; ++i) near_.queue(1000);
  near_.stream->ready();
  ASSERT_TRUE(run_until([&] { return far_.ordered_to == 2'000'000; }, 200'000));
  EXPECT_GT(left().counters().send_waits, 1u);
  EXPECT_TRUE(far_.clean());
  // A watch that the system refuses is made up for by a timer.
  const uint64_t waits = left().counters().send_waits;
  system.watch_error = ENOMEM;
  for (int i = 0; i < 2000; ++i) near_.queue(1000);
  near_.stream->ready();
  ASSERT_TRUE(run_until(
      [&] {
        now_ += std::chrono::microseconds(20);
        return far_.ordered_to == 4'000'000;
      },
      200'000));
  EXPECT_GT(left().counters().send_waits, waits);
  EXPECT_TRUE(far_.clean());
}

}  // namespace
}  // namespace rnic::socket
