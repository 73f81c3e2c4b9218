/// \file
/// Duplicate address detection of one interface's IPv6 addresses (RFC 4862 s.5.4): before one is
/// used, the link is asked whether somebody has it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/prng.hpp"
#include "base/time.hpp"
#include "net/config.hpp"
#include "net/counters.hpp"
#include "net/routes.hpp"
#include "rnic/address.hpp"

namespace rnic::net {

/// Keeps each address out of use (Routes::set_usable) until nobody has answered
/// Config::dad_transmits solicitations, config.neighbour_retry apart. An address that somebody has
/// stays out of use for good; it is counted, and a line in the log names it.
class Dad {
 public:
  /// All references outlive this.
  Dad(const Config& config, Routes& routes, Counters& counters, base::Now now);

  [[nodiscard]] bool is_tentative(const IpAddress& address) const {
    return !tentative_.empty() && find(address) != nullptr;
  }
  /// Somebody else has, or is about to take, a tentative address.
  void conflict(const IpAddress& address);

  /// \return an address to be asked for now; call until there is none.
  std::optional<IpAddress> due(base::Now now);
  [[nodiscard]] base::Now next_deadline() const;
  /// Checks that no tentative address is in use.
  void validate() const;

 private:
  struct Tentative {
    IpAddress address;
    uint32_t left = 0;  // solicitations still to be sent
    base::Now deadline;
  };

  [[nodiscard]] const Tentative* find(const IpAddress& address) const;

  Routes& routes_;
  Counters& counters_;
  base::Duration interval_;
  std::vector<Tentative> tentative_;
};

}  // namespace rnic::net
