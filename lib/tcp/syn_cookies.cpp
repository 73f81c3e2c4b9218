#include "tcp/syn_cookies.hpp"

#include <algorithm>

#include "tcp/mss.hpp"
#include "tcp/tcb.hpp"
#include "wire/tcp.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

// Common values: our minimum, RFC 9293's defaults, tunnels, Ethernet, jumbo frames.
constexpr std::array<uint16_t, 8> kCookieMss{216, 536, 1220, 1360, 1440, 1460, 4312, 8960};

constexpr uint32_t kOptionBits = 6;
constexpr uint32_t kNoScale = 15;

int64_t period_of(base::Now now) { return base::nanos(now) / SynCookies::kPeriod.count(); }

}  // namespace

const Secret& SynCookies::key_of(int64_t period) {
  const auto place = static_cast<size_t>(period & 1);
  if (periods_[place] != period) {
    periods_[place] = period;
    const auto word = static_cast<uint64_t>(period);
    const std::array<uint64_t, 2> first{word, 1};
    const std::array<uint64_t, 2> second{word, 2};
    keys_[place] = {keyed_hash(secret_, first), keyed_hash(secret_, second)};
  }
  return keys_[place];
}

uint64_t SynCookies::hash(int64_t period, const Endpoint& local, const Endpoint& remote,
                          base::Seq32 irs) {
  const std::array<uint64_t, 6> words{
      local.address.high(), local.address.low(), remote.address.high(),
      remote.address.low(), irs.value,           uint64_t{local.port} << 16 | remote.port};
  return keyed_hash(key_of(period), words);
}

base::Seq32 SynCookies::make(const Endpoint& local, const Endpoint& remote, base::Seq32 irs,
                             uint16_t mss, base::Now now) {
  uint32_t index = kCookieMss.size() - 1;
  while (index != 0 && kCookieMss[index] > mss) --index;
  const uint64_t h = hash(period_of(now), local, remote, irs);
  return base::Seq32((static_cast<uint32_t>(h) & ~7u) |
                     ((index ^ static_cast<uint32_t>(h >> 32)) & 7));
}

std::optional<uint16_t> SynCookies::check(const Endpoint& local, const Endpoint& remote,
                                          base::Seq32 irs, base::Seq32 iss, base::Now now) {
  const int64_t period = period_of(now);
  for (int64_t p = period; p >= 0 && p >= period - 1; --p) {
    const uint64_t h = hash(p, local, remote, irs);
    if (((static_cast<uint32_t>(h) ^ iss.value) & ~7u) == 0) {
      return kCookieMss[(iss.value ^ static_cast<uint32_t>(h >> 32)) & 7];
    }
  }
  return std::nullopt;
}

uint32_t SynCookies::stamp(uint32_t clock, const CookieOptions& options) {
  constexpr uint32_t kMask = (1u << kOptionBits) - 1;
  const uint32_t bits =
      options.window_scale.value_or(kNoScale) | (options.sack ? 16u : 0) | (options.ecn ? 32u : 0);
  const uint32_t value = (clock & ~kMask) | bits;
  // The timestamp is never ahead of the clock, so that later segments have later timestamps.
  return static_cast<int32_t>(value - clock) > 0 ? value - (kMask + 1) : value;
}

CookieOptions SynCookies::options_of(uint32_t echo) {
  CookieOptions options;
  const uint32_t scale = echo & 15;
  if (scale != kNoScale) options.window_scale = static_cast<uint8_t>(scale);
  options.sack = (echo & 16) != 0;
  options.ecn = (echo & 32) != 0;
  return options;
}

void SynCookies::answer(const Segment& syn, const llp::Acceptor& acceptor,
                        const ConnectionOptions& options, base::Now now, Reply& reply) {
  const wire::TcpOptions& offered = syn.options;
  const bool stamped = timestamps_ && offered.timestamps.has_value();
  CookieOptions kept;  // without timestamps no option can be kept, so none is agreed to
  if (stamped) {
    if (window_scaling_ && offered.window_scale) {
      kept.window_scale = std::min(*offered.window_scale, kMaxShift);
    }
    kept.sack = sack_ && offered.sack_permitted;
    kept.ecn = options.ecn != Ecn::Off && syn.has(flag::kEce) && syn.has(flag::kCwr);
  }
  reply.local = syn.local;
  reply.remote = syn.remote;
  reply.seq = make(syn.local, syn.remote, syn.seq,
                   offered.mss.value_or(default_mss(syn.remote.address)), now);
  reply.ack = syn.seq + 1;
  reply.flags = static_cast<uint8_t>(flag::kSyn | flag::kAck | (kept.ecn ? flag::kEce : 0));
  reply.window = terms_.window(&acceptor, nullptr, syn.remote);
  reply.traffic_class = static_cast<uint8_t>(options.dscp << 2);
  SynOptions ours{.mss = terms_.mss(syn.remote.address, options), .sack = kept.sack};
  if (stamped) {
    const uint64_t hash = keyed_hash(secret_, syn.local, syn.remote);
    ours.timestamps = {stamp(timestamp_at(timestamp_offset(hash), now), kept),
                       offered.timestamps->value};
  }
  if (kept.window_scale) ours.window_scale = terms_.window_shift();
  reply.options_length = static_cast<uint8_t>(write_syn_options(reply.options.data(), ours));
}

std::optional<Segment> SynCookies::syn_before(const Segment& ack, base::Now now) {
  const base::Seq32 irs = ack.seq - 1;
  const auto mss = check(ack.local, ack.remote, irs, ack.ack - 1, now);
  if (!mss || (ack.options.timestamps && !timestamps_)) return std::nullopt;
  Segment syn = ack;
  syn.seq = irs;
  syn.flags = flag::kSyn;
  syn.options = {};
  syn.options.mss = mss;
  if (ack.options.timestamps) {
    const CookieOptions kept = options_of(ack.options.timestamps->echo);
    syn.options.timestamps = ack.options.timestamps;
    syn.options.sack_permitted = kept.sack;
    syn.options.window_scale = kept.window_scale;
    if (kept.ecn) syn.flags |= flag::kEce | flag::kCwr;
  }
  return syn;
}

}  // namespace rnic::tcp
