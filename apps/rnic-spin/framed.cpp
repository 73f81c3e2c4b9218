#include "rnic-spin/framed.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostPorts = 3;
constexpr size_t kMostEnds = 6;
constexpr size_t kMostTalks = 128;
constexpr size_t kMostOctets = 3000;  // of a frame
constexpr uint16_t kFirstFramedPort = kNobody + 31;

/// What the other end of such a stream has.
FramingOptions mirrored(FramingOptions options) {
  std::swap(options.send_key, options.receive_key);
  std::swap(options.send_interval, options.receive_interval);
  const FramedSendMode sends = options.send_mode;
  const bool receives_aligned = options.receive_mode == FramedReceiveMode::Align;
  options.send_mode = receives_aligned ? FramedSendMode::Align : FramedSendMode::Markers;
  options.receive_mode =
      sends == FramedSendMode::Align ? FramedReceiveMode::Align : FramedReceiveMode::Markers;
  return options;
}

}  // namespace

FramingOptions Framed::any_framing(Side& side) {
  FramingOptions options;
  options.send_mode = world_.dice.chance(50) ? FramedSendMode::Align : FramedSendMode::Markers;
  options.receive_mode =
      world_.dice.chance(50) ? FramedReceiveMode::Align : FramedReceiveMode::Markers;
  options.send_key = side.device.new_framing_key();
  options.receive_key = side.device.new_framing_key();
  options.send_interval = static_cast<uint16_t>(16 + 4 * world_.dice.below(600));
  options.receive_interval = static_cast<uint16_t>(16 + 4 * world_.dice.below(600));
  options.packing = world_.dice.chance(50);
  options.emergency = world_.dice.chance(20);
  return options;
}

void Framed::listen(Side& side) {
  if (side.framed_ports.size() == kMostPorts) return;
  const auto number = static_cast<uint16_t>(kFirstFramedPort + world_.dice.below(kMostPorts));
  const FramingOptions framing = any_framing(side);
  auto made = side.device.listen_framed(number, {.framing = framing});
  if (side.on_sockets) {
    world_.judge.answered("listen_framed over sockets", made, Expect::Failure, {Unsupported});
    return;
  }
  const bool taken = std::ranges::any_of(
      side.framed_ports, [&](const auto& one) { return one->local.port == number; });
  if (!world_.judge.answered("listen_framed", made, unless(taken), {AlreadyExists})) return;
  const Endpoint local = made->local();
  world_.judge.require(local.port == number, "frames are listened for elsewhere");
  side.framed_ports.push_back(std::make_shared<FramedPort>(
      FramedPort{.handle = std::move(*made), .local = local, .peers = mirrored(framing)}));
}

void Framed::stop_listening(Side& side) {
  const auto port = world_.dice.any(side.framed_ports);
  if (port == nullptr) return;
  port->handle = {};
  world_.judge.seen("a FramedStreamListener ends");
  std::erase(side.framed_ports, port);
}

void Framed::connect(Side& side) {
  if (side.framed.size() >= kMostEnds) return;
  const Side& there = world_.other(side);
  const auto port = world_.dice.any(there.framed_ports);
  if (port == nullptr && (!side.on_sockets || world_.dice.chance(80))) return;
  const Endpoint remote{there.device.address(), port == nullptr ? kNobody : port->local.port};
  auto made =
      side.device.connect_framed(remote, port == nullptr ? any_framing(side) : port->peers);
  if (side.on_sockets) {
    world_.judge.answered("connect_framed over sockets", made, Expect::Failure, {Unsupported});
    return;
  }
  if (world_.judge.answered("connect_framed", made, Expect::Success, {})) {
    begun(side, std::move(*made));
  }
}

void Framed::begun(Side& side, FramedStream handle) {
  auto& talk = world_.framed_talks[{handle.local(), handle.remote()}];
  if (talk == nullptr) {
    talk = std::make_shared<FramedTalk>(world_.next_number++);
    if (world_.forgotten_talks.contains({handle.local(), handle.remote()})) talk->talk().doubt();
  } else {
    talk->talk().doubt();
  }
  side.framed.push_back(
      std::make_shared<FramedEnd>(FramedEnd{.handle = std::move(handle), .talk = talk}));
  forget_talks();
}

