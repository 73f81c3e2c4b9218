#include "impair/impaired_port.hpp"

#include <cstring>
#include <string>

#include "base/check.hpp"
#include "impair/damage.hpp"
#include "offload/offload.hpp"

namespace rnic::impair {
namespace {

constexpr uint32_t kMostPieces = 4;  // of one frame: cut in two, each of them duplicated
// The time until a port that has refused frames is asked again; at 0 virtual time would stand
// still.
constexpr base::Duration kRetry = std::chrono::microseconds(10);

}  // namespace

Status check(const Config& config) {
  const struct {
    const char* name;
    double value;
  } shares[] = {{"drop", config.drop},
                {"reorder", config.reorder},
                {"duplicate", config.duplicate},
                {"corrupt", config.corrupt},
                {"repair", config.repair},
                {"resegment", config.resegment},
                {"burst_enter", config.burst_enter},
                {"burst_leave", config.burst_leave}};
  for (const auto& share : shares) {
    if (!(share.value >= 0 && share.value <= 1)) {
      return base::fail(ErrorCode::InvalidArgument, std::string("impair.") + share.name + " is " +
                                                        std::to_string(share.value) +
                                                        ": a probability from 0 to 1");
    }
  }
  if (config.reorder_min < 1 || config.reorder_max < config.reorder_min) {
    return base::fail(ErrorCode::InvalidArgument,
                      "impair.reorder_min must be at least 1 and not above reorder_max");
  }
  if (config.delay.count() < 0 || config.jitter.count() < 0 || config.reorder_timeout.count() < 0) {
    return base::fail(ErrorCode::InvalidArgument,
                      "impair.delay, jitter and reorder_timeout cannot be negative");
  }
  return {};
}

ImpairedPort::ImpairedPort(port::Port& inner, const Config& config, uint64_t seed)
    : inner_(inner), info_(inner.info()), prng_(seed), delayed_(kCapacity), ready_(kCapacity) {
  info_.checksum = port::ChecksumMode::Software;
  overtaken_.reserve(kCapacity);
  set_config(config);
}

ImpairedPort::~ImpairedPort() {
  for (; !delayed_.empty(); delayed_.pop()) inner_.free({&delayed_.front().packet, 1});
  for (; !ready_.empty(); ready_.pop()) inner_.free({&ready_.front(), 1});
  for (const Overtaken& waiting : overtaken_) inner_.free({&waiting.packet, 1});
}

void ImpairedPort::set_config(const Config& config) {
  RNIC_CHECK(check(config).has_value());
  config_ = config;
}

uint32_t ImpairedPort::held() const {
  return delayed_.size() + ready_.size() + static_cast<uint32_t>(overtaken_.size());
}

bool ImpairedPort::alloc(std::span<port::Packet> out) {
  if (inner_.alloc(out)) return true;
  ++counters_.alloc_failed;
  return false;
}

uint32_t ImpairedPort::rx_burst(std::span<port::Packet> out, base::Now now) {
  advance(now);
  const uint32_t count = inner_.rx_burst(out, now);
  for (port::Packet& packet : out.first(count)) {
    packet.ip_checksum = packet.l4_checksum = port::Checksum::Unknown;
    counters_.rx_octets += packet.length;
  }
  counters_.rx_frames += count;
  return count;
}

uint32_t ImpairedPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  advance(now);
  uint32_t taken = 0;
  for (const port::Packet& packet : packets) {
    if (held() + kMostPieces > kCapacity) break;
    ++counters_.tx_frames;
    counters_.tx_octets += packet.length;
    take(packet, now);
    ++taken;
  }
  counters_.tx_refused += packets.size() - taken;
  advance(now);
  return taken;
}

bool ImpairedPort::lost() {
  if (!in_burst_ && config_.burst_enter > 0) in_burst_ = prng_.chance(config_.burst_enter);
  if (in_burst_) {
    in_burst_ = !prng_.chance(config_.burst_leave);
    return true;
  }
  return prng_.chance(config_.drop);
}

