// Keys under the names of earlier releases: each says its new one, wherever a key may stand.

#include "settings/renamed.hpp"

#include <gtest/gtest.h>

#include <set>

#include "parse.hpp"
#include "settings/table.hpp"

namespace rnic::settings {
namespace {

struct Path {
  std::string section;
  std::string name;
};
Path split(std::string_view path) {
  const size_t dot = path.rfind('.');
  return {std::string(path.substr(0, dot)), std::string(path.substr(dot + 1))};
}

class Renames : public ::testing::TestWithParam<Renamed> {
 protected:
  const Path was_ = split(GetParam().was);
  const Path now_ = split(GetParam().now);
  const std::string full_was_{GetParam().was};
  const std::string full_now_{GetParam().now};
  /// What follows the place and the old name.
  const std::string called_ = ": is called " + full_now_ + " now: write ";
  const bool of_device_ = was_.section == "device";
};

TEST_P(Renames, TheNewKeyExistsAndTheOldOneDoesNot) {
  EXPECT_NE(find_key(now_.section, now_.name), nullptr);
  EXPECT_EQ(find_key(was_.section, was_.name), nullptr);
  const Section* section = find_section(now_.section);
  ASSERT_NE(section, nullptr);
  EXPECT_TRUE(section->per_device) << "the remedy for a device's own names its section";
}

TEST_P(Renames, InTheSectionOfAllDevices) {
  if (of_device_) return;  // it was never one of all devices
  EXPECT_EQ(error_of(std::string(kDevice) + "[" + was_.section + "]\n" + was_.name + " = 1\n"),
            "t.toml:5: " + full_was_ + called_ + now_.name + " in [" + now_.section + "]");
}

TEST_P(Renames, InADevicesOwn) {
  const std::string head = of_device_ ? "" : "[device." + was_.section + "]\n";
  const std::string shown = of_device_ ? "device.rnic0." + was_.name : "device.rnic0." + full_was_;
  EXPECT_EQ(error_of(kDevice + head + was_.name + " = \"tuf\"\n"),
            "t.toml:" + std::to_string(of_device_ ? 4 : 5) + ": " + shown + called_ + now_.name +
                " in [device." + now_.section + "]");
}

TEST_P(Renames, InAnOverride) {
  if (of_device_) return;  // it was never one of all devices
  EXPECT_EQ(error_of(kDevice, {full_was_ + "=1"}),
            "override \"" + full_was_ + "=1\": " + full_was_ + called_ + full_now_ + "=VALUE");
}

TEST_P(Renames, InAnOverrideOfADevice) {
  const std::string key = "device.rnic0." + (of_device_ ? was_.name : full_was_);
  EXPECT_EQ(error_of(kDevice, {key + "=1"}), "override \"" + key + "=1\": " + key + called_ +
                                                 "device.rnic0." + full_now_ + "=VALUE");
  EXPECT_NE(error_of(kDevice, {"device.*." + key.substr(13) + "=1"}).find(called_),
            std::string::npos);
}

// A program that still writes the page's text of before finds the new name there, too.
TEST_P(Renames, TheChangelogSaysSo) {
  const auto text = read_file(std::string(RNIC_SOURCE_DIR) + "/CHANGELOG.md");
  ASSERT_TRUE(text.has_value());
  EXPECT_NE(text->find("| `" + full_was_ + "` | `" + full_now_ + "` |"), std::string::npos);
}

std::string name_of_old(const ::testing::TestParamInfo<Renamed>& info) {
  std::string name(info.param.was);
  for (char& c : name) c = c == '.' ? '_' : c;
  return name;
}
INSTANTIATE_TEST_SUITE_P(All, Renames,
                         ::testing::ValuesIn(all_renamed().begin(), all_renamed().end()),
                         name_of_old);

TEST(Renamed, NoKeyHadTwoFates) {
  std::set<std::string_view> seen;
  for (const Renamed& renamed : all_renamed()) {
    EXPECT_TRUE(seen.insert(renamed.was).second) << renamed.was;
  }
}

TEST(Renamed, OthersAreUnknown) {
  EXPECT_EQ(find_renamed("tcp", "max_connectionz"), nullptr);
  EXPECT_EQ(find_renamed("mpa", ""), nullptr);
}

// One number of the file, wherever the parts keep it.
TEST(Renamed, OneKeyFillsInAllThatItWasMadeFrom) {
  const auto settings = parse_settings(
      std::string(kDevice) + "[limits]\nmax_connections = 777\n[tcp]\nreceive_window = \"64KB\"\n" +
          "[framing]\nout_of_order = false\nstart_timeout = \"3s\"\nhold_limit = \"8KB\"\n" +
          "early_limit = 9\n[[device]]\nport = \"socket\"\n[device.tcp]\nreceive_window = 5000\n" +
          "[device.framing]\nhold_limit = 7000\nprotocol = \"tuf\"\n[device.tuf]\nalign = false\n",
      "t.toml");
  ASSERT_TRUE(settings.has_value()) << settings.error().message;
  for (const DeviceSettings& device : settings->devices) {
    EXPECT_EQ(device.config.limits.max_connections, 777u);
    EXPECT_EQ(device.config.tcp.max_connections, 777u);
    const uint32_t window = device.on_socket() ? 5000 : 64u << 10;
    const uint32_t hold = device.on_socket() ? 7000 : 8u << 10;
    EXPECT_EQ(device.config.tcp.receive_window, window);
    const framing::Config& mpa = device.config.mpa;
    const framing::Config& tuf = device.config.tuf;
    for (const framing::Config* config : {&mpa, &tuf}) {
      EXPECT_FALSE(config->out_of_order);
      EXPECT_EQ(config->start_timeout, std::chrono::seconds(3));
      EXPECT_EQ(config->receive_window, window);
      EXPECT_EQ(config->hold_limit, hold);
      EXPECT_EQ(config->early_limit, 9u);
    }
  }
  EXPECT_EQ(settings->devices[0].config.framing, Framing::Mpa);
  EXPECT_EQ(settings->devices[1].config.framing, Framing::Tuf);
  EXPECT_EQ(settings->devices[1].socket.max_connections, 777u);
}

}  // namespace
}  // namespace rnic::settings
