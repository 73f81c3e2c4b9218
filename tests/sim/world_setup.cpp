// A world's beginning and end.

#include "world.hpp"

namespace rnic::simulation {

namespace {

constexpr uint16_t kListenPort = 7471;
constexpr uint16_t kClosedPort = 9;

}  // namespace

void World::build_wire() {
  sim::LinkConfig config;
  config.mtu = plan_.mtu;
  config.slots = 2048;
  config.name_a = plan_.devices[0].name;
  config.name_b = plan_.devices[1].name;
  sim::Direction direction;
  direction.delay = plan_.delay;
  direction.bits_per_second = plan_.bits_per_second;
  direction.queue_limit = plan_.queue_frames;
  direction.drop_when_full = true;
  config.a_to_b = config.b_to_a = direction;
  link_ = std::make_unique<sim::Link>(config);
}

void World::build_hosts(const Recording& recording) {
  for (uint32_t side = 0; side < 2; ++side) {
    Host& host = hosts_[side];
    port::Port& end = side == 0 ? static_cast<port::Port&>(link_->a()) : link_->b();
    impair::Config weather = plan_.weather[side];
    weather.corrupt = 0;
    host.weather = std::make_unique<impair::ImpairedPort>(end, weather, prng_.next());
    port::Port* below = host.weather.get();
    if (plan_.cutters[side] != Cutter::None) {
      host.cutter = std::make_unique<CuttingPort>(*below, plan_.cutters[side]);
      below = host.cutter.get();
    }
    if (plan_.squeezes[side].most != 0) {
      const bool scaling =
          plan_.devices[0].tcp.window_scaling && plan_.devices[1].tcp.window_scaling;
      host.squeezer =
          std::make_unique<SqueezingPort>(*below, plan_.squeezes[side], scaling, prng_.next());
      below = host.squeezer.get();
    }
    host.tap = std::make_unique<TapPort>(*below, side, monitor_);
    port::Port* top = host.tap.get();
    if (!recording.prefix.empty()) {
      const std::string path = recording.prefix + "." + plan_.devices[side].name + ".pcapng";
      if (auto capture = pcap::CapturePort::open(*top, path)) {
        host.capture = std::move(*capture);
        top = host.capture.get();
      } else {
        recording.lose(capture.error().message);
      }
    }
    host.device = std::make_unique<device::Device>(plan_.devices[side], *top, now_);
    const auto listening = host.device->listen(kListenPort);
    if (!listening) resources(tl::unexpected(listening.error()));
    if (plan_.shared_queues) {
      const auto pd = host.device->alloc_pd();
      const auto cq = host.device->create_cq(4096);
      if (pd) host.shared_pd = *pd;
      if (cq) host.shared_cq = *cq;
    }
  }
}

void World::build_pipes() {
  const uint32_t flows = 2 * plan_.pipes;
  for (uint32_t i = 0; i < plan_.pipes; ++i) {
    add_pipe(PipeKind::Traffic, static_cast<uint32_t>(prng_.below(2)));
    Pipe& pipe = *pipes_.back();
    for (uint32_t side = 0; side < 2; ++side) {
      auto messages =
          plan_messages(plan_, plan_.messages / flows + 1, plan_.octets / flows + 1, prng_);
      pipe.flows[side] = std::make_unique<Flow>(
          "pipe " + std::to_string(i) + (side == 0 ? " left to right" : " right to left"), plan_,
          pipe.ends[side], pipe.ends[1 - side], std::move(messages), prng_.next(), verdict_);
    }
  }
  for (uint32_t i = 0; plan_.violations && i < kViolationsPerWorld; ++i) {
    add_pipe(PipeKind::Violation, static_cast<uint32_t>(prng_.below(2)));
    Pipe& pipe = *pipes_.back();
    const Violation violation = violations()[(plan_.violation_turn + i) % violations().size()];
    // The initiator sends first: it offends.
    End& offender = pipe.ends[pipe.initiator];
    End& victim = pipe.ends[1 - pipe.initiator];
    pipe.violation =
        std::make_unique<ViolationCase>(violation, offender, victim, prng_.next(), verdict_);
  }
  for (uint32_t i = 0; plan_.rejections && i < 2; ++i) {
    add_pipe(PipeKind::Rejected, i);
    add_pipe(PipeKind::Refused, i);
  }
}

void World::make_end(Pipe& pipe, uint32_t side) {
  End& end = pipe.ends[side];
  Host& host = hosts_[side];
  end.side = side;
  end.device = host.device.get();
  if (plan_.shared_queues) {
    end.pd = host.shared_pd;
    end.send_cq = end.receive_cq = host.shared_cq;
  } else {
    const auto pd = end.device->alloc_pd();
    const auto send_cq = end.device->create_cq(256);
    const auto receive_cq = end.device->create_cq(256);
    if (!pd || !send_cq || !receive_cq) return verdict_.fail("resources", "no PD or CQ");
    end.pd = *pd;
    end.send_cq = *send_cq;
    end.receive_cq = *receive_cq;
  }
  device::QueuePairSpec spec;
  spec.answer_close = false;
  spec.pd = end.pd;
  spec.send_cq = end.send_cq;
  spec.receive_cq = end.receive_cq;
  spec.send_depth = 128;
  spec.receive_depth = 128;
  spec.ird = 16;
  spec.ord = static_cast<uint32_t>(prng_.between(1, 16));
  if (plan_.receive_delay > base::Duration(0)) spec.receive_wait = std::chrono::hours(1);
  const auto qp = end.device->create_qp(spec);
  if (!qp) return verdict_.fail("resources", qp.error().message);
  end.qp = *qp;
  host.by_qp[end.qp->number()] = {&pipe, side};
}

void World::add_pipe(PipeKind kind, uint32_t initiator) {
  pipes_.push_back(std::make_unique<Pipe>());
  Pipe& pipe = *pipes_.back();
  pipe.number = static_cast<uint32_t>(pipes_.size() - 1);
  pipe.kind = kind;
  pipe.initiator = initiator;
  for (uint32_t side = 0; side < 2; ++side) {
    make_end(pipe, side);
    if (kind != PipeKind::Traffic || plan_.devices[side].framing != Framing::Mpa) continue;
    pipe.judges[side] = std::make_unique<DropJudge>(
        plan_.devices[side].name + ", pipe " + std::to_string(pipe.number), verdict_,
        plan_.devices[side].mpa, [this, &pipe, side](uint64_t offset) {
          return monitor_.fpdu_at(pipe.ports, 1 - side, offset);
        });
  }
  // The first octet tells the responder which pipe this is.
  pipe.request_data.resize(1 + prng_.below(508));
  fill_pattern(pipe.request_data, prng_.next(), 0);
  pipe.request_data[0] = static_cast<uint8_t>(pipe.number);
  pipe.reply_data.resize(prng_.below(509));
  fill_pattern(pipe.reply_data, prng_.next(), 0);
}

void World::connect(Pipe& pipe) {
  const uint32_t side = pipe.initiator;
  const Endpoint remote{plan_.devices[1 - side].net.address,
                        pipe.kind == PipeKind::Refused ? kClosedPort : kListenPort};
  // Plain and enhanced start-ups, with and without an RTR, beside each other.
  ConnectOptions options;
  // ULP framing has no revision and no RTR: the negotiation's third frame says the same.
  const bool mpa = plan_.devices[side].framing == Framing::Mpa;
  if (mpa) options.start.revision = pipe.number % 3 == 1 ? 1 : 2;
  options.peer_to_peer = pipe.number % 3 == 2 && mpa;
  if (*options.peer_to_peer && pipe.flows[side] != nullptr) pipe.flows[side]->expect_rtr();
  resources(
      hosts_[side].device->connect(*pipe.ends[side].qp, remote, pipe.request_data, now_, options));
  if (pipe.kind != PipeKind::Refused) begin_trace(pipe, side);
}

void World::release_everything() {
  for (auto& pipe : pipes_) {
    for (auto& flow : pipe->flows) {
      if (flow != nullptr) flow->release_regions();
    }
    if (pipe->violation != nullptr) pipe->violation->release_regions();
    for (End& end : pipe->ends) {
      hosts_[end.side].by_qp.erase(end.qp->number());
      resources(end.device->destroy_qp(end.qp));
      if (plan_.shared_queues) continue;
      resources(end.device->destroy_cq(end.send_cq));
      resources(end.device->destroy_cq(end.receive_cq));
      resources(end.device->free_pd(end.pd));
    }
  }
  for (Host& host : hosts_) {
    resources(host.device->unlisten({{}, kListenPort}));
    if (!plan_.shared_queues) continue;
    resources(host.device->destroy_cq(host.shared_cq));
    host.shared_cq = nullptr;
    resources(host.device->free_pd(host.shared_pd));
  }
}

void World::check_returned() {
  for (const Host& host : hosts_) {
    const std::string& name = host.device->config().name;
    if (!host.device->quiescent()) verdict_.fail("returned", name + " is not quiescent");
    if (host.device->memory().live() != 0) verdict_.fail("returned", name + " has regions left");
    if (host.device->live_connections() != 0) {
      verdict_.fail("returned", name + " has connections left");
    }
  }
}

void World::check_buffers() {
  for (Host& host : hosts_) host.device.reset();  // a living one keeps a few empty buffers at hand
  if (link_->held() != 0) {
    verdict_.fail("returned", std::to_string(link_->held()) + " frame buffers were not returned");
  }
}

}  // namespace rnic::simulation
