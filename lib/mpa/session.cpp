#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "mpa/fpdu_rx.hpp"
#include "mpa/fpdu_tx.hpp"
#include "mpa/mpa.hpp"
#include "mpa/startup.hpp"

namespace rnic::mpa {
namespace {

/// Tag of start-up octets; DDP's tags never have this `a`.
constexpr llp::RecordTag kStartTag{~0ull, 0};
/// The shortest room worth asking DDP for: a DDP header and a little.
constexpr uint32_t kUsefulRoom = 18;

}  // namespace

class Session::Impl final : public FirstFpduListener {
 public:
  Impl(const Config& config, Role role, HoldStore& hold, Counters& counters, StartEvents& events,
       base::ByteView private_data)
      : config_(config),
        role_(role),
        counters_(counters),
        events_(events),
        parser_(role),
        receiver_(config_, hold, counters, *this) {
    RNIC_CHECK(private_data.size() <= wire::kMpaPrivateDataMax);
    if (role == Role::Initiator)
      sender_.set(wire::kMpaRequestKey, own_header(false, private_data), private_data);
  }

  void attach(llp::Stream& stream) {
    stream_ = &stream;
    receiver_.attach(&stream);
  }
  void bind(llp::FramingUser& user) {
    user_ = &user;
    receiver_.bind(user);
  }

  // --- start-up ---
  void established(uint32_t emss, base::Now now);
  void answer(bool accepted, base::ByteView private_data, base::Now now);
  void on_timer(base::Now now) {
    if (now >= next_deadline()) fail(StartFailure::TimedOut, {}, now);
  }
  [[nodiscard]] base::Now next_deadline() const { return starting() ? deadline_ : base::kNever; }
  [[nodiscard]] const Negotiated& negotiated() const { return agreed_; }
  [[nodiscard]] bool full_operation() const { return state_ == StartState::Done; }

  // --- sending ---
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out);
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length, llp::Frame& out);
  void released(const llp::RecordTag& tag, uint64_t end_offset) {
    if (tag == kStartTag) {
      sender_.acknowledged(end_offset);
    } else {
      user_->released_ulpdu(tag);
    }
  }
  void emss_changed(uint32_t emss);
  [[nodiscard]] uint32_t mulpdu() const { return mulpdu_of(emss_, agreed_.markers_send); }
  void ready() {
    if (may_send_ && stream_ != nullptr) stream_->ready();
  }

  // --- receiving ---
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now);
  void place(base::Range range, base::ByteView octets, base::Now now);
  void ordered(uint64_t offset, base::Now now);
  [[nodiscard]] uint32_t receive_room() const {
    // An incomplete FPDU at the delivery point takes no window: it would close for good under a
    // window smaller than the FPDU.
    const uint64_t held = receiver_.held() - receiver_.held_in_order();
    return held < config_.receive_window ? config_.receive_window - static_cast<uint32_t>(held) : 0;
  }
  void discard_received() { receiver_.discard(); }

  // --- the end ---
  void peer_finished(base::Now now);
  void ended(llp::StreamEnd how, base::Now now);
  void close() {
    if (stream_ != nullptr) stream_->close();
  }
  void abort() {
    if (stream_ != nullptr) stream_->abort();
  }

  void first_fpdu() override {
    if (role_ == Role::Responder) allow_sending();  // RFC 5044 s.7.1.2 rule 4
  }

 private:
  [[nodiscard]] wire::MpaStartHeader own_header(bool reject, base::ByteView private_data) const {
    return {config_.markers_receive, config_.crc, reject, wire::kMpaRevision,
            static_cast<uint16_t>(private_data.size())};
  }
  [[nodiscard]] bool starting() const {
    return state_ != StartState::Idle && state_ != StartState::Done && state_ != StartState::Failed;
  }
  [[nodiscard]] bool parsing() const {
    return state_ == StartState::AwaitReply || state_ == StartState::AwaitRequest ||
           state_ == StartState::SendRequest;
  }
  size_t parse(base::ByteView octets, bool more_behind, base::Now now);
  void request_complete(bool more_behind, base::Now now);
  void reply_complete(base::Now now);
  void begin_full_operation(base::ByteView private_data);
  void allow_sending();
  void start_frame_sent();
  void fail(StartFailure why, base::ByteView private_data, base::Now now);
  llp::Pulled pull_fpdu(uint32_t n, uint64_t offset, llp::Frame& out);

  Config config_;
  Role role_;
  StartState state_ = StartState::Idle;
  bool may_send_ = false;
  bool ended_ = false;
  Counters& counters_;
  StartEvents& events_;
  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;
  uint32_t emss_ = 0;
  uint32_t reported_mulpdu_ = 0;
  Negotiated agreed_;
  base::Now deadline_ = base::kNever;
  base::Now now_{};        // of the latest call that told it
  uint64_t received_ = 0;  // octets of the peer's start frame taken
  MarkerGrid send_grid_;
  StartFrameParser parser_;
  StartFrameSender sender_;
  FpduReceiver receiver_;
};

