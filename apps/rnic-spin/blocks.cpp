#include "rnic-spin/blocks.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace rnic::spin {

namespace {

using enum ErrorCode;

constexpr size_t kMostLinks = 3;
constexpr uint32_t kMessage = 512;
constexpr uint32_t kReceives = 4;
constexpr size_t kMostMoved = 20'000;  // of a Write or Read
constexpr uint16_t kPairPort = 7474;
constexpr uint16_t kNoPort = kPairPort + 1;
constexpr auto kNow = std::chrono::seconds(0);
// What an operation may fail with on a connection that has ended.
constexpr Judge::Codes kEnded{PermissionDenied, Reset, Unreachable, Protocol, WrongState};

}  // namespace

Blocks::Blocks(Context& context, uint64_t seed, Judge& judge)
    : context_(context), dice_(seed), judge_(judge) {}
Blocks::~Blocks() = default;

Status Blocks::start() {
  const auto names = context_.device_names();
  for (size_t i = 0; i < ends_.size(); ++i) {
    End& end = ends_[i];
    auto adapter = blocking::Adapter::open(context_, names.at(i));
    if (!adapter) return tl::unexpected(adapter.error());
    end.adapter = std::make_unique<blocking::Adapter>(*adapter);
    const auto enter = [&](MemoryRegion& region, std::span<std::byte> octets, AccessSet access) {
      auto made = end.adapter->register_memory(octets, access);
      judge_.answered("Adapter::register_memory", made, Expect::Success, {});
      region = std::move(*made);
    };
    enter(end.store, end.field.store(), Access::RemoteRead);
    enter(end.target, end.field.target(),
          Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead);
    enter(end.words, end.field.words(), Access::LocalWrite | Access::RemoteAtomic);
  }
  return {};
}

bool Blocks::done(const std::string& call, const Result<Completion>& result, Expect expect,
                  Judge::Codes codes) {
  if (!judge_.answered("blocking " + call, result, expect, codes)) return false;
  judge_.require(result->status == CompletionStatus::Success,
                 "a call that waits has returned a failure as a success: " + call);
  return true;
}

Stretch Blocks::any_stretch(size_t most) {
  const size_t from = dice_.below(Field::kOctets / Field::kUnit) * Field::kUnit;
  return {from, dice_.below(std::min(Field::kOctets - from, most) + 1)};
}

void Blocks::connect() {
  if (links_.size() == kMostLinks) return;
  const size_t near = dice_.below(2);
  const auto port = static_cast<uint16_t>(dice_.chance(50) ? 0 : kPairPort);
  auto made = ends_[near].adapter->connect_pair(
      *ends_[1 - near].adapter, port, blocking::kTimeLimit,
      {.message_size = kMessage, .receives = kReceives, .reads = 2});
  judge_.answered("connect_pair", made, Expect::Success, {});
  auto link = std::make_shared<Link>();
  link->handle[near] = std::move(made->first);
  link->handle[1 - near] = std::move(made->second);
  judge_.require(link->handle[0].remote() == link->handle[1].local(), "ends that do not meet");
  // A responder sends nothing before the initiator has (RFC 5044 s.7.1.3).
  read(*link, near);
  links_.push_back(std::move(link));
}

void Blocks::connect_to_nobody() {
  const Endpoint remote{ends_[1].adapter->device().address(), kNoPort};
  judge_.answered("Adapter::connect to nobody", ends_[0].adapter->connect(remote), Expect::Failure,
                  {Unreachable});
}

void Blocks::send(Link& link, size_t from) {
  if (dice_.chance(5)) {
    const auto long_one = ends_[from].field.store().first(kMessage + 1);
    done("send of too long a message", link.handle[from].send(long_one), Expect::Failure,
         {InvalidArgument});
    return;
  }
  if (link.coming[1 - from].size() == kReceives) return;  // the connection would end
  const Stretch what = any_stretch(kMessage);
  const auto length = static_cast<uint32_t>(what.length);
  const auto result =
      dice_.chance(50)
          ? link.handle[from].send(ends_[from].field.store().subspan(what.from, what.length))
          : link.handle[from].send(SgeList{ends_[from].store.sge(what.from, length)});
  done("send", result, Expect::Success);
  link.coming[1 - from].push_back({.from = what.from, .length = length});
}

void Blocks::send_immediate(Link& link, size_t from) {
  if (link.coming[1 - from].size() == kReceives) return;
  SendRequest request{.opcode = Opcode::Immediate};
  request.immediate = std::bit_cast<ImmediateData>(uint64_t{dice_.below(SIZE_MAX)});
  done("Immediate Data", link.handle[from].carry_out(request), Expect::Success);
  link.coming[1 - from].push_back({.immediate = request.immediate});
}

void Blocks::receive(Link& link, size_t at) {
  auto& coming = link.coming[at];
  std::array<std::byte, kMessage> room;
  if (coming.empty()) {
    done("receive of nothing", link.handle[at].receive(room, kNow), Expect::Failure, {TimedOut});
    return;
  }
  const Message message = coming.front();
  if (message.length > 0 && dice_.chance(10)) {
    done("receive into too little",
         link.handle[at].receive(std::span(room).first(message.length - 1)), Expect::Failure,
         {MessageSize});
    return;
  }
  const auto got = link.handle[at].receive(room);
  done("receive", got, Expect::Success);
  coming.pop_front();
  const bool data = message.immediate.has_value();
  judge_.require(got->has_immediate == data && (!data || got->immediate == *message.immediate),
                 "blocking: other Immediate Data was sent");
  judge_.require(data || got->length == message.length, "blocking: a message of another length");
  const auto sent = ends_[1 - at].field.store().subspan(message.from, message.length);
  judge_.require(data || std::ranges::equal(sent, std::span(room).first(message.length)),
                 "blocking: another message was sent");
}

