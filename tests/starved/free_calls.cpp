// The table of the free functions of the public headers that need memory: texts, and what is read
// from texts. Each is named with the types of its parameters, since several may bear one name.

#include "rnic/planned_fault.hpp"
#include "rnic/resolve.hpp"
#include "trial.hpp"

namespace rnic::starved {

namespace {

constexpr uint16_t kPort = 7471;

IpAddress long_address() {
  return must(parse_ip("fd00:1111:2222:3333:4444:5555:6666:7777"));
}

/// \return whether a call that gives a text has given one
Outcome of_text(const std::string& text) {
  return text.empty() ? Outcome{false, ErrorCode::ResourceExhausted, true} : Outcome{};
}

/// A refusal of what is wrong is a success, as long as it says so.
template <typename T>
Outcome of_refusal(const Result<T>& result) {
  const Outcome outcome = of(result);
  const bool refused = !outcome.done && outcome.code == ErrorCode::InvalidArgument && outcome.told;
  return refused ? Outcome{} : outcome;
}

std::vector<Call> readings() {
  return {
      {"parse_ip(string)",
       [](World& w) { w.text = "fd00:1111:2222:3333:4444:5555:6666:7777"; },
       [](World& w) { return of(parse_ip(w.text)); }, nullptr},
      {"parse_ip(string)", [](World& w) { w.text = "a name that is no address"; },
       [](World& w) { return of_refusal(parse_ip(w.text)); }, nullptr},
      {"parse_endpoint(string)",
       [](World& w) { w.text = "[fd00:1111:2222:3333:4444:5555:6666:7777]:80"; },
       [](World& w) { return of(parse_endpoint(w.text)); }, nullptr},
      {"parse_endpoint(string)", [](World& w) { w.text = "a name that is no address:80"; },
       [](World& w) { return of_refusal(parse_endpoint(w.text)); }, nullptr},
      {"parse_endpoint(string/uint16_t)",
       [](World& w) { w.text = "fd00:1111:2222:3333:4444:5555:6666:7777"; },
       [](World& w) { return of(parse_endpoint(w.text, kPort)); }, nullptr},
      {"parse_endpoint(string/uint16_t)", [](World& w) { w.text = "[fd00::1]:a port"; },
       [](World& w) { return of_refusal(parse_endpoint(w.text, kPort)); }, nullptr},
      {"parse_planned_fault(string_view)",
       [](World& w) { w.text = "stall the responder 2s at request 3"; },
       [](World& w) { return of(parse_planned_fault(w.text)); }, nullptr},
      {"parse_planned_fault(string_view)", [](World& w) { w.text = "drop fpdu x of message 7"; },
       [](World& w) { return of_refusal(parse_planned_fault(w.text)); }, nullptr},
      {"needs_frames(PlannedFault)", nullptr,
       [](World&) {
         if (!needs_frames({.kind = PlannedFaultKind::DropFpdu})) broken("another answer");
         return Outcome{};
       },
       nullptr},
      {"resolve(string/uint16_t)", [](World& w) { w.text = "127.0.0.1"; },
       [](World& w) { return of(resolve(w.text, kPort)); }, nullptr},
      {"resolve(string/uint16_t)", [](World& w) { w.text = ""; },
       [](World& w) { return of_refusal(resolve(w.text, kPort)); }, nullptr},
  };
}

std::vector<Call> texts() {
  return {
      {"to_string(IpAddress)", nullptr,
       [](World&) { return of_text(to_string(IpAddress(0xfd00111122223333, 0x4444555566667777))); },
       [](World&) {
         if (must(parse_ip(to_string(long_address()))) != long_address()) broken("another text");
       }},
      {"to_string(Endpoint)", nullptr,
       [](World&) {
         return of_text(
             to_string(Endpoint{IpAddress(0xfd00111122223333, 0x4444555566667777), kPort}));
       },
       nullptr},
      {"to_string(PlannedFault)", nullptr,
       [](World&) {
         return of_text(to_string(PlannedFault{.kind = PlannedFaultKind::BadCrc,
                                               .message = 4'000'000'000,
                                               .fpdu = 4'000'000'000}));
       },
       nullptr},
      {"describe(Fault)", nullptr,
       [](World&) { return of_text(describe(Fault{FaultLayer::Rdmap, 1, 2})); }, nullptr},
      {"describe(Completion)", nullptr,
       [](World&) {
         Completion failed;
         failed.status = CompletionStatus::RemoteOperation;
         failed.cause = CompletionCause::PeerTerminate;
         failed.fault = {FaultLayer::Rdmap, 1, 2};
         return of_text(describe(failed));
       },
       nullptr},
  };
}

}  // namespace

std::vector<Call> free_calls() {
  std::vector<Call> out = readings();
  for (const Call& call : texts()) out.push_back(call);
  return out;
}

}  // namespace rnic::starved
