#include "rnic-perf/crowd.hpp"

#include <algorithm>
#include <csignal>
#include <utility>

namespace rnic::perf {

namespace {

constexpr uint32_t kUsualRoom = 1024;            // limits.max_connections, unless said otherwise
constexpr uint64_t kUsualCompletions = 1 << 16;  // and no more than limits.max_cq_depth
constexpr int64_t kTimeoutMs = 20000;            // to connect to another process

/// What may stand in a completion queue: of the receives there are twice as many.
uint64_t completions_of(uint32_t count, uint32_t depth) {
  return std::max<uint64_t>(uint64_t{2} * count * depth, 64);
}

Result<std::unique_ptr<Side>> make_side(Context& context, const std::string& name,
                                        const CrowdOptions& options) {
  auto device = context.device(name);
  if (!device) return tl::unexpected(device.error());
  auto side = std::make_unique<Side>(std::move(*device));
  auto pd = side->device.alloc_pd();
  if (!pd) return tl::unexpected(pd.error());
  side->pd = std::move(*pd);
  const auto depth = static_cast<uint32_t>(completions_of(options.count, options.depth));
  auto send_cq = side->device.create_cq(depth);
  if (!send_cq) return tl::unexpected(send_cq.error());
  side->send_cq = std::move(*send_cq);
  auto receive_cq = side->device.create_cq(depth);
  if (!receive_cq) return tl::unexpected(receive_cq.error());
  side->receive_cq = std::move(*receive_cq);
  side->qps.resize(options.count);
  return side;
}

Status make_queue_pair(Side& side, uint32_t index, uint32_t depth) {
  QueuePairOptions options;
  options.send_depth = depth;
  options.receive_depth = 2 * depth;
  auto qp = side.pd.create_qp(side.send_cq, side.receive_cq, options);
  if (!qp) return tl::unexpected(qp.error());
  side.qps[index] = std::move(*qp);
  return {};
}

Status connect_one(Context& context, Crowd& crowd, uint32_t index, const CrowdOptions& options) {
  workload::PairOptions once;
  once.port = options.port;
  Status status;
  for (uint32_t attempt = 0; attempt < options.attempts; ++attempt) {
    for (Side* side : {crowd.initiator.get(), crowd.responder.get()}) {
      if (status = make_queue_pair(*side, index, options.depth); !status) return status;
    }
    status = workload::connect_once(context,
                                    {crowd.initiator->device, crowd.initiator->qps[index]},
                                    {crowd.responder->device, crowd.responder->qps[index]}, once);
    if (status) break;
  }
  return status;
}

}  // namespace

void make_room(Config& config, uint32_t count, uint32_t depth) {
  if (count > kUsualRoom) {
    const std::string most = std::to_string(count);
    config.set("limits.max_connections=" + most);
    config.set("limits.max_qps=" + most);
  }
  const uint64_t completions = completions_of(count, depth);
  if (completions <= kUsualCompletions) return;
  config.set("limits.max_cq_depth=" + std::to_string(completions));
}

Result<Crowd> connect_crowd(Context& context, const std::string& from, const std::string& to,
                            const CrowdOptions& options) {
  auto initiator = make_side(context, from, options);
  if (!initiator) return tl::unexpected(initiator.error());
  auto responder = make_side(context, to, options);
  if (!responder) return tl::unexpected(responder.error());
  Crowd crowd{std::move(*initiator), std::move(*responder)};
  if (const auto listening = crowd.responder->device.listen(options.port); !listening) {
    return tl::unexpected(listening.error());
  }
  Status status;
  for (uint32_t i = 0; i < options.count && status; ++i) {
    status = connect_one(context, crowd, i, options);
  }
  static_cast<void>(crowd.responder->device.unlisten(options.port));
  if (!status) return tl::unexpected(status.error());
  return crowd;
}

Result<std::pair<Crowd, workload::Offer>> connect_afar(Context& context, const std::string& from,
                                                       const Endpoint& to,
                                                       const CrowdOptions& options) {
  auto side = make_side(context, from, options);
  if (!side) return tl::unexpected(side.error());
  Side& near = **side;
  if (Status status = make_queue_pair(near, 0, options.depth); !status) {
    return tl::unexpected(status.error());
  }
  auto reply = workload::connect_end(context, {near.device, near.qps[0]}, to, kTimeoutMs);
  // It asks whether it was interrupted, which nobody does in a run: that is to end the process.
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
  if (!reply) return tl::unexpected(reply.error());
  const auto offer = workload::decode_offer(*reply);
  if (!offer) return workload::fail(ErrorCode::Protocol, "the peer offers no memory");
  return std::pair{Crowd{std::move(*side), nullptr}, *offer};
}

}  // namespace rnic::perf
