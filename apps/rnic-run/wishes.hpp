/// \file
/// Wishes: what rnic-run was told of the device, handed on to the program by the environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rnic/verbs.hpp"

namespace rnic::run {

using Variables = std::vector<std::pair<std::string, std::string>>;

/// Each is empty where nothing was said.
struct Wishes {
  std::string config;   ///< path of a configuration
  std::string wire;     ///< folder of a local wire
  std::string address;  ///< of the device there, with its prefix length: "10.77.0.5/16"
  std::string impair;   ///< "loss=1%,seed=7"
  std::string capture;  ///< path of the capture, with %p for the number of the process
  std::string fault;    ///< "drop fpdu 3 of message 7;terminate at message 9"
  std::string roce;     ///< "1": the device's face is that of RoCE

  static Wishes of_environment();
  [[nodiscard]] Variables as_variables() const;

  /// The device's configuration. On a wire without `address` the address is only an example.
  [[nodiscard]] Result<Config> configuration() const;

 private:
  /// InvalidArgument: they exclude each other, or one cannot be read.
  [[nodiscard]] Status check() const;
  /// The settings of [device.impair] that `impair` asks for: "drop=0.01".
  [[nodiscard]] Result<std::vector<std::string>> impairments() const;
  /// The lines of `fault`, each of which says a fault.
  [[nodiscard]] Result<std::vector<std::string>> faults() const;
};

}  // namespace rnic::run
