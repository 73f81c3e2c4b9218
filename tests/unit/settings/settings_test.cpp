#include "settings/settings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>

#include "parse.hpp"

namespace rnic::settings {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

std::string source_path(const std::string& path) {
  return std::string(RNIC_SOURCE_DIR) + "/" + path;
}

std::string contents(const std::string& path) {
  auto text = read_file(source_path(path));
  EXPECT_TRUE(text.has_value()) << text.error().message;
  return text.value_or("");
}

constexpr std::string_view kOne = R"(
[[device]]
port = "net_tap0"
address = "10.0.0.1/24"
)";

std::string one_with(const std::string& more) { return std::string(kOne) + more; }

TEST(Settings, LoopbackIsTwoDevicesOnAWire) {
  const Settings settings = parsed(loopback_toml());
  ASSERT_EQ(settings.wires.size(), 1u);
  EXPECT_EQ(settings.wires[0].name, "loop");
  EXPECT_EQ(settings.wires[0].mtu, 1500u);
  EXPECT_EQ(settings.wires[0].ring_size, 1024u);
  ASSERT_EQ(settings.devices.size(), 2u);
  for (uint8_t i = 0; i < 2; ++i) {
    const DeviceSettings& device = settings.devices[i];
    EXPECT_EQ(device.config.name, "rnic" + std::to_string(i));
    EXPECT_EQ(device.port, "wire:loop:" + std::to_string(i));
    EXPECT_EQ(device.config.net.address.as_v4(), 0x0a000001u + i);
    EXPECT_EQ(device.config.net.prefix_length, 24);
    EXPECT_EQ(device.mac, (std::array<uint8_t, 6>{2, 0, 0, 0, 0, static_cast<uint8_t>(i + 1)}));
    EXPECT_FALSE(device.mac_given);
    EXPECT_EQ(device.mtu, 1500u);
    EXPECT_EQ(device.config.net.mtu, 1500u);
    EXPECT_EQ(device.config.seed, i + 1u);
    EXPECT_FALSE(device.impair.seed_given);
    EXPECT_TRUE(device.random_secret);
    EXPECT_FALSE(device.several_threads);
    EXPECT_FALSE(device.impair.enabled);
    EXPECT_TRUE(device.capture.file.empty());
  }
}

TEST(Settings, EmbeddedLoopbackIsTheShippedFile) {
  EXPECT_EQ(loopback_toml(), contents("config/loopback.toml"));
}

TEST(Settings, EveryShippedConfigurationParses) {
  for (const char* file :
       {"config/loopback.toml", "config/nic.toml", "config/hostile.toml", "config/socket.toml"}) {
    const auto settings = parse_settings(contents(file), file);
    EXPECT_TRUE(settings.has_value()) << settings.error().message;
  }
  const Settings nic = parsed(contents("config/nic.toml"));
  EXPECT_EQ(nic.devices.at(0).port, "0000:01:00.0");
  EXPECT_FALSE(nic.devices[0].mac_given);
  EXPECT_EQ(nic.devices[0].mac, (std::array<uint8_t, 6>{}));
  EXPECT_EQ(nic.eal.hugepages, dpdk::Hugepages::Require);
}

TEST(Settings, OnALocalWireTheAddressesGoTogether) {
  const Settings settings = parsed(
      "[[device]]\nport = \"local:/tmp/wire\"\naddress = \"10.77.0.5/16\"\n"
      "[[device]]\nport = \"local:/tmp/wire\"\naddress = \"fd77::5/64\"\n"
      "[[device]]\nport = \"local:/tmp/wire\"\naddress = \"10.77.0.6/16\"\n"
      "mac = \"02:00:00:00:00:09\"\nmpa.first_fpdu_delay = \"3ms\"\n");
  ASSERT_EQ(settings.devices.size(), 3u);
  EXPECT_EQ(settings.devices[0].local_folder(), "/tmp/wire");
  EXPECT_FALSE(settings.devices[0].needs_eal());
  EXPECT_EQ(settings.devices[0].mac, (std::array<uint8_t, 6>{2, 0, 10, 77, 0, 5}));
  EXPECT_EQ(settings.devices[0].config.mpa.first_fpdu_delay, base::Duration{});
  EXPECT_EQ(settings.devices[1].mac, (std::array<uint8_t, 6>{2, 0, 0xfd, 0x77, 0, 5}));
  EXPECT_EQ(settings.devices[2].mac, (std::array<uint8_t, 6>{2, 0, 0, 0, 0, 9}));
  EXPECT_EQ(settings.devices[2].config.mpa.first_fpdu_delay, std::chrono::milliseconds(3));
}