void Framed::forget_talks() {
  std::erase_if(world_.framed_talks, [](const auto& entry) {
    const Conversation& talk = entry.second->talk();
    return talk.at(StreamRole::Initiator).closed && talk.at(StreamRole::Acceptor).closed &&
           !talk.is_doubtful();
  });
  if (world_.framed_talks.size() <= kMostTalks) return;
  const auto age = [](const auto& entry) {
    const Conversation& talk = entry.second->talk();
    const bool closed = talk.at(StreamRole::Initiator).closed && !talk.is_accepted();
    return closed ? talk.number() : UINT64_MAX;
  };
  const auto oldest = std::ranges::min_element(world_.framed_talks, {}, age);
  if (age(*oldest) == UINT64_MAX) return;
  world_.forgotten_talks.insert(oldest->first);
  world_.framed_talks.erase(oldest);
}

void Framed::accept(Side& side) {
  const auto port = world_.dice.any(side.framed_ports);
  if (port == nullptr || side.framed.size() >= kMostEnds + kMostPorts) return;
  auto got = port->handle.accept();
  if (!got) return;
  world_.judge.seen("a framed stream was accepted");
  const auto found = world_.framed_talks.find({got->remote(), got->local()});
  if (found == world_.framed_talks.end() &&
      world_.forgotten_talks.contains({got->remote(), got->local()})) {
    return world_.judge.seen("a framed stream was accepted late");  // nothing is known of it
  }
  world_.judge.require(found != world_.framed_talks.end(),
                       "a framed stream that nobody has connected: " + to_string(got->remote()));
  Conversation& talk = found->second->talk();
  world_.judge.require(!talk.is_accepted() || talk.is_doubtful(),
                       "a framed stream was accepted twice");
  talk.accept();
  side.framed.push_back(std::make_shared<FramedEnd>(FramedEnd{
      .handle = std::move(*got), .talk = found->second, .role = StreamRole::Acceptor}));
}

void Framed::judge_end(const FramedEnd& end) {
  const Conversation& talk = end.talk->talk();
  if (const auto how = end.handle.how_ended()) {
    const auto wrong = talk.check_ended(end.role, *how);
    world_.judge.require(!wrong, "framed: " + wrong.value_or(""));
  }
  if (end.handle.at_end()) {
    const auto wrong = talk.check_at_end(end.role);
    world_.judge.require(!wrong, "framed: " + wrong.value_or(""));
  }
}

void Framed::send(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end == nullptr) return;
  FramedStream& stream = end->handle;
  const size_t limit = std::min<size_t>(stream.frame_limit(), kMostOctets);
  std::array<uint8_t, kMostOctets> octets;
  const size_t least = FramedTalk::kHead;
  const auto frame = std::span(octets).first(
      least + (limit > least ? world_.dice.below(limit - least + 1) : 0));
  end->talk->fill(end->role, frame);
  const bool over = end->finished || stream.how_ended();
  const bool room = stream.writable(frame.size());
  const auto got = stream.send(frame);
  const ErrorCode code =
      end->finished || !stream.how_ended() ? WrongState : code_of(*stream.how_ended());
  // The limit may change while a worker runs.
  const Expect expect = over || world_.is_still() ? unless(over) : Expect::Either;
  if (!world_.judge.answered("FramedStream::send", got, expect,
                             world_.is_still() ? Judge::Codes{code}
                                               : Judge::Codes{code, MessageSize})) {
    return judge_end(*end);
  }
  world_.judge.require(*got == frame.size() || *got == 0, "a part of a frame was taken");
  world_.judge.require(!room || *got != 0 || !world_.is_still(),
                       "there was room for a frame that was not taken");
  if (*got != 0) end->talk->sent(end->role, *got);
}

void Framed::send_bad(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end == nullptr || !world_.is_still()) return;
  FramedStream& stream = end->handle;
  if (end->finished || stream.how_ended() || stream.frame_limit() == 0) return;
  const std::array<uint8_t, 4> no_frame{0, 9, 1, 2};
  switch (world_.dice.below(3)) {
    case 0:
      world_.judge.answered("send of no frame", stream.send({}), Expect::Failure,
                            {InvalidArgument});
      return;
    case 1:
      world_.judge.answered("send of a part of a frame", stream.send(no_frame), Expect::Failure,
                            {InvalidArgument});
      return;
    default: {
      std::vector<uint8_t> frame(size_t{stream.frame_limit()} + 1);
      if (frame.size() > UINT16_MAX) return;
      end->talk->fill(end->role, frame);
      world_.judge.answered("send of too long a frame", stream.send(frame), Expect::Failure,
                            {MessageSize});
    }
  }
}

