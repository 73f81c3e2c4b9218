/// \file
/// Defaults that depend on other keys, and rules across keys. Private to settings.
#pragma once

#include "settings/findings.hpp"
#include "settings/settings.hpp"

namespace rnic::settings {

/// Fills in what the file left out: MTU, MAC and seed of each device, and which impairments are on.
void complete(Settings& settings, const Places& places);

/// Checks the rules across keys; each violation becomes a line in `findings`.
void check(const Settings& settings, const Places& places, Findings& findings);

}  // namespace rnic::settings