// --- start-up, RFC 5044 s.7.1.2 ---

void Session::Impl::established(uint32_t emss, base::Now now) {
  emss_ = emss;
  now_ = now;
  deadline_ = now + config_.start_timeout;
  if (role_ == Role::Initiator) {
    state_ = StartState::SendRequest;
    stream_->ready();
  } else {
    state_ = StartState::AwaitRequest;
  }
}

/// Feeds the parser, acts when the frame is complete. \return octets used.
size_t Session::Impl::parse(base::ByteView octets, bool more_behind, base::Now now) {
  const size_t used = parser_.feed(octets);
  received_ += used;
  if (parser_.failure()) {
    fail(*parser_.failure(), {}, now);
  } else if (parser_.complete()) {
    if (role_ == Role::Responder) {
      request_complete(more_behind || used < octets.size(), now);
    } else {
      reply_complete(now);
    }
  }
  return used;
}

void Session::Impl::request_complete(bool more_behind, base::Now now) {
  // RFC 5044 s.7.1.2 rules 2 and 3: the initiator waits for the Reply.
  if (more_behind) return fail(StartFailure::UnexpectedData, {}, now);
  if (parser_.header().markers && !config_.markers_send_allowed) {
    return fail(StartFailure::MarkersRefused, {}, now);
  }
  agreed_ = negotiate(config_, parser_.header());
  state_ = StartState::AwaitDecision;
  events_.request_received(parser_.private_data(), now);
  parser_.release();
}

void Session::Impl::reply_complete(base::Now now) {
  if (state_ != StartState::AwaitReply) return fail(StartFailure::UnexpectedData, {}, now);
  if (parser_.header().reject) {
    return fail(StartFailure::RejectedByPeer, parser_.private_data(), now);
  }
  if (parser_.header().markers && !config_.markers_send_allowed) {
    return fail(StartFailure::MarkersRefused, {}, now);
  }
  agreed_ = negotiate(config_, parser_.header());
  begin_full_operation(parser_.private_data());
  parser_.release();
  allow_sending();
}

void Session::Impl::answer(bool accepted, base::ByteView private_data, base::Now now) {
  now_ = now;
  RNIC_CHECK(private_data.size() <= wire::kMpaPrivateDataMax);
  if (state_ != StartState::AwaitDecision) return;  // failed meanwhile; start_failed() said so
  sender_.set(wire::kMpaReplyKey, own_header(!accepted, private_data), private_data);
  state_ = accepted ? StartState::SendReply : StartState::SendReject;
  stream_->ready();
  if (!accepted) stream_->close();
}

/// The last octet of our start frame was handed to the stream.
void Session::Impl::start_frame_sent() {
  switch (state_) {
    case StartState::SendRequest: state_ = StartState::AwaitReply; break;
    case StartState::SendReply: begin_full_operation({}); break;
    case StartState::SendReject: fail(StartFailure::RejectedLocally, {}, now_); break;
    default: break;
  }
}