TEST(Settings, HostileImpairsBothEnds) {
  const Settings settings = parsed(contents("config/hostile.toml"));
  ASSERT_EQ(settings.devices.size(), 2u);
  for (const DeviceSettings& device : settings.devices) {
    EXPECT_TRUE(device.impair.enabled);
    EXPECT_EQ(device.impair.config.drop, 0.01);
    EXPECT_EQ(device.impair.config.reorder, 0.02);
    EXPECT_EQ(device.impair.config.reorder_max, 32u);
    EXPECT_EQ(device.impair.config.duplicate, 0.005);
    EXPECT_EQ(device.impair.config.corrupt, 0.001);
    EXPECT_EQ(device.config.tcp.rto_min, milliseconds(5));
    EXPECT_LT(device.config.tcp.delayed_ack, device.config.tcp.rto_min);
    EXPECT_TRUE(device.config.mpa.markers_receive);
    EXPECT_TRUE(device.config.mpa.silent_drop);
  }
}

TEST(Settings, DocumentationIsCurrent) {
  if (std::getenv("RNIC_UPDATE_DOCS") != nullptr) {
    std::ofstream(source_path("docs/settings.md"), std::ios::binary) << settings_markdown();
  }
  EXPECT_EQ(settings_markdown(), contents("docs/settings.md"))
      << "run this test once with RNIC_UPDATE_DOCS=1 and commit docs/settings.md";
}

TEST(Settings, EveryKeyIsDocumentedOnceAndWhole) {
  std::set<std::string> seen;
  for (const KeyDoc& doc : documented_keys()) {
    EXPECT_TRUE(seen.insert(doc.key).second) << doc.key << " twice";
    EXPECT_FALSE(doc.help.empty()) << doc.key;
    EXPECT_FALSE(doc.default_text.empty()) << doc.key;
    EXPECT_FALSE(doc.range.empty()) << doc.key;
  }
  EXPECT_TRUE(seen.contains("tcp.rto_min"));
  EXPECT_TRUE(seen.contains("device.impair.drop"));
}

// The page begins with the about forty keys that one needs to set up a device.
TEST(Settings, DocumentationLeadsWithTheBasicKeys) {
  const std::string page = settings_markdown();
  std::map<Tier, size_t> count;
  for (const KeyDoc& doc : documented_keys()) ++count[doc.tier];
  EXPECT_GE(count[Tier::Basic], 35u);
  EXPECT_LE(count[Tier::Basic], 45u);
  EXPECT_GT(count[Tier::Conformance], 0u);
  std::vector<size_t> parts;
  for (const char* part : {"## Basic keys", "## Advanced keys", "## Conformance keys"}) {
    parts.push_back(page.find(part));
    ASSERT_NE(parts.back(), std::string::npos) << part;
  }
  EXPECT_TRUE(std::is_sorted(parts.begin(), parts.end()));
  parts.push_back(page.size());
  for (size_t i = 0; i < kTiers.size(); ++i) {
    const std::string part = page.substr(parts[i], parts[i + 1] - parts[i]);
    size_t rows = 0;
    for (size_t at = 0; (at = part.find("\n| `", at)) != std::string::npos; ++at) ++rows;
    EXPECT_EQ(rows, count[kTiers[i]]) << "a row for each key of the tier, and no other";
  }
}

TEST(Settings, TiersOfKeysThatEveryoneMeets) {
  std::map<std::string, Tier> tiers;
  for (const KeyDoc& doc : documented_keys()) tiers[doc.key] = doc.tier;
  for (const char* key : {"device.port", "device.address", "wire.name", "limits.max_connections",
                          "tcp.congestion_control", "mpa.crc"}) {
    EXPECT_EQ(tiers.at(key), Tier::Basic) << key;
  }
  EXPECT_EQ(tiers.at("tcp.delayed_ack"), Tier::Advanced);
  EXPECT_EQ(tiers.at("tcp.hystart_css_rounds"), Tier::Conformance);
}

