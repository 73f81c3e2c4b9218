// Every number of docs/settings.md at the end of its range, in a process of its own that may map
// only so much: it works, or it is refused in one line that says what is asked for and what is
// there. It is quick either way, and what nobody uses is not touched.
//
// RANGES_SHOW=1 prints what each took.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <regex>
#include <string>
#include <vector>

#include "measured.hpp"
#include "rnic/verbs.hpp"
#include "settings/table.hpp"
#include "verbs/machine_check.hpp"

namespace rnic::starved {
namespace {

constexpr uint64_t kMb = 1 << 20;
constexpr uint64_t kGb = 1 << 30;
constexpr uint64_t kAddressSpace = 6 * kGb;
constexpr double kSeconds = 2;  // of computing
// More than with the defaults: the smaller tables, which are filled.
constexpr uint64_t kTouched = 16 * kMb;
constexpr uint64_t kTouchedBySockets = 4 * kMb;  // two devices with the defaults
constexpr uint64_t kTouchedByPorts = 64 * kMb;   // the same, with the pools of DPDK
constexpr uint64_t kDpdk = 256 * kMb;            // eal.memory_mb: DPDK fills its pools

constexpr const char* kWire = R"toml(
[[wire]]
name = "loop"
[[device]]
name = "rnic0"
port = "wire:loop:0"
address = "10.0.0.1/24"
[[device]]
name = "rnic1"
port = "wire:loop:1"
address = "10.0.0.2/24"
)toml";

constexpr const char* kSockets = R"toml(
[[device]]
name = "rnic0"
port = "socket"
address = "127.0.0.1/8"
[[device]]
name = "rnic1"
port = "socket"
address = "127.0.0.1/8"
)toml";

/// A key as an override names it.
std::string name_of(const settings::Key& key) {
  const std::string section(key.section);
  const std::string name(key.name);
  if (section == "wire") return "wire.loop." + name;
  if (section == "device") return "device.rnic0." + name;
  if (section == "device.impair") return "device.rnic0.impair." + name;
  return section + "." + name;
}

std::string end_of(const settings::Key& key) {
  const std::string number = std::to_string(key.range.hi);
  if (key.unit == "time") return number + "ns";
  return key.name == "cores" ? "[" + number + ", " + number + "]" : number;
}

/// What an error says to raise with it; empty: nothing.
std::string advice(const std::string& message) {
  std::smatch match;
  return std::regex_search(message, match, std::regex("raise ([a-z0-9_]+\\.[a-z0-9_.]+)"))
             ? match[1].str()
             : std::string();
}

/// The configuration with the key at its end, and with what errors said to raise for it.
std::vector<std::string> at_its_end(const char* text, const settings::Key& key) {
  const std::string value = end_of(key);
  std::vector<std::string> overrides{"eal.hugepages=off", name_of(key) + "=" + value};
  if (key.name == "cores") overrides.emplace_back("worker.mode=threaded");
  if (key.path() == "device.seed") overrides.emplace_back("device.rnic0.random_secret=false");
  for (int tries = 0; tries < 4; ++tries) {
    Config config = Config::from_text(text, "ranges.toml");
    for (const std::string& one : overrides) config.set(one);
    const Status status = config.check();
    if (status) break;
    const std::string other = advice(status.error().message);
    if (other.empty()) break;
    overrides.push_back(other + "=" + value);
  }
  return overrides;
}

/// Opens and polls once. \return "" or the error
std::string open_with(const char* text, const std::vector<std::string>& overrides) {
  Config config = Config::from_text(text, "ranges.toml");
  for (const std::string& one : overrides) config.set(one);
  auto context = Context::open(config);
  if (!context)
    return std::string(to_string(context.error().code)) + ": " + context.error().message;
  Device device = *context->device("rnic0");
  auto pd = device.alloc_pd();
  auto cq = device.create_cq(16);
  if (!pd || !cq) return "opened, but no queue is to be had";
  auto qp = pd->create_qp(*cq, *cq);
  if (!qp) return "opened, but: " + qp.error().message;
  context->poll();
  return "";
}

uint64_t planned(const char* text, const std::vector<std::string>& overrides) {
  auto settings = settings::parse_settings(text, "ranges.toml", overrides);
  uint64_t all = 0;
  if (!settings) return all;
  for (const verbs::MemoryShare& share : verbs::memory_shares(*settings)) all += share.octets;
  return all;
}

/// A number, of a device as this one.
bool concerns(const settings::Key& key, const char* text) {
  const bool of_frames = key.section == "wire" || key.section == "device.impair";
  return key.range.hi > key.range.lo && (text == kWire || !of_frames);
}

/// Shown as a name.
struct On {
  const char* text;
};
void PrintTo(const On& on, std::ostream* out) { *out << (on.text == kWire ? "Wire" : "Sockets"); }

class Ranges : public ::testing::TestWithParam<On> {
 protected:
  static std::vector<std::string> plain() { return {"eal.hugepages=off"}; }

