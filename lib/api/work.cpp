#include "rnic/work.hpp"

namespace rnic {

const char* to_string(Opcode opcode) {
  switch (opcode) {
    case Opcode::Send: return "Send";
    case Opcode::SendInvalidate: return "Send with Invalidate";
    case Opcode::Write: return "Write";
    case Opcode::Read: return "Read";
    case Opcode::Receive: return "Receive";
    case Opcode::ReadInvalidate: return "Read with Local Invalidate";
    case Opcode::FetchAdd: return "FetchAdd";
    case Opcode::CompareSwap: return "CmpSwap";
    case Opcode::Immediate: return "Immediate Data";
    case Opcode::LocalInvalidate: return "Local Invalidate";
    case Opcode::BindWindow: return "Bind Memory Window";
    case Opcode::FastRegister: return "Fast Register";
  }
  return "unknown";
}

const char* to_string(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::Success: return "success";
    case CompletionStatus::LocalProtection: return "local protection error";
    case CompletionStatus::LocalLength: return "local length error";
    case CompletionStatus::RemoteTerminated: return "terminated by the peer";
    case CompletionStatus::Flushed: return "flushed";
  }
  return "unknown";
}

}  // namespace rnic
