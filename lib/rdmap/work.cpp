#include "rdmap/work.hpp"

namespace rnic::rdmap {

const char* to_string(WorkOpcode opcode) {
  switch (opcode) {
    case WorkOpcode::Send: return "Send";
    case WorkOpcode::SendInvalidate: return "Send with Invalidate";
    case WorkOpcode::Write: return "Write";
    case WorkOpcode::Read: return "Read";
    case WorkOpcode::Receive: return "Receive";
    case WorkOpcode::ReadInvalidate: return "Read with Local Invalidate";
    case WorkOpcode::FetchAdd: return "FetchAdd";
    case WorkOpcode::CompareSwap: return "CmpSwap";
    case WorkOpcode::Immediate: return "Immediate Data";
    case WorkOpcode::LocalInvalidate: return "Local Invalidate";
  }
  return "unknown";
}

const char* to_string(WorkStatus status) {
  switch (status) {
    case WorkStatus::Success: return "success";
    case WorkStatus::LocalProtection: return "local protection error";
    case WorkStatus::LocalLength: return "local length error";
    case WorkStatus::RemoteTerminated: return "terminated by the peer";
    case WorkStatus::Flushed: return "flushed";
  }
  return "unknown";
}

}  // namespace rnic::rdmap
