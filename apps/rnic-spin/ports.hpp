/// \file
/// Listening for RDMA connections, and ports that are reserved.
#pragma once

#include <string>

#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Reserves ports, listens on them and on others, and gives them back: each by its owner, and some
/// by one who must not.
class Ports {
 public:
  explicit Ports(World& world) : world_(world) {}

  /// Listens on kPort. An error is the machine's or the configuration's.
  [[nodiscard]] Status listen_always(Side& side);
  void reserve(Side& side);
  /// Gives a reservation back.
  void release(Side& side);
  void listen(Side& side);
  void listen_reserved(Side& side);
  void unlisten(Side& side);
  /// Ends a listener or a reservation.
  void end_any(Side& side);

 private:
  /// What is known of a port: whether anybody has it.
  enum class Holder : uint8_t { Nobody, Somebody, Perhaps };

  [[nodiscard]] Endpoint any_local(const Side& side);
  [[nodiscard]] Holder holder_of(const Side& side, const Endpoint& local, bool to_reserve) const;
  /// Judges a call that takes `local`, which others may have.
  bool granted(const Side& side, const std::string& call, const Endpoint& local,
               const Result<Endpoint>& got, Share& share, Holder holder);
  /// \return whether a refusal says who has the port
  [[nodiscard]] static bool names_holder(const Side& side, const Endpoint& local,
                                         const std::string& text);
  void check_given(const Endpoint& asked, const Endpoint& given) const;

  World& world_;
};

}  // namespace rnic::spin
