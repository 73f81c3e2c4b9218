#include <gtest/gtest.h>

#include "parse.hpp"

namespace rnic::settings {
namespace {

/// `text` stands from line 4 on, behind a good device.
std::string behind(const std::string& text) { return error_of(kDevice + text); }
std::string loop(const std::string& assignment) { return error_of(loopback_toml(), {assignment}); }

struct Case {
  const char* text;
  const char* message;
};

TEST(SettingsErrors, UnknownNamesComeWithARemedy) {
  const Case cases[] = {
      {"[tcp]\nrto_mim = \"1s\"\n",
       "t.toml:5: tcp.rto_mim: unknown key; did you mean tcp.rto_min?"},
      {"[tcp]\n\n\ncrc = true\n", "t.toml:7: tcp.crc: unknown key; did you mean mpa.crc?"},
      {"[mpa]\nmarkers_receive = true\n",
       "t.toml:5: mpa.markers_receive: unknown key; did you mean mpa.markers?"},
      {"[mpa]\nmarkers_send = true\n",
       "t.toml:5: mpa.markers_send: unknown key; did you mean mpa.markers_send_allowed?"},
      {"[mpa]\nzzzzzz = 1\n", "t.toml:5: mpa.zzzzzz: unknown key; docs/settings.md lists all"},
      {"[tpc]\n", "t.toml:4: tpc: unknown section; did you mean tcp?"},
      {"[impair]\n", "t.toml:4: impair: unknown section; did you mean device.impair?"},
      {"adress = \"10.0.0.1/24\"\n",
       "t.toml:4: device.rnic0.adress: unknown key; did you mean device.rnic0.address?"},
      {"[device.impare]\n",
       "t.toml:4: device.rnic0.impare: unknown section; did you mean device.impair?"},
      {"[device.impair]\ndorp = 0.1\n",
       "t.toml:5: device.rnic0.impair.dorp: unknown key; did you mean device.rnic0.impair.drop?"},
      {"[device.tcp]\nsakc = true\n",
       "t.toml:5: device.rnic0.tcp.sakc: unknown key; did you mean device.rnic0.tcp.sack?"},
      {"tcp = 3\n", "t.toml:4: device.rnic0.tcp: is a section: write [device.tcp]"},
      {"[device.mtu]\n", "t.toml:4: device.rnic0.mtu: is one key, not a section"},
      {"[[tcp]]\n", "t.toml:4: tcp: there is only one: write [tcp]"},
      {"[wire]\nname = \"a\"\n", "t.toml:4: wire: there can be several: write [[wire]]"},
  };
  for (const Case& c : cases) EXPECT_EQ(behind(c.text), c.message) << c.text;
  EXPECT_EQ(error_of(std::string("rto_min = \"1s\"\n") + kDevice),
            "t.toml:1: rto_min: a key outside any section; did you mean tcp.rto_min?");
}

TEST(SettingsErrors, ValuesOfTheWrongKind) {
  const Case cases[] = {
      {"[tcp]\nsack = 1\n", "t.toml:5: tcp.sack: 1 is neither true nor false"},
      {"[tcp]\nrto_min = 5\n",
       "t.toml:5: tcp.rto_min: 5 is not a duration: write a string with a unit (ns, us, ms, s, "
       "min, "
       "h), as in \"200ms\""},
      {"[tcp]\nsyn_retries = 1.5\n", "t.toml:5: tcp.syn_retries: 1.5 is not a whole number"},
      {"[tcp]\nsyn_retries = \"4KB\"\n",
       "t.toml:5: tcp.syn_retries: \"4KB\" is not a whole number"},
      {"[tcp]\nmax_cwnd = \"4kb\"\n",
       "t.toml:5: tcp.max_cwnd: \"4kb\" is not a size: write octets, or as in \"64KB\" or \"4MB\""},
      {"[tcp]\ncongestion_control = \"bbr\"\n",
       "t.toml:5: tcp.congestion_control: \"bbr\" is not one of \"newreno\", \"cubic\", \"dctcp\""},
      {"[worker]\ncores = 1\n", "t.toml:5: worker.cores: 1 is not a list: write it in brackets"},
      {"[worker]\ncores = [1, \"x\"]\n", "t.toml:5: worker.cores: \"x\" is not a whole number"},
      {"[eal]\nargs = [[\"x\"]]\n", "t.toml:5: eal.args: a list is not a string: put it in quotes"},
      {"[tcp]\nsack = 1979-05-27\n", "t.toml:5: tcp.sack: takes no dates and no tables"},
      {"[device.impair]\ndrop = \"1%\"\n",
       "t.toml:5: device.rnic0.impair.drop: \"1%\" is not a number"},
      {"mac = \"02-00-00-00-00-01\"\n",
       "t.toml:4: device.rnic0.mac: \"02-00-00-00-00-01\" is not a MAC address: write "
       "\"02:00:00:00:00:01\""},
      {"mac = \"01:00:00:00:00:01\"\n",
       "t.toml:4: device.rnic0.mac: \"01:00:00:00:00:01\" is a group address: its first octet must "
       "be even"},
      {"gateway = \"10.0.0\"\n",
       "t.toml:4: device.rnic0.gateway: \"10.0.0\" is not an IP address: write 10.0.0.1 or "
       "fd00::1"},
  };
  for (const Case& c : cases) EXPECT_EQ(behind(c.text), c.message) << c.text;
}

TEST(SettingsErrors, EveryRangeHasTwoEnds) {
  const Case cases[] = {
      {"[tcp]\ngrowth_limit_segments = 0\n",
       "t.toml:5: tcp.growth_limit_segments: 0 is out of range: 1..64"},
      {"[tcp]\ninitial_window_segments = 65\n",
       "t.toml:5: tcp.initial_window_segments: 65 is out of range: 0..64"},
      {"[tcp]\nreceive_window = \"2GB\"\n",
       "t.toml:5: tcp.receive_window: \"2GB\" is out of range: 4KB..1GB"},
      {"[tcp]\ndelayed_ack = \"500ms\"\n",
       "t.toml:5: tcp.delayed_ack: \"500ms\" is out of range: 0s..499ms"},
      {"[tcp]\nrto_max = \"99999999999999h\"\n",
       "t.toml:5: tcp.rto_max: \"99999999999999h\" is out of range: 1ms..1h"},
      {"[net]\nttl = 256\n", "t.toml:5: net.ttl: 256 is out of range: 1..255"},
      {"mtu = 575\n", "t.toml:4: device.rnic0.mtu: 575 is out of range: 576..9216"},
      {"mtu = 9217\n", "t.toml:4: device.rnic0.mtu: 9217 is out of range: 576..9216"},
      {"seed = -1\n", "t.toml:4: device.rnic0.seed: -1 is out of range: 0..2^63-1"},
      {"seed = 1\n",
       "t.toml:4: device.rnic0.seed: means nothing with random_secret = true: give impair.seed for "
       "the same damage again, or random_secret = false for the same ports, STags and sequence "
       "numbers (only in tests)"},
      {"[device.impair]\ndrop = 1.01\n",
       "t.toml:5: device.rnic0.impair.drop: 1.01 is out of range: 0..1"},
      {"[device.impair]\ndrop = nan\n",
       "t.toml:5: device.rnic0.impair.drop: nan is out of range: 0..1"},
      {"[worker]\ncores = [1024]\n", "t.toml:5: worker.cores: 1024 is out of range: 0..1023"},
  };
  for (const Case& c : cases) EXPECT_EQ(behind(c.text), c.message) << c.text;
}

TEST(SettingsErrors, RulesAcrossKeys) {
  const Case cases[] = {
      {"[tcp]\nrto_min = \"2s\"\nrto_max = \"1s\"\n",
       "t.toml:5: tcp.rto_min: rto_min (2s) is above rto_max (1s)"},
      {"[device.tcp]\nrto_max = \"900ms\"\n",
       "t.toml:5: device.rnic0.tcp.rto_max: rto_initial (1s) is above rto_max (900ms)"},
      {"[tcp]\nmax_half_open = 2000\n",
       "t.toml:5: tcp.max_half_open: tcp.max_half_open (2000) is above limits.max_connections "
       "(1024): raise limits.max_connections or lower tcp.max_half_open"},
      {"[framing]\nhold_limit = \"9MB\"\n",
       "t.toml:5: framing.hold_limit: framing.hold_limit (9437184) is above limits.hold_octets "
       "(8388608): "
       "raise limits.hold_octets or lower framing.hold_limit"},
      {"[mpa]\nrevision = 2\nrtr_send = false\nrtr_write = false\nrtr_read = false\n",
       "t.toml:6: mpa.rtr_send: rtr_send, rtr_write and rtr_read are all off: a peer-to-peer "
       "start-up needs one of them (RFC 6581 section 9.2)"},
      {"[device.impair]\nreorder_max = 3\nreorder_min = 4\n",
       "t.toml:6: device.rnic0.impair.reorder_min: reorder_min (4) is above reorder_max (3)"},
      {"[device.capture]\nfile = \"\"\n",
       "t.toml:5: device.rnic0.capture.file: is empty: name a file, or leave the section out"},
      {"gateway = \"10.0.1.1\"\n",
       "t.toml:4: device.rnic0.gateway: \"10.0.1.1\" is not another host of the device's network "
       "\"10.0.0.1/24\""},
      {"name = \"a b\"\n",
       "t.toml:4: device.a b.name: \"a b\" is no good name: 1 to 31 letters, digits, _ and -"},
      {"[worker]\nmode = \"threaded\"\ncores = [0, 1]\n",
       "t.toml:6: worker.cores: names 2 cores for 1 threads: name one each, or none at all"},
      {"[worker]\nmode = \"threaded\"\ncount = 2\n",
       "t.toml:6: worker.count: asks for 2 threads for 1 devices: at most one each"},
      {"[[wire]]\nname = \"w\"\n[[wire]]\nname = \"w\"\n",
       "t.toml:7: wire.name: \"w\" is taken by another wire"},
      {"[[wire]]\n", "t.toml:4: wire.name: is missing or empty: 1 to 31 letters, digits, _ and -"},
      {"[device.tuf]\nalign = false\nmarkers = false\n",
       "t.toml:5: device.rnic0.tuf.align: tuf.align and tuf.markers are both off: a receiver needs "
       "one of them"},
      {"[tuf]\nmarkers = false\n[device.tuf]\nalign = false\n",
       "t.toml:7: device.rnic0.tuf.align: tuf.align and tuf.markers are both off: a receiver needs "
       "one of them"},
  };
  for (const Case& c : cases) EXPECT_EQ(behind(c.text), c.message) << c.text;
}

TEST(SettingsErrors, AddressesAndRoutesOfADevice) {
  const Case cases[] = {
      {"addresses = [\"fd00::1/64\"]\nmtu = 1279\n",
       "t.toml:5: device.rnic0.mtu: 1279 is too small for IPv6, which needs 1280"},
      {"addresses = [\"::1/128\"]\n",
       "t.toml:4: device.rnic0.addresses: \"::1/128\" is no address of a host: take one as in "
       "\"fd00::1/64\""},
      {"addresses = [\"ff02::1/64\"]\n",
       "t.toml:4: device.rnic0.addresses: \"ff02::1/64\" is no address of a host: take one as in "
       "\"fd00::1/64\""},
      {"gateway = \"10.0.0.1\"\n",
       "t.toml:4: device.rnic0.gateway: \"10.0.0.1\" is not another host of the device's network "
       "\"10.0.0.1/24\""},
      {"addresses = [\"10.0.1.1/24\"]\ngateway = \"10.0.1.1\"\n",
       "t.toml:5: device.rnic0.gateway: \"10.0.1.1\" is not another host of the device's network "
       "\"10.0.0.1/24\" or its others"},
      {"routes = [\"10.9.0.0/16 via 10.0.0.254\"]\n", ""},
      {"routes = [\"10.9.0.0/16 via 10.0.1.254\"]\n",
       "t.toml:4: device.rnic0.routes: \"10.0.1.254\" is not another host of the device's network "
       "\"10.0.0.1/24\""},
      {"routes = [\"fd09::/16 via 10.0.0.254\"]\n",
       "t.toml:4: device.rnic0.routes: \"10.0.0.254\" is not another host of the device's network "
       "\"10.0.0.1/24\""},
      {"routes = [\"10.9.0.0/16 by 10.0.0.254\"]\n",
       "t.toml:4: device.rnic0.routes: \"10.9.0.0/16 by 10.0.0.254\" is not a route: write "
       "\"10.1.0.0/16 via 10.0.0.254\""},
  };
  for (const Case& c : cases) EXPECT_EQ(behind(c.text), c.message) << c.text;
  EXPECT_EQ(behind("addresses = [\"fd00::1/64\"]\nmtu = 1280\n"), "");
}

TEST(SettingsErrors, NoMoreAddressesAndRoutesThanADeviceKeeps) {
  const auto list = [](size_t count, const std::string& before, const std::string& behind) {
    std::string out = "[";
    for (size_t i = 1; i <= count; ++i) {
      out += (i == 1 ? "\"" : ", \"") + before + std::to_string(i) + behind + "\"";
    }
    return out + "]\n";
  };
  const auto addresses = [&](size_t n) {
    return behind("addresses = " + list(n, "10.1.", ".1/24"));
  };
  const auto routes = [&](size_t n) {
    return behind("routes = " + list(n, "10.1.", ".0/24 via 10.0.0.254"));
  };
  EXPECT_EQ(addresses(net::Config::kMaxAddresses), "");
  EXPECT_EQ(addresses(net::Config::kMaxAddresses + 1),
            "t.toml:4: device.rnic0.addresses: has more than 16");
  EXPECT_EQ(routes(net::Config::kMaxRoutes), "");
  EXPECT_EQ(routes(net::Config::kMaxRoutes + 1), "t.toml:4: device.rnic0.routes: has more than 64");
}

TEST(SettingsErrors, TheFolderOfALocalWire) {
  const auto with_path = [](const std::string& path) {
    return error_of("[[device]]\naddress = \"10.0.0.1/24\"\nport = \"local:" + path + "\"\n");
  };
  EXPECT_EQ(with_path(std::string(local::kMostPath, 'x')), "");
  const std::string remedy = " octets: name a folder, by 1 to 92, as in \"local:/tmp/wire\"";
  EXPECT_EQ(with_path(""),
            "t.toml:3: device.rnic0.port: \"local:\" has a path of 0" + remedy);
  const std::string longer(local::kMostPath + 1, 'x');
  EXPECT_EQ(with_path(longer), "t.toml:3: device.rnic0.port: \"local:" + longer +
                                   "\" has a path of 93" + remedy);
}

TEST(SettingsErrors, AddressesOfAHost) {
  const std::string head = "[[device]]\nport = \"p\"\n";
  EXPECT_EQ(
      error_of(head),
      "t.toml:1: device.rnic0.address: is missing: write the IP address and prefix length, as "
      "in \"10.0.0.1/24\"");
  EXPECT_EQ(error_of("[[device]]\naddress = \"10.0.0.1/24\"\n"),
            "t.toml:1: device.rnic0.port: is missing: write a wire's end (\"wire:NAME:0\"), a PCI "
            "address, a virtual device (\"net_af_packet0,iface=veth0\"), a folder "
            "(\"local:/tmp/wire\") or \"socket\"");
  for (const char* bad : {"10.0.0.1", "10.0.0.1/0", "10.0.0.1/33", "10.0.0.1/", "10.0.0.1/2x",
                          "10.0.0/24", "10.0.0.256/24", "10.0.0.0/24", "10.0.0.255/24", "0.0.0.1/8",
                          "127.0.0.1/8", "224.0.0.1/24", ""}) {
    const std::string message = error_of(head + "address = \"" + bad + "\"\n");
    EXPECT_TRUE(message.starts_with("t.toml:3: device.rnic0.address: ")) << bad << ": " << message;
  }
  for (const char* good : {"10.0.0.0/31", "10.0.0.1/31", "10.0.0.7/32", "10.255.255.254/8"}) {
    EXPECT_EQ(error_of(head + "address = \"" + good + "\"\n"), "") << good;
  }
}

// What a device on sockets of the system cannot keep is an error that names it.
TEST(SettingsErrors, OnSockets) {
  const std::string device = "[[device]]\nport = \"socket\"\n";
  EXPECT_EQ(error_of(device), "");
  EXPECT_EQ(error_of(device + "address = \"127.0.0.1/8\"\n"), "");
  EXPECT_EQ(error_of(device + "address = \"::1/128\"\n" + device + "address = \"::1/128\"\n"), "");
  EXPECT_NE(error_of(device + "address = \"224.0.0.1/8\"\n").find("no address of a host"),
            std::string::npos);
  EXPECT_NE(
      error_of(device + "[device.mpa]\nsilent_drop = true\n").find("cannot be kept over sockets"),
      std::string::npos);
  EXPECT_EQ(error_of(device + "[device.mpa]\nsilent_drop = false\n"), "");
  for (const char* modes : {"align = true\n", "markers = false\n"}) {
    EXPECT_NE(error_of(device + "[device.tuf]\n" + modes).find("has marker mode only"),
              std::string::npos);
  }
  EXPECT_EQ(error_of(device + "[device.tuf]\nalign = false\n"), "");
  EXPECT_NE(error_of(device + "[device.impair]\ndrop = 0.1\n").find("sends no frames"),
            std::string::npos);
  EXPECT_EQ(error_of(device + "[device.capture]\nfile = \"x\"\n"), "");
}

TEST(SettingsErrors, WhatOnlyOneDeviceMayHave) {
  EXPECT_EQ(loop("device.rnic1.address=10.0.0.1/24"),
            "override \"device.rnic1.address=10.0.0.1/24\": device.rnic1.address: \"10.0.0.1\" is "
            "taken by device rnic0: every device needs its own");
  EXPECT_EQ(
      loop("device.rnic1.port=wire:loop:0"),
      "override \"device.rnic1.port=wire:loop:0\": device.rnic1.port: \"wire:loop:0\" is taken "
      "by device rnic0: every device needs its own");
  EXPECT_EQ(
      loop("device.rnic1.name=rnic0"),
      "override \"device.rnic1.name=rnic0\": device.rnic0.name: \"rnic0\" is taken by another "
      "device: every device needs its own");
  EXPECT_EQ(loop("device.rnic1.mac=02:00:00:00:00:01"),
            "override \"device.rnic1.mac=02:00:00:00:00:01\": device.rnic1.mac: "
            "\"02:00:00:00:00:01\" is taken by device rnic0: every device needs its own");
}

TEST(SettingsErrors, EndsOfWires) {
  EXPECT_EQ(loop("device.rnic1.port=wire:lopp:1"),
            "override \"device.rnic1.port=wire:lopp:1\": device.rnic1.port: there is no "
            "\"wire:lopp:1\"; did you mean \"wire:loop:1\"?");
  EXPECT_NE(loop("device.rnic1.port=wire:loop:2"), "");
  EXPECT_NE(loop("device.rnic1.port=wire:loop"), "");
  EXPECT_EQ(error_of("[[device]]\nport = \"wire:a:0\"\naddress = \"10.0.0.1/24\"\n"),
            "t.toml:2: device.rnic0.port: there is no \"wire:a:0\": add [[wire]] with a name");
  EXPECT_EQ(
      loop("device.rnic1.mtu=1501"),
      "override \"device.rnic1.mtu=1501\": device.rnic1.mtu: 1501 is above the wire's mtu 1500: "
      "raise wire.loop.mtu");
}

TEST(SettingsErrors, OverridesNameThemselves) {
  const Case cases[] = {
      {"tcp.rto_mim=5ms",
       "override \"tcp.rto_mim=5ms\": tcp.rto_mim: unknown key; did you mean tcp.rto_min?"},
      {"tcp.rto_min",
       "override \"tcp.rto_min\": has no value: write KEY=VALUE, as in "
       "tcp.rto_min=5ms"},
      {"rto_min=5ms",
       "override \"rto_min=5ms\": rto_min: names no section; did you mean "
       "tcp.rto_min?"},
      {"tpc.rto_min=5ms", "override \"tpc.rto_min=5ms\": tpc: unknown section; did you mean tcp?"},
      {"tcp.a.b=1", "override \"tcp.a.b=1\": tcp: write SECTION.KEY=VALUE, as in tcp.rto_min=5ms"},
      {"tcp.sack=maybe",
       "override \"tcp.sack=maybe\": tcp.sack: \"maybe\" is neither true nor false"},
      {"tcp.syn_retries=x",
       "override \"tcp.syn_retries=x\": tcp.syn_retries: \"x\" is not a whole "
       "number"},
      {"device.rnic2.mtu=1",
       "override \"device.rnic2.mtu=1\": device.rnic2: there is no such device; "
       "did you mean device.rnic0?"},
      {"device.x.mtu=1",
       "override \"device.x.mtu=1\": device.x: there is no such device: the file has "
       "rnic0, rnic1"},
      {"device.mtu=1",
       "override \"device.mtu=1\": device: write device.NAME.KEY=VALUE or "
       "device.NAME.SECTION.KEY=VALUE; * is every device"},
      {"wire.loop.mtu.x=1",
       "override \"wire.loop.mtu.x=1\": wire: write wire.NAME.KEY=VALUE; * is "
       "every wire"},
      {"device.rnic0.tpc.sack=1",
       "override \"device.rnic0.tpc.sack=1\": device.rnic0.tpc: unknown "
       "section; did you mean device.tcp?"},
      {"wire.loop.mtu=70000",
       "override \"wire.loop.mtu=70000\": wire.loop.mtu: 70000 is out of range: "
       "576..9216"},
  };
  for (const Case& c : cases) EXPECT_EQ(loop(c.text), c.message) << c.text;
  for (const char* odd :
       {"", "=", ".", "device", "device.=1", "device..mtu=1", "[x]=1", "wire.*.="}) {
    EXPECT_TRUE(loop(odd).starts_with("override \"")) << odd;
  }
}

TEST(SettingsErrors, AllOfThemInTheOrderOfTheFile) {
  EXPECT_EQ(
      error_of("[tcp]\nz = 1\nsack = 3\n[mpa]\ncrc = 0\n" + std::string(kDevice) + "mtu = 1\n",
               {"net.ttl=0"}),
      "t.toml:2: tcp.z: unknown key; docs/settings.md lists all\n"
      "t.toml:3: tcp.sack: 3 is neither true nor false\n"
      "t.toml:5: mpa.crc: 0 is neither true nor false\n"
      "t.toml:9: device.rnic0.mtu: 1 is out of range: 576..9216\n"
      "override \"net.ttl=0\": net.ttl: 0 is out of range: 1..255");
  std::string many = "[tcp]\n";
  for (int i = 0; i < 30; ++i) many.append("x").append(std::to_string(i)).append(" = 1\n");
  EXPECT_TRUE(error_of(many).ends_with("\nand 10 more like these"));
}

TEST(SettingsErrors, AWrongValueForAllDevicesIsReportedOnce) {
  EXPECT_EQ(
      loop("tcp.rto_max=100ms"),
      "override \"tcp.rto_max=100ms\": tcp.rto_max: rto_min (200ms) is above rto_max (100ms)\n"
      "override \"tcp.rto_max=100ms\": tcp.rto_max: rto_initial (1s) is above rto_max (100ms)");
}

TEST(SettingsErrors, SyntaxAndEmptiness) {
  EXPECT_TRUE(error_of("[tcp]\nsack = \n").starts_with("t.toml:2: "));
  EXPECT_TRUE(error_of("[tcp]\nsack = true\nsack = true\n").starts_with("t.toml:3: "));
  EXPECT_TRUE(error_of("\xff\xfe").starts_with("t.toml:1: "));
  EXPECT_EQ(error_of(""),
            "t.toml: there is no [[device]]: add at least one with port and address; "
            "config/loopback.toml shows two");
  EXPECT_EQ(error_of("device = []\n"), "t.toml:1: device: there can be several: write [[device]]");
  std::string crowd;
  for (int i = 0; i < 257; ++i)
    crowd.append("[[wire]]\nname = \"w").append(std::to_string(i)).append("\"\n");
  EXPECT_EQ(error_of(kDevice + crowd), "t.toml:516: wire: more than 256 of them");
}

TEST(SettingsErrors, FilesThatCannotBeRead) {
  const auto missing = read_file("/nonexistent/x.toml");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::NotFound);
  EXPECT_TRUE(missing.error().message.starts_with("/nonexistent/x.toml: cannot be opened"));
  EXPECT_FALSE(read_file("/").has_value());
  EXPECT_FALSE(read_file("/dev/zero").has_value());
}

}  // namespace
}  // namespace rnic::settings
