// Limits that follow from others unless they are given.

#include "settings/derived.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "parse.hpp"

namespace rnic::settings {
namespace {

constexpr uint64_t kKb = 1 << 10;
constexpr uint64_t kMb = 1 << 20;

Target target_of(std::string_view path, DeviceSettings& device) {
  const size_t dot = path.rfind('.');
  Scope scope;
  scope.device = &device;
  return find_key(path.substr(0, dot), path.substr(dot + 1))->target(scope);
}

uint64_t value_in(std::string_view path, DeviceSettings& device) {
  return number_at(target_of(path, device));
}

DeviceSettings device_with(const std::vector<std::string>& overrides,
                           const std::string& more = {}) {
  auto settings = parse_settings(kDevice + more, "t.toml", overrides);
  EXPECT_TRUE(settings.has_value()) << settings.error().message;
  return settings ? settings->devices.at(0) : DeviceSettings{};
}

/// What the rules are to make of a number of connections, told by hand.
struct Row {
  const char* key;
  uint64_t of_four;  ///< connections
  uint64_t usual;    ///< 1024 connections
  uint64_t doubled;
  uint64_t of_most;
};
constexpr Row kRows[] = {
    {"limits.max_qps", 64, 1024, 2048, 65535},
    {"limits.max_cqs", 64, 1024, 2048, 65535},
    {"limits.max_pds", 16, 256, 512, 16383},
    {"limits.max_srqs", 16, 256, 512, 16383},
    {"limits.max_regions", 4096, 65536, 131072, 4194240},
    {"limits.max_starting", 4, 256, 512, 16384},
    {"limits.max_pending_requests", 4, 128, 256, 8192},
    {"limits.max_events", 256, 4096, 8192, 262144},
    {"limits.hold_octets", kMb, 8 * kMb, 16 * kMb, 512 * kMb},
    {"limits.max_packed", 1024, 16384, 32768, 1048576},
    {"limits.max_streams", 4, 1024, 2048, 4096},
    {"limits.stream_octets", 2 * kMb, 128 * kMb, 256 * kMb, 512 * kMb},
    {"framing.hold_limit", kMb, kMb, kMb, kMb},
    {"tcp.max_time_wait", 1024, 16384, 32768, 1048576},
    {"tcp.max_range_sets", 8, 2048, 4096, 131072},
    {"tcp.max_half_open", 4, 128, 256, 8192},
    {"tcp.max_half_open_per_listener", 4, 128, 256, 8192},
    {"tcp.max_records", 16384, 65536, 131072, 4194304},
    {"tcp.max_records_per_connection", 16384, 16384, 16384, 16384},
    {"tcp.max_saved_octets", 256 * kKb, 4 * kMb, 8 * kMb, 256 * kMb},
};

TEST(Derived, EachRuleIsInTheTableBelow) {
  std::set<std::string_view> told;
  for (const Row& row : kRows) EXPECT_TRUE(told.insert(row.key).second) << row.key;
  EXPECT_EQ(told.size(), all_rules().size());
  for (const Rule& rule : all_rules()) EXPECT_TRUE(told.contains(rule.key)) << rule.key;
}

// A rule reads what is known by then: what the file gave, or what a rule before it made.
TEST(Derived, RulesReadWhatIsKnown) {
  std::set<std::string_view> later;
  for (const Rule& rule : all_rules()) later.insert(rule.key);
  for (const Rule& rule : all_rules()) {
    EXPECT_FALSE(later.contains(rule.from)) << rule.key;
    EXPECT_FALSE(later.contains(rule.room_for)) << rule.key;
    later.erase(rule.key);
  }
}

// The numbers of the structs, which stacks and devices without a file are made from.
TEST(Derived, DefaultsFollowFromTheDefault) {
  DeviceSettings plain;
  DeviceSettings parsed = device_with({});
  for (const Row& row : kRows) {
    EXPECT_EQ(value_in(row.key, plain), row.usual) << row.key;
    EXPECT_EQ(value_in(row.key, parsed), row.usual) << row.key;
  }
}

TEST(Derived, TheyFollowTheNumberOfConnections) {
  std::map<std::string, uint64_t Row::*> columns{{"limits.max_connections=4", &Row::of_four},
                                                 {"limits.max_connections=1024", &Row::usual},
                                                 {"limits.max_connections=2048", &Row::doubled},
                                                 {"limits.max_connections=65536", &Row::of_most}};
  for (const auto& [connections, column] : columns) {
    DeviceSettings device = device_with({connections});
    for (const Row& row : kRows) {
      EXPECT_EQ(value_in(row.key, device), row.*column) << row.key << " with " << connections;
    }
  }
}

class GivenLimits : public ::testing::TestWithParam<Rule> {
 protected:
  const std::string key_{GetParam().key};
  /// Another value than the rule has, which fits the other limits.
  static uint64_t given() {
    DeviceSettings plain;
    return value_in(GetParam().key, plain) / 2;
  }
  static uint64_t value(DeviceSettings device) { return value_in(GetParam().key, device); }
};

TEST_P(GivenLimits, WinOverTheRule) {
  const std::string number = std::to_string(given());
  const size_t dot = key_.rfind('.');
  const std::string line = key_.substr(dot + 1) + " = " + number + "\n";
  const std::string section = key_.substr(0, dot);
  EXPECT_EQ(value(device_with({}, "[" + section + "]\n" + line)), given()) << "for all";
  EXPECT_EQ(value(device_with({}, "[device." + section + "]\n" + line)), given()) << "its own";
  EXPECT_EQ(value(device_with({key_ + "=" + number})), given());
  EXPECT_EQ(value(device_with({"device.rnic0." + key_ + "=" + number})), given());
  EXPECT_EQ(value(device_with({key_ + "=" + number, "limits.max_connections=2048"})), given())
      << "whatever it would follow from";
}

TEST_P(GivenLimits, AreNoRuleOfAnotherDevice) {
  auto settings = parse_settings(
      kDevice + std::string("[[device]]\nport = \"q\"\naddress = \"10.0.0.2/24\"\n"), "t.toml",
      std::vector<std::string>{"device.rnic0." + key_ + "=" + std::to_string(given())});
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  EXPECT_EQ(value(settings->devices.at(0)), given());
  EXPECT_EQ(value(settings->devices.at(1)), value(DeviceSettings{}));
}

// The page says the rule where it says the default.
TEST_P(GivenLimits, AreDocumentedWithTheRule) {
  for (const KeyDoc& doc : documented_keys()) {
    if (doc.key != key_) continue;
    EXPECT_EQ(doc.rule, rule_text(GetParam()));
    EXPECT_NE(doc.rule.find(GetParam().from), std::string::npos);
    EXPECT_NE(settings_markdown().find("`" + doc.default_text + "` = " + doc.rule + " |"),
              std::string::npos);
  }
}

std::string name_of_rule(const ::testing::TestParamInfo<Rule>& info) {
  std::string name(info.param.key);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, GivenLimits,
                         ::testing::ValuesIn(all_rules().begin(), all_rules().end()), name_of_rule);

TEST(Derived, RulesFollowOneAnother) {
  DeviceSettings device =
      device_with({"limits.max_qps=400", "limits.hold_octets=128KB", "limits.stream_buffer=64MB",
                   "tcp.max_half_open=1000", "tcp.max_records=100"});
  EXPECT_EQ(device.config.limits.max_cqs, 400u);
  EXPECT_EQ(device.config.limits.max_pds, 100u);
  EXPECT_EQ(device.config.limits.max_regions, 25600u);
  EXPECT_EQ(device.config.mpa.hold_limit, 128 * kKb);
  EXPECT_EQ(device.config.limits.stream_octets, 512 * kMb) << "room for eight buffers";
  EXPECT_EQ(device.config.tcp.max_half_open_per_listener, 1000u);
  EXPECT_EQ(device.config.tcp.max_records_per_connection, 100u);
}

// For messages: what somebody has given, or could give in its place.
TEST(Derived, RootsAreWhatWasGiven) {
  const DeviceSettings none = device_with({});
  EXPECT_EQ(root_of(none, "limits.max_regions"), "limits.max_connections");
  EXPECT_EQ(root_of(none, "framing.hold_limit"), "limits.max_connections");
  EXPECT_EQ(root_of(none, "limits.max_connections"), "limits.max_connections");
  EXPECT_EQ(root_of(none, "limits.framed_buffer"), "limits.framed_buffer");
  const DeviceSettings queues = device_with({"limits.max_qps=9"});
  EXPECT_EQ(root_of(queues, "limits.max_regions"), "limits.max_qps");
  EXPECT_EQ(root_of(queues, "limits.max_qps"), "limits.max_qps");
}

TEST(Derived, RulesInWords) {
  EXPECT_EQ(rule_text(*find_rule("tcp.max_records")),
            "64 * limits.max_connections, at least 16384");
  EXPECT_EQ(rule_text(*find_rule("limits.hold_octets")),
            "8KB * limits.max_connections, at least 1MB");
  EXPECT_EQ(rule_text(*find_rule("tcp.max_half_open")),
            "limits.max_connections / 8, at least 16, never above limits.max_connections");
  EXPECT_EQ(rule_text(*find_rule("tcp.max_half_open_per_listener")), "tcp.max_half_open");
  EXPECT_EQ(rule_text(*find_rule("framing.hold_limit")), "limits.hold_octets, at most 1MB");
  EXPECT_EQ(rule_text(*find_rule("limits.stream_octets")),
            "128KB * limits.max_streams, at least 8 * limits.stream_buffer");
  EXPECT_EQ(find_rule("limits.max_connections"), nullptr);
  EXPECT_EQ(find_rule("limits.max_work_depth"), nullptr);
}

}  // namespace
}  // namespace rnic::settings
