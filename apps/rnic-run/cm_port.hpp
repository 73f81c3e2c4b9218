/// \file
/// CmPort: the port that ids of rdma_cm are bound to.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "rnic/verbs.hpp"

namespace rnic::run {

/// A port belongs to one id, or to two that are bound to every address of IPv4 and to every address
/// of IPv6 alone (RDMA_OPTION_ID_AFONLY): the device knows every address of both alone, so it
/// listens once, and a request is told to the id of its version of IP.
///
/// RdmaCm's lock guards it.
class CmPort {
 public:
  /// \param number names it in events of the device
  CmPort(uint32_t number, PortReservation reservation)
      : number_(number), reservation_(std::move(reservation)), local_(reservation_.local()) {}
  /// Ends the reservation, or listening.
  ~CmPort();
  CmPort(const CmPort&) = delete;
  CmPort& operator=(const CmPort&) = delete;

  [[nodiscard]] uint32_t number() const { return number_; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  /// What connect() takes over.
  [[nodiscard]] PortReservation& reservation() { return reservation_; }

  /// Which of the two versions of IP an id uses.
  struct Versions {
    bool v4 = false;
    bool v6 = false;
    [[nodiscard]] bool meet(const Versions& other) const {
      return (v4 && other.v4) || (v6 && other.v6);
    }
  };
  /// Requests of these versions are the id's from now on.
  Status listen(uint32_t id, const Versions& versions, uint32_t backlog);
  /// The id has gone.
  void leave(uint32_t id);
  /// \return the id that a request is told to; 0: none
  [[nodiscard]] uint32_t heard_by(bool v6) const { return heard_by_[v6 ? 1 : 0]; }

 private:
  const uint32_t number_;
  PortReservation reservation_;
  const Endpoint local_;
  bool listens_ = false;
  Endpoint listening_;
  std::array<uint32_t, 2> heard_by_{};  // of IPv4 and IPv6
};

}  // namespace rnic::run
