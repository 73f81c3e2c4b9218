#include "sabotage.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/sabotage.hpp"
#include "runner.hpp"

namespace rnic::simulation {

#ifdef RNIC_SABOTAGE

namespace {

using base::Defect;

constexpr uint64_t kSeeds = 100;

struct Named {
  Defect defect;
  const char* name;
};

constexpr std::array kDefects{
    Named{Defect::PlaceBeforeCrc, "placed before CRC"},
    Named{Defect::DeliverEarly, "delivered early"},
    Named{Defect::BoundPlusOne, "bound + 1"},
    Named{Defect::Renege, "renege"},
    Named{Defect::MarkerPlusFour, "marker + 4"},
    Named{Defect::StaleCrc, "stale CRC"},
    Named{Defect::CompleteBeforeData, "completion before data"},
    Named{Defect::RetransmitShifted, "retransmission shifted"},
    Named{Defect::SkipAckedRecord, "record released too early"},
    Named{Defect::WrongStagAccepted, "wrong STag accepted"},
    Named{Defect::RightsIgnored, "rights ignored"},
    Named{Defect::DuplicateDelivery, "duplicate delivered"},
    Named{Defect::DropWithoutRetransmit, "time-out without retransmission"},
    Named{Defect::ReadBeforeWrite, "Read before Write"},
    Named{Defect::LostHold, "hold lost"},
    Named{Defect::FrontUnproven, "front of a segment unproven"},
    Named{Defect::CutsNeverBelieved, "cuts never believed"},
    Named{Defect::LateReceiverLeft, "late receiver not woken"},
    Named{Defect::CompletionOutOfOrder, "completion out of order"},
    Named{Defect::LeakSlot, "slot leaked"},
    Named{Defect::WindowIgnored, "peer's window ignored"},
    Named{Defect::WindowTakenBack, "own window taken back"},
    Named{Defect::WindowBeyondHeader, "window beyond the header's field"},
    Named{Defect::UpdateOfNothing, "window update of nothing"},
    Named{Defect::FitsNever, "small message never fits"},
    Named{Defect::SmallWaits, "small message waits for a window"},
    Named{Defect::OptionsNotCounted, "options not counted in EMSS"},
    Named{Defect::ChecksumIgnored, "checksum ignored"},
    Named{Defect::SecondCommitWins, "second commit wins"},
    Named{Defect::BlindReset, "RST anywhere in the window"},
    Named{Defect::WildAckTaken, "impossible ACK taken"},
    Named{Defect::DuplicatesCarried, "duplicate ACKs carried on"},
    Named{Defect::SackTooLong, "SACK block too long"},
    Named{Defect::ProbeForgotten, "zero window not probed"},
    Named{Defect::SumsDrift, "scoreboard sums drift"},
    Named{Defect::AtomicTwice, "atomic done twice"},
    Named{Defect::AtomicEarly, "atomic done at placement"},
    Named{Defect::MaskIgnored, "mask of FetchAdd ignored"},
    Named{Defect::SwapMaskWrong, "mask of CmpSwap inverted"},
};

/// Without a defect nothing is wrong in this world.
bool is_sound(const Task& task) {
  bool sound = false;
  run_tasks({task}, 1, Defect::None, [&](const TaskResult& result) {
    sound = result.outcome.ok;
    return true;
  });
  return sound;
}

}  // namespace

int run_sabotage(uint64_t first_seed, uint32_t workers, const std::string& pattern) {
  std::vector<Task> tasks;
  for (uint64_t seed = first_seed; seed < first_seed + kSeeds; ++seed) {
    if (pattern.empty()) {
      for (const Task& task : tasks_of_seed(seed)) tasks.push_back(task);
    }
    for (const Scene* scene : find_scenes(pattern)) tasks.push_back({seed, scene});
  }
  uint32_t missed = 0;
  std::printf("%-32s %-7s %-6s %-19s %s\n", "defect", "caught", "seed", "profile", "by");
  for (const Named& named : kDefects) {
    bool caught = false;
    run_tasks(tasks, workers, named.defect, [&](const TaskResult& result) {
      if (result.outcome.ok) return true;
      caught = is_sound(result.task);
      if (!caught) {
        std::printf("%-32s seed %llu of %s fails without it, too\n", named.name,
                    static_cast<unsigned long long>(result.task.seed), result.task.scene->name());
        return false;
      }
      std::printf("%-32s %-7s %-6llu %-19s %s: %.90s\n", named.name, "yes",
                  static_cast<unsigned long long>(result.task.seed), result.task.scene->name(),
                  result.outcome.checker.c_str(), result.outcome.message.c_str());
      return false;
    });
    if (!caught) {
      ++missed;
      std::printf("%-32s %-7s\n", named.name, "NO");
    }
    std::fflush(stdout);
  }
  std::printf("%zu defects, %u not caught within %llu seeds\n", kDefects.size(), missed,
              static_cast<unsigned long long>(kSeeds));
  return missed == 0 ? 0 : 1;
}

#else

int run_sabotage(uint64_t, uint32_t, const std::string&) {
  std::fprintf(stderr,
               "rnic-sim: this build has no planted defects: configure one with -Dsabotage=true "
               "(./scripts/sim --sabotage does)\n");
  return 2;
}

#endif

}  // namespace rnic::simulation
