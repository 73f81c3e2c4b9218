/// \file
/// The server's side of rnic-ping: sends back what comes.
#pragma once

#include <memory>

#include "rnic-ping/station.hpp"
#include "workload/server.hpp"

namespace rnic::ping {

inline constexpr uint32_t kMaxSize = 1u << 20;  ///< octets of a message

/// One client; one message at a time.
class Echo final : public workload::Session {
 public:
  static Result<std::unique_ptr<workload::Session>> welcome(Device device,
                                                            const RequestHandle& request);

  [[nodiscard]] uint32_t qp() override { return station_.end().qp.number(); }
  Status step() override;
  [[nodiscard]] uint64_t heard() const override { return heard_; }
  void finish() override { static_cast<void>(station_.end().qp.disconnect()); }

 private:
  Status answer(const Completion& came);

  Station station_;
  uint64_t heard_ = 0;  // messages
};

}  // namespace rnic::ping
