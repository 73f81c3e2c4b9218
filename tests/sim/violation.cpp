#include "violation.hpp"

#include <array>

namespace rnic::simulation {

namespace {

struct Row {
  Violation violation;
  const char* name;
  uint8_t layer, type, code;  // of the Terminate: RFC 5040 s.4.8, RFC 5041 s.7.2
  AccessSet rights;           // of the region aimed at
};

constexpr AccessSet kAll = Access::RemoteWrite | Access::RemoteRead;

constexpr std::array kRows{
    Row{Violation::WriteUnknownStag, "Write to an STag that nobody has", 1, 1, 0x00, kAll},
    Row{Violation::WriteWrongKey, "Write with the wrong key", 1, 1, 0x00, kAll},
    Row{Violation::WriteOutside, "Write outside the region", 1, 1, 0x01, kAll},
    Row{Violation::WriteOnePast, "Write one octet past the region", 1, 1, 0x01, kAll},
    Row{Violation::WriteWrap, "Write that wraps", 1, 1, 0x03, kAll},
    Row{Violation::WriteOtherDomain, "Write into another domain", 1, 1, 0x02, kAll},
    Row{Violation::WriteOtherStream, "Write to another stream's STag", 1, 1, 0x02, kAll},
    Row{Violation::WriteWithoutRight, "Write without the right", 0, 1, 0x02, Access::RemoteRead},
    Row{Violation::WriteRevoked, "Write to a revoked region", 1, 1, 0x00, kAll},
    Row{Violation::SendWithoutReceive, "Send without a receive", 1, 2, 0x02, kAll},
    Row{Violation::SendTooLong, "Send longer than the receive", 1, 2, 0x05, kAll},
    Row{Violation::SendInvalidateForeign, "Send that invalidates what it must not", 0, 1, 0x09,
        kAll},
    Row{Violation::ReadWrongKey, "Read with the wrong key", 0, 1, 0x00, kAll},
    Row{Violation::ReadOutside, "Read outside the region", 0, 1, 0x01, kAll},
    Row{Violation::ReadOnePast, "Read one octet past the region", 0, 1, 0x01, kAll},
    Row{Violation::ReadWrap, "Read that wraps", 0, 1, 0x04, kAll},
    Row{Violation::ReadOtherDomain, "Read from another domain", 0, 1, 0x03, kAll},
    Row{Violation::ReadWithoutRight, "Read without the right", 0, 1, 0x02, Access::RemoteWrite},
    Row{Violation::ReadRevoked, "Read from a revoked region", 0, 1, 0x00, kAll},
};

const Row& row_of(Violation violation) { return kRows[static_cast<size_t>(violation)]; }

bool is_read(Violation v) { return v >= Violation::ReadWrongKey; }
bool is_send(Violation v) {
  return v >= Violation::SendWithoutReceive && v <= Violation::SendInvalidateForeign;
}

constexpr uint64_t kGoodKey = 0x600d;
constexpr uint64_t kBadKey = 0xbad;
constexpr uint64_t kLateKey = 0x1a7e;
// Where the three messages lie in the source.
constexpr uint32_t kBadAt = 1000;
constexpr uint32_t kLateSource = 7000;

}  // namespace

std::span<const Violation> violations() {
  static const auto all = [] {
    std::array<Violation, kRows.size()> out{};
    for (size_t i = 0; i < out.size(); ++i) out[i] = kRows[i].violation;
    return out;
  }();
  return all;
}

const char* to_string(Violation violation) { return row_of(violation).name; }

ViolationCase::ViolationCase(Violation violation, End& from, End& to, uint64_t seed,
                             Verdict& verdict)
    : violation_(violation), from_(from), to_(to), prng_(seed), verdict_(verdict) {
  const auto region = [&](End& end, AccessSet rights, uint32_t pd) {
    mem::RegionSpec spec;
    spec.pd = pd;
    spec.rights = rights;
    if (prng_.chance(0.5)) spec.offset = 0;
    return std::make_unique<Region>(*end.device, kRegion, spec, verdict_);
  };
  uint32_t pd = to_.pd;
  if (violation == Violation::WriteOtherDomain || violation == Violation::ReadOtherDomain) {
    const auto other = to_.device->alloc_pd();
    if (other) foreign_pd_ = pd = *other;
  }
  source_ = region(from_, Access::LocalRead, from_.pd);
  sink_ = region(from_, Access::LocalWrite, from_.pd);
  receive_ = region(to_, Access::LocalWrite, to_.pd);
  if (violation == Violation::WriteOtherStream) {
    mem::RegionSpec spec;
    spec.pd = pd;
    spec.rights = kAll;
    spec.stream = to_.qp->stream() + 1;
    target_ = std::make_unique<Region>(*to_.device, kRegion, spec, verdict_);
  } else {
    target_ = region(to_, row_of(violation).rights, pd);
  }
}

void ViolationCase::fail(const std::string& message) {
  verdict_.fail("violation", std::string(to_string(violation_)) + ": " + message);
}

std::string ViolationCase::describe() const {
  return std::string("  ") + to_string(violation_) + ": posted " + std::to_string(posted_) +
         ", Terminate sent " + std::to_string(sent_) + ", received " + std::to_string(received_) +
         ", completions " + std::to_string(sends_completed_) + "\n";
}

SendRequest ViolationCase::offence() {
  SendRequest work;
  work.id = 1;
  auto length = static_cast<uint32_t>(prng_.between(1, 3000));
  work.opcode = is_read(violation_)   ? Opcode::Read
                : is_send(violation_) ? Opcode::Send
                                      : Opcode::Write;
  work.remote = {target_->stag.value, target_->base + 1000};
  switch (violation_) {
    case Violation::WriteUnknownStag: work.remote.stag += 0x4000'0000u; break;
    case Violation::WriteWrongKey:
    case Violation::ReadWrongKey:
      work.remote.stag ^= 1u + static_cast<uint32_t>(prng_.below(255));
      break;
    case Violation::WriteOutside:
    case Violation::ReadOutside:
      work.remote.offset = target_->base + kRegion + prng_.below(100);
      break;
    case Violation::WriteOnePast:
    case Violation::ReadOnePast:
      length = static_cast<uint32_t>(prng_.between(1, 150));  // one segment at any MTU
      work.remote.offset = target_->base + kRegion + 1 - length;
      break;
    case Violation::WriteWrap:
    case Violation::ReadWrap:
      length = static_cast<uint32_t>(prng_.between(2, 150));
      work.remote.offset = UINT64_MAX - prng_.below(length - 1);
      break;
    case Violation::SendTooLong: length = 301; break;
    case Violation::SendInvalidateForeign:
      work.opcode = Opcode::SendInvalidate;  // the region lacks the right
      length = 10;
      break;
    default: break;
  }
  Region& local = is_read(violation_) ? *sink_ : *source_;
  work.sges = {{local.base + kBadAt, length, local.stag.value}};
  return work;
}

void ViolationCase::post_writes(bool late) {
  // Writes that are right need a region that takes them.
  if (row_of(violation_).rights != kAll || foreign_pd_ || violation_ == Violation::WriteRevoked ||
      violation_ == Violation::ReadRevoked || violation_ == Violation::WriteOtherStream) {
    return;
  }
  SendRequest work;
  work.id = late ? 2 : 0;
  work.opcode = Opcode::Write;
  work.sges = {
      {source_->base + (late ? kLateSource : 0), late ? kLate : kGood, source_->stag.value}};
  work.remote = {target_->stag.value, target_->base + (late ? kLateAt : 0)};
  if (from_.qp->post_send(work) != device::PostResult::Ok) fail("a good Write was refused");
}

void ViolationCase::post() {
  posted_ = true;
  fill_pattern({source_->memory.data(), kGood}, kGoodKey, 0);
  fill_pattern({source_->memory.data() + kBadAt, 3000}, kBadKey, 0);
  fill_pattern({source_->memory.data() + kLateSource, kLate}, kLateKey, 0);
  const bool wants_receive =
      violation_ == Violation::SendTooLong || violation_ == Violation::SendInvalidateForeign;
  if (wants_receive) {
    ReceiveRequest work;
    work.id = 77;
    work.sges = {{receive_->base + 500, 300, receive_->stag.value}};
    if (to_.qp->post_receive(work) != device::PostResult::Ok) fail("a receive was refused");
    receives_ = 1;
  }
  if (violation_ == Violation::WriteRevoked || violation_ == Violation::ReadRevoked) {
    revoked_ = true;
    if (auto status = to_.device->deregister_memory(target_->stag); !status) {
      fail(status.error().message);
    }
  }
  post_writes(false);
  if (from_.qp->post_send(offence()) != device::PostResult::Ok) fail("it was refused when posted");
  post_writes(true);
}

void ViolationCase::send_completed(const Completion& completion) {
  ++sends_completed_;
  if (completion.id == 1 && is_read(violation_) && completion.status == CompletionStatus::Success) {
    fail("it completed with success");
  }
}

void ViolationCase::receive_completed(const Completion& completion) {
  ++receives_completed_;
  if (completion.status == CompletionStatus::Success) fail("its receive completed with success");
}

void ViolationCase::terminated(const End& at, bool here, const Fault& fault) {
  const Row& row = row_of(violation_);
  if (&at != (here ? &to_ : &from_)) return fail("the Terminate goes the wrong way");
  if (here ? sent_ : received_) return fail("more than one Terminate");
  (here ? sent_ : received_) = true;
  if (static_cast<uint8_t>(fault.layer) != row.layer || fault.type != row.type ||
      fault.code != row.code) {
    fail("the Terminate " + std::string(here ? "sent" : "received") + " says " +
         rnic::describe(fault) + ", not " + std::to_string(row.layer) + "/" +
         std::to_string(row.type) + "/" + std::to_string(row.code));
  }
}

void ViolationCase::check_target() {
  const uint8_t* octets = target_->memory.data();
  for (uint32_t i = 0; i < kRegion; ++i) {
    if (octets[i] == kPoison) continue;
    const bool good = i < kGood && octets[i] == pattern_octet(kGoodKey, i);
    // Placed ahead of the order before the offence was seen: lawful.
    const bool late =
        i >= kLateAt && i < kLateAt + kLate && octets[i] == pattern_octet(kLateKey, i - kLateAt);
    if (!good && !late) return fail("octet " + std::to_string(i) + " of the target was written");
  }
  if (auto bad = receive_->memory.check_idle();
      bad && violation_ != Violation::SendInvalidateForeign) {
    fail("the receive buffer was written: " + *bad);
  }
}

void ViolationCase::check_end() {
  check_target();
  if (auto bad = sink_->memory.check_idle()) fail("the sink was written: " + *bad);
  if (!sent_) fail("no Terminate was sent");
  if (!received_) fail("no Terminate was received");
  if (sends_completed_ == 0) fail("it never completed");
  if (receives_completed_ != receives_) fail("its receive was not flushed");
}

void ViolationCase::release_regions() {
  const auto drop = [&](End& end, Region& region) {
    if (auto status = end.device->deregister_memory(region.stag); !status) {
      fail(status.error().message);
    }
  };
  drop(from_, *source_);
  drop(from_, *sink_);
  drop(to_, *receive_);
  if (!revoked_) drop(to_, *target_);
  if (foreign_pd_) {
    if (auto status = to_.device->free_pd(*foreign_pd_); !status) fail(status.error().message);
  }
}

}  // namespace rnic::simulation