// The documented default of every key is accepted and changes nothing.
TEST(Settings, DocumentedDefaultsAreAcceptedValues) {
  std::vector<std::string> overrides;
  for (const KeyDoc& doc : documented_keys()) {
    const bool shared = !doc.key.starts_with("device.") && !doc.key.starts_with("wire.");
    if (shared) overrides.push_back(doc.key + "=" + doc.default_text);
  }
  EXPECT_GT(overrides.size(), 50u);
  const Settings plain = parsed(kOne);
  const Settings spelled = parsed(kOne, overrides);
  const device::DeviceConfig& a = plain.devices.at(0).config;
  const device::DeviceConfig& b = spelled.devices.at(0).config;
  EXPECT_EQ(a.tcp.receive_window, b.tcp.receive_window);
  EXPECT_EQ(a.tcp.user_timeout, b.tcp.user_timeout);
  EXPECT_EQ(a.tcp.congestion_control, b.tcp.congestion_control);
  EXPECT_EQ(a.mpa.hold_limit, b.mpa.hold_limit);
  EXPECT_EQ(a.tuf.hold_limit, b.tuf.hold_limit);
  EXPECT_EQ(a.net.arp_lifetime, b.net.arp_lifetime);
  EXPECT_EQ(a.limits.hold_octets, b.limits.hold_octets);
  EXPECT_EQ(plain.worker.idle, spelled.worker.idle);
  EXPECT_TRUE(spelled.worker.cores.empty());
  EXPECT_TRUE(spelled.eal.args.empty());
}

TEST(Settings, DefaultsAreThoseOfTheStructs) {
  const Settings settings = parsed(kOne);
  EXPECT_EQ(settings.devices.at(0).config.tcp.rto_min, tcp::Config{}.rto_min);
  EXPECT_EQ(settings.devices[0].config.mpa.early_limit, mpa::Config{}.early_limit);
  EXPECT_EQ(settings.devices[0].config.limits.max_qps, device::Limits{}.max_qps);
  EXPECT_EQ(settings.devices[0].config.name, "rnic0");
  EXPECT_EQ(settings.eal.memory_mb, EalSettings{}.memory_mb);
}

constexpr std::string_view kEveryKind = R"(
[eal]
hugepages = "off"
memory_mb = 256
args = ["--log-level=8", "--vdev=net_ring0,x=1"]
[worker]
mode = "threaded"
idle = "yield"
cores = [3]
[tcp]
sack = false
congestion_control = "newreno"
receive_window = "256KB"
max_cwnd = 100000
rto_min = "1.5ms"
delayed_ack = "0s"
user_timeout = "2min"
ephemeral_first = 50000
[net]
ttl = 7
arp_lifetime = "1h"
[limits]
hold_octets = "5GB"
[[device]]
name = "x-1_Y"
port = "0000:01:00.0"
mac = "02:aB:00:00:00:10"
address = "192.168.7.9/16"
gateway = "192.168.0.1"
mtu = 9000
seed = 9223372036854775807
random_secret = false
several_threads = true
[device.impair]
drop = 1
repair = 0.25
delay = "20us"
[device.capture]
file = "x.pcapng"
)";

TEST(Settings, EveryKindOfValueOfTheProcess) {
  const Settings settings = parsed(kEveryKind);
  EXPECT_EQ(settings.eal.hugepages, dpdk::Hugepages::Off);
  EXPECT_EQ(settings.eal.memory_mb, 256u);
  EXPECT_EQ(settings.eal.args, (std::vector<std::string>{"--log-level=8", "--vdev=net_ring0,x=1"}));
  EXPECT_EQ(settings.worker.mode, WorkerSettings::Threaded);
  EXPECT_EQ(settings.worker.idle, WorkerSettings::Yield);
  EXPECT_EQ(settings.worker.cores, std::vector<uint32_t>{3});
}

