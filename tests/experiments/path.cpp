#include "path.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace rnic::experiment {

namespace {

constexpr uint32_t kMinimumFrame = 84;  // 60 octets, FCS, preamble and gap
constexpr uint32_t kIpHeader = 20;
constexpr uint32_t kLeastRoom = 576;  // of a frame, whatever the MTU

}  // namespace

/// One end's way to the link.
class Path::Egress final : public tcp::Egress {
 public:
  Egress(Path& path, uint32_t index) : path_(path), index_(index) {}

  bool begin(const IpAddress&, const IpAddress&, tcp::TxSlot& slot, base::Now) override {
    if (!path_.has_room(index_)) {
      refused = true;
      return false;
    }
    buffer_ = path_.take_buffer();
    buffer_.resize(std::max(path_.config_.mtu, kLeastRoom) - kIpHeader);
    slot = {.tcp = buffer_.data(),
            .room = static_cast<uint32_t>(buffer_.size()),
            .checksum_open = true,
            .frame = this};
    return true;
  }
  void send(tcp::TxSlot&, uint32_t length, base::Now) override {
    buffer_.resize(length);
    path_.carry(index_, std::move(buffer_));
  }
  void cancel(tcp::TxSlot&) override { path_.buffers_.push_back(std::move(buffer_)); }
  [[nodiscard]] uint32_t path_mtu(IpAddress, base::Now) const override { return path_.config_.mtu; }
  [[nodiscard]] uint32_t link_mtu(IpAddress) const override { return path_.config_.mtu; }
  void reduce_path_mtu(IpAddress, uint32_t, base::Now) override {}

  bool refused = false;  ///< the stack waits for room

 private:
  Path& path_;
  uint32_t index_;
  std::vector<uint8_t> buffer_;
};

Path::End::End(Path& path, uint32_t index)
    : egress(std::make_unique<Egress>(path, index)),
      stack(path.config_.tcp, *egress, {index + 1, 2}, path.config_.seed + index, path.now_) {}
Path::End::~End() = default;

Path::Path(const PathConfig& config) : config_(config), prng_(config.seed) {
  for (uint32_t i = 0; i < 2; ++i) ends_[i] = std::make_unique<End>(*this, i);
}
Path::~Path() = default;

std::vector<uint8_t> Path::take_buffer() {
  if (buffers_.empty()) return {};
  std::vector<uint8_t> buffer = std::move(buffers_.back());
  buffers_.pop_back();
  return buffer;
}

bool Path::has_room(uint32_t from) {
  std::deque<base::Now>& waiting = ends_[from]->waiting;
  while (!waiting.empty() && waiting.front() <= now_) waiting.pop_front();
  return config_.router_frames != 0 || waiting.size() < config_.queue_frames;
}

void Path::put_on_wire(uint32_t from, std::vector<uint8_t> tcp) {
  End& end = *ends_[from];
  const auto octets =
      std::max<uint32_t>(kMinimumFrame, static_cast<uint32_t>(tcp.size()) + kFrameOverhead);
  base::Now departure = std::max(now_, end.wire_free);
  if (config_.bits_per_second != 0) {
    departure += base::Duration(
        static_cast<int64_t>(uint64_t{octets} * 8 * 1'000'000'000 / config_.bits_per_second));
  }
  end.wire_free = departure;
  end.waiting.push_back(departure);
  Frame frame{std::move(tcp), departure + config_.delay};
  Tally& tally = end.tally;
  ++tally.frames;
  tally.wire_octets += octets;
  tally.payload += frame.payload();
  ++(frame.payload() != 0 ? tally.data_frames : tally.acks);
  end.in_flight.push_back(std::move(frame));
}

void Path::carry(uint32_t from, std::vector<uint8_t> tcp) {
  Tally& tally = ends_[from]->tally;
  const auto lose = [&](std::vector<uint8_t>&& octets) {
    ++tally.lost;
    buffers_.push_back(std::move(octets));
  };
  if (config_.router_frames != 0) {
    static_cast<void>(has_room(from));
    if (ends_[from]->waiting.size() >= config_.router_frames) {
      ++tally.queue_lost;
      return lose(std::move(tcp));
    }
  }
  Frame frame{std::move(tcp), {}};
  const bool data = from == kInitiator && frame.payload() != 0;
  if (data && ((loses && loses(frame)) || (config_.loss > 0 && prng_.chance(config_.loss)))) {
    return lose(std::move(frame.tcp));
  }
  uint32_t cut = data && cuts ? cuts(frame) : 0;
  if (data && cut == 0 && frame.payload() > 1 && config_.split > 0 && prng_.chance(config_.split)) {
    cut = static_cast<uint32_t>(prng_.between(1, frame.payload() - 1));
  }
  if (cut == 0) return put_on_wire(from, std::move(frame.tcp));
  ++tally.split;
  const uint32_t header = frame.header();
  std::vector<uint8_t> first(frame.tcp.begin(), frame.tcp.begin() + header + cut);
  std::vector<uint8_t> second(frame.tcp.begin(), frame.tcp.begin() + header);
  second.insert(second.end(), frame.tcp.begin() + header + cut, frame.tcp.end());
  first[wire::kTcpFlagsAt] &= static_cast<uint8_t>(~wire::tcp_flag::kPsh);
  uint8_t* sequence = &second[wire::kTcpSequenceAt];
  base::store_be32(sequence, base::load_be32(sequence) + cut);
  put_on_wire(from, std::move(first));
  if (loses_half && loses_half()) {
    lose(std::move(second));
  } else {
    put_on_wire(from, std::move(second));
  }
  buffers_.push_back(std::move(frame.tcp));
}

bool Path::deliver() {
  bool any = false;
  for (uint32_t from = 0; from < 2; ++from) {
    std::deque<Frame>& flight = ends_[from]->in_flight;
    while (!flight.empty() && flight.front().arrival <= now_) {
      Frame frame = std::move(flight.front());
      flight.pop_front();
      ends_[1 - from]->stack.input({.source = address(from),
                                    .destination = address(1 - from),
                                    .tcp = frame.tcp,
                                    .checksum_verified = true,
                                    .ecn = 0},
                                   now_);
      if (from == kInitiator && received && frame.payload() != 0) received(frame);
      buffers_.push_back(std::move(frame.tcp));
      any = true;
    }
  }
  return any;
}

base::Now Path::next_event() const {
  base::Now next = base::kNever;
  for (const auto& end : ends_) {
    next = base::earlier(next, end->stack.next_deadline());
    if (!end->in_flight.empty()) next = base::earlier(next, end->in_flight.front().arrival);
    if (end->egress->refused && !end->waiting.empty()) {
      next = base::earlier(next, end->waiting.front());
    }
  }
  return next;
}

bool Path::run_until(const std::function<bool()>& done, base::Duration limit) {
  const base::Now end = now_ + limit;
  for (;;) {
    deliver();
    for (auto& one : ends_) {
      one->egress->refused = false;
      one->stack.on_timers(now_);
      one->stack.output(now_);
    }
    if (done()) return true;
    const base::Now next = next_event();
    if (next > end) {
      now_ = std::max(now_, end);
      return false;
    }
    now_ = std::max(next, now_ + base::Duration(1));
  }
}

}  // namespace rnic::experiment