  /// Opened: what was taken is what was planned, and little of it was touched.
  void took_what_was_planned(const settings::Key& key, const std::vector<std::string>& overrides,
                             const Spent& spent) const {
    const bool sizes_pools =
        key.name == "mtu" || key.name == "ring_size" || key.name == "reassembly_datagrams";
    const uint64_t most = sizes_pools ? kDpdk : kTouched;
    EXPECT_LE(spent.grown.resident, usual_.grown.resident + most) << key.path();
    if (key.name == "cores") return;  // threads have stacks
    const auto more = static_cast<int64_t>(spent.grown.addresses - usual_.grown.addresses);
    const auto plan = static_cast<int64_t>(planned(GetParam().text, overrides) -
                                           planned(GetParam().text, plain()));
    const int64_t slack = static_cast<int64_t>(8 * kMb) + std::abs(plan) / 20;
    EXPECT_NEAR(static_cast<double>(more), static_cast<double>(plan), static_cast<double>(slack))
        << key.path() << ": what check_memory() counts is not what a start takes";
  }

  /// Refused: by one line that names the key, one that had to be raised with it, or what there is
  /// too little of.
  static void is_a_clear_refusal(const std::vector<std::string>& overrides,
                                 const std::string& said) {
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
    const auto is_named = [&said](const std::string& one) {
      const std::string path = one.substr(0, one.find('='));
      return said.find(path.substr(path.rfind('.') + 1)) != std::string::npos;
    };
    // The first one belongs to every trial.
    EXPECT_TRUE(std::any_of(overrides.begin() + 1, overrides.end(), is_named) ||
                said.find("DPDK") != std::string::npos)
        << said;
    EXPECT_EQ(said.find("out of memory"), std::string::npos)
        << said << "\nwas found out by trying, not by looking";
    static const std::regex kAsked("(asks|asked) for.*, and .*[0-9]");
    if (said.starts_with(to_string(ErrorCode::ResourceExhausted))) {
      EXPECT_TRUE(std::regex_search(said, kAsked)) << said;
    }
  }

  /// In a child, before it is measured: a process that was forked from one with DPDK has none.
  static void start_dpdk() {
    if (GetParam().text == kWire) static_cast<void>(open_with(kWire, plain()));
  }

  Spent usual_;
};

// Before DPDK has started in this process: a start of it is part of what is measured.
TEST_P(Ranges, Defaults) {
  ASSERT_FALSE(dpdk::Eal::started());
  const Spent spent = in_child(UINT64_MAX, [] { return open_with(GetParam().text, plain()); });
  ASSERT_TRUE(spent.alive) << spent.said;
  EXPECT_EQ(spent.said, "");
  EXPECT_LE(spent.grown.resident,
            GetParam().text == kSockets ? kTouchedBySockets : kTouchedByPorts);
  std::printf("%llu KB touched, %llu KB mapped\n",
              static_cast<unsigned long long>(spent.grown.resident / 1024),
              static_cast<unsigned long long>(spent.grown.addresses / 1024));
}

TEST_P(Ranges, EndOfEach) {
  usual_ = in_child(
      kAddressSpace, [] { return open_with(GetParam().text, plain()); }, start_dpdk);
  ASSERT_TRUE(usual_.alive) << usual_.said;
  ASSERT_EQ(usual_.said, "");
  uint32_t opened = 0;
  uint32_t refused = 0;
  for (const settings::Key& key : settings::all_keys()) {
    if (!concerns(key, GetParam().text) || key.section == "eal") continue;
    const std::vector<std::string> overrides = at_its_end(GetParam().text, key);
    const Spent spent = in_child(
        kAddressSpace, [&] { return open_with(GetParam().text, overrides); }, start_dpdk);
    if (std::getenv("RANGES_SHOW") != nullptr) {
      std::printf("%-40s %6.2f s %5llu MB touched %6llu MB mapped %s\n", name_of(key).c_str(),
                  spent.cpu_seconds, static_cast<unsigned long long>(spent.grown.resident / kMb),
                  static_cast<unsigned long long>(spent.grown.addresses / kMb), spent.said.c_str());
    }
    ASSERT_TRUE(spent.alive) << name_of(key) << ": " << spent.said;
    EXPECT_LE(spent.cpu_seconds, kSeconds) << name_of(key);
    ++(spent.said.empty() ? opened : refused);
    if (spent.said.empty()) {
      took_what_was_planned(key, overrides, spent);
    } else {
      is_a_clear_refusal(overrides, spent.said);
    }
  }
  std::printf("%u keys at their end: %u opened, %u refused\n", opened + refused, opened, refused);
  EXPECT_GE(opened, 80u);
}

TEST(RangesOfDpdk, Memory) {
  ASSERT_FALSE(dpdk::Eal::started());
  const settings::Key* key = settings::find_key("eal", "memory_mb");
  const Spent all = in_child(UINT64_MAX, [&] { return open_with(kWire, at_its_end(kWire, *key)); });
  ASSERT_TRUE(all.alive) << all.said;
  EXPECT_LE(all.cpu_seconds, kSeconds);
  EXPECT_TRUE(all.said.starts_with("resource exhausted: eal.memory_mb: ")) << all.said;
  // What is there is given, and not touched but for DPDK's descriptors of its pages.
  const Spent some = in_child(UINT64_MAX, [&] {
    return open_with(kWire, {"eal.hugepages=off", "eal.memory_mb=4096"});
  });
  ASSERT_TRUE(some.alive) << some.said;
  EXPECT_EQ(some.said, "");
  EXPECT_LE(some.grown.resident, kTouchedByPorts + 4 * kGb / 32);
}

std::string shown(const ::testing::TestParamInfo<On>& info) {
  return ::testing::PrintToString(info.param);
}
INSTANTIATE_TEST_SUITE_P(All, Ranges, ::testing::Values(On{kSockets}, On{kWire}), shown);

}  // namespace
}  // namespace rnic::starved
