#include "rnic-perf/round_trips.hpp"

#include <array>
#include <cstring>
#include <span>

namespace rnic::perf {

namespace {

using workload::Operation;

/// No two messages have a word in the same place alike.
uint64_t word_of(uint64_t sequence, uint64_t index) {
  return sequence * 0x9e3779b97f4a7c15ull + index * 0x94d049bb133111ebull;
}

void write_message(std::span<uint8_t> octets, uint64_t sequence) {
  for (uint64_t i = 0; i < octets.size() / 8; ++i) {
    const uint64_t word = word_of(sequence, i);
    std::memcpy(octets.data() + i * 8, &word, 8);
  }
}

/// From the end, which comes last.
bool is_message(std::span<const uint8_t> octets, uint64_t sequence) {
  for (uint64_t i = octets.size() / 8; i-- > 0;) {
    const uint64_t word = word_of(sequence, i);
    if (std::memcmp(octets.data() + i * 8, &word, 8) != 0) return false;
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<RoundTrips>> RoundTrips::create(Context& context, Crowd& crowd,
                                                       Operation operation, uint64_t size) {
  std::unique_ptr<RoundTrips> trips(new RoundTrips(context, operation, size));
  if (Status status = trips->set_up(trips->initiator_, *crowd.initiator); !status) {
    return tl::unexpected(status.error());
  }
  if (Status status = trips->set_up(trips->responder_, *crowd.responder); !status) {
    return tl::unexpected(status.error());
  }
  const auto second_half = [size](const MemoryRegion& region) {
    return RemoteAddress{region.stag(), region.address() + size};
  };
  trips->initiator_.target = second_half(trips->responder_.region);
  trips->responder_.target = second_half(trips->initiator_.region);
  return trips;
}

Status RoundTrips::set_up(Player& player, Side& side) {
  player.side = &side;
  auto memory = workload::Buffer::allocate(2 * size_);
  if (!memory) return tl::unexpected(memory.error());
  player.memory = std::move(*memory);
  auto region =
      side.pd.register_memory(std::as_writable_bytes(player.memory.octets()),
                              Access::LocalRead | Access::LocalWrite | Access::RemoteWrite);
  if (!region) return tl::unexpected(region.error());
  player.region = std::move(*region);
  return operation_ == Operation::Send ? post_receive(player) : Status{};
}

Status RoundTrips::post_receive(Player& player) const {
  ReceiveRequest request;
  request.sges = {player.region.sge(size_, static_cast<uint32_t>(size_))};
  return player.side->qps[0].post_receive(request);
}

void RoundTrips::send(Player& player, uint64_t sequence) const {
  write_message(player.memory.octets().first(size_), sequence);
  SendRequest request;
  request.id = sequence;
  request.opcode = workload::opcode_of(operation_);
  request.signaled = sequence % kSignalEvery == 0;
  request.sges = {player.region.sge(0, static_cast<uint32_t>(size_))};
  request.remote = player.target;
  player.sequence = sequence;
  if (Status status = player.side->qps[0].post_send(request); !status) {
    player.error = status.error().message;
  }
  player.side->device.poll();  // what was posted leaves before anything else is done
  reap(player);
}

void RoundTrips::reap(Player& player) const {
  std::array<Completion, 4> done;
  const uint32_t got = player.side->send_cq.poll(done);
  for (uint32_t i = 0; i < got; ++i) {
    if (done[i].status != CompletionStatus::Success) player.error = describe(done[i]);
  }
}

bool RoundTrips::arrived(Player& player, uint64_t sequence) const {
  const auto octets = player.memory.octets().subspan(size_, size_);
  if (operation_ != Operation::Send) return is_message(octets, sequence);
  Completion done;
  if (player.side->receive_cq.poll({&done, 1}) == 0) return false;
  if (done.status != CompletionStatus::Success || !is_message(octets, sequence)) {
    player.error = "message " + std::to_string(sequence) + " came as another one: " +
                   describe(done);
    return false;
  }
  if (Status status = post_receive(player); !status) player.error = status.error().message;
  return true;
}

void RoundTrips::responder_turn() {
  responder_.side->device.poll();
  if (!responder_.error.empty() || !arrived(responder_, responder_.sequence + 1)) return;
  send(responder_, responder_.sequence + 1);
}

void RoundTrips::settle() {
  for (uint32_t turn = 0; turn < kSettlingTurns; ++turn) initiator_.side->device.poll();
}

Status RoundTrips::run(uint32_t count, bool apart, std::vector<int64_t>& times) {
  int64_t begun = context_.now().count();
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t sequence = initiator_.sequence + 1;
    send(initiator_, sequence);
    for (uint32_t turn = 1; !arrived(initiator_, sequence); ++turn) {
      initiator_.side->device.poll();
      if (!apart) responder_turn();
      if (turn % 1024 != 0) continue;
      if (!initiator_.error.empty()) return workload::fail(ErrorCode::Protocol, initiator_.error);
      if (context_.now().count() - begun > kTimeoutNs) {
        return workload::fail(ErrorCode::TimedOut,
                              "the answer to message " + std::to_string(sequence) +
                                  " did not come, or not as it has to be");
      }
    }
    const int64_t now = context_.now().count();
    times.push_back(now - begun);
    begun = now;
  }
  settle();
  return {};
}

}  // namespace rnic::perf
