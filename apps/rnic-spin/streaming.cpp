#include "rnic-spin/streaming.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "rnic-spin/tcp_choice.hpp"

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostStreamPorts = 3;
constexpr size_t kMostSpeaking = 8;
constexpr size_t kMostSpoken = 4096;  // of one send() or receive()
constexpr size_t kMostTalks = 256;
// Not those of Ports: a connect that is on its way to one kind of listener never finds the other.
constexpr uint16_t kFirstStreamPort = kNobody + 11;

bool is_over(const Conversation& talk) {
  return talk.at(StreamRole::Initiator).closed && talk.at(StreamRole::Acceptor).closed;
}

}  // namespace

void Streaming::listen(Side& side) {
  if (side.stream_ports.size() == kMostStreamPorts) return;
  Endpoint local;
  if (world_.dice.chance(50)) {
    local.port = static_cast<uint16_t>(kFirstStreamPort + world_.dice.below(kMostStreamPorts));
  }
  StreamListenerOptions options{.backlog = static_cast<uint32_t>(world_.dice.below(8))};
  if (world_.dice.chance(30)) options.stream = any_tcp(world_.dice);
  auto made = side.device.listen_stream(local, options);
  if (side.on_sockets) {
    world_.judge.answered("listen_stream over sockets", made, Expect::Failure, {Unsupported});
    return;
  }
  if (options.backlog == 0) {
    world_.judge.answered("listen_stream for nobody", made, Expect::Failure, {InvalidArgument});
    return;
  }
  const bool taken = std::ranges::any_of(
      side.stream_ports, [&](const auto& one) { return one->local.port == local.port; });
  if (!world_.judge.answered("listen_stream", made, unless(taken), {AlreadyExists})) return;
  listening(side, std::move(*made), local);
}

void Streaming::listening(Side& side, StreamListener listener, const Endpoint& asked) {
  const Endpoint local = listener.local();
  world_.judge.require(local.port != 0 && (asked.port == 0 || local.port == asked.port),
                       "streams are listened for elsewhere: " + to_string(local));
  side.stream_ports.push_back(
      std::make_shared<StreamPort>(StreamPort{.handle = std::move(listener), .local = local}));
}

void Streaming::listen_reserved(Side& side) {
  const auto reserved = world_.dice.any(side.reserved);
  if (reserved == nullptr || side.stream_ports.size() == kMostStreamPorts) return;
  // Fixed ports of Ports are for RDMA alone.
  const bool chosen = reserved->local.port >= kFirstStreamPort;
  const bool foreign = !reserved->owner->is_application;
  if (!chosen && !foreign && !side.on_sockets) return;
  auto made = side.device.listen_stream(reserved->handle);
  if (!world_.judge.answered("listen_stream on a reserved port", made,
                             unless(foreign || side.on_sockets),
                             {side.on_sockets ? Unsupported : PermissionDenied})) {
    world_.judge.require(reserved->handle.local() == reserved->local,
                         "a reservation has gone with a refusal");
    return;
  }
  world_.judge.require(reserved->handle.local() == Endpoint{},
                       "a reservation that was used is still there");
  listening(side, std::move(*made), reserved->local);
  reserved->owner->share.give_back({.listeners = 1});
  std::erase(side.reserved, reserved);
}

void Streaming::stop_listening(Side& side) {
  const auto port = world_.dice.any(side.stream_ports);
  if (port == nullptr) return;
  port->handle = {};
  world_.judge.seen("a StreamListener ends");
  std::erase(side.stream_ports, port);
}

void Streaming::connect(Side& side) {
  if (side.speaking.size() >= kMostSpeaking) return;
  const Side& there = world_.other(side);
  const auto port = world_.dice.chance(95) ? world_.dice.any(there.stream_ports) : nullptr;
  if (port == nullptr && world_.dice.chance(80)) return;
  const Endpoint remote{there.device.address(), port == nullptr ? kNobody : port->local.port};
  auto made = side.device.connect_stream(
      remote, world_.dice.chance(30) ? any_tcp(world_.dice) : StreamOptions{});
  if (side.on_sockets) {
    world_.judge.answered("connect_stream over sockets", made, Expect::Failure, {Unsupported});
    return;
  }
  if (!world_.judge.answered("connect_stream", made, Expect::Success, {})) return;
  begun(side, std::move(*made));
}

