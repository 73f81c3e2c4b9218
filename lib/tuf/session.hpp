/// \file
/// The parts of a Session together: negotiation, sending, receiving, end.
#pragma once

#include <algorithm>
#include <vector>

#include "base/check.hpp"
#include "tuf/pack_store.hpp"
#include "tuf/pdu_locator.hpp"
#include "tuf/pdu_writer.hpp"
#include "tuf/start_frames.hpp"
#include "tuf/start_state.hpp"
#include "tuf/tuf.hpp"

namespace rnic::tuf {

/// Tag of start-up octets; no tag of DDP has this `a`.
inline constexpr llp::RecordTag kStartTag{~0ull, 0};

class Session::Impl final : public framing::ReceiverOwner {
 public:
  Impl(const Config& config, framing::Role role, wire::TufKey key, framing::HoldStore& hold,
       PackStore& pack, Counters& counters, framing::StartEvents& events,
       base::ByteView private_data, SessionEvents* session_events, const framing::StartWish& wish)
      : config_(config),
        role_(role),
        pack_(pack),
        counters_(counters),
        events_(events),
        session_events_(session_events),
        key_(key & wire::kTufKeyMask),
        wish_(wish),
        request_data_(private_data.begin(), private_data.end()),
        locator_(config_, hold, counters, session_events),
        receiver_(hold, {config_.hold_limit, config_.early_limit, config_.out_of_order},
                  {counters.pdus_in, counters.placed_in_order_octets, counters.placed_early_octets,
                   counters.held_octets, counters.hold_refused, counters.discarded_octets},
                  locator_, *this) {
    RNIC_CHECK(private_data.size() <= wire::kTufPrivateDataMax);
    wish_.peer_to_peer = false;  // Go does what an RTR would do (negotiation.hpp)
  }

  void attach(llp::Stream& stream) {
    stream_ = &stream;
    receiver_.attach(&stream);
  }
  void bind(llp::FramingUser& user) {
    user_ = &user;
    receiver_.bind(&user);
  }
  void unbind() {
    RNIC_CHECK(state_ != StartState::Done);
    user_ = nullptr;
  }

  // --- start-up: start.cpp ---
  void established(uint32_t emss, base::Now now);
  void answer(bool accepted, base::ByteView private_data, const framing::StartWish& wish);
  void on_timer(base::Now now);
  [[nodiscard]] base::Now next_deadline() const { return starting() ? deadline_ : base::kNever; }
  [[nodiscard]] const framing::Negotiated& negotiated() const { return negotiated_; }
  [[nodiscard]] const Agreed& agreed() const { return agreed_; }
  [[nodiscard]] bool full_operation() const { return state_ == StartState::Done; }

  // --- sending: session.cpp ---
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length, llp::Frame& out);
  [[nodiscard]] uint32_t cut(base::ByteView piece) const;
  void released(const llp::RecordTag& tag);
  void emss_changed(uint32_t emss);
  [[nodiscard]] uint32_t mulpdu() const;
  void ready() {
    if (state_ == StartState::Done && stream_ != nullptr) stream_->ready();
  }

  // --- receiving: session.cpp ---
  void clipped(base::Range range) { receiver_.clipped(range); }
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) {
    if (full_operation()) return receiver_.inspect(range, octets, now);
    if (receiver_.can_keep(range)) return llp::InspectVerdict::Accept;
    ++counters_.hold_refused;
    return llp::InspectVerdict::NoRoom;
  }
  [[nodiscard]] uint32_t sure_room() const { return receiver_.sure_room(); }
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets);
  void place(base::Range range, base::ByteView octets, base::Now now);
  void ordered(uint64_t offset, base::Now now);
  [[nodiscard]] uint32_t receive_room() const {
    // An incomplete PDU at the delivery point takes no window: a window smaller than the PDU would
    // close and never open again.
    const uint64_t held = receiver_.held() - receiver_.held_in_order();
    return held < config_.receive_window ? config_.receive_window - static_cast<uint32_t>(held) : 0;
  }
  void discard_received() { receiver_.discard(); }
  [[nodiscard]] uint64_t held() const { return receiver_.held(); }
  [[nodiscard]] uint64_t arrived() const { return receiver_.arrived(); }

  // --- the end ---
  void peer_finished(base::Now now);
  void ended(StreamEnd how, base::Now now);
  void close() {
    if (stream_ != nullptr) stream_->close();
  }
  void abort() {
    if (stream_ != nullptr) stream_->abort();
  }

  void broken(framing::PduError error, base::Now now) override;

 private:
  void set_state(StartState next) {
    RNIC_CHECK(kStartTransitions.allows(state_, next));
    state_ = next;
  }
  [[nodiscard]] bool starting() const { return is_starting(state_); }
  [[nodiscard]] bool parsing() const {
    return state_ == StartState::AwaitReply || state_ == StartState::AwaitRequest ||
           state_ == StartState::AwaitGo || state_ == StartState::SendReply ||
           state_ == StartState::SendRequest;
  }
  [[nodiscard]] size_t wanted() const;
  size_t parse(base::ByteView octets, base::Now now);
  size_t read_frame(base::ByteView octets, base::Now now);
  [[nodiscard]] bool frame_right() const;
  void frame_complete(base::Now now);
  void request_complete(base::Now now);
  void reply_complete(base::Now now);
  void take_agreed(const wire::TufStart& peer);
  void take_offer(const wire::TufStart& peer);
  llp::Pulled pull_start(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);
  void start_frame_sent(uint64_t end, base::Now now);
  void begin_framing(base::Now now);
  void fail(framing::StartFailure why, base::ByteView private_data, base::Now now);
  void tell_failure(framing::StartFailure why, base::ByteView private_data, base::Now now);

  [[nodiscard]] bool prefixed() const {
    return agreed_.send == FramedSendMode::Markers || agreed_.pack_out;
  }
  llp::Pulled pull_frame(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);
  llp::Pulled pull_marked(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);
  uint32_t pack_more(uint32_t n, uint64_t offset, uint32_t first, llp::Frame& out, bool& push,
                     base::Now now);

  Config config_;
  framing::Role role_;
  StartState state_ = StartState::Idle;
  PackStore& pack_;
  Counters& counters_;
  framing::StartEvents& events_;
  SessionEvents* session_events_;
  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;
  uint32_t emss_ = 0;
  uint32_t reported_mulpdu_ = 0;
  wire::TufKey key_;
  framing::StartWish wish_;  // initiator
  framing::StartFailure refusal_ = framing::StartFailure::RejectedLocally;
  Agreed agreed_;
  framing::StartOffer offer_;  // what the peer's frame says
  framing::Negotiated negotiated_;
  base::Now deadline_ = base::kNever;
  MarkerGrid send_grid_;

  // Initiator: the private data of our Request until that is made, then of the Reply until the
  // stream is framed.
  std::vector<uint8_t> request_data_;
  StartFrameSender sender_;
  StartFrameReader reader_;
  wire::TufStart own_;
  PduLocator locator_;
  PduReceiver receiver_;
};

}  // namespace rnic::tuf