TEST(Settings, EveryKindOfValueOfADevice) {
  const Settings settings = parsed(kEveryKind);
  ASSERT_EQ(settings.devices.size(), 1u);
  const DeviceSettings& device = settings.devices[0];
  EXPECT_FALSE(device.config.tcp.sack);
  EXPECT_EQ(device.config.tcp.congestion_control, CongestionControl::NewReno);
  EXPECT_EQ(device.config.tcp.receive_window, 256u << 10);
  EXPECT_EQ(device.config.tcp.max_cwnd, 100000u);
  EXPECT_EQ(device.config.tcp.rto_min, microseconds(1500));
  EXPECT_EQ(device.config.tcp.delayed_ack, seconds(0));
  EXPECT_EQ(device.config.tcp.user_timeout, minutes(2));
  EXPECT_EQ(device.config.tcp.ephemeral_first, 50000);
  EXPECT_EQ(device.config.net.ttl, 7);
  EXPECT_EQ(device.config.net.arp_lifetime, minutes(60));
  EXPECT_EQ(device.config.limits.hold_octets, 5ull << 30);
  EXPECT_EQ(device.config.name, "x-1_Y");
  EXPECT_EQ(device.mac, (std::array<uint8_t, 6>{2, 0xab, 0, 0, 0, 16}));
  EXPECT_TRUE(device.mac_given);
  EXPECT_EQ(to_string(device.config.net.address), "192.168.7.9");
  EXPECT_EQ(device.config.net.prefix_length, 16);
  EXPECT_EQ(to_string(device.config.net.gateway), "192.168.0.1");
  EXPECT_EQ(device.mtu, 9000u);
  EXPECT_EQ(device.config.net.mtu, 9000u);
  EXPECT_EQ(device.config.seed, 9223372036854775807u);
  EXPECT_FALSE(device.random_secret);
  EXPECT_TRUE(device.several_threads);
  EXPECT_TRUE(device.impair.enabled);
  EXPECT_TRUE(device.impair.seed_given);  // by the device's: all of it is repeatable
  EXPECT_EQ(device.impair.seed, device.config.seed);
  EXPECT_EQ(device.impair.config.drop, 1);
  EXPECT_EQ(device.impair.config.repair, 0.25);
  EXPECT_EQ(device.impair.config.delay, microseconds(20));
  EXPECT_EQ(device.capture.file, "x.pcapng");
}

TEST(Settings, ADeviceWinsOverTheSectionForAll) {
  const Settings settings = parsed(R"(
[[device]]
port = "a"
address = "10.0.0.1/24"
[device.tcp]
rto_min = "7ms"
[device.limits]
max_qps = 5
[[device]]
port = "b"
address = "10.0.0.2/24"
[tcp]
rto_min = "9ms"
)");
  ASSERT_EQ(settings.devices.size(), 2u);
  EXPECT_EQ(settings.devices[0].config.tcp.rto_min, milliseconds(7));
  EXPECT_EQ(settings.devices[0].config.limits.max_qps, 5u);
  EXPECT_EQ(settings.devices[1].config.tcp.rto_min, milliseconds(9));
  EXPECT_EQ(settings.devices[1].config.limits.max_qps, 1024u);
}

TEST(Settings, TheMtuOfAWireIsItsDevicesDefault) {
  const Settings settings =
      parsed(loopback_toml(), {"wire.loop.mtu=9000", "device.rnic1.mtu=4000"});
  EXPECT_EQ(settings.devices.at(0).mtu, 9000u);
  EXPECT_EQ(settings.devices.at(1).mtu, 4000u);
  EXPECT_EQ(settings.devices[1].config.net.mtu, 4000u);
}

