/// \file
/// The system's sockets: descriptors, addresses and errors, between its types and ours.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <utility>

#include "base/fail.hpp"
#include "llp/stream.hpp"
#include "rnic/address.hpp"
#include "socket/calls.hpp"

namespace rnic::socket {

/// Owns a file descriptor of `system`, which outlives it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number, System& system = own_system())
      : number_(number), system_(&system) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept
      : number_(std::exchange(other.number_, -1)), system_(other.system_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    std::swap(system_, other.system_);
    return *this;
  }

  [[nodiscard]] int get() const { return number_; }
  [[nodiscard]] bool open() const { return number_ >= 0; }
  void reset();

 private:
  int number_ = -1;
  System* system_ = nullptr;
};

/// An endpoint in the system's own form.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t size = sizeof(sockaddr_storage);

  SystemAddress() = default;
  /// IPv4 addresses become AF_INET, or with `mapped` the mapped form of AF_INET6.
  explicit SystemAddress(const Endpoint& endpoint, bool mapped = false);
  [[nodiscard]] Endpoint endpoint() const;
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  [[nodiscard]] int family() const { return storage.ss_family; }
};

/// A non-blocking TCP socket. \param family AF_INET or AF_INET6
[[nodiscard]] Result<Descriptor> open_socket(System& system, int family);

/// The end of a stream that an error of the system stands for. \param connecting the open is under
/// way
[[nodiscard]] StreamEnd end_of(int error, bool connecting);
/// \return whether end_of() has an answer of its own for the error
[[nodiscard]] bool is_known(int error);

/// An error with the text "what: what the system says; remedy".
[[nodiscard]] Error system_error(const std::string& what, int error);
/// The error of a connect() that the system has refused.
/// \param local the endpoint that the socket is bound to; port 0: the system chooses the port
[[nodiscard]] Error connect_error(const Endpoint& local, const Endpoint& remote, int error);

/// Sets a socket option that is a whole number. \return false: the system does not take it
bool set_option(System& system, int descriptor, int level, int name, int value);

/// Has the next close of the socket reset its connection.
void reset_on_close(System& system, int descriptor);

}  // namespace rnic::socket
