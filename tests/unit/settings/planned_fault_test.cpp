// The lines that say a planned fault, and the configuration that has them.

#include "rnic/planned_fault.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parse.hpp"

namespace rnic::settings {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = PlannedFaultKind;

struct Line {
  const char* text;
  PlannedFault fault;
  bool of_frames;
};

TEST(PlannedFault, EachFormIsReadAndWritten) {
  const Line lines[] = {
      {"drop fpdu 3 of message 7", {.kind = Kind::DropFpdu, .message = 7, .fpdu = 3}, true},
      {"bad crc on fpdu 1 of message 4294967295",
       {.kind = Kind::BadCrc, .message = 4294967295, .fpdu = 1},
       true},
      {"bad crc on read response 2", {.kind = Kind::BadReadResponse, .message = 2}, true},
      {"terminate now", {.kind = Kind::Terminate}, false},
      {"terminate at message 12", {.kind = Kind::Terminate, .message = 12}, false},
      {"stall the responder 2s", {.kind = Kind::StallResponder, .delay = seconds(2)}, false},
      {"stall the responder 1500ms",
       {.kind = Kind::StallResponder, .delay = milliseconds(1500)},
       false},
      {"stall the responder 50ms at request 9",
       {.kind = Kind::StallResponder, .request = 9, .delay = milliseconds(50)},
       false},
  };
  for (const Line& line : lines) {
    SCOPED_TRACE(line.text);
    const auto fault = parse_planned_fault(line.text);
    ASSERT_TRUE(fault.has_value()) << fault.error().message;
    EXPECT_EQ(*fault, line.fault);
    EXPECT_EQ(to_string(*fault), line.text);
    EXPECT_EQ(needs_frames(*fault), line.of_frames);
  }
}

TEST(PlannedFault, SpacesLettersAndUnitsAsPeopleWriteThem) {
  const std::pair<const char*, const char*> lines[] = {
      {"  Drop  FPDU 3\tof message 7 ", "drop fpdu 3 of message 7"},
      {"stall the responder 1.5s", "stall the responder 1500ms"},
      {"stall the responder 60s", "stall the responder 1min"},
      {"stall the responder 60min", "stall the responder 60min"},
      {"stall the responder 250us", "stall the responder 250us"},
      {"stall the responder 0.5us", "stall the responder 0.5us"},
      {"stall the responder 0s", "stall the responder 0us"},
  };
  for (const auto& [text, written] : lines) {
    const auto fault = parse_planned_fault(text);
    ASSERT_TRUE(fault.has_value()) << fault.error().message;
    EXPECT_EQ(to_string(*fault), written);
    EXPECT_EQ(parse_planned_fault(to_string(*fault)).value(), *fault);
  }
}

TEST(PlannedFault, EachMistakeHasItsError) {
  const char* const all =
      "write \"drop fpdu 3 of message 7\", \"bad crc on fpdu 1 of message 7\", \"bad crc on read "
      "response 2\", \"terminate now\", \"terminate at message 7\", \"stall the responder 2s\", "
      "\"stall the responder 2s at request 3\"";
  const std::string time =
      " is not a time with a unit, us, ms, s or min, of at most an hour, as in 200ms or 2s: write "
      "\"stall the responder 2s\", \"stall the responder 2s at request 3\"";
  const std::string drop = ": write \"drop fpdu 3 of message 7\"";
  const std::pair<std::string, std::string> lines[] = {
      {"", "an empty line is no fault: " + std::string(all)},
      {"lose everything", "\"lose everything\" is no fault: " + std::string(all)},
      {"drop", "\"drop\" is not whole: write \"drop fpdu 3 of message 7\""},
      {"drop frame 3",
       "\"drop frame 3\" goes wrong at \"frame\": write \"drop fpdu 3 of message 7\""},
      {"drop fpdu x of message 7",
       "\"drop fpdu x of message 7\": \"x\" is not the number of an FPDU, from 1 on" + drop},
      {"drop fpdu 0 of message 7",
       "\"drop fpdu 0 of message 7\": \"0\" is not the number of an FPDU, from 1 on" + drop},
      {"drop fpdu 3 of message -1",
       "\"drop fpdu 3 of message -1\": \"-1\" is not the number of a message, from 1 on" + drop},
      {"drop fpdu 3 of message 4294967296",
       "\"drop fpdu 3 of message 4294967296\": \"4294967296\" is not the number of a message, from "
       "1 on" + drop},
      {"drop fpdu 3 of message 7 twice",
       "\"drop fpdu 3 of message 7 twice\" has more than it needs, from \"twice\" on: write \"drop "
       "fpdu 3 of message 7\""},
      {"bad crc",
       "\"bad crc\" is not whole: write \"bad crc on fpdu 1 of message 7\", \"bad crc on read "
       "response 2\""},
      {"bad crc on read response two",
       "\"bad crc on read response two\": \"two\" is not the number of a Read Response, from 1 on"
       ": write \"bad crc on read response 2\""},
      {"terminate",
       "\"terminate\" is not whole: write \"terminate now\", \"terminate at message "
       "7\""},
      {"terminate at message",
       "\"terminate at message\" is not whole: write \"terminate at message 7\""},
      {"stall the responder 2", "\"stall the responder 2\": \"2\"" + time},
      {"stall the responder 2h", "\"stall the responder 2h\": \"2h\"" + time},
      {"stall the responder 61min", "\"stall the responder 61min\": \"61min\"" + time},
      {"stall the responder -2s", "\"stall the responder -2s\": \"-2s\"" + time},
      {"stall the responder inf", "\"stall the responder inf\": \"inf\"" + time},
      {"stall the responder 2s at request 0",
       "\"stall the responder 2s at request 0\": \"0\" is not the number of a request, from 1 on: "
       "write \"stall the responder 2s at request 3\""},
  };
  for (const auto& [text, message] : lines) {
    const auto fault = parse_planned_fault(text);
    ASSERT_FALSE(fault.has_value()) << text;
    EXPECT_EQ(fault.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(fault.error().message, message);
  }
}

TEST(PlannedFault, TheConfigurationHasAList) {
  const Settings settings =
      parsed(std::string(kDevice) +
             "fault = [\"drop fpdu 3 of message 7\", \"stall the responder 2s\"]\n");
  const std::vector<PlannedFault> plan{{.kind = Kind::DropFpdu, .message = 7, .fpdu = 3},
                                       {.kind = Kind::StallResponder, .delay = seconds(2)}};
  EXPECT_EQ(settings.devices.at(0).config.faults, plan);
  EXPECT_TRUE(settings.devices[0].has_frame_faults());
  EXPECT_FALSE(settings.devices[0].impair.enabled);
}

TEST(PlannedFault, AnOverrideIsAListToo) {
  const Settings settings = parsed(
      loopback_toml(), {"device.rnic1.fault=[\"terminate now\", \"bad crc on read response 1\"]"});
  EXPECT_EQ(settings.devices.at(1).config.faults.size(), 2u);
  // On a wire checksums are left open: the other end has to complete its own.
  EXPECT_TRUE(settings.devices.at(0).impair.enabled);
  EXPECT_TRUE(settings.devices[0].impair.config.harmless());
  EXPECT_TRUE(settings.devices[0].config.faults.empty());
}

TEST(PlannedFault, TheConfigurationNamesFileLineAndRemedy) {
  const auto behind = [](const std::string& text) { return error_of(kDevice + text); };
  EXPECT_EQ(behind("fault = [\"terminate now\", \"terminate\"]\n"),
            "t.toml:4: device.rnic0.fault: \"terminate\" is not whole: write \"terminate now\", "
            "\"terminate at message 7\"");
  EXPECT_EQ(behind("fault = \"terminate now\"\n"),
            "t.toml:4: device.rnic0.fault: \"terminate now\" is not a list: write it in brackets");
  std::string many = "fault = [";
  for (int i = 0; i < 17; ++i) many += "\"terminate now\",";
  EXPECT_EQ(behind(many + "]\n"), "t.toml:4: device.rnic0.fault: has 17 faults: at most 16");
}

TEST(PlannedFault, OnSocketsThereAreNoFrames) {
  const std::string device = "[[device]]\nport = \"socket\"\nfault = [\"";
  EXPECT_EQ(error_of(device + "terminate now\", \"stall the responder 2s\"]\n"), "");
  for (const std::string line : {"drop fpdu 3 of message 7", "bad crc on fpdu 1 of message 2",
                                 "bad crc on read response 2"}) {
    EXPECT_EQ(error_of(device + line + "\"]\n"),
              "t.toml:3: device.rnic0.fault: \"" + line +
                  "\" is done to frames, and a device on sockets sends none: give it a port that "
                  "does, as port = \"local:/tmp/wire\" (rnic-run: --wire FOLDER)");
  }
}

}  // namespace
}  // namespace rnic::settings
