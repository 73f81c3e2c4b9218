/// \file
/// WireFolder: who is on a local wire.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <optional>
#include <string>
#include <vector>

#include "base/fail.hpp"
#include "local/config.hpp"
#include "port/port.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::local {

/// Where the frames for a port go: the file of its socket.
struct SocketAddress {
  sockaddr_un name{};

  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  [[nodiscard]] socklen_t size() const { return sizeof(name); }
};

/// A folder with a socket for each port, and a file that is locked while one is made or taken away.
/// Several processes use it at once.
class WireFolder {
 public:
  /// Frames to a group go to so many at most.
  static constexpr size_t kMostMembers = 1024;

  /// Makes the folder, for this user alone, where there is none. InvalidArgument: the path is too
  /// long. Environment: it cannot be made or written.
  static Result<WireFolder> open(std::string path);

  /// Binds a socket to an Ethernet address. The file that a process has left by dying is replaced.
  /// AlreadyExists: another port has the address.
  Result<wakeup::Descriptor> claim(const port::MacAddress& mac);
  /// Takes away the file of a port of this process.
  void leave(const port::MacAddress& mac);
  /// Takes away the file of a port whose process has died, unless another one has come in its
  /// place.
  void bury(const port::MacAddress& mac);

  [[nodiscard]] SocketAddress address_of(const port::MacAddress& mac) const;
  /// The addresses of all ports, those of dead processes included; at most kMostMembers.
  [[nodiscard]] std::vector<port::MacAddress> members() const;

 private:
  explicit WireFolder(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::string file_of(const port::MacAddress& mac) const;
  /// \return whether nobody reads the socket's file any more. Called under the lock.
  [[nodiscard]] bool is_dead(const port::MacAddress& mac) const;

  std::string path_;
};

}  // namespace rnic::local
