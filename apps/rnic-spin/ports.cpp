#include "rnic-spin/ports.hpp"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostListening = 6;
constexpr size_t kMostReserved = 4;
constexpr uint16_t kFirstPort = kNobody + 1;
constexpr size_t kPorts = 3;  // so few that they are taken now and then

bool overlap(const Endpoint& one, const Endpoint& other) {
  return one.port == other.port && (one.address == other.address || one.address.is_unspecified() ||
                                    other.address.is_unspecified());
}

ListenOptions options_of(const Listening& listening) {
  return {.context = std::bit_cast<void*>(listening.number)};
}

}  // namespace

Endpoint Ports::any_local(const Side& side) {
  Endpoint local;
  if (world_.dice.chance(50)) local.address = side.device.address();
  if (world_.dice.chance(50)) {
    local.port = static_cast<uint16_t>(kFirstPort + world_.dice.below(kPorts));
  }
  return local;
}

Ports::Holder Ports::holder_of(const Side& side, const Endpoint& local, bool to_reserve) const {
  if (local.port == 0) return Holder::Nobody;
  // Listeners at one address and at all addresses share a port, but not over the system's sockets.
  const bool any_overlap = to_reserve || side.on_sockets;
  const bool reserved = std::ranges::any_of(
      side.reserved, [&](const auto& one) { return overlap(one->local, local); });
  const bool listened = std::ranges::any_of(side.listening, [&](const auto& one) {
    return any_overlap ? overlap(one->local, local) : one->local == local;
  });
  if (reserved || listened) return Holder::Somebody;
  // Another program may have it.
  return side.on_sockets ? Holder::Perhaps : Holder::Nobody;
}

bool Ports::names_holder(const Side& side, const Endpoint& local, const std::string& text) {
  const auto is_named = [&](const auto& one) {
    const std::string who = one->owner->is_application
                                ? "this device's application"
                                : "consumer \"" + one->owner->share.name() + "\"";
    return overlap(one->local, local) && text.find(who + " has it") != std::string::npos;
  };
  return std::ranges::any_of(side.reserved, is_named) ||
         std::ranges::any_of(side.listening, is_named);
}

bool Ports::granted(const Side& side, const std::string& call, const Endpoint& local,
                    const Result<Endpoint>& got, Share& share, Holder holder) {
  if (holder == Holder::Nobody || share.lacking({.listeners = 1})) {
    return world_.granted(call, got, share, {.listeners = 1});
  }
  const Expect expect = holder == Holder::Somebody ? Expect::Failure : Expect::Either;
  if (!world_.judge.answered(call, got, expect, {AlreadyExists})) {
    const std::string& text = got.error().message;
    world_.judge.require(holder == Holder::Perhaps || names_holder(side, local, text),
                         "a refusal that does not say who has the port: " + text);
    return false;
  }
  share.take({.listeners = 1});
  return true;
}

void Ports::check_given(const Endpoint& asked, const Endpoint& given) const {
  world_.judge.require(given.address == asked.address && given.port != 0 &&
                           (asked.port == 0 || given.port == asked.port),
                       "asked for " + to_string(asked) + ", and given " + to_string(given));
}

Status Ports::listen_always(Side& side) {
  auto listening = std::make_shared<Listening>(
      Listening{.owner = side.application, .number = world_.next_number++});
  const auto got = side.device.listen(kPort, options_of(*listening));
  if (!got) return tl::unexpected(got.error());
  side.application->share.take({.listeners = 1});
  listening->local = *got;
  side.listening.push_back(std::move(listening));
  return {};
}

void Ports::reserve(Side& side) {
  if (side.reserved.size() == kMostReserved) return;
  const auto owner = side.any_owner(world_.dice);
  const Endpoint local = any_local(side);
  const Holder holder = holder_of(side, local, true);
  auto made = owner->is_application ? side.device.reserve(local) : owner->handle.reserve(local);
  const auto got =
      made ? Result<Endpoint>(made->local()) : Result<Endpoint>(tl::unexpected(made.error()));
  if (!granted(side, "reserve", local, got, owner->share, holder)) return;
  check_given(local, *got);
  side.reserved.push_back(std::make_shared<Reserved>(
      Reserved{.handle = std::move(*made), .local = *got, .owner = owner}));
}

