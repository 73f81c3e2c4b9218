/// \file
/// Duplicate address detection for the IPv6 addresses of one interface (RFC 4862 s.5.4): before an
/// address is used, the link is asked whether another host has it.
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

/// Keeps each address out of use (Routes::set_usable) until Config::dad_transmits solicitations,
/// Config::neighbour_retry apart, have stayed unanswered. An address that another host has is never
/// used; it is counted and named in the log.
class Dad {
 public:
  /// All references outlive this.
  Dad(const Config& config, Routes& routes, Counters& counters, base::Now now);

  [[nodiscard]] bool is_tentative(const IpAddress& address) const {
    return !tentative_.empty() && find(address) != nullptr;
  }
  /// Another host has, or is about to take, a tentative address.
  void conflict(const IpAddress& address);

  /// \return an address for which a solicitation is due now. To be called until there is none.
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