void Session::Impl::begin_full_operation(base::ByteView private_data) {
  RNIC_CHECK(user_ != nullptr);  // RFC 5044 s.7.1: a DDP endpoint is bound before full operation
  state_ = StartState::Done;
  send_grid_ = MarkerGrid(agreed_.markers_send, sender_.end_offset());
  receiver_.start(received_, agreed_);
  reported_mulpdu_ = mulpdu();
  user_->mulpdu_changed(reported_mulpdu_);
  events_.started(agreed_, private_data, now_);
}

void Session::Impl::allow_sending() {
  may_send_ = true;
  user_->may_send();
  ready();
}

void Session::Impl::fail(StartFailure why, base::ByteView private_data, base::Now now) {
  state_ = StartState::Failed;
  ++counters_.start_failures;
  receiver_.discard();
  close();
  events_.start_failed(why, private_data, now);
  parser_.release();
}

// --- sending ---

llp::Pulled Session::Impl::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  if (state_ == StartState::Done) return may_send_ ? pull_fpdu(n, offset, out) : llp::Pulled{};
  if (!starting() || !sender_.pending()) return {};
  llp::Pulled pulled;
  pulled.length = sender_.emit(n, offset, out);
  pulled.tag = kStartTag;
  pulled.push = !sender_.pending();
  if (!sender_.pending()) start_frame_sent();
  return pulled;
}

/// n == EMSS: MULPDU's formula. Less: what exactly fits at this offset, for a ULPDU that ends its
/// message (RFC 5044 s.4.5). The FPDU never exceeds n: with an EMSS below 128 the ULPDU is shorter
/// than the MULPDU that is reported.
llp::Pulled Session::Impl::pull_fpdu(uint32_t n, uint64_t offset, llp::Frame& out) {
  const bool whole_only = n < emss_;
  const uint32_t before = out.length();
  const uint32_t max =
      std::min(mulpdu(), ulpdu_room(send_grid_, offset, std::min(n, out.room_left())));
  if (max < kUsefulRoom) return {};
  FpduWriter writer(send_grid_, offset, agreed_.crc, max, out);
  const llp::PulledUlpdu ulpdu = user_->pull_ulpdu(max, whole_only, writer);
  if (ulpdu.length == 0) return {};
  RNIC_CHECK(writer.finish());
  ++counters_.fpdus_out;
  counters_.markers_out += writer.markers();
  return {out.length() - before, ulpdu.last, true, ulpdu.tag};
}

bool Session::Impl::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                            llp::Frame& out) {
  if (tag == kStartTag) return sender_.rebuild(offset, length, out);
  const uint32_t before = out.length();
  FpduWriter writer(send_grid_, offset, agreed_.crc, wire::kMpaUlpduMax, out);
  writer.set_rebuilt();
  if (!user_->rebuild_ulpdu(tag, writer)) return false;
  RNIC_CHECK(writer.finish() && out.length() - before == length);
  ++counters_.fpdus_rebuilt;
  counters_.markers_out += writer.markers();
  return true;
}

void Session::Impl::emss_changed(uint32_t emss) {
  emss_ = emss;
  if (state_ != StartState::Done || mulpdu() == reported_mulpdu_) return;
  reported_mulpdu_ = mulpdu();
  user_->mulpdu_changed(reported_mulpdu_);
}

// --- receiving ---

llp::InspectVerdict Session::Impl::inspect(base::Range range, base::ByteView octets,
                                           base::Now now) {
  if (state_ == StartState::Done) return receiver_.inspect(range, octets, now);
  if (!parsing() || receiver_.can_keep(range)) return llp::InspectVerdict::Accept;
  ++counters_.hold_refused;
  return llp::InspectVerdict::Drop;
}

void Session::Impl::place(base::Range range, base::ByteView octets, base::Now now) {
  now_ = now;
  if (state_ == StartState::Done) return receiver_.place(range, octets, now);
  const bool in_order = receiver_.in_order(range);
  if (state_ == StartState::Failed || state_ == StartState::SendReject) {
    counters_.discarded_octets += range.size();
  } else if (!parsing()) {
    fail(StartFailure::UnexpectedData, {}, now);
  } else if (!in_order) {
    return receiver_.keep(range, octets, now);
  } else {
    const size_t used = parse(octets, receiver_.held() != 0, now);
    receiver_.arrived(range.begin + used);
    if (state_ == StartState::Done && used < octets.size()) {
      receiver_.place({range.begin + used, range.end}, octets.subspan(used), now);
    }
  }
  if (in_order) receiver_.arrived(range.end);
}

