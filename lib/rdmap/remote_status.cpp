#include "rdmap/remote_status.hpp"

#include <algorithm>
#include <array>

#include "ddp/fault.hpp"

namespace rnic::rdmap {

namespace {

struct StatusRow {
  FaultLayer layer;
  uint8_t type;
  uint8_t first;  // code
  uint8_t last;
  CompletionStatus status;
};

constexpr uint8_t kProtection = 0x1;  // RFC 5040 figure 9
constexpr uint8_t kOperation = 0x2;
constexpr uint8_t kUntagged = 0x2;  // RFC 5041 s.7.2

// All other codes are RemoteOperation: catastrophic errors, an atomic that cannot be carried out,
// the errors of the LLP, unspecified errors.
constexpr std::array<StatusRow, 6> kStatuses{{
    // STag, bounds, rights, association, wrap; an STag that cannot be invalidated.
    {FaultLayer::Rdmap, kProtection, 0x00, 0xff, CompletionStatus::RemoteAccess},
    {FaultLayer::Rdmap, kOperation, 0x09, 0x09, CompletionStatus::RemoteAccess},
    {FaultLayer::Ddp, ddp::kTaggedBuffer, 0x00, 0x03, CompletionStatus::RemoteAccess},
    // Version and opcode; no buffer, or too small a one.
    {FaultLayer::Rdmap, kOperation, 0x05, 0x06, CompletionStatus::RemoteInvalidRequest},
    {FaultLayer::Ddp, ddp::kTaggedBuffer, 0x04, 0x04, CompletionStatus::RemoteInvalidRequest},
    {FaultLayer::Ddp, kUntagged, 0x01, 0x06, CompletionStatus::RemoteInvalidRequest},
}};

}  // namespace

CompletionStatus remote_status(const FaultCode& fault) {
  const auto* row = std::ranges::find_if(kStatuses, [&](const StatusRow& r) {
    return r.layer == fault.layer && r.type == fault.type && fault.code >= r.first &&
           fault.code <= r.last;
  });
  return row == kStatuses.end() ? CompletionStatus::RemoteOperation : row->status;
}

}  // namespace rnic::rdmap
