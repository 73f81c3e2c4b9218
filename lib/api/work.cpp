#include "rnic/work.hpp"

#include "api/no_throw.hpp"

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
    case Opcode::WriteImmediate: return "Write with Immediate";
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
    case CompletionStatus::RemoteAccess: return "remote access error";
    case CompletionStatus::RemoteInvalidRequest: return "remote invalid request";
    case CompletionStatus::RemoteOperation: return "remote operation error";
    case CompletionStatus::Flushed: return "flushed";
    case CompletionStatus::Lost: return "connection lost";
  }
  return "unknown";
}

namespace {

const char* words_of(CompletionCause cause) {
  switch (cause) {
    case CompletionCause::None: return "";
    case CompletionCause::NotConnected: return "it was posted before there was a connection";
    case CompletionCause::Disconnected: return "it was posted behind disconnect()";
    case CompletionCause::NotAgreed:
      return "the start-up of the connection has left no room for Reads and atomics (ORD 0), or "
             "no such operation (RDMAP version 0)";
    case CompletionCause::LocalError: return "an error of this side ended the stream";
    case CompletionCause::PeerFault: return "the peer broke a rule";
    case CompletionCause::PeerTerminate: return "the peer ended the stream with a Terminate";
    case CompletionCause::PeerClosed:
      return "the peer has closed its direction and sends no response any more";
    case CompletionCause::Closed: return "the connection was closed";
    case CompletionCause::PeerReset: return "the peer reset the connection";
    case CompletionCause::TimedOut: return "the peer did not answer any more";
    case CompletionCause::Unreachable: return "the network told that there is no way to the peer";
    case CompletionCause::Aborted: return "this side aborted the connection";
  }
  return "unknown";
}

std::string in_words(const Completion& completion) {
  std::string text = to_string(completion.status);
  const CompletionCause cause = completion.cause;
  if (cause == CompletionCause::None) return text;
  text += std::string(": ") + words_of(cause);
  const bool has_fault = cause == CompletionCause::LocalError ||
                         cause == CompletionCause::PeerFault ||
                         cause == CompletionCause::PeerTerminate;
  if (!has_fault) return text;
  const auto [layer, type, code] = completion.fault;
  return text + ": " + describe(Fault{layer, type, code});
}

}  // namespace

std::string describe(const Completion& completion) {
  return text_or_none([&] { return in_words(completion); });
}

}  // namespace rnic
