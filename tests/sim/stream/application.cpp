#include "stream/application.hpp"

#include <algorithm>

#include "memory.hpp"

namespace rnic::simulation {

namespace {

constexpr base::Duration kReadTurn = std::chrono::milliseconds(1);

}  // namespace

void Application::check_end() const {
  const auto how = how_ended();
  if (!how) return fail("did not end");
  if (*how != StreamEnd::Closed) return fail(std::string("ended: ") + to_string(*how));
  if (sent() != content_.send_octets) {
    fail("sent " + std::to_string(sent()) + " of " + std::to_string(content_.send_octets));
  }
  if (received() != content_.receive_octets) {
    fail("received " + std::to_string(received()) + " of " +
         std::to_string(content_.receive_octets));
  }
}

uint64_t Application::reading_budget(uint64_t received, base::Now now) {
  if (!stopped_once_ && received >= plan_.stop_at) {
    stopped_once_ = true;
    stopped_until_ = now + plan_.stop_for;
  }
  waits_to_read_ = false;
  stopped_ = now < stopped_until_;
  if (stopped_) return 0;
  const uint64_t to_stop =
      stopped_once_ || plan_.stop_for == base::Duration(0) ? UINT64_MAX : plan_.stop_at - received;
  if (plan_.read_rate_octets == 0) return to_stop;
  if (now < next_read_) {
    waits_to_read_ = true;
    return 0;
  }
  next_read_ = now + kReadTurn;
  waits_to_read_ = true;
  return std::min<uint64_t>(to_stop, prng_.between(1, plan_.read_rate_octets));
}

base::Now Application::reading_deadline() const {
  if (stopped_) return stopped_until_;
  return waits_to_read_ ? next_read_ : base::kNever;
}

void Application::check_content(base::ByteView octets, uint64_t offset) const {
  if (offset + octets.size() > content_.receive_octets) return fail("octets beyond the stream");
  if (const auto wrong = pattern_difference(octets, content_.receive_key, offset)) {
    fail("wrong octet at " + std::to_string(offset + *wrong));
  }
}

bool OctetApplication::write(base::Now now) {
  if (written_ == content_.send_octets || now < next_write_) return false;
  std::vector<uint8_t> octets(
      std::min<uint64_t>(content_.send_octets - written_,
                         prng_.between(1, plan_.write_max != 0 ? plan_.write_max : plan_.ring)));
  fill_pattern(octets, content_.send_key, written_);
  const uint32_t n = stream_.write(octets);
  written_ += n;
  if (plan_.write_gap.count() != 0) {
    next_write_ = now + base::Duration(static_cast<int64_t>(
                            prng_.below(static_cast<uint64_t>(plan_.write_gap.count()))));
  }
  return n != 0;
}

void OctetApplication::read(base::Now now) {
  while (!verdict_.failed()) {
    const uint64_t budget = stream_.readable() == 0 ? 0 : reading_budget(read_, now);
    std::vector<uint8_t> octets(std::min<uint64_t>(stream_.readable(), budget));
    const uint32_t n = stream_.read(octets);
    if (n == 0) return;
    check_content({octets.data(), n}, read_);
    read_ += n;
  }
}

void OctetApplication::run(base::Now now) {
  read(now);
  while (!stream_.how_ended() && write(now)) {
  }
  if (!closed_ && stream_.is_established() && written_ == content_.send_octets &&
      (!plan_.close_after_peer || stream_.peer_has_finished())) {
    closed_ = true;
    stream_.close();
  }
}

base::Now OctetApplication::next_deadline() const {
  base::Now next = base::kNever;
  if (stream_.readable() != 0) next = reading_deadline();
  if (written_ != content_.send_octets && stream_.writable() != 0 && !stream_.how_ended()) {
    next = base::earlier(next, next_write_);
  }
  return next;
}

void RecordApplication::established(uint32_t emss, base::Now) {
  if (established_ || ended_) fail("established twice, or after the end");
  established_ = true;
  emss_ = emss;
  may_write_ = true;
  stream_->ready();
}

llp::Pulled RecordApplication::pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now) {
  if (offset != pulled_) fail("pulled at a wrong offset");
  if (ended_ || !established_) fail("pulled from outside of the stream's life");
  if (!may_write_ || pulled_ == content_.send_octets) return {};
  if (next_length_ == 0) {
    const uint32_t most = std::min(plan_.record_max, emss_);
    next_length_ = static_cast<uint32_t>(prng_.between(1, prng_.chance(0.5) ? most : most / 8 + 1));
  }
  // A record that was drawn before EMSS shrank is not pulled yet: it may still change.
  const auto length = static_cast<uint32_t>(
      std::min<uint64_t>({next_length_, emss_, content_.send_octets - pulled_}));
  if (length > n) return {};
  next_length_ = 0;
  fill_pattern({out.append(length), length}, content_.send_key, pulled_);
  records_.push_back({pulled_, length});
  pulled_ += length;
  const bool last = pulled_ == content_.send_octets;
  const bool pause = plan_.write_gap.count() != 0 && prng_.chance(0.1);
  if (pause) may_write_ = false;
  return {.length = length,
          .push = last || pause || prng_.chance(0.1),
          .atomic = true,
          .tag = {records_.size() - 1, length}};
}

