#include "rnic-spin/spinner.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "rnic-spin/empties.hpp"

namespace rnic::spin {

namespace {

constexpr uint64_t kStepsBetweenChecks = 500;  // of the memory, which is read whole

}  // namespace

Spinner::Spinner(Context& context, uint64_t seed)
    : world_(context, seed),
      arrivals_(world_),
      making_(world_, arrivals_),
      parties_(world_),
      ports_(world_),
      streaming_(world_),
      converting_(world_, streaming_),
      framed_(world_),
      connecting_(world_, arrivals_),
      posting_(world_),
      working_(world_, arrivals_, posting_),
      granting_(world_, posting_),
      asking_(world_),
      stillness_(world_, arrivals_, posting_),
      actions_(objects()) {
  for (const auto& more : {parties(), traffic(), grants(), questions(), streams(), frames()}) {
    std::ranges::copy(more, std::back_inserter(actions_));
  }
  for (const Action& action : actions_) weights_ += action.weight;
}

Status Spinner::start() {
  for (const std::string& name : world_.context.device_names()) {
    auto device = world_.context.device(name);
    if (!device) return tl::unexpected(device.error());
    auto side = std::make_unique<Side>(*device);
    if (Status status = ports_.listen_always(*side); !status) return status;
    world_.sides.push_back(std::move(side));
  }
  return {};
}

std::vector<Spinner::Action> Spinner::objects() {
  return {
      {4, [this](Side& side) { making_.make_domain(side); }},
      {1, [this](Side& side) { making_.end_domain(side); }},
      {6, [this](Side& side) { making_.make_queue(side); }},
      {1, [this](Side& side) { making_.end_queue(side); }},
      {2, [this](Side& side) { making_.change_queue(side); }},
      {2, [this](Side& side) { making_.make_shared(side); }},
      {1, [this](Side& side) { making_.end_shared(side); }},
      {2, [this](Side& side) { making_.change_shared(side); }},
      {20, [this](Side& side) { making_.make_region(side); }},
      {6, [this](Side& side) { making_.end_region(side); }},
      {2, [this](Side& side) { making_.change_region(side); }},
      {4, [this](Side& side) { making_.make_window(side); }},
      {8, [this](Side& side) { making_.bind_window(side); }},
      {3, [this](Side& side) { making_.end_window(side); }},
      {10, [this](Side& side) { making_.make_pair(side); }},
      {3, [this](Side& side) { making_.change_reads(side); }},
      {2, [this](Side& side) { making_.end_pair(side); }},
      {4, [this](Side& side) { use_empty(world_, side); }},
  };
}

std::vector<Spinner::Action> Spinner::parties() {
  return {
      {2, [this](Side& side) { parties_.make_consumer(side); }},
      {4, [this](Side& side) { parties_.ask_consumer(side); }},
      {2, [this](Side& side) { parties_.end_consumer(side); }},
      {4, [this](Side& side) { parties_.ask_limits(side); }},
      {4, [this](Side& side) { ports_.reserve(side); }},
      {1, [this](Side& side) { ports_.release(side); }},
      {3, [this](Side& side) { ports_.listen(side); }},
      {2, [this](Side& side) { ports_.listen_reserved(side); }},
      {3, [this](Side& side) { ports_.unlisten(side); }},
  };
}

std::vector<Spinner::Action> Spinner::traffic() {
  return {
      {20, [this](Side& side) { connecting_.connect(side); }},
      {4, [this](Side& side) { connecting_.connect_reserved(side); }},
      {20, [this](Side& side) { connecting_.answer(side); }},
      {2, [this](Side& side) { connecting_.close(side); }},
      {2, [this](Side& side) { connecting_.reset(side); }},
      {15, [this](Side& side) { connecting_.to_idle(side); }},
      {5, [this](Side& side) { connecting_.ask(side); }},
      {1, [this](Side& side) { connecting_.abort(side); }},
      {4, [this](Side& side) { connecting_.choose_tcp(side); }},
      {60, [this](Side& side) { working_.send(side); }},
      {60, [this](Side& side) { working_.write(side); }},
      {60, [this](Side& side) { working_.read(side); }},
      {15, [this](Side& side) { working_.write_list(side); }},
      {30, [this](Side& side) { working_.atomic(side); }},
      {5, [this](Side& side) { working_.local(side); }},
      {5, [this](Side& side) { working_.bad(side); }},
      {5, [this](Side& side) { working_.refused(side); }},
      {120, [this](Side& side) { working_.receive(side); }},
      {40, [this](Side& side) { working_.receive_shared(side); }},
      {10, [this](Side& side) { working_.relieve(side); }},
      {150, [this](Side& side) { arrivals_.poll(side); }},
      {20, [this](Side& side) { arrivals_.arm_and_poll(side); }},
      {60, [this](Side& side) { arrivals_.watch(side); }},
      {200, [this](Side&) { world_.turn(); }},
  };
}

std::vector<Spinner::Action> Spinner::grants() {
  return {
      {4, [this](Side& side) { granting_.allocate(side); }},
      {20, [this](Side& side) { granting_.register_part(side); }},
      {3, [this](Side& side) { granting_.invalidate(side); }},
      {30, [this](Side& side) { granting_.read_and_invalidate(side); }},
      {30, [this](Side& side) { granting_.send_and_invalidate(side); }},
      {6, [this](Side& side) { granting_.fail(side); }},
      {1, [this](Side& side) { granting_.end(side); }},
  };
}

std::vector<Spinner::Action> Spinner::questions() {
  return {
      {4, [this](Side& side) { asking_.start_trace(side); }},
      {3, [this](Side& side) { asking_.take_trace(side); }},
      {2, [this](Side& side) { asking_.name(side); }},
      {3, [this](Side& side) { asking_.moderate(side); }},
      {3, [this](Side& side) { asking_.descriptors(side); }},
      {2, [this](Side& side) { asking_.counts(side); }},
  };
}

std::vector<Spinner::Action> Spinner::streams() {
  return {
      {2, [this](Side& side) { streaming_.listen(side); }},
      {1, [this](Side& side) { streaming_.listen_reserved(side); }},
      {1, [this](Side& side) { streaming_.stop_listening(side); }},
      {6, [this](Side& side) { streaming_.connect(side); }},
      {10, [this](Side& side) { streaming_.accept(side); }},
      {30, [this](Side& side) { streaming_.send(side); }},
      {40, [this](Side& side) { streaming_.receive(side); }},
      {4, [this](Side& side) { streaming_.choose_tcp(side); }},
      {1, [this](Side& side) { streaming_.finish(side); }},
      {2, [this](Side& side) { streaming_.close(side); }},
      {1, [this](Side& side) { streaming_.abort(side); }},
      {1, [this](Side& side) { streaming_.hear_out(side); }},
      {10, [this](Side& side) { converting_.convert(side); }},
      {10, [this](Side& side) { converting_.look(side); }},
      {2, [this](Side& side) { converting_.close(side); }},
  };
}

std::vector<Spinner::Action> Spinner::frames() {
  return {
      {2, [this](Side& side) { framed_.listen(side); }},
      {1, [this](Side& side) { framed_.stop_listening(side); }},
      {6, [this](Side& side) { framed_.connect(side); }},
      {10, [this](Side& side) { framed_.accept(side); }},
      {30, [this](Side& side) { framed_.send(side); }},
      {2, [this](Side& side) { framed_.send_bad(side); }},
      {40, [this](Side& side) { framed_.receive(side); }},
      {3, [this](Side& side) { framed_.change(side); }},
      {1, [this](Side& side) { framed_.finish(side); }},
      {2, [this](Side& side) { framed_.close(side); }},
      {1, [this](Side& side) { framed_.abort(side); }},
      {1, [this](Side& side) { framed_.hear_out(side); }},
  };
}

void Spinner::step() {
  Side& side = *world_.sides[world_.dice.below(2)];
  size_t at = world_.dice.below(weights_);
  for (const Action& action : actions_) {
    if (at < action.weight) {
      action.carry_out(side);
      break;
    }
    at -= action.weight;
  }
  if (++steps_ % kStepsBetweenChecks == 0 && stillness_.reach()) arrivals_.check_memory();
}

void Spinner::reject_all(Side& side) {
  for (const Asked& asked : std::exchange(side.asked, {})) {
    world_.judge.answered("reject", side.device.reject(asked.request), Expect::Either,
                          {ErrorCode::NotFound});
  }
}

void Spinner::end_all(Side& side) {
  const auto some = [](const auto&... lists) { return (!lists.empty() || ...); };
  while (some(side.domains, side.queues, side.shared, side.regions, side.grants, side.windows,
              side.pairs, side.consumers, side.reserved, side.stream_ports, side.speaking,
              side.converted,
              side.framed_ports, side.framed) ||
         side.listening.size() > 1) {
    switch (world_.dice.below(7)) {
      case 0: parties_.end_consumer(side); break;
      case 1: ports_.end_any(side); break;
      case 2: streaming_.end_any(side); break;
      case 3: granting_.end(side); break;
      case 4: framed_.end_any(side); break;
      case 5: converting_.close(side); break;
      default: making_.end_any(side);
    }
    // A consumer stays while its requests have no answer.
    arrivals_.watch(side);
    reject_all(side);
  }
}

void Spinner::finish() {
  for (const auto& side : world_.sides) end_all(*side);
  for (const auto& side : world_.sides) {
    world_.judge.answered("unlisten", side->device.unlisten(kPort), Expect::Success, {});
  }
  const bool still = world_.await([&] {
    for (const auto& side : world_.sides) {
      arrivals_.watch(*side);
      reject_all(*side);
    }
    return world_.sides[0]->device.quiescent() && world_.sides[1]->device.quiescent();
  });
  world_.judge.require(still, "something is connected, queued or held though all was destroyed");
  arrivals_.check_memory();
  for (const auto& side : world_.sides) {
    side->application->share.give_back({.listeners = 1});
    world_.judge.require(side->given_out() == ResourceCounts{}, "the caller has kept something");
    parties_.ask_limits(*side);
  }
}

}  // namespace rnic::spin
