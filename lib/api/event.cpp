#include "rnic/event.hpp"

#include <type_traits>

namespace rnic::event {

namespace {

struct Name {
  const char* operator()(const ConnectRequest&) const { return "connect request"; }
  const char* operator()(const Established&) const { return "established"; }
  const char* operator()(const ConnectFailed&) const { return "connect failed"; }
  const char* operator()(const Rejected&) const { return "rejected"; }
  const char* operator()(const RequestWithdrawn&) const { return "request withdrawn"; }
  const char* operator()(const RequestFailed&) const { return "request failed"; }
  const char* operator()(const FirstFpduOverdue&) const { return "first fpdu overdue"; }
  const char* operator()(const PeerClosed&) const { return "peer closed"; }
  const char* operator()(const Disconnected&) const { return "disconnected"; }
  const char* operator()(const TerminateSent&) const { return "terminate sent"; }
  const char* operator()(const TerminateReceived&) const { return "terminate received"; }
  const char* operator()(const CompletionOverrun&) const { return "completion overrun"; }
  const char* operator()(const SrqLimitReached&) const { return "srq limit reached"; }
  const char* operator()(const SrqHighWater&) const { return "srq high water"; }
  const char* operator()(const LastReceiveDone&) const { return "last receive done"; }
  const char* operator()(const PortDown&) const { return "port down"; }
  const char* operator()(const PortUp&) const { return "port up"; }
  const char* operator()(const DeviceFatal&) const { return "device fatal"; }
};

}  // namespace

const Common& common(const Event& event) {
  return std::visit([](const auto& each) -> const Common& { return each; }, event);
}

Common& common(Event& event) {
  return std::visit([](auto& each) -> Common& { return each; }, event);
}

const Fault* fault(const Event& event) {
  return std::visit(
      [](const auto& each) -> const Fault* {
        using Kind = std::decay_t<decltype(each)>;
        if constexpr (std::is_base_of_v<Ending, Kind>) {
          return each.fault ? &*each.fault : nullptr;
        } else if constexpr (std::is_same_v<Kind, TerminateSent> ||
                             std::is_same_v<Kind, TerminateReceived>) {
          return &each.fault;
        } else {
          return nullptr;
        }
      },
      event);
}

const char* to_string(const Event& event) { return std::visit(Name{}, event); }

}  // namespace rnic::event
