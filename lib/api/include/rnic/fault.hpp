/// \file
/// Faults: the errors that one end of a connection finds in what the other end sent.
#pragma once

#include <cstdint>
#include <string>

namespace rnic {

/// The layers of a Terminate message (RFC 5040 s.4.8).
enum class FaultLayer : uint8_t {
  Rdmap = 0,
  Ddp = 1,
  Llp = 2,  ///< MPA, or another protocol that carries DDP
};

/// Layer, error type and error code of a Terminate message (RFC 5040 s.4.8 and figure 9, RFC 5041
/// s.7.2, RFC 5044 s.8, RFC 6581 s.8).
struct FaultCode {
  FaultLayer layer = FaultLayer::Rdmap;
  uint8_t type = 0;
  uint8_t code = 0;
  friend bool operator==(const FaultCode&, const FaultCode&) = default;
};

/// A fault code with the rule that was broken.
struct Fault {
  FaultLayer layer = FaultLayer::Rdmap;
  uint8_t type = 0;
  uint8_t code = 0;
  /// The requirement or section that was broken, a literal ("RDMAP-7.2-03"); nullptr: none was.
  const char* rule = nullptr;

  /// \return whether a rule was broken
  [[nodiscard]] constexpr bool failed() const { return rule != nullptr; }
};

[[nodiscard]] constexpr FaultCode code_of(const Fault& fault) {
  return {fault.layer, fault.type, fault.code};
}

/// The kind of error that has ended the use of a queue pair.
enum class QueuePairError : uint8_t {
  None,     ///< it was closed in order
  Access,   ///< the peer accessed memory without the right to: STag, rights, bounds
  Request,  ///< the peer's message is invalid: opcode, version, queue, no receive posted
  Fatal,    ///< anything else: the connection was lost or reset, the framing was broken, the peer
            ///< sent a Terminate, a completion queue overran
};
[[nodiscard]] const char* to_string(QueuePairError error);

/// The kind of error of a fault that was found in what the peer sent (RFC 5040 s.4.8).
[[nodiscard]] QueuePairError error_of(const Fault& fault);

/// The fault in words: "layer DDP, type tagged buffer error, code 0x01 base or bounds violation".
[[nodiscard]] std::string describe(const Fault& fault);

/// The name of the fault's code; "": its type has no codes; nullptr: the RFCs give it no name.
[[nodiscard]] const char* code_name(const Fault& fault);

}  // namespace rnic
