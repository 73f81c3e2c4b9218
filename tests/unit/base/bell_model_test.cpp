// The bell between who adds work and who sleeps, in a model of the machine.

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "base/bell.hpp"
#include "support/long_form.hpp"
#include "support/model_machine.hpp"

namespace rnic::base {
namespace {

using test::ModelBell;
using test::ModelMachine;
using test::ModelSignal;
using test::ModelWord;

/// Arms behind the look: what comes between is slept through.
class LateBell : public ModelBell<ModelWord> {
 public:
  using ModelBell<ModelWord>::BellOver;
  static constexpr bool kLooksFirst = true;
};
/// Rings before the work is there.
class EarlyBell : public ModelBell<ModelWord> {
 public:
  using ModelBell<ModelWord>::BellOver;
  static constexpr bool kRingsFirst = true;
};

struct Outcome {
  bool all_taken = false;
  uint32_t wakes = 0;
};

constexpr uint32_t kWork = 2;  // pieces that each ringer adds

/// Two threads add work, one takes all of it and sleeps in between.
template <typename SomeBell>
Outcome play(uint64_t seed) {
  constexpr bool looks_first = requires { SomeBell::kLooksFirst; };
  constexpr bool rings_first = requires { SomeBell::kRingsFirst; };
  ModelMachine machine(seed);
  SomeBell bell{ModelSignal()};
  std::array<ModelWord, 2> added;
  Outcome outcome;
  for (ModelWord& mine : added) {
    machine.add([&] {
      for (uint32_t i = 1; i <= kWork; ++i) {
        if (rings_first) bell.ring();
        mine.store(i);
        if (!rings_first) bell.ring();
      }
    });
  }
  machine.add([&] {
    std::array<uint32_t, 2> taken{};
    const auto look = [&] {
      bool found = false;
      for (size_t i = 0; i < added.size(); ++i) {
        const uint32_t there = added[i].load();
        found = found || there != taken[i];
        taken[i] = there;
      }
      return found;
    };
    while (taken[0] + taken[1] != 2 * kWork) {
      if (look()) continue;
      if (looks_first) {
        const bool found = look();
        bell.arm();
        if (found) continue;
      } else {
        bell.arm();
        if (look()) continue;
      }
      machine.sleep_until([&] { return bell.signal().raised(); });
      ++outcome.wakes;
      if (seed % 2 == 0) bell.disarm();
    }
  });
  outcome.all_taken = machine.run();
  return outcome;
}

// VERBS-15
TEST(Bell, NoWorkIsSleptThrough) {
  const auto schedules = test::by_form<uint64_t>(100'000, 1'000'000);
  uint64_t wakes = 0;
  for (uint64_t seed = 1; seed <= schedules; ++seed) {
    const Outcome outcome = play<ModelBell<ModelWord>>(seed);
    ASSERT_TRUE(outcome.all_taken) << "schedule " << seed;
    // A ring wakes once, and again while a slow ringer is between the raising and its word.
    ASSERT_LE(outcome.wakes, 400u) << "schedule " << seed << ": it does not sleep any more";
    wakes += outcome.wakes;
  }
  EXPECT_GT(wakes, schedules / 4) << "nobody ever slept: nothing was tried";
}

/// A signal of one thread.
class PlainSignal {
 public:
  void raise() { *raised_ = true; }
  void clear() { *raised_ = false; }
  [[nodiscard]] bool raised() const { return *raised_; }

 private:
  std::shared_ptr<bool> raised_ = std::make_shared<bool>(false);
};

TEST(Bell, RingsForWhatItWasArmedForAlone) {
  BellOver<BellWord, PlainSignal> bell{PlainSignal()};
  const auto rings = [&](bool urgent) {
    bell.ring(urgent);
    return bell.signal().raised();
  };
  EXPECT_FALSE(rings(true)) << "nobody has armed it";
  bell.arm(BellFor::Urgent);
  EXPECT_FALSE(rings(false));
  EXPECT_TRUE(rings(true));
  bell.arm(BellFor::Urgent);
  EXPECT_FALSE(bell.signal().raised()) << "arming clears";
  bell.arm(BellFor::Anything);
  bell.arm(BellFor::Urgent);
  EXPECT_TRUE(rings(false)) << "who waits for anything goes on doing so";
  bell.arm();
  bell.disarm();
  EXPECT_FALSE(bell.is_armed());
  EXPECT_FALSE(rings(true));
  bell.arm();
  EXPECT_TRUE(bell.is_armed());
  EXPECT_TRUE(rings(false));
}

TEST(Bell, TheModelFindsWhatIsWrong) {
  struct Defect {
    const char* name;
    Outcome (*play)(uint64_t seed);
  };
  for (const Defect& defect : {
           Defect{"without fences", play<ModelBell<test::UnfencedWord>>},
           Defect{"a look before the arming alone", play<LateBell>},
           Defect{"a ring before its work", play<EarlyBell>},
       }) {
    EXPECT_NE(test::first_wrong(20'000, [&](uint64_t seed) { return defect.play(seed).all_taken; }),
              0u)
        << defect.name;
  }
}

}  // namespace
}  // namespace rnic::base