TEST(Settings, OverridesOfEveryForm) {
  const Settings settings = parsed(
      loopback_toml(),
      {"tcp.rto_min=5ms", "mpa.markers=true", "device.*.mtu=1000", "wire.*.ring_size=256",
       "tcp.receive_window=64KB", "device.rnic1.tcp.rto_min = 6ms", "worker.cores=[0, 1]",
       "eal.args=[\"a,b\", c]", "net.ttl=3", "device.rnic0.impair.seed=77", "worker.mode=threaded",
       "tcp.rto_max=70s", "tcp.rto_max=80s", "device.rnic0.port=net_tap0,iface=a=b"});
  ASSERT_EQ(settings.devices.size(), 2u);
  EXPECT_EQ(settings.devices[0].config.tcp.rto_min, milliseconds(5));
  EXPECT_EQ(settings.devices[1].config.tcp.rto_min, milliseconds(6));
  EXPECT_EQ(settings.devices[1].config.tcp.rto_max, seconds(80));
  EXPECT_TRUE(settings.devices[1].config.mpa.markers_receive);
  EXPECT_EQ(settings.devices[0].config.tcp.receive_window, 64u << 10);
  EXPECT_EQ(settings.devices[1].mtu, 1000u);
  EXPECT_EQ(settings.wires.at(0).ring_size, 256u);
  EXPECT_EQ(settings.worker.cores, (std::vector<uint32_t>{0, 1}));
  EXPECT_EQ(settings.eal.args, (std::vector<std::string>{"a,b", "c"}));
  EXPECT_EQ(settings.devices[0].config.net.ttl, 3);
  EXPECT_EQ(settings.devices[0].impair.seed, 77u);
  EXPECT_EQ(settings.devices[0].port, "net_tap0,iface=a=b");
}

TEST(Settings, AnOverrideForAllDevicesLeavesADevicesOwnValue) {
  const std::string text = one_with("[device.tcp]\nrto_min = \"7ms\"\n");
  EXPECT_EQ(parsed(text, {"tcp.rto_min=5ms"}).devices.at(0).config.tcp.rto_min, milliseconds(7));
  EXPECT_EQ(parsed(text, {"device.*.tcp.rto_min=5ms"}).devices.at(0).config.tcp.rto_min,
            milliseconds(5));
}

// On a wire checksums are left open, so an impaired end needs a decorated other end.
TEST(Settings, TheOtherEndOfAnImpairedWireIsDecoratedAndHarmless) {
  const Settings settings = parsed(loopback_toml(), {"device.rnic1.impair.drop=0.5"});
  EXPECT_TRUE(settings.devices.at(0).impair.enabled);
  EXPECT_EQ(settings.devices[0].impair.config.drop, 0);
  EXPECT_TRUE(settings.devices.at(1).impair.enabled);
  EXPECT_EQ(settings.devices[1].impair.config.drop, 0.5);
}

TEST(Settings, ImpairmentCanBeSwitchedOff) {
  const Settings settings =
      parsed(contents("config/hostile.toml"), {"device.*.impair.enabled=false"});
  EXPECT_FALSE(settings.devices.at(0).impair.enabled);
  EXPECT_FALSE(settings.devices.at(1).impair.enabled);
}

TEST(Settings, GatewaysOfBothFamilies) {
  const net::Config net = parsed(one_with("addresses = [\"fd00::1/64\"]\ngateway = \"10.0.0.254\"\n"
                                          "gateway6 = \"fd00::fe\"\n"))
                              .devices.at(0)
                              .config.net;
  EXPECT_EQ(to_string(net.gateway), "10.0.0.254");
  EXPECT_EQ(to_string(net.gateway6), "fd00::fe");
  const auto swapped = parse_settings(one_with("gateway = \"fd00::fe\"\n"), "t.toml", {});
  ASSERT_FALSE(swapped.has_value());
  EXPECT_NE(swapped.error().message.find("device.rnic0.gateway"), std::string::npos);
}

TEST(Settings, ADeviceOnSocketsListensAtAllOfItsAddresses) {
  const Settings settings = parsed(
      "[[device]]\nport = \"socket\"\naddress = \"127.0.0.1/8\"\n"
      "addresses = [\"127.0.0.2/8\", \"::1/128\"]\n");
  std::vector<std::string> shown;
  for (const IpAddress& address : settings.devices.at(0).socket.addresses) {
    shown.push_back(to_string(address));
  }
  EXPECT_EQ(shown, (std::vector<std::string>{"127.0.0.1", "127.0.0.2", "::1"}));
}

TEST(Settings, CoresMeanNothingInline) {
  EXPECT_EQ(parsed(one_with("[worker]\ncores = [1, 2, 3]\n")).worker.cores.size(), 3u);
}

}  // namespace
}  // namespace rnic::settings
