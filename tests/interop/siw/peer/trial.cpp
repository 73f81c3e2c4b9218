#include "trial.hpp"

#include <algorithm>
#include <span>

namespace rnic::siw {

namespace {

constexpr uint64_t kGap = 64;
constexpr uint32_t kBreachOctets = 64;
constexpr uint32_t kBreachSegments = 10000;
constexpr uint32_t kShortReceive = 32;
constexpr uint64_t kControlId = 1000;
constexpr uint64_t kRequestId = 2000;
constexpr uint8_t kPoison = 0xdb;  // of workload::poison()

Opcode opcode_of(Operation operation) {
  switch (operation) {
    case Operation::SendInvalidate: return Opcode::SendInvalidate;
    case Operation::Write: return Opcode::Write;
    case Operation::Read: return Opcode::Read;
    default: return Opcode::Send;
  }
}

bool is_read(Breach breach) {
  return breach == Breach::ReadBadStag || breach == Breach::ReadBounds ||
         breach == Breach::ReadNoRight || breach == Breach::ReadInvalidated;
}

}  // namespace

Trial::Trial(Context& context, Device device, Plan plan, std::vector<uint8_t> octets)
    : Conversation(context, std::move(device)), plan_(std::move(plan)), octets_(std::move(octets)) {
  set_patience(plan_.patience);
}

std::vector<uint8_t> Trial::reply_data() {
  const auto reply = encode_reply(plan_.seed);
  return {reply.begin(), reply.end()};
}

Status Trial::check_reply(const std::vector<uint8_t>& data) {
  if (data == reply_data()) return {};
  return tl::unexpected(Error{ErrorCode::Protocol, "the Reply's private data are wrong"});
}

bool Trial::expects_end() const { return stage_ == Stage::Breaking; }

bool Trial::may_close() const {
  return expects_end() || (stage_ == Stage::Settling && round_ == plan_.rounds());
}

Status Trial::prepare() {
  uint64_t at = kGap;
  for (const uint32_t size : plan_.sizes) {
    offsets_.push_back(at);
    at += (uint64_t{size} + 63) / 64 * 64 + kGap;
  }
  auto memory = workload::Buffer::allocate(std::max<uint64_t>(at, kBreachSegments));
  if (!memory) return tl::unexpected(memory.error());
  auto control = workload::Buffer::allocate((2 * kSlots + 1) * kControlOctets);
  if (!control) return tl::unexpected(control.error());
  memory_ = std::move(*memory);
  control_ = std::move(*control);
  if (Status status = register_memory(); !status) return status;
  if (!speaks_first()) post_control_receive();  // for Ready
  return {};
}

Status Trial::register_memory() {
  AccessSet rights = Access::LocalWrite;
  if (plan_.breach != Breach::WriteNoRight) rights |= Access::RemoteWrite;
  if (plan_.breach != Breach::ReadNoRight) rights |= Access::RemoteRead;
  RegionOptions options{.access = rights};
  if (needs_invalidation()) {
    options.access |= Access::RemoteInvalidate;
    options.queue_pair = &end().qp;
  }
  auto region = end().pd.register_memory(std::as_writable_bytes(memory_.octets()), options);
  if (!region) return tl::unexpected(region.error());
  auto control_region =
      end().pd.register_memory(std::as_writable_bytes(control_.octets()), Access::LocalWrite);
  if (!control_region) return tl::unexpected(control_region.error());
  region_ = std::move(*region);
  control_region_ = std::move(*control_region);
  if (plan_.operation != Operation::SendInvalidate) return {};
  for (size_t i = 0; i < plan_.sizes.size(); ++i) {
    auto victim = end().pd.register_memory(
        std::as_writable_bytes(std::span(memory_.data(), 64)),
        RegionOptions{.access = Access::RemoteWrite | Access::RemoteInvalidate,
                      .queue_pair = &end().qp});
    if (!victim) return tl::unexpected(victim.error());
    victims_.push_back(std::move(*victim));
  }
  return {};
}

bool Trial::post_receive(uint64_t id, uint64_t offset, uint32_t size) {
  ReceiveRequest request;
  request.id = id;
  if (size > 0) request.sges = {region_.sge(offset, size)};
  return good(end().qp.post_receive(request));
}

bool Trial::post_control_receive() {
  ReceiveRequest request;
  request.id = kControlId;
  request.sges = {
      control_region_.sge(controls_posted_++ % kSlots * kControlOctets, kControlOctets)};
  return good(end().qp.post_receive(request));
}

bool Trial::post(SendRequest& request) {
  request.id = kRequestId;
  if (request.signaled) ++unfinished_;
  return good(end().qp.post_send(request));
}

bool Trial::say(ControlKind kind) {
  Control out{kind, !failed(), region_.stag(), region_.address(), region_.length(), {}, {}};
  if (failed()) out.text = report()["error"];
  for (const MemoryRegion& victim : victims_) out.stags.push_back(victim.stag());
  const uint64_t at = (kSlots + controls_said_++ % kSlots) * kControlOctets;
  out.encode(std::span<uint8_t, kControlOctets>(control_.data() + at, kControlOctets));
  SendRequest request;
  request.sges = {control_region_.sge(at, kControlOctets)};
  return post(request);
}

std::optional<Control> Trial::hear(ControlKind kind) {
  if (controls_taken_ == controls_heard_) return std::nullopt;
  const uint64_t at = controls_heard_++ % kSlots * kControlOctets;
  auto control = Control::decode(
      std::span<const uint8_t, kControlOctets>(control_.data() + at, kControlOctets));
  if (!control || control->kind != kind) {
    fail("another control message than awaited");
    return std::nullopt;
  }
  if (!control->ok) fail("the peer says: " + control->text);
  return control->ok ? control : std::nullopt;
}

void Trial::on_completion(const Completion& done) {
  if (done.status != CompletionStatus::Success && done.status != CompletionStatus::Flushed) {
    statuses_.push_back(std::string(to_string(done.opcode)) + " " + to_string(done.status));
  }
  if (done.opcode != Opcode::Receive) {
    --unfinished_;
  } else if (done.id == kControlId) {
    ++controls_taken_;
    if (!expects_end() && done.length != kControlOctets)
      fail("a control message of another length");
  } else {
    if (done.id != arrived_.size()) fail("receives complete out of order");
    arrived_.push_back(done);
  }
}

void Trial::next_round() {
  if (round_ == plan_.rounds()) {
    stage_ = Stage::Over;
    leave(!passive_);  // the last active end has heard everything
    return;
  }
  passive_ = round_ == 0 ? speaks_first() : !passive_;
  ++round_;
  arrived_.clear();
  if (breaks_now()) return begin_breach();
  workload::poison(memory_.octets());
  passive_ ? begin_passive() : begin_active();
}

void Trial::begin_passive() {
  for (size_t i = 0; i < plan_.sizes.size(); ++i) {
    if (plan_.operation == Operation::Read) workload::fill(message(i), pattern(i));
    if (plan_.is_send() && !post_receive(i, offsets_[i], plan_.sizes[i])) return;
  }
  if (!post_control_receive() || !say(ControlKind::Ready)) return;
  stage_ = Stage::AwaitDone;
}

void Trial::begin_active() {
  for (size_t i = 0; i < plan_.sizes.size() && plan_.operation != Operation::Read; ++i) {
    workload::fill(message(i), pattern(i));
  }
  stage_ = Stage::AwaitReady;
}

void Trial::begin_breach() {
  if (!passive_) {
    stage_ = Stage::AwaitReady;
    return;
  }
  const bool too_long =
      plan_.breach == Breach::SendTooLong || plan_.breach == Breach::SendTooLongSegments;
  if (plan_.breach != Breach::SendNoReceive) {
    ReceiveRequest request;  // in memory whose STag stays
    request.sges = {control_region_.sge(2 * kSlots * kControlOctets,
                                        too_long ? kShortReceive : kControlOctets)};
    if (!good(end().qp.post_receive(request))) return;
  }
  stage_ = invalidates_first() ? Stage::AwaitInvalidation : Stage::Breaking;
  say(ControlKind::Ready);
}

bool Trial::post_operations(const Control& peer) {
  for (size_t i = 0; i < plan_.sizes.size(); ++i) {
    SendRequest request;
    request.opcode = opcode_of(plan_.operation);
    request.signaled = i % 2 == 0 || plan_.operation == Operation::Read;
    request.solicited = plan_.operation == Operation::SendSolicited;
    if (plan_.sizes[i] > 0) request.sges = {region_.sge(offsets_[i], plan_.sizes[i])};
    if (plan_.operation == Operation::SendInvalidate) {
      request.invalidate_stag = peer.stags[i];
    } else {
      request.remote = {peer.stag, peer.address + offsets_[i]};
    }
    if (!post(request)) return false;
  }
  return true;
}

/// The peer answers by a second Ready.
bool Trial::post_invalidation(const Control& peer) {
  invalidated_ = true;
  SendRequest request;
  request.opcode = Opcode::SendInvalidate;
  request.invalidate_stag = peer.stag;
  request.sges = {region_.sge(0, kBreachOctets)};
  return post_control_receive() && post(request);
}

bool Trial::post_breach(const Control& peer) {
  const Breach breach = plan_.breach;
  stage_ = Stage::Breaking;
  SendRequest request;
  request.remote = {peer.stag, peer.address};
  request.sges = {region_.sge(0, kBreachOctets)};
  request.opcode = is_read(breach) ? Opcode::Read : Opcode::Write;
  switch (breach) {
    case Breach::SendTooLongSegments:
      request.sges[0] = region_.sge(0, kBreachSegments);
      request.opcode = Opcode::Send;
      break;
    case Breach::SendNoReceive:
    case Breach::SendTooLong: request.opcode = Opcode::Send; break;
    case Breach::InvalidateBadStag:
      request.opcode = Opcode::SendInvalidate;
      request.invalidate_stag = peer.stag ^ 0xff0000;
      break;
    case Breach::WriteBadStag:
    case Breach::ReadBadStag: request.remote.stag ^= 0xff0000; break;
    case Breach::WriteBounds:
    case Breach::ReadBounds: request.remote.offset += peer.length - kBreachOctets / 2; break;
    default: break;
  }
  return post(request);
}

void Trial::judge() {
  for (size_t i = 0; i < plan_.sizes.size(); ++i) {
    const std::string which =
        "round " + std::to_string(round_) + ", size " + std::to_string(plan_.sizes[i]) + ": ";
    if (plan_.is_send() && passive_) {
      const Completion& done = arrived_.at(i);
      if (done.length != plan_.sizes[i]) fail(which + std::to_string(done.length) + " octets");
      if (done.solicited != (plan_.operation == Operation::SendSolicited)) {
        fail(which + "another mark of a solicited event");
      }
      if (done.invalidated_stag != (victims_.empty() ? 0 : victims_[i].stag())) {
        fail(which + "another STag invalidated");
      }
    }
    if (auto wrong = workload::compare(message(i), pattern(i))) {
      fail(which + workload::describe(*wrong));
    }
    const uint64_t behind = offsets_[i] + plan_.sizes[i];
    const uint64_t next = i + 1 < offsets_.size() ? offsets_[i + 1] : behind + kGap;
    const auto gap = memory_.octets().subspan(behind, next - behind);
    const bool whole = std::all_of(gap.begin(), gap.end(), [](uint8_t o) { return o == kPoison; });
    if (!whole) fail(which + "octets behind it changed");
  }
}

void Trial::advance() {
  while (turn() && !failed()) {
  }
}

/// One step of the round; false when there is nothing to do.
bool Trial::turn() {
  switch (stage_) {
    case Stage::AwaitReady:
      if (auto ready = hear(ControlKind::Ready)) {
        if (invalidates_first() && !invalidated_) return post_invalidation(*ready);
        if (breaks_now()) return post_breach(*ready);
        stage_ = Stage::Moving;
        return post_operations(*ready);
      }
      return false;
    case Stage::Moving:
      if (plan_.operation == Operation::Read) {
        if (unfinished_ > 0) return false;
        judge();
      }
      stage_ = Stage::AwaitVerdict;
      return post_control_receive() && say(ControlKind::Done);
    case Stage::AwaitVerdict:
      if (unfinished_ > 0 || !hear(ControlKind::Verdict)) return false;
      next_round();
      return true;
    case Stage::AwaitDone:
      if (!hear(ControlKind::Done)) return false;
      if (plan_.operation != Operation::Read) judge();
      stage_ = Stage::Settling;
      if (round_ < plan_.rounds()) post_control_receive();  // for Ready
      return say(ControlKind::Verdict);
    case Stage::Settling:
      if (unfinished_ > 0) return false;
      next_round();
      return true;
    case Stage::AwaitInvalidation:
      if (arrived_.empty()) return false;
      stage_ = Stage::Breaking;
      return say(ControlKind::Ready);
    default: return false;
  }
}

nlohmann::ordered_json Trial::report() const {
  auto result = Conversation::report();
  result["seed"] = plan_.seed;
  result["rounds"] = round_;
  result["statuses"] = statuses_;
  return result;
}

}  // namespace rnic::siw
