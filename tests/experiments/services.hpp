/// \file
/// Plain TCP applications that know nothing of MPA: the services and clients of the draft's
/// section 8.2.
#pragma once

#include <string>
#include <vector>

#include "device/device.hpp"

namespace rnic::experiment {

/// How an application behaves.
struct Service {
  const char* name = "";
  std::string greeting;  ///< said at once
  std::string answer;    ///< said when the first octets have come
  bool repeats = false;  ///< the greeting again and again
  bool echoes = false;
  bool closes = false;  ///< when it has said all
};

/// Servers that an MPA initiator may come to by mistake.
[[nodiscard]] std::vector<Service> plain_servers();
/// Clients that may come to an MPA responder by mistake.
[[nodiscard]] std::vector<Service> plain_clients();

/// A Service at work on a socket.
class PlainEnd {
 public:
  PlainEnd(device::Device& device, const Service& service) : device_(device), service_(service) {}

  void take(device::StreamSocket* socket) { socket_ = socket; }
  [[nodiscard]] device::StreamSocket* socket() const { return socket_; }
  /// Reads, and says what is due.
  void work();
  /// Nothing comes any more, and it has let go of the socket.
  [[nodiscard]] bool is_over() const { return over_; }
  /// What it got and how it ended, for people.
  [[nodiscard]] std::string seen() const;
  /// Everything that came.
  [[nodiscard]] const std::string& received() const { return received_; }

 private:
  void say(const std::string& text);
  void tell(uint8_t wishes);

  device::Device& device_;
  Service service_;
  device::StreamSocket* socket_ = nullptr;
  std::string unsaid_;
  std::string received_;
  std::string end_;
  bool greeted_ = false;
  bool answered_ = false;
  bool closed_ = false;
  bool over_ = false;
};

}  // namespace rnic::experiment
