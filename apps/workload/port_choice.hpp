/// \file
/// The option --port: a TCP port, or what the devices stand on.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "rnic/verbs.hpp"

namespace rnic::workload {

struct PortChoice {
  uint16_t tcp = 0;    ///< TCP port; set it to the default first
  std::string device;  ///< empty: as the configuration says; "socket": the system's TCP
};

/// --port NUMBER, --port socket, or both one after the other. `choice` outlives the parsing.
void add_port_option(CLI::App& app, PortChoice& choice);

/// The configuration without a file: one device on sockets, or two on 127.0.0.1 and 127.0.0.2 where
/// both ends are in this process. Config::loopback() where they are and `choice` does not say
/// socket.
Config default_configuration(const PortChoice& choice, bool both_ends);

/// Puts the devices of a configuration from a file where `choice` says.
void apply(const PortChoice& choice, Config& config);

/// --address ADDRESS/LENGTH: so that two machines can use one file.
void add_address_option(CLI::App& app, std::string& address);

/// What add_address_option() took, for the device of that name; empty: for the one there is.
void apply_address(const std::string& address, const std::string& device, Config& config);

/// The device of that name, or the first, where another process can reach it. InvalidArgument for
/// an end of a wire, which is memory of this process.
Result<Device> choose_reachable_device(Context& context, const std::string& name);

}  // namespace rnic::workload
