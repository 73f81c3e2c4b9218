/// \file
/// Around an mpa::Session: a stream below it, a DDP endpoint above it, its owner beside it; and a
/// slow, obvious encoder of FPDU streams to compare with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/endian.hpp"
#include "base/trace.hpp"
#include "mpa/mpa.hpp"

namespace rnic::test {

using Octets = std::vector<uint8_t>;

/// CRC32C bit by bit.
inline uint32_t slow_crc32c(base::ByteView octets) {
  uint32_t crc = 0xffffffffu;
  for (const uint8_t octet : octets) {
    crc ^= octet;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

/// FPDUs word by word, as RFC 5044 s.4.3 tells it; `start` is the offset of full operation.
class SlowEncoder {
 public:
  SlowEncoder(uint64_t start, bool markers, bool crc = true)
      : start_(start), markers_(markers), crc_(crc) {}

  void add(base::ByteView ulpdu) {
    boundaries.push_back(start_ + stream.size());
    Octets content(2);
    base::store_be16(content.data(), static_cast<uint16_t>(ulpdu.size()));
    content.insert(content.end(), ulpdu.begin(), ulpdu.end());
    content.resize((content.size() + 3) & ~size_t{3});
    const size_t begin = stream.size();
    size_t header = begin + (due() ? 4 : 0);
    for (size_t i = 0; i < content.size(); i += 4) {
      marker(header);
      stream.insert(stream.end(), content.begin() + static_cast<long>(i),
                    content.begin() + static_cast<long>(i) + 4);
    }
    marker(header);
    const base::ByteView covered(stream.data() + begin, stream.size() - begin);
    uint8_t trailer[4];
    base::store_le32(trailer, crc_ ? slow_crc32c(covered) : 0);
    stream.insert(stream.end(), trailer, trailer + 4);
  }

  Octets stream;                     ///< octets from `start` on
  std::vector<uint64_t> boundaries;  ///< stream offset of each FPDU's first octet

 private:
  [[nodiscard]] bool due() const { return markers_ && stream.size() % 512 == 0; }
  void marker(size_t header) {
    if (!due()) return;
    const size_t distance = stream.size() < header ? 0 : stream.size() - header;
    stream.insert(stream.end(),
                  {0, 0, static_cast<uint8_t>(distance >> 8), static_cast<uint8_t>(distance)});
  }

  uint64_t start_;
  bool markers_;
  bool crc_;
};

class FakeStream final : public llp::Stream, public base::TraceSink {
 public:
  [[nodiscard]] llp::StreamTraits traits() const override { return traits_value; }
  [[nodiscard]] uint32_t emss() const override { return 1460; }
  [[nodiscard]] Endpoint local() const override { return {}; }
  [[nodiscard]] Endpoint remote() const override { return {}; }
  void ready() override { ++readies; }
  void close() override { ++closes; }
  void abort() override { ++aborts; }
  void room_grew() override { ++grew; }
  void set_user(llp::StreamUser& next) override { user = &next; }
  void set_trace(base::TraceSink*) override {}
  [[nodiscard]] base::TraceSink* trace() const override { return const_cast<FakeStream*>(this); }
  void record(TraceKind kind, base::Range, base::Now) override { ++traces[kind]; }

  llp::StreamTraits traits_value{true, true, true, true, true, true};
  llp::StreamUser* user = nullptr;  // of set_user()
  int readies = 0, closes = 0, aborts = 0, grew = 0;
  std::map<TraceKind, int> traces;
};

/// Sends what `to_send` says; remembers what was placed and delivered, and that each came once.
class FakeFramingUser final : public llp::FramingUser {
 public:
  struct Placed {
    Octets octets;
    bool in_order = false;
    bool delivered = false;
  };

  /// \return the pieces are those of one run with equal gaps, where the view says so
  static bool lies_as_said(const llp::UlpduView& ulpdu) {
    for (size_t i = 1; ulpdu.gap != 0 && i < ulpdu.pieces.size(); ++i) {
      const base::ByteView piece = ulpdu.pieces[i];
      if (piece.data() != ulpdu.pieces[i - 1].end().base() + ulpdu.gap) return false;
      if (i + 1 < ulpdu.pieces.size() && piece.size() != ulpdu.between) return false;
    }
    return true;
  }

  llp::PulledUlpdu pull_ulpdu(uint32_t max, bool whole_only, llp::UlpduWriter& out,
                              base::Now) override {
    last_max = max;
    last_whole_only = whole_only;
    if (to_send.empty() || to_send.front().size() > max) return {};
    const llp::RecordTag tag{next_tag++, 7};
    sent[tag.a] = to_send.front();
    to_send.pop_front();
    write(sent[tag.a], out);
    return {static_cast<uint32_t>(sent[tag.a].size()), true, true, tag};
  }
  bool rebuild_ulpdu(const llp::RecordTag& tag, llp::UlpduWriter& out) override {
    if (sent.count(tag.a) == 0) return false;
    write(sent[tag.a], out);
    return true;
  }
  void released_ulpdu(const llp::RecordTag& tag) override { sent.erase(tag.a); }

  llp::PlaceVerdict place_ulpdu(const llp::UlpduView& ulpdu, bool in_order, base::Now) override {
    Placed entry;
    for (const base::ByteView piece : ulpdu.pieces) {
      entry.octets.insert(entry.octets.end(), piece.begin(), piece.end());
    }
    entry.in_order = in_order;
    if (entry.octets.size() != ulpdu.length || !lies_as_said(ulpdu)) ++faults;
    if (hold_early && !in_order) return llp::PlaceVerdict::Hold;
    placed.push_back(std::move(entry));
    return llp::PlaceVerdict::Placed;
  }
  void deliver_ulpdu(base::ByteView header, uint32_t ulpdu_length, base::Now) override {
    for (Placed& entry : placed) {
      const size_t n = std::min<size_t>(entry.octets.size(), llp::kUlpduHeaderMax);
      if (entry.delivered || entry.octets.size() != ulpdu_length || n != header.size() ||
          !std::equal(header.begin(), header.end(), entry.octets.begin())) {
        continue;
      }
      entry.delivered = true;
      delivered.push_back(entry.octets);
      if (discard_after != 0 && delivered.size() == discard_after) session->discard_received();
      return;
    }
    ++faults;  // delivered what was never placed, or twice
  }
  void may_send() override {
    ++may_sends;
    if (on_may_send) on_may_send();
  }
  void peer_silent() override { ++silences; }
  void mulpdu_changed(uint32_t value) override { mulpdus.push_back(value); }
  void framing_error(llp::FramingError error, base::Now) override { errors.push_back(error); }
  void peer_finished(bool clean, base::Now) override { finished.push_back(clean); }
  void ended(StreamEnd how, base::Now) override { ends.push_back(how); }

  std::deque<Octets> to_send;
  std::map<uint64_t, Octets> sent;
  uint64_t next_tag = 1;
  uint32_t last_max = 0;
  bool last_whole_only = false;
  size_t put_size =
      0;  ///< ULPDUs are written in pieces of this size; 0: header of 14, then the rest
  bool hold_early = false;
  size_t discard_after = 0;
  std::function<void()> on_may_send;
  mpa::Session* session = nullptr;

  std::vector<Placed> placed;
  std::vector<Octets> delivered;
  int faults = 0, may_sends = 0, silences = 0;
  std::vector<uint32_t> mulpdus;
  std::vector<llp::FramingError> errors;
  std::vector<bool> finished;
  std::vector<StreamEnd> ends;

 private:
  void write(const Octets& octets, llp::UlpduWriter& out) const {
    const size_t head = std::min<size_t>(put_size != 0 ? put_size : 14, octets.size());
    Octets rest(octets.begin() + static_cast<long>(head), octets.end());
    std::vector<base::ByteSpan> pieces;
    for (size_t at = 0; at < rest.size();) {
      const size_t n = std::min(put_size != 0 ? put_size : rest.size(), rest.size() - at);
      pieces.emplace_back(rest.data() + at, n);
      at += n;
    }
    out.write(static_cast<uint32_t>(octets.size()), base::ByteView(octets).first(head), pieces);
  }
};

class FakeStartEvents final : public framing::StartEvents {
 public:
  void request_received(const framing::StartOffer& peer, base::ByteView private_data,
                        base::Now) override {
    offers.push_back(peer);
    requests.emplace_back(private_data.begin(), private_data.end());
  }
  void started(const framing::Negotiated& agreed, base::ByteView private_data, base::Now) override {
    starts.push_back(agreed);
    start_data.assign(private_data.begin(), private_data.end());
  }
  void start_failed(framing::StartFailure why, base::ByteView private_data, base::Now) override {
    failures.push_back(why);
    start_data.assign(private_data.begin(), private_data.end());
    if (on_failure) on_failure(why);
  }
  void rtr_received(base::Now) override { ++rtrs; }
  void peer_left(base::Now) override { ++peers_left; }

  std::function<void(framing::StartFailure)> on_failure;
  int rtrs = 0;
  int peers_left = 0;
  std::vector<framing::StartOffer> offers;
  std::vector<Octets> requests;
  std::vector<framing::Negotiated> starts;
  std::vector<framing::StartFailure> failures;
  Octets start_data;
};

/// One end: a session with everything around it, and the receiving duties of a transport.
class MpaEnd {
 public:
  struct Record {
    uint64_t offset;
    Octets octets;
    llp::Pulled pulled;
  };

  MpaEnd(framing::Role role, const mpa::Config& config, base::ByteView private_data = {},
         uint64_t hold = 512u << 10, framing::HoldStore* shared = nullptr,
         const framing::StartOptions& start_options = {})
      : own_store(shared == nullptr ? framing::make_hold_store(hold) : nullptr),
        session(std::make_unique<mpa::Session>(config, role,
                                               shared != nullptr ? *shared : *own_store, counters,
                                               events, private_data, start_options)) {
    user.session = session.get();
    session->attach(stream);
    session->bind(user);
  }

  void establish(uint32_t emss_value = 1460) {
    emss = emss_value;
    octets_user().established(emss, now);
  }

  /// The user of the stream: the session, or the one that was set later.
  [[nodiscard]] llp::StreamUser& octets_user() {
    return stream.user != nullptr ? *stream.user : *session;
  }
  /// The session is the first of several users.
  void share_stream() { users.begin(stream, *session, 0); }
  /// MPA was left: `next` uses the stream.
  void hand_over(llp::StreamUser& next) {
    users.push(next, session->sent(), session->received(), now);
    session->hand_over_kept(users, now);
  }

  /// Pulls one record of at most n octets; nothing when there is none.
  std::optional<Record> pull(uint32_t n) {
    Octets room(n);
    llp::Frame frame(room.data(), n);
    const llp::Pulled pulled = octets_user().pull(n, sent, frame, now);
    if (pulled.length == 0) return std::nullopt;
    if (pulled.length != frame.length()) ++user.faults;
    room.resize(pulled.length);
    Record record{sent, std::move(room), pulled};
    sent += pulled.length;
    records.push_back(record);
    return record;
  }
  /// Everything there is to send, as one run of octets.
  Octets pull_all() {
    Octets all;
    while (auto record = pull(emss)) {
      all.insert(all.end(), record->octets.begin(), record->octets.end());
    }
    return all;
  }

  /// A segment arrives. False: dropped by inspect(). What was committed before is cut off.
  bool receive(uint64_t offset, base::ByteView octets) {
    bool accepted = true;
    uint64_t at = offset;
    const uint64_t end = offset + octets.size();
    while (at < end) {
      const auto have = covering(at);
      if (have != committed.end()) {
        at = have->second;
        continue;
      }
      const auto above = committed.upper_bound(at);
      const uint64_t stop = above == committed.end() ? end : std::min(end, above->first);
      const Octets copy(octets.begin() + static_cast<long>(at - offset),
                        octets.begin() + static_cast<long>(stop - offset));
      accepted = give({at, stop}, copy) && accepted;
      at = stop;
    }
    return accepted;
  }

  std::unique_ptr<framing::HoldStore, framing::HoldStoreDeleter> own_store;
  mpa::Counters counters;
  FakeStartEvents events;
  FakeFramingUser user;
  FakeStream stream;
  llp::StreamSwitch users;
  std::unique_ptr<mpa::Session> session;
  base::Now now{};
  uint32_t emss = 1460;
  uint64_t sent = 0;
  uint64_t complete = 0;  ///< receive direction: in order up to here
  std::vector<Record> records;
  std::map<uint64_t, uint64_t> committed;  // begin -> end
  bool sends_again = true;  ///< the peer does, at once, what was dropped on suspicion

 private:
  std::map<uint64_t, uint64_t>::iterator covering(uint64_t offset) {
    auto above = committed.upper_bound(offset);
    if (above == committed.begin()) return committed.end();
    --above;
    return offset < above->second ? above : committed.end();
  }
  bool give(base::Range range, const Octets& octets) {
    const uint64_t suspected = counters.suspicious_drops;
    bool dropped = octets_user().inspect(range, octets, now) != llp::InspectVerdict::Accept;
    if (dropped && sends_again && counters.suspicious_drops != suspected) {
      dropped = octets_user().inspect(range, octets, now) != llp::InspectVerdict::Accept;
    }
    if (dropped) return false;
    committed[range.begin] = range.end;
    const bool in_order = range.begin == complete;
    // As TCP does: a segment in order while nothing beyond it has come is taken at once.
    if (in_order && std::prev(committed.end())->first == range.begin) {
      complete = range.end;
      if (!octets_user().place_ordered(range, octets, now)) octets_user().ordered(complete, now);
      return true;
    }
    octets_user().place(range, octets, in_order, now);
    if (in_order) {
      for (auto it = committed.find(complete); it != committed.end();
           it = committed.find(complete)) {
        complete = it->second;
      }
      octets_user().ordered(complete, now);
    }
    return true;
  }
};

/// Both ends of one connection without a network: what one pulls, the other receives.
class MpaPair {
 public:
  explicit MpaPair(const mpa::Config& initiator = {}, const mpa::Config& responder = {},
                   uint64_t hold = 512u << 10)
      : a(framing::Role::Initiator, initiator, {}, hold),
        b(framing::Role::Responder, responder, {}, hold) {}

  void start(uint32_t emss = 1460) {
    a.establish(emss);
    b.establish(emss);
    b.receive(0, a.pull_all());
    b.session->accept({}, b.now);
    a.receive(0, b.pull_all());
  }
  [[nodiscard]] static constexpr uint64_t first_octet() { return 20; }

  MpaEnd a;
  MpaEnd b;
};

/// A ULPDU whose content tells its number and length.
inline Octets numbered_ulpdu(uint32_t number, size_t length) {
  Octets octets(length);
  for (size_t i = 0; i < length; ++i) {
    octets[i] = static_cast<uint8_t>(number * 131 + i * 7 + (i >> 8));
  }
  if (length >= 4) base::store_be32(octets.data(), number);
  return octets;
}

}  // namespace rnic::test