bool RecordApplication::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                                llp::Frame& out) {
  if (tag.a >= records_.size() || records_[tag.a].offset != offset ||
      records_[tag.a].length != length || tag.a < first_unreleased_) {
    fail("asked to rebuild what is no unreleased record");
    return false;
  }
  fill_pattern({out.append(length), length}, content_.send_key, offset);
  return true;
}

void RecordApplication::released(const llp::RecordTag& tag, uint64_t end_offset) {
  if (tag.a != first_unreleased_ || tag.a >= records_.size()) return fail("released out of order");
  const Record& r = records_[tag.a];
  if (r.offset + r.length != end_offset) return fail("released with a wrong end");
  ++first_unreleased_;
  released_ = end_offset;
}

llp::InspectVerdict RecordApplication::inspect(base::Range range, base::ByteView octets,
                                               base::Now) {
  if (range.size() != octets.size() || range.empty()) fail("inspect: range and octets differ");
  for (uint64_t i = range.begin; i < range.end && i < placed_.size(); ++i) {
    if (placed_[i]) fail("octet " + std::to_string(i) + " inspected again after its commit");
  }
  return prng_.chance(plan_.drop) ? llp::InspectVerdict::Drop : llp::InspectVerdict::Accept;
}

void RecordApplication::place(base::Range range, base::ByteView octets, bool in_order, base::Now) {
  if (range.size() != octets.size() || in_order != (range.begin == ordered_)) {
    return fail("place: range, octets and order do not fit");
  }
  check_content(octets, range.begin);
  if (range.end > placed_.size()) return;
  for (uint64_t i = range.begin; i < range.end; ++i) {
    if (placed_[i]) fail("octet " + std::to_string(i) + " placed twice");
    placed_[i] = true;
  }
}

void RecordApplication::ordered(uint64_t offset, base::Now) {
  if (offset <= ordered_ || offset > placed_.size()) return fail("ordered to a wrong offset");
  for (uint64_t i = ordered_; i < offset; ++i) {
    if (!placed_[i]) fail("octet " + std::to_string(i) + " delivered and never placed");
  }
  ordered_ = offset;
}

uint32_t RecordApplication::receive_room() const {
  const uint64_t waiting = ordered_ - consumed_;
  return static_cast<uint32_t>(plan_.ring > waiting ? plan_.ring - waiting : 0);
}

void RecordApplication::peer_finished(base::Now) {
  if (peer_finished_) fail("the peer finished twice");
  if (ordered_ != content_.receive_octets) fail("the peer finished early");
  peer_finished_ = true;
}

void RecordApplication::ended(StreamEnd how, base::Now) {
  if (ended_) fail("ended twice");
  ended_ = how;
  stream_ = nullptr;
}

void RecordApplication::run(base::Now now) {
  if (consumed_ < ordered_) {
    const uint64_t n = std::min(ordered_ - consumed_, reading_budget(consumed_, now));
    consumed_ += n;
    if (n != 0 && stream_ != nullptr) stream_->room_grew();
  }
  if (!established_ || ended_) return;
  if (!may_write_ && next_write_ <= now) {
    may_write_ = true;
    next_write_ = now + base::Duration(static_cast<int64_t>(
                            prng_.below(static_cast<uint64_t>(plan_.write_gap.count()) + 1)));
    stream_->ready();
  }
  if (!closed_ && pulled_ == content_.send_octets && (!plan_.close_after_peer || peer_finished_)) {
    closed_ = true;
    stream_->close();
  }
}

base::Now RecordApplication::next_deadline() const {
  base::Now next = consumed_ < ordered_ ? reading_deadline() : base::kNever;
  if (established_ && !ended_ && !may_write_) next = base::earlier(next, next_write_);
  return next;
}

bool RecordApplication::is_boundary(uint64_t offset) const {
  if (offset == pulled_) return true;
  const auto it = std::lower_bound(records_.begin(), records_.end(), offset,
                                   [](const Record& r, uint64_t o) { return r.offset < o; });
  return it != records_.end() && it->offset == offset;
}

std::unique_ptr<Application> make_application(std::string name, const ApplicationPlan& plan,
                                              const StreamContent& content, uint64_t seed,
                                              Verdict& verdict) {
  if (plan.records) {
    return std::make_unique<RecordApplication>(std::move(name), plan, content, seed, verdict);
  }
  return std::make_unique<OctetApplication>(std::move(name), plan, content, seed, verdict);
}

}  // namespace rnic::simulation
