// A world depends on its seed alone: not on the worlds before it in the process, and not on where
// the heap lies.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "memory.hpp"
#include "scene.hpp"

namespace rnic::simulation {
namespace {

class Folder {
 public:
  Folder() { std::filesystem::create_directories(path_); }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string prefix() const { return path_ + "/world"; }
  /// What was written, file by file.
  [[nodiscard]] std::string contents() const {
    std::string all;
    for (const char* name : {".trace", ".left.pcapng", ".right.pcapng"}) {
      std::ifstream file(prefix() + name, std::ios::binary);
      EXPECT_TRUE(file) << name;
      all.append(std::istreambuf_iterator<char>(file), {});
    }
    return all;
  }

 private:
  std::string path_ = ::testing::TempDir() + "softrnic_repeat_" + std::to_string(getpid());
};

std::string run(const char* profile, uint64_t seed) {
  const Folder folder;
  std::vector<std::string> lost;
  const Outcome outcome = run_task({seed, find_scenes(profile).at(0)}, {folder.prefix(), &lost});
  EXPECT_TRUE(outcome.ok) << outcome.message;
  EXPECT_TRUE(lost.empty());
  return folder.contents();
}

// Every octet of every frame, and every step of the trace.
TEST(Repeat, AWorldIsTheSameAfterOthersAndOnAnotherHeap) {
  base::set_log_level(base::LogLevel::Off);
  for (const char* profile : {"cut-siw", "hostile", "terminate", "tuf-markers"}) {
    const std::string first = run(profile, 6);
    ASSERT_GT(first.size(), 100'000u) << profile;
    const std::vector<std::unique_ptr<uint8_t[]>> elsewhere = [] {
      std::vector<std::unique_ptr<uint8_t[]>> blocks;
      for (size_t size = 20'000; size < 2'000'000; size = size * 3 / 2) {
        blocks.push_back(std::make_unique<uint8_t[]>(size));
      }
      return blocks;
    }();
    run("clean", 7);
    EXPECT_TRUE(first == run(profile, 6)) << profile;
  }
}

// A world in which nothing takes a shortcut looks the same to the octet, the event and the counter.
TEST(Repeat, AWorldWithoutShortcutsIsTheSame) {
  base::set_log_level(base::LogLevel::Off);
  uint32_t worlds = 0;
  for (const Scene& scene : scenes()) {
    if (scene.device == nullptr) continue;
    for (uint64_t seed = 1; seed <= 4; ++seed, ++worlds) {
      const Outcome outcome = run_task({.seed = seed, .scene = &scene, .twin = true}, {});
      ASSERT_TRUE(outcome.ok) << scene.name() << " " << seed << ": " << outcome.message;
    }
  }
  EXPECT_GT(worlds, 100u);
}

// Addresses of registered memory travel in FPDUs.
TEST(Repeat, MemoryOfApplicationsLiesWhereItLayBefore) {
  std::vector<uint8_t*> before;
  std::vector<std::unique_ptr<uint8_t[]>> heap;  // takes the places that are given back
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<GuardedMemory>> regions;
    for (const uint64_t octets : {4096u, 1u, 70'000'000u, 300'000u}) {
      heap.push_back(std::make_unique<uint8_t[]>(octets + 8192));
      regions.push_back(std::make_unique<GuardedMemory>(octets));
      ASSERT_FALSE(regions.back()->check_idle());
    }
    std::vector<uint8_t*> at;
    for (const auto& region : regions) at.push_back(region->data());
    if (round == 0) before = at;
    EXPECT_EQ(at, before);
    regions[2]->data()[0] = 1;  // what a world leaves is not there in the next
  }
}

}  // namespace
}  // namespace rnic::simulation
