/// \file
/// Configurations for the tests of settings, and what is wrong with them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "settings/settings.hpp"

namespace rnic::settings {

/// A device with what it needs and nothing else; three lines.
inline constexpr const char* kDevice = "[[device]]\nport = \"p\"\naddress = \"10.0.0.1/24\"\n";

/// The message, which is empty when there is no error.
inline std::string error_of(std::string_view text, const std::vector<std::string>& overrides = {}) {
  auto settings = parse_settings(text, "t.toml", overrides);
  return settings ? std::string() : settings.error().message;
}

/// The settings; an error fails the test.
inline Settings parsed(std::string_view text, const std::vector<std::string>& overrides = {}) {
  auto settings = parse_settings(text, "t.toml", overrides);
  EXPECT_TRUE(settings.has_value()) << settings.error().message;
  return settings.value_or(Settings{});
}

}  // namespace rnic::settings
