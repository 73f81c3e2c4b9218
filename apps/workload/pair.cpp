#include "workload/pair.hpp"

#include <algorithm>

namespace rnic::workload {

namespace {

bool same(std::span<const uint8_t> a, const std::vector<uint8_t>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

/// Watches both devices until both ends are established, or one attempt has failed.
class Attempt {
 public:
  Attempt(Context& context, Party initiator, Party responder, const PairOptions& options)
      : context_(context), initiator_(initiator), responder_(responder), options_(options) {}

  Status run() {
    Status started = initiator_.qp.connect({responder_.device.address(), options_.port},
                                           options_.initiator_data);
    if (!started) return started;
    const bool finished = context_.wait_until([this] { return step(); },
                                              std::chrono::milliseconds(options_.timeout_ms));
    if (!finished) {
      return fail(ErrorCode::TimedOut,
                  "no connection within " + std::to_string(options_.timeout_ms) + " ms");
    }
    if (!failure_.empty()) return fail(ErrorCode::Reset, failure_);
    return {};
  }

 private:
  bool step() {
    while (const auto event = responder_.device.poll_event()) on_responder(*event);
    while (const auto event = initiator_.device.poll_event()) on_initiator(*event);
    return !failure_.empty() || (initiator_up_ && responder_up_);
  }

  void on_responder(const Event& event) {
    if (const auto* asked = std::get_if<event::ConnectRequest>(&event)) {
      if (!same(options_.initiator_data, asked->private_data)) {
        failure_ = "the private data of the request did not arrive unchanged";
        static_cast<void>(responder_.device.reject(asked->request));
        return;
      }
      const Status accepted = responder_.qp.accept(asked->request, options_.responder_data);
      if (!accepted) failure_ = accepted.error().message;
    } else if (std::holds_alternative<event::Established>(event)) {
      responder_up_ = true;
    } else if (!tells_of_link(event)) {
      failure_ = std::string("responder: ") + to_string(event) + ": " + common(event).detail;
    }
  }

  void on_initiator(const Event& event) {
    if (const auto* up = std::get_if<event::Established>(&event)) {
      initiator_up_ = true;
      if (!same(options_.responder_data, up->private_data)) {
        failure_ = "the private data of the reply did not arrive unchanged";
      }
    } else if (!tells_of_link(event)) {
      failure_ = std::string("initiator: ") + to_string(event) + ": " + common(event).detail;
    }
  }

  Context& context_;
  Party initiator_;
  Party responder_;
  const PairOptions& options_;
  bool initiator_up_ = false;
  bool responder_up_ = false;
  std::string failure_;
};

}  // namespace

Status connect_once(Context& context, Party initiator, Party responder,
                    const PairOptions& options) {
  return Attempt(context, initiator, responder, options).run();
}

Result<std::unique_ptr<End>> make_end(Device device, uint32_t depth) {
  auto end = std::make_unique<End>(std::move(device));
  auto pd = end->device.alloc_pd();
  if (!pd) return tl::unexpected(pd.error());
  end->pd = std::move(*pd);
  auto send_cq = end->device.create_cq(2 * depth);
  if (!send_cq) return tl::unexpected(send_cq.error());
  end->send_cq = std::move(*send_cq);
  auto receive_cq = end->device.create_cq(2 * depth);
  if (!receive_cq) return tl::unexpected(receive_cq.error());
  end->receive_cq = std::move(*receive_cq);
  QueuePairOptions options;
  options.send_depth = options.receive_depth = depth;
  auto qp = end->pd.create_qp(end->send_cq, end->receive_cq, options);
  if (!qp) return tl::unexpected(qp.error());
  end->qp = std::move(*qp);
  return end;
}

Result<Pair> connect_pair(Context& context, const std::string& from, const std::string& to,
                          const PairOptions& options) {
  auto initiator = context.device(from);
  if (!initiator) return tl::unexpected(initiator.error());
  auto responder = context.device(to);
  if (!responder) return tl::unexpected(responder.error());
  if (const auto listening = responder->listen(options.port); !listening) {
    return tl::unexpected(listening.error());
  }
  Status status;
  Pair pair;
  for (pair.attempts = 1; pair.attempts <= options.attempts; ++pair.attempts) {
    auto a = make_end(*initiator, options.depth);
    if (!a) return tl::unexpected(a.error());
    auto b = make_end(*responder, options.depth);
    if (!b) return tl::unexpected(b.error());
    pair.initiator = std::move(*a);
    pair.responder = std::move(*b);
    status = connect_once(context, {pair.initiator->device, pair.initiator->qp},
                          {pair.responder->device, pair.responder->qp}, options);
    if (status) break;
  }
  static_cast<void>(responder->unlisten(options.port));
  if (!status) return tl::unexpected(status.error());
  return pair;
}

Status disconnect_pair(Context& context, Pair& pair, int64_t timeout_ms) {
  Status first = pair.initiator->qp.disconnect();
  if (!first) return first;
  int gone = 0;
  bool responder_closing = false;
  const auto step = [&] {
    while (const auto event = pair.initiator->device.poll_event()) {
      if (std::holds_alternative<event::Disconnected>(*event)) ++gone;
    }
    while (const auto event = pair.responder->device.poll_event()) {
      if (std::holds_alternative<event::PeerClosed>(*event) && !responder_closing) {
        responder_closing = true;
        static_cast<void>(pair.responder->qp.disconnect());
      }
      if (std::holds_alternative<event::Disconnected>(*event)) ++gone;
    }
    return gone == 2;
  };
  if (context.wait_until(step, std::chrono::milliseconds(timeout_ms))) return {};
  return fail(ErrorCode::TimedOut,
              "the connection did not close within " + std::to_string(timeout_ms) + " ms");
}

}  // namespace rnic::workload
