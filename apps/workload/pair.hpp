/// \file
/// Two devices of one context, connected.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "rnic/verbs.hpp"

namespace rnic::workload {

/// For `return`, where a Result is owed.
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected(Error{code, std::move(message)});
}

/// \return the event is about the link of a port, and no connection has changed by it
[[nodiscard]] inline bool tells_of_link(const Event& event) {
  return std::holds_alternative<event::PortDown>(event) ||
         std::holds_alternative<event::PortUp>(event);
}

/// One end: everything that belongs to its queue pair, in the order of making.
struct End {
  explicit End(Device d) : device(std::move(d)) {}
  Device device;
  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue receive_cq;
  QueuePair qp;
};

struct PairOptions {
  uint16_t port = 7471;
  uint32_t depth = 256;        ///< of all four queues
  int64_t timeout_ms = 20000;  ///< for the connection
  uint32_t attempts = 5;       ///< a hostile wire may corrupt a start-up frame, which has no CRC
  std::span<const uint8_t> initiator_data;  ///< private data of the Request
  std::span<const uint8_t> responder_data;  ///< private data of the Reply
};

/// `initiator` has connected to `responder`; both are in full operation.
struct Pair {
  std::unique_ptr<End> initiator;
  std::unique_ptr<End> responder;
  uint32_t attempts = 1;  ///< connects that it took
};

/// One side of a connection that is to be.
struct Party {
  Device& device;
  QueuePair& qp;
};
/// One attempt to connect `initiator` to `responder`, whose device listens at the port already.
/// Checks that the private data arrived unchanged.
Status connect_once(Context& context, Party initiator, Party responder, const PairOptions& options);

/// Makes an end without a connection.
Result<std::unique_ptr<End>> make_end(Device device, uint32_t depth);

/// Connects device `from` to device `to` and checks that the private data arrived unchanged.
Result<Pair> connect_pair(Context& context, const std::string& from, const std::string& to,
                          const PairOptions& options);

/// Graceful end of both sides; waits until both are disconnected.
Status disconnect_pair(Context& context, Pair& pair, int64_t timeout_ms);

}  // namespace rnic::workload
