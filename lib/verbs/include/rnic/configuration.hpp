/// \file
/// Configuration of a Context: TOML text plus overrides. Every key is documented in
/// docs/settings.md.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rnic/error.hpp"

namespace rnic {

/// A value that holds the text and the overrides. Context::open() or check() checks them, and also
/// reports (ResourceExhausted) if there was no memory to keep one of them.
class Config {
 public:
  /// Two devices, rnic0 (10.0.0.1) and rnic1 (10.0.0.2), in this process, on a pair of memory
  /// rings.
  static Config loopback();
  static Result<Config> from_file(const std::string& path);
  /// \param name stands in error messages for the name of a file
  static Config from_text(std::string text, std::string name = "config");

  /// Adds an override such as `"tcp.rto_min=5ms"`. Overrides are applied in order after the text.
  Config& set(std::string assignment);

  /// Parses everything. The error names file, line, key and remedy.
  [[nodiscard]] Status check() const;
  /// \return whether a device has a port that needs DPDK: all but "socket" and "local:FOLDER".
  /// Errors as of check().
  [[nodiscard]] Result<bool> needs_dpdk() const;

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  friend class Context;
  Config(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {}

  std::string text_;
  std::string name_;
  std::vector<std::string> overrides_;
  bool starved_ = false;  // there was no memory to keep something
};

}  // namespace rnic