void Session::Impl::ordered(uint64_t offset, base::Now now) {
  now_ = now;
  // Octets of the start frame that came ahead of the order.
  std::array<uint8_t, wire::kMpaStartHeaderSize + wire::kMpaPrivateDataMax> again;
  while (parsing() && received_ < offset) {
    const auto want = static_cast<uint32_t>(
        std::min<uint64_t>({parser_.wanted(), offset - received_, again.size()}));
    const uint32_t n = receiver_.take_back(received_, again.data(), want);
    if (n == 0) break;
    parse({again.data(), n}, receiver_.held() != 0 && n == parser_.wanted(), now);
  }
  receiver_.arrived(offset);
  if (state_ == StartState::Done) receiver_.ordered(offset, now);
}

// --- the end ---

void Session::Impl::peer_finished(base::Now now) {
  now_ = now;
  if (starting()) return fail(StartFailure::StreamEnded, {}, now);
  if (state_ == StartState::Done) user_->peer_finished(receiver_.at_boundary(), now);
}

void Session::Impl::ended(llp::StreamEnd how, base::Now now) {
  if (ended_) return;
  ended_ = true;
  now_ = now;
  stream_ = nullptr;
  receiver_.attach(nullptr);
  if (state_ != StartState::Done && state_ != StartState::Failed) {
    fail(StartFailure::StreamEnded, {}, now);
  }
  receiver_.discard();
  if (user_ != nullptr) user_->ended(how, now);
  events_.stream_ended(how, now);  // the owner may destroy the session from here on
}

// --- the front ---

Session::Session(const Config& config, Role role, HoldStore& hold, Counters& counters,
                 StartEvents& events, base::ByteView private_data)
    : impl_(std::make_unique<Impl>(config, role, hold, counters, events, private_data)) {}
Session::~Session() = default;

void Session::attach(llp::Stream& stream) { impl_->attach(stream); }
void Session::bind(llp::FramingUser& user) { impl_->bind(user); }
void Session::accept(base::ByteView private_data, base::Now now) {
  impl_->answer(true, private_data, now);
}
void Session::reject(base::ByteView private_data, base::Now now) {
  impl_->answer(false, private_data, now);
}
base::Now Session::next_deadline() const { return impl_->next_deadline(); }
void Session::on_timer(base::Now now) { impl_->on_timer(now); }
const Negotiated& Session::negotiated() const { return impl_->negotiated(); }
bool Session::full_operation() const { return impl_->full_operation(); }

void Session::established(uint32_t emss, base::Now now) { impl_->established(emss, now); }
llp::Pulled Session::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  return impl_->pull(n, offset, out);
}
bool Session::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                      llp::Frame& out) {
  return impl_->rebuild(tag, offset, length, out);
}
void Session::released(const llp::RecordTag& tag, uint64_t end_offset) {
  impl_->released(tag, end_offset);
}
llp::InspectVerdict Session::inspect(base::Range range, base::ByteView octets, base::Now now) {
  return impl_->inspect(range, octets, now);
}
void Session::place(base::Range range, base::ByteView octets, bool, base::Now now) {
  impl_->place(range, octets, now);
}
void Session::ordered(uint64_t offset, base::Now now) { impl_->ordered(offset, now); }
void Session::emss_changed(uint32_t emss) { impl_->emss_changed(emss); }
uint32_t Session::receive_room() const { return impl_->receive_room(); }
void Session::peer_finished(base::Now now) { impl_->peer_finished(now); }
void Session::ended(llp::StreamEnd how, base::Now now) { impl_->ended(how, now); }

uint32_t Session::mulpdu() const { return impl_->mulpdu(); }
uint8_t Session::version() const { return impl_->negotiated().revision; }
void Session::ready() { impl_->ready(); }
void Session::discard_received() { impl_->discard_received(); }
void Session::close() { impl_->close(); }
void Session::abort() { impl_->abort(); }

}  // namespace rnic::mpa
