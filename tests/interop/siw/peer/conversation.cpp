#include "conversation.hpp"

#include <array>

namespace rnic::siw {

namespace {

constexpr uint32_t kDepth = 128;

std::string code(const Fault& fault) {
  return std::to_string(static_cast<int>(fault.layer)) + "/" + std::to_string(fault.type) + "/" +
         std::to_string(fault.code);
}

/// What the device knows of connections on which nothing happens any more.
std::string standing_of(const Device& device) {
  std::string text;
  if (const auto connections = device.connections()) {
    for (const ConnectionSummary& each : *connections) {
      text += "; the peer was heard " + std::to_string(each.idle.count() / 1'000'000) + " ms ago";
    }
  }
  for (const Counter& each : device.counters()) {
    if (each.value == 0) continue;
    text += ", " + each.layer + "." + each.name + " " + std::to_string(each.value);
  }
  return text;
}

}  // namespace

Status Conversation::open() {
  auto made = workload::make_end(device_, kDepth);
  if (!made) return tl::unexpected(made.error());
  end_ = std::move(*made);
  touch();
  return prepare();
}

Status Conversation::connect(const Target& target) {
  initiator_ = true;
  if (Status status = open(); !status) return status;
  return end_->qp.connect(target.end, request_data(), target.options);
}

Status Conversation::accept(const RequestHandle& request) {
  if (Status status = open(); !status) return status;
  return end_->qp.accept(request, reply_data());
}

void Conversation::fail(const std::string& what) {
  if (error_.empty()) error_ = what;
}

bool Conversation::good(const Status& status) {
  if (!status) fail(status.error().message);
  return status.has_value();
}

void Conversation::leave(bool first) {
  leaving_ = true;
  touch();
  if (first) close();
}

void Conversation::close() {
  if (!closed_) good(end_->qp.disconnect());
  closed_ = true;
}

void Conversation::on(const event::Established& event) {
  facts_ = event.facts;
  established_ = true;
  if (initiator_ && !good(check_reply(event.private_data))) return;
  on_established();
}

void Conversation::on_terminate(const Event& event, const Fault& fault) {
  faults_.push_back({{"event", to_string(event)}, {"fault", code(fault)}});
  if (!expects_end()) fail(std::string(to_string(event)) + ": " + common(event).detail);
}

void Conversation::on(const event::TerminateSent& event) { on_terminate(event, event.fault); }

void Conversation::on(const event::TerminateReceived& event) { on_terminate(event, event.fault); }

void Conversation::on(const event::PeerClosed&) {
  if (!leaving_ && !may_close()) fail("the peer closes too early");
  close();
}

void Conversation::on(const event::Rejected& event) {
  fail("rejected: " + event.detail);
  rejected_ = true;
}

template <typename Kind>
void Conversation::on_lost(const Kind& event, const std::optional<Fault>& fault) {
  const char* name = to_string(Event(event));
  if (!leaving_ && !may_close()) {
    fail(std::string(name) + ": " + event.detail);
  } else if (fault && !expects_end()) {
    fail("lost while leaving: " + event.detail);
  }
  faults_.push_back({{"event", name}, {"fault", code(fault.value_or(Fault{}))}});
  disconnected_ = true;
}

void Conversation::on_event(const Event& event) {
  touch();
  events_.push_back(to_string(event));
  std::visit(
      [this](const auto& each) {
        using Kind = std::decay_t<decltype(each)>;
        if constexpr (std::is_base_of_v<event::Ending, Kind>) {
          on_lost(each, each.fault);
        } else if constexpr (requires { on(each); }) {
          on(each);
        } else {
          on_lost(each, std::nullopt);
        }
      },
      event);
}

void Conversation::step() {
  if (finished_) return;
  std::array<Completion, 32> done;
  for (CompletionQueue* queue : {&end_->send_cq, &end_->receive_cq}) {
    const uint32_t count = queue->poll(done);
    if (count > 0) touch();
    for (uint32_t i = 0; i < count; ++i) {
      const bool success = done[i].status == CompletionStatus::Success;
      const bool flushed = leaving_ && (done[i].status == CompletionStatus::Flushed ||
                                        done[i].status == CompletionStatus::Lost);
      if (!success && !flushed && !expects_end()) {
        fail(std::string(to_string(done[i].opcode)) + ": " + to_string(done[i].status));
      }
      if (!flushed) on_completion(done[i]);
    }
  }
  if (established_ && !failed()) advance();
  const bool late = !disconnected_ && context_.now().count() > deadline_ns_;
  const char* const kind = established_ ? "nothing happens any more" : "no connection";
  if (late) fail(kind + standing_of(device_));
  finished_ = disconnected_ || late || (failed() && !rejected_);
}

nlohmann::ordered_json Conversation::report() const {
  nlohmann::ordered_json result;
  result["ok"] = error_.empty() && finished_;
  result["error"] = finished_ ? error_ : "not finished";
  result["established"] = established_;
  result["revision"] = facts_.revision;
  result["crc"] = facts_.crc;
  result["rtr"] = facts_.peer_to_peer;
  result["faults"] = faults_;
  result["events"] = events_;
  return result;
}

}  // namespace rnic::siw
