/// \file
/// Deliveries: the functions that handle delivered messages, one for each kind. The rows of
/// opcodes.hpp name them.
#pragma once

#include <cstdint>

#include "base/time.hpp"
#include "ddp/fault.hpp"
#include "wire/ddp.hpp"

namespace rnic::rdmap {

struct OpcodeRow;

/// A message of an untagged queue whose octets have all come, and whose turn it is.
struct UntaggedMessage {
  const OpcodeRow& row;
  const wire::DdpUntaggedHeader& header;  ///< of its last segment
  uint64_t length;
  const ddp::SegmentReport& segment;  ///< the last one
  base::Now now;
};

/// One function for each kind of message (RFC 5040 s.5, RFC 7306 s.5 and s.6). A fault that a
/// function returns becomes a Terminate.
class Deliveries {
 public:
  // Tagged messages: called for each segment, when the order has reached it.
  virtual Fault deliver_write(const wire::DdpTaggedHeader& header, uint32_t payload) = 0;
  virtual Fault deliver_read_response(const wire::DdpTaggedHeader& header, uint32_t payload) = 0;

  // Untagged messages: called once, when all of the message has been delivered by DDP.
  virtual Fault deliver_send(const UntaggedMessage& message) = 0;
  virtual Fault deliver_immediate(const UntaggedMessage& message) = 0;
  virtual Fault deliver_read_request(const UntaggedMessage& message) = 0;
  virtual Fault deliver_atomic_request(const UntaggedMessage& message) = 0;
  virtual Fault deliver_atomic_response(const UntaggedMessage& message) = 0;
  virtual Fault deliver_terminate(const UntaggedMessage& message) = 0;

 protected:
  ~Deliveries() = default;
};

}  // namespace rnic::rdmap