void Framed::take(FramedEnd& end, size_t room) {
  std::vector<uint8_t> octets(room);
  FramedStream& stream = end.handle;
  const auto ended = stream.how_ended();
  const size_t next = stream.readable();
  const auto got = stream.receive(octets);
  const bool small = next > room;
  const bool over = ended && *ended != StreamEnd::Closed && next == 0;
  const ErrorCode code = code_of(stream.how_ended().value_or(StreamEnd::Closed));
  const Expect sure = unless(over || small);
  const Expect expect = over || small || world_.is_still() ? sure : Expect::Either;
  if (world_.judge.answered("FramedStream::receive", got, expect, {small ? MessageSize : code,
                                                                   MessageSize})) {
    world_.judge.require(next == 0 || *got == next, "another frame than the one that was next");
    world_.judge.require(next != 0 || *got == 0 || !world_.is_still(), "a frame from nowhere");
    if (*got != 0) {
      const auto wrong = end.talk->receive(end.role, std::span(octets).first(*got));
      world_.judge.require(!wrong, wrong.value_or(""));
      world_.judge.seen("a frame has come");
    }
  }
  judge_end(end);
}

void Framed::receive(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end != nullptr) take(*end, world_.dice.chance(90) ? kMostOctets : world_.dice.below(200));
}

void Framed::change(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end == nullptr) return;
  const bool ended = end->handle.how_ended().has_value();
  const Expect expect = ended || world_.is_still() ? unless(ended) : Expect::Either;
  const bool on = world_.dice.chance(50);
  if (world_.dice.chance(50)) {
    world_.judge.answered("set_packing", end->handle.set_packing(on), expect, {WrongState});
  } else {
    world_.judge.answered("set_emergency", end->handle.set_emergency(on), expect, {WrongState});
  }
}

void Framed::finish(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end != nullptr) finish(*end);
}

void Framed::finish(FramedEnd& end) {
  end.finished = true;
  end.talk->talk().at(end.role).finished = true;
  end.handle.finish_sending();
}

void Framed::abort(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end == nullptr || !world_.dice.chance(30)) return;
  end->talk->talk().at(end->role).aborted = true;
  end->handle.abort();
}

void Framed::close(Side& side) {
  const auto end = world_.dice.any(side.framed);
  if (end == nullptr) return;
  judge_end(*end);
  end->talk->talk().at(end->role).closed = true;
  end->handle.close();
  world_.judge.require(!end->handle.is_valid(), "a closed framed stream is not empty");
  std::erase(side.framed, end);
}

std::shared_ptr<FramedEnd> Framed::peer_of(const Side& side, const FramedEnd& end) const {
  const auto& all = world_.other(side).framed;
  const auto found = std::ranges::find_if(all, [&](const auto& one) {
    return one->talk == end.talk && one->role == other(end.role);
  });
  return found == all.end() ? nullptr : *found;
}

void Framed::hear_out(Side& side) {
  const auto one = world_.dice.any(side.framed);
  const auto peer = one == nullptr ? nullptr : peer_of(side, *one);
  if (peer == nullptr || one->talk->talk().is_doubtful()) return;
  for (const auto& end : {one, peer}) {
    if (end->talk->talk().at(end->role).aborted || end->handle.how_ended()) return;
  }
  for (const auto& end : {one, peer}) finish(*end);
  const bool heard = world_.await([&] {
    for (const auto& end : {one, peer}) take(*end, kMostOctets);
    return one->handle.at_end() && peer->handle.at_end();
  });
  world_.judge.require(heard, "a framed stream that both have finished does not come to its end");
  for (const auto& end : {one, peer}) {
    world_.judge.require(end->talk->next_for(end->role) == 0, "a frame has not come");
  }
  world_.judge.seen("a framed stream was heard out");
}

void Framed::end_any(Side& side) {
  if (world_.dice.chance(50)) return stop_listening(side);
  close(side);
}

}  // namespace rnic::spin
