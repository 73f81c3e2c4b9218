#include "settings/settings.hpp"

namespace rnic::settings {

// A copy of config/loopback.toml, so that a program runs without any file; a test compares the two.
std::string_view loopback_toml() {
  return std::string_view(R"toml(
# Two devices in this process, connected by a wire of memory rings. Needs no NIC and no rights.
# Every key is described in docs/settings.md.

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
)toml")
      .substr(1);  // behind the line break that begins the literal
}

}  // namespace rnic::settings