void Blocks::fetch(Link& link, size_t from, const MemoryRegion& source, const Stretch& what) {
  End& here = ends_[from];
  const auto length = static_cast<uint32_t>(what.length);
  done("read",
       link.handle[from].read({here.target.sge(what.from, length)},
                              {source.stag(), source.address() + what.from}),
       Expect::Success);
  const auto wrong = here.field.check_fetched(what.from, what.length);
  judge_.require(!wrong, "blocking: " + wrong.value_or(""));
}

void Blocks::write(Link& link, size_t from) {
  const Stretch what = any_stretch(kMostMoved);
  const End& there = ends_[1 - from];
  const Sge source = ends_[from].store.sge(what.from, static_cast<uint32_t>(what.length));
  const RemoteAddress target{there.target.stag(), there.target.address() + what.from};
  done("write", link.handle[from].write({source}, target), Expect::Success);
  // Each later operation of the connection finds it placed.
  fetch(link, from, there.target, what);
}

void Blocks::read(Link& link, size_t from) {
  fetch(link, from, ends_[1 - from].store, any_stretch(kMostMoved));
}

void Blocks::add(Link& link, size_t from) {
  End& there = ends_[1 - from];
  const size_t word = dice_.below(Field::kWords);
  const uint64_t more = dice_.below(1000);
  const auto got = link.handle[from].fetch_add(
      {there.words.stag(), there.words.address() + word * kAtomicSize}, more);
  done("fetch_add", got, Expect::Success);
  judge_.require(got->original == there.held[word], "blocking: fetch_add() found another number");
  there.held[word] += more;
}

void Blocks::swap(Link& link, size_t from) {
  End& there = ends_[1 - from];
  const size_t word = dice_.below(Field::kWords);
  const uint64_t held = there.held[word];
  const uint64_t compare = dice_.chance(50) ? held : held + 1;
  const uint64_t next = dice_.below(1000);
  const auto got = link.handle[from].compare_swap(
      {there.words.stag(), there.words.address() + word * kAtomicSize}, compare, next);
  done("compare_swap", got, Expect::Success);
  judge_.require(got->original == held, "blocking: compare_swap() found another number");
  if (compare == held) there.held[word] = next;
}

void Blocks::trespass(const std::shared_ptr<Link>& link, size_t from) {
  if (!dice_.chance(20)) return;
  const End& there = ends_[1 - from];
  const RemoteAddress beyond{there.store.stag(), there.store.address() + Field::kOctets - 4};
  done("read beyond a region", link->handle[from].read({ends_[from].target.sge(0, 8)}, beyond),
       Expect::Failure, {PermissionDenied});
  std::array<std::byte, 1> octet{};
  done("send behind the end", link->handle[from].send(octet), Expect::Failure, kEnded);
  std::erase(links_, link);
}

void Blocks::close(const std::shared_ptr<Link>& link, size_t from) {
  if (!dice_.chance(30)) return;
  if (dice_.chance(50)) {
    // What has come before is the peer's to take.
    judge_.answered("Connection::close", link->handle[from].close(), Expect::Success, {});
    while (!link->coming[1 - from].empty()) receive(*link, 1 - from);
    std::array<std::byte, kMessage> room;
    done("receive behind a close", link->handle[1 - from].receive(room), Expect::Failure,
         {WrongState});
    judge_.require(link->handle[1 - from].peer_closed(), "a peer's close is not seen");
  } else {
    link->handle[from] = {};
  }
  std::array<std::byte, 1> octet{};
  done("send on a closed connection", link->handle[from].send(octet), Expect::Failure, kEnded);
  std::erase(links_, link);
}

void Blocks::check() {
  for (const End& end : ends_) {
    const auto wrong = end.field.check();
    judge_.require(!wrong, "blocking: " + wrong.value_or(""));
    for (size_t i = 0; i < Field::kWords; ++i) {
      judge_.require(end.field.word(i) == end.held[i], "blocking: a word holds another number");
    }
  }
}

void Blocks::step() {
  const auto link = dice_.any(links_);
  const size_t from = dice_.below(2);
  if (link == nullptr || dice_.chance(5)) return connect();
  switch (dice_.below(11)) {
    case 0:
    case 1: return send(*link, from);
    case 2: return send_immediate(*link, from);
    case 3:
    case 4: return receive(*link, from);
    case 5: return write(*link, from);
    case 6: return read(*link, from);
    case 7: return add(*link, from);
    case 8: return swap(*link, from);
    case 9: return dice_.chance(50) ? trespass(link, from) : close(link, from);
    default: return dice_.chance(20) ? connect_to_nobody() : check();
  }
}

void Blocks::finish() {
  links_.clear();
  const bool still = context_.wait_until(
      [this] {
        return ends_[0].adapter->device().quiescent() && ends_[1].adapter->device().quiescent();
      },
      std::chrono::seconds(10));
  judge_.require(still, "blocking: something is connected though all was closed");
  check();
}

}  // namespace rnic::spin
