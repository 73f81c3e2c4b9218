/// \file
/// Configuration: TOML text plus overrides become plain structs. docs/settings.md, which is
/// generated from the same table that parses, lists every key with its unit, default and range.
///
/// An error has one line for each thing that is wrong, in the order of the file:
/// `nic.toml:7: tcp.rto_mim: unknown key; did you mean tcp.rto_min?`
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fail.hpp"
#include "device/config.hpp"
#include "dpdk/config.hpp"
#include "framing/config.hpp"
#include "impair/config.hpp"
#include "local/config.hpp"
#include "socket/config.hpp"

namespace rnic::settings {

/// [eal]: how DPDK is started.
struct EalSettings {
  dpdk::Hugepages hugepages = dpdk::Hugepages::Auto;
  uint32_t memory_mb = 256;       ///< memory for the pools of the process
  std::vector<std::string> args;  ///< appended to DPDK's arguments as they are
};

/// [worker]: the threads that poll the devices.
struct WorkerSettings {
  enum Mode : uint8_t { Inline, Threaded } mode = Inline;
  /// Auto: sleep if workers and the application's thread outnumber the cores, spin otherwise.
  enum Idle : uint8_t { Spin, Yield, Sleep, Auto } idle = Auto;
  uint32_t count = 0;           ///< threaded mode: threads; 0: one per device
  std::vector<uint32_t> cores;  ///< threaded mode, one per thread; empty: unpinned

  /// The threads that so many devices have.
  [[nodiscard]] uint32_t threads(size_t devices) const {
    return count == 0 || count > devices ? static_cast<uint32_t>(devices) : count;
  }
};

/// The beginning of the name of a port on a wire: "wire:NAME:0" or "wire:NAME:1".
inline constexpr std::string_view kWirePrefix = "wire:";

/// [[wire]]: a pair of cross-connected memory ports, whose ends are "wire:NAME:0" and
/// "wire:NAME:1".
struct WireSettings {
  std::string name;
  uint32_t mtu = 1500;
  uint32_t ring_size = 1024;  ///< frames
};

/// [device.impair]: it is on if the section has any key and does not say `enabled = false`. It is
/// also on at the other end of an impaired wire, where it damages nothing but completes the
/// checksums.
struct ImpairSettings {
  bool enabled = false;
  impair::Config config;
  bool seed_given = false;  ///< false: drawn when the port opens
  uint64_t seed = 0;        ///< of the damage only
};

/// [device.capture]
struct CaptureSettings {
  std::string file;  ///< empty: no capture
};

/// The defaults of a device of the public API, as far as they differ from DeviceConfig's.
inline device::DeviceConfig default_device_config() {
  device::DeviceConfig config;
  config.mpa.first_fpdu_delay = std::chrono::milliseconds(10);  // decision 9
  return config;
}

/// [[device]]
struct DeviceSettings {
  device::DeviceConfig config = default_device_config();
  /// "wire:NAME:END", "local:FOLDER", "socket" or what dpdk::open_port() understands
  std::string port;
  std::array<uint8_t, 6> mac{};  ///< all zero: the port's own
  bool mac_given = false;        ///< false: derived from index or address, or the port's own
  uint32_t mtu = 0;              ///< as config.net.mtu; never 0 in parsed settings
  framing::Config framing;       ///< [framing]; copied into those of MPA and ULP framing
  socket::Config socket;         ///< filled in from [tcp] and the device's keys
  std::vector<std::string> fault_lines;  ///< as they are given; config.faults is what they say
  ImpairSettings impair;
  CaptureSettings capture;
  bool random_secret = true;  ///< false: ports, STags, keys and ISNs come from config.seed
  bool several_threads = false;  ///< each queue may be used by several threads at once
  std::vector<std::string_view> followed;  ///< limits that follow from others

  /// \return whether the device uses sockets of the system instead of a port
  [[nodiscard]] bool on_socket() const { return port == kSocketPort; }
  static constexpr std::string_view kSocketPort = "socket";
  /// \return whether the device is on a wire of this machine's processes
  [[nodiscard]] bool on_local() const { return port.starts_with(local::kPrefix); }
  /// The folder of the local wire.
  [[nodiscard]] std::string local_folder() const { return port.substr(local::kPrefix.size()); }
  /// \return whether frames suffer planned faults
  [[nodiscard]] bool has_frame_faults() const {
    return std::ranges::any_of(config.faults, needs_frames);
  }
  /// \return whether it needs DPDK
  [[nodiscard]] bool needs_eal() const { return !on_socket() && !on_local(); }
};

struct Settings {
  EalSettings eal;
  WorkerSettings worker;
  std::vector<WireSettings> wires;
  std::vector<DeviceSettings> devices;
};

/// Parses and checks everything. `overrides` are applied after the file, in order:
/// "tcp.rto_min=5ms", "device.rnic0.port=wire:loop:0", "device.*.mtu=9000", "wire.loop.mtu=9000",
/// "device.rnic0.tcp.rto_min=5ms". `file_name` is only for the messages.
[[nodiscard]] Result<Settings> parse_settings(std::string_view toml_text,
                                              const std::string& file_name,
                                              std::span<const std::string> overrides = {});

/// Reads a configuration file.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

/// The configuration without a file: two devices on a wire. Identical to config/loopback.toml.
[[nodiscard]] std::string_view loopback_toml();

/// A key's tier: the users that it is meant for. docs/settings.md is in this order.
enum class Tier : uint8_t {
  Basic,        ///< everybody who sets up a device
  Advanced,     ///< users who have measured, or whom a message tells
  Conformance,  ///< authors of specifications and tests, who try what a specification leaves open
};
inline constexpr std::array kTiers{Tier::Basic, Tier::Advanced, Tier::Conformance};

/// The limit that `key` follows from in the end; `key` itself if it was given or follows from none.
[[nodiscard]] std::string_view root_of(const DeviceSettings& device, std::string_view key);

/// One row of docs/settings.md.
struct KeyDoc {
  std::string key;  ///< "tcp.rto_min", "device.impair.drop"
  Tier tier = Tier::Basic;
  std::string unit;          ///< empty: none
  std::string default_text;  ///< as it is written in the file
  std::string rule;          ///< the rule of the default; empty: a constant
  std::string range;
  std::string help;
};

[[nodiscard]] std::vector<KeyDoc> documented_keys();

/// The whole text of docs/settings.md.
[[nodiscard]] std::string settings_markdown();

}  // namespace rnic::settings