void ImpairedPort::take(port::Packet packet, base::Now now) {
  ++impair_counters_.frames;
  if (lost()) {
    ++impair_counters_.dropped;
    inner_.free({&packet, 1});
    return;
  }
  offload::complete_checksums(packet);
  if (prng_.chance(config_.resegment) && can_cut(packet)) {
    port::Packet rest;
    if (inner_.alloc({&rest, 1})) {
      ++impair_counters_.resegmented;
      cut(packet, rest, prng_);
      duplicate_and_enqueue(packet, now);
      duplicate_and_enqueue(rest, now);
      return;
    }
    ++impair_counters_.no_buffer;
  }
  duplicate_and_enqueue(packet, now);
}

void ImpairedPort::duplicate_and_enqueue(const port::Packet& packet, base::Now now) {
  port::Packet copy;
  bool copied = prng_.chance(config_.duplicate);
  if (copied && (!inner_.alloc({&copy, 1}) || copy.room < packet.length)) {
    if (copy.buffer != nullptr) inner_.free({&copy, 1});
    ++impair_counters_.no_buffer;
    copied = false;
  }
  if (copied) {
    ++impair_counters_.duplicated;
    std::memcpy(copy.data, packet.data, packet.length);
    copy.length = packet.length;
  }
  enqueue(packet, now);
  if (copied) enqueue(copy, now);
}

void ImpairedPort::enqueue(port::Packet packet, base::Now now) {
  if (prng_.chance(config_.corrupt)) {
    ++impair_counters_.corrupted;
    if (flip_bit(packet, prng_.chance(config_.repair), prng_)) ++impair_counters_.repaired;
  }
  Delayed entry;
  entry.packet = packet;
  entry.due = now + config_.delay;
  if (config_.jitter.count() != 0) {
    const auto most = static_cast<uint64_t>(config_.jitter.count());
    entry.due += base::Duration(static_cast<int64_t>(prng_.between(0, most)));
  }
  entry.due = last_due_ = std::max(entry.due, last_due_);
  if (entry.due > now) ++impair_counters_.delayed;
  if (prng_.chance(config_.reorder)) {
    entry.let_pass = static_cast<uint32_t>(prng_.between(config_.reorder_min, config_.reorder_max));
  }
  delayed_.push(entry);
}

void ImpairedPort::hold_overtaken(const Overtaken& waiting) {
  overtaken_.push_back(waiting);
  next_release_ = std::min(next_release_, waiting.release);
  next_limit_ = base::earlier(next_limit_, waiting.limit);
}

void ImpairedPort::release_overtaken(base::Now now) {
  next_release_ = UINT64_MAX;
  next_limit_ = base::kNever;
  size_t kept = 0;
  for (const Overtaken& waiting : overtaken_) {
    if (passed_ < waiting.release && now < waiting.limit) {
      overtaken_[kept++] = waiting;
      next_release_ = std::min(next_release_, waiting.release);
      next_limit_ = base::earlier(next_limit_, waiting.limit);
      continue;
    }
    if (passed_ > waiting.since) ++impair_counters_.reordered;
    ready_.push(waiting.packet);
  }
  overtaken_.resize(kept);
}

void ImpairedPort::advance(base::Now now) {
  while (!delayed_.empty() && delayed_.front().due <= now) {
    const Delayed& entry = delayed_.front();
    if (entry.let_pass != 0) {
      hold_overtaken(
          {entry.packet, passed_, passed_ + entry.let_pass, now + config_.reorder_timeout});
    } else {
      ready_.push(entry.packet);
      ++passed_;
    }
    delayed_.pop();
    if (frees_overtaken(now)) release_overtaken(now);
  }
  if (frees_overtaken(now)) release_overtaken(now);
  send_ready(now);
}

void ImpairedPort::send_ready(base::Now now) {
  retry_at_ = base::kNever;
  while (!ready_.empty()) {
    const std::span<port::Packet> head = ready_.head();
    const uint32_t sent = inner_.tx_burst(head, now);
    impair_counters_.forwarded += sent;
    ready_.pop(sent);
    if (sent < head.size()) {
      ++impair_counters_.retries;
      retry_at_ = now + kRetry;
      return;
    }
  }
}

base::Now ImpairedPort::next_deadline() const {
  base::Now earliest = base::earlier(inner_.next_deadline(), retry_at_);
  if (!delayed_.empty()) earliest = base::earlier(earliest, delayed_.front().due);
  return base::earlier(earliest, next_limit_);
}

}  // namespace rnic::impair
