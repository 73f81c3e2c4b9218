/// \file
/// GidTable: the GIDs of the device under the RoCE face.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rnic/address.hpp"

namespace rnic::run {

/// Each GID is an address of the device. rnic-run writes them into the tree that stands for /sys;
/// the plugin reads them there, so that both have the same ones for as long as the program lives.
class GidTable {
 public:
  struct Entry {
    IpAddress address;
    std::string interface;
  };

  /// The addresses of the machine, which a device on the system's sockets has: IPv4 first. The
  /// loopback's stand for them where there is no other. Those of one link are left out, as a GID
  /// does not say of which.
  static GidTable of_machine();
  /// \param interface the one that programs take for the device's
  static GidTable of(const IpAddress& only, const std::string& interface);
  /// \param root of the tree
  static GidTable of_tree(const std::filesystem::path& root);
  /// The table of the tree that this process was given.
  static const GidTable& of_process();

  /// The files of the tree: name beneath the folder of the port, and text.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> files() const;
  [[nodiscard]] size_t size() const { return entries_.size(); }
  /// \return nothing: the table has no such place
  [[nodiscard]] std::optional<IpAddress> at(size_t index) const;

 private:
  void add(const IpAddress& address, const std::string& interface);

  std::vector<Entry> entries_;
};

}  // namespace rnic::run
