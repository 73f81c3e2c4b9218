// Any text is a configuration or an error.

#include <string_view>

#include "settings/settings.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto settings = rnic::settings::parse_settings(text, "fuzz.toml");
  if (!settings && settings.error().message.empty()) __builtin_trap();
  return 0;
}