void Ports::release(Side& side) {
  const auto reserved = world_.dice.any(side.reserved);
  if (reserved == nullptr) return;
  if (world_.dice.chance(50)) {
    world_.judge.answered("PortReservation::destroy", reserved->handle.destroy(), Expect::Success,
                          {});
  }
  reserved->handle = {};
  reserved->owner->share.give_back({.listeners = 1});
  std::erase(side.reserved, reserved);
}

void Ports::listen(Side& side) {
  if (side.listening.size() == kMostListening) return;
  const auto owner = side.any_owner(world_.dice);
  auto listening = std::make_shared<Listening>();
  listening->owner = owner;
  listening->number = world_.next_number++;
  Endpoint local = any_local(side);
  if (!side.on_sockets && world_.dice.chance(5)) {
    local.address = world_.other(side).device.address();
    world_.judge.answered("listen at the other device's address", side.device.listen(local),
                          Expect::Failure, {InvalidArgument});
    return;
  }
  const Holder holder = holder_of(side, local, false);
  const ListenOptions options = options_of(*listening);
  const auto got = owner->is_application ? side.device.listen(local, options)
                                         : owner->handle.listen(local, options);
  if (!granted(side, "listen", local, got, owner->share, holder)) return;
  check_given(local, *got);
  listening->local = *got;
  owner->has_listened = true;
  side.listening.push_back(std::move(listening));
}

void Ports::listen_reserved(Side& side) {
  const auto reserved = world_.dice.any(side.reserved);
  if (reserved == nullptr || side.listening.size() == kMostListening) return;
  PortReservation& port = reserved->handle;
  if (world_.dice.chance(5)) {
    world_.judge.answered("listen on another device's port", world_.other(side).device.listen(port),
                          Expect::Failure, {InvalidArgument});
    return;
  }
  auto owner = world_.dice.chance(80) ? reserved->owner : side.any_owner(world_.dice);
  if (std::ranges::find(side.unnamed, owner) != side.unnamed.end()) owner = side.application;
  auto listening = std::make_shared<Listening>(
      Listening{.local = reserved->local, .owner = owner, .number = world_.next_number++});
  const ListenOptions options = options_of(*listening);
  const auto got = owner->is_application ? side.device.listen(port, options)
                                         : owner->handle.listen(port, options);
  const bool foreign = owner != reserved->owner;
  if (!world_.judge.answered("listen on a reserved port", got, unless(foreign),
                             {PermissionDenied})) {
    world_.judge.require(port.local() == reserved->local, "a reservation has gone with a refusal");
    return;
  }
  world_.judge.require(*got == reserved->local, "it listens elsewhere: " + to_string(*got));
  world_.judge.require(port.local() == Endpoint{}, "a reservation that was used is still there");
  owner->has_listened = true;
  side.listening.push_back(std::move(listening));
  std::erase(side.reserved, reserved);
}

void Ports::unlisten(Side& side) {
  const auto listening = world_.dice.any(side.listening);
  if (listening == nullptr) return;
  if (world_.dice.chance(10)) {
    world_.judge.answered("unlisten where nobody listens", side.device.unlisten(kNobody),
                          Expect::Failure, {NotFound});
    return;
  }
  const auto owner = world_.dice.chance(80) ? listening->owner : side.any_owner(world_.dice);
  const bool foreign = owner != listening->owner;
  if (!foreign && listening->local.port == kPort) return;  // peers need one that is always there
  const Endpoint local = listening->local;
  const Status status =
      owner->is_application ? side.device.unlisten(local) : owner->handle.unlisten(local);
  if (!world_.judge.answered("unlisten", status, unless(foreign), {PermissionDenied})) return;
  owner->share.give_back({.listeners = 1});
  std::erase(side.listening, listening);
}

void Ports::end_any(Side& side) {
  if (world_.dice.chance(50)) return unlisten(side);
  release(side);
}

}  // namespace rnic::spin