void Streaming::begun(Side& side, Stream handle) {
  world_.judge.require(handle.is_valid() && handle.local().port != 0 && handle.remote().port != 0,
                       "a stream has no ends");
  auto& talk = world_.talks[{handle.local(), handle.remote()}];
  if (talk == nullptr) {
    talk = std::make_shared<Conversation>(world_.next_number++);
    if (world_.forgotten_talks.contains({handle.local(), handle.remote()})) talk->doubt();
  } else {
    talk->doubt();
  }
  side.speaking.push_back(
      std::make_shared<Speaking>(Speaking{.handle = std::move(handle), .talk = talk}));
  if (world_.talks.size() <= kMostTalks) return;
  // The oldest one that nobody has accepted: a listener may still have it.
  const auto age = [](const auto& entry) {
    const bool closed = entry.second->at(StreamRole::Initiator).closed;
    return closed && !entry.second->is_accepted() ? entry.second->number() : UINT64_MAX;
  };
  const auto oldest = std::ranges::min_element(world_.talks, {}, age);
  if (age(*oldest) == UINT64_MAX) return;
  world_.forgotten_talks.insert(oldest->first);
  world_.talks.erase(oldest);
}

void Streaming::accept(Side& side) {
  const auto port = world_.dice.any(side.stream_ports);
  if (port == nullptr || side.speaking.size() >= kMostSpeaking + kMostStreamPorts) return;
  auto got = port->handle.accept();
  if (!got) return;
  world_.judge.seen("a stream was accepted");
  world_.judge.require(got->local().port == port->local.port, "accepted at another port");
  const auto found = world_.talks.find({got->remote(), got->local()});
  if (found == world_.talks.end() &&
      world_.forgotten_talks.contains({got->remote(), got->local()})) {
    return world_.judge.seen("a stream was accepted late");  // nothing is known of it
  }
  world_.judge.require(found != world_.talks.end(),
                       "a stream that nobody has connected: " + to_string(got->remote()));
  Conversation& talk = *found->second;
  world_.judge.require(!talk.is_accepted() || talk.is_doubtful(), "a stream was accepted twice");
  talk.accept();
  side.speaking.push_back(std::make_shared<Speaking>(
      Speaking{.handle = std::move(*got), .talk = found->second, .role = StreamRole::Acceptor}));
}

void Streaming::judge_end(const Speaking& speaking) {
  const Conversation& talk = *speaking.talk;
  if (const auto how = speaking.handle.how_ended()) {
    const auto wrong = talk.check_ended(speaking.role, *how);
    world_.judge.require(!wrong, wrong.value_or(""));
    world_.judge.require(speaking.handle.state() == StreamState::Ended, "it has ended, and not");
  }
  if (speaking.handle.at_end()) {
    const auto wrong = talk.check_at_end(speaking.role);
    world_.judge.require(!wrong, wrong.value_or(""));
  }
}

void Streaming::send(Side& side) {
  const auto speaking = world_.dice.any(side.speaking);
  if (speaking == nullptr) return;
  std::array<uint8_t, kMostSpoken> octets;
  const auto next = std::span(octets).first(world_.dice.below(kMostSpoken + 1));
  Stream& stream = speaking->handle;
  speaking->talk->fill(speaking->role, next);
  const auto ended = stream.how_ended();
  const uint64_t room = stream.writable();
  const auto got = stream.send(next);
  const bool over = speaking->finished || ended;
  const ErrorCode code =
      speaking->finished || !stream.how_ended() ? WrongState : code_of(*stream.how_ended());
  const Expect expect = over || world_.is_still() ? unless(over) : Expect::Either;
  if (!world_.judge.answered("Stream::send", got, expect, {code})) return judge_end(*speaking);
  const uint64_t fits = std::min<uint64_t>(next.size(), room);
  world_.judge.require(*got <= next.size() && *got >= fits && (*got == fits || !world_.is_still()),
                       "send() has taken " + std::to_string(*got) +
                           " octets, where there was room for " + std::to_string(room));
  speaking->talk->at(speaking->role).sent += *got;
}

void Streaming::take(Speaking& speaking, size_t most) {
  std::array<uint8_t, kMostSpoken> octets;
  const auto room = std::span(octets).first(most);
  Stream& stream = speaking.handle;
  const auto ended = stream.how_ended();
  const uint64_t there = stream.readable();
  const auto got = stream.receive(room);
  const bool over = ended && *ended != StreamEnd::Closed && there == 0 && most != 0;
  const ErrorCode code = code_of(stream.how_ended().value_or(StreamEnd::Closed));
  const Expect expect = over || world_.is_still() ? unless(over) : Expect::Either;
  if (world_.judge.answered("Stream::receive", got, expect, {code})) {
    const uint64_t fits = std::min<uint64_t>(most, there);
    world_.judge.require(
        *got <= most && *got >= fits && (*got == fits || !world_.is_still()),
        "receive() has given " + std::to_string(*got) + " octets of " + std::to_string(there));
    const auto wrong = speaking.talk->receive(speaking.role, room.first(*got));
    world_.judge.require(!wrong, wrong.value_or(""));
  }
  judge_end(speaking);
}

