#include "rnic-spin/spinner.hpp"

#include <iterator>
#include <utility>

namespace rnic::spin {

namespace {

constexpr uint64_t kStepsBetweenChecks = 500;  // of the memory, which is read whole

}  // namespace

Spinner::Spinner(Context& context, uint64_t seed)
    : world_(context, seed),
      arrivals_(world_),
      making_(world_, arrivals_),
      connecting_(world_, arrivals_),
      working_(world_),
      actions_(objects()) {
  for (Action& action : traffic()) actions_.push_back(std::move(action));
  for (const Action& action : actions_) weights_ += action.weight;
}

Status Spinner::start() {
  for (const std::string& name : world_.context.device_names()) {
    auto device = world_.context.device(name);
    if (!device) return tl::unexpected(device.error());
    const auto listening = device->listen(kPort);
    if (!listening) return tl::unexpected(listening.error());
    world_.sides.push_back(std::make_unique<Side>(*device));
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
      {2, [this](Side& side) { making_.end_pair(side); }},
      {4, [this](Side& side) { making_.use_empty(side); }},
  };
}

std::vector<Spinner::Action> Spinner::traffic() {
  return {
      {20, [this](Side& side) { connecting_.connect(side); }},
      {20, [this](Side& side) { connecting_.answer(side); }},
      {2, [this](Side& side) { connecting_.close(side); }},
      {2, [this](Side& side) { connecting_.reset(side); }},
      {15, [this](Side& side) { connecting_.to_idle(side); }},
      {5, [this](Side& side) { connecting_.ask(side); }},
      {1, [this](Side& side) { connecting_.abort(side); }},
      {60, [this](Side& side) { working_.send(side); }},
      {60, [this](Side& side) { working_.write(side); }},
      {60, [this](Side& side) { working_.read(side); }},
      {30, [this](Side& side) { working_.atomic(side); }},
      {5, [this](Side& side) { working_.local(side); }},
      {5, [this](Side& side) { working_.bad(side); }},
      {5, [this](Side& side) { working_.refused(side); }},
      {120, [this](Side& side) { working_.receive(side); }},
      {40, [this](Side& side) { working_.receive_shared(side); }},
      {150, [this](Side& side) { arrivals_.poll(side); }},
      {20, [this](Side& side) { arrivals_.arm_and_poll(side); }},
      {60, [this](Side& side) { arrivals_.watch(side); }},
      {200, [this](Side&) { world_.turn(); }},
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
  if (++steps_ % kStepsBetweenChecks == 0) arrivals_.check_memory();
}

void Spinner::finish() {
  for (const auto& side : world_.sides) making_.end_all(*side);
  for (const auto& side : world_.sides) {
    for (const Asked& asked : std::exchange(side->asked, {})) {
      world_.judge.answered("reject", side->device.reject(asked.request), Expect::Either,
                            {ErrorCode::NotFound});
    }
    world_.judge.answered("unlisten", side->device.unlisten(kPort), Expect::Success, {});
  }
  const bool still = world_.await([&] {
    for (const auto& side : world_.sides) arrivals_.watch(*side);
    return world_.sides[0]->device.quiescent() && world_.sides[1]->device.quiescent();
  });
  world_.judge.require(still, "something is connected, queued or held though all was destroyed");
  arrivals_.check_memory();
}

}  // namespace rnic::spin