void Streaming::take(Speaking& speaking) { take(speaking, kMostSpoken); }

void Streaming::receive(Side& side) {
  const auto speaking = world_.dice.any(side.speaking);
  if (speaking != nullptr) take(*speaking, world_.dice.below(kMostSpoken + 1));
}

void Streaming::choose_tcp(Side& side) {
  const auto speaking = world_.dice.any(side.speaking);
  if (speaking == nullptr) return;
  const bool wrong = world_.dice.chance(20);
  const bool ended = speaking->handle.how_ended().has_value();
  const Status status =
      speaking->handle.set_options(wrong ? impossible_tcp(world_.dice) : any_tcp(world_.dice));
  const Expect expect =
      ended || wrong || world_.is_still() ? unless(ended || wrong) : Expect::Either;
  if (ended || !wrong) {
    world_.judge.answered("Stream::set_options", status, expect, {WrongState});
  } else if (world_.is_still()) {
    world_.judge.answered("Stream::set_options to what cannot be", status, expect,
                          {InvalidArgument});
  } else {
    world_.judge.answered("Stream::set_options to what cannot be", status, expect,
                          {InvalidArgument, WrongState});
  }
}

void Streaming::finish(Side& side) {
  const auto speaking = world_.dice.any(side.speaking);
  if (speaking != nullptr) finish(*speaking);
}

void Streaming::finish(Speaking& speaking) {
  speaking.finished = true;
  speaking.talk->at(speaking.role).finished = true;
  speaking.handle.finish_sending();
  world_.judge.seen("Stream::finish_sending");
}

void Streaming::abort(Side& side) {
  const auto speaking = world_.dice.any(side.speaking);
  if (speaking == nullptr || !world_.dice.chance(30)) return;
  speaking->talk->at(speaking->role).aborted = true;
  speaking->handle.abort();
  world_.judge.seen("Stream::abort");
}

void Streaming::close(Side& side) {
  const auto speaking = world_.dice.any(side.speaking);
  if (speaking == nullptr) return;
  judge_end(*speaking);
  speaking->talk->at(speaking->role).closed = true;
  speaking->handle.close();
  world_.judge.require(!speaking->handle.is_valid(), "a closed stream is not empty");
  world_.judge.answered("send() on a closed stream", speaking->handle.send({}), Expect::Failure,
                        {WrongState});
  std::erase(side.speaking, speaking);
  forget(*speaking);
}

void Streaming::forget(const Speaking& speaking) {
  if (!is_over(*speaking.talk) || speaking.talk->is_doubtful()) return;
  std::erase_if(world_.talks, [&](const auto& entry) { return entry.second == speaking.talk; });
}

std::shared_ptr<Speaking> Streaming::peer_of(const Side& side, const Speaking& speaking) const {
  const auto& all = world_.other(side).speaking;
  const auto found = std::ranges::find_if(all, [&](const auto& one) {
    return one->talk == speaking.talk && one->role == other(speaking.role);
  });
  return found == all.end() ? nullptr : *found;
}

void Streaming::hear_out(Side& side) {
  const auto one = world_.dice.any(side.speaking);
  const auto peer = one == nullptr ? nullptr : peer_of(side, *one);
  if (peer == nullptr || one->talk->is_doubtful()) return;
  const auto sound = [](const Speaking& end) {
    return !end.talk->at(end.role).aborted && !end.handle.how_ended();
  };
  if (!sound(*one) || !sound(*peer)) return;
  for (const auto& end : {one, peer}) finish(*end);
  const bool heard = world_.await([&] {
    for (const auto& end : {one, peer}) take(*end, kMostSpoken);
    return one->handle.at_end() && peer->handle.at_end();
  });
  world_.judge.require(heard, "a stream that both ends have finished does not come to its end");
  world_.judge.seen("a stream was heard out");
}

void Streaming::end_any(Side& side) {
  if (world_.dice.chance(50)) return stop_listening(side);
  close(side);
}

}  // namespace rnic::spin
