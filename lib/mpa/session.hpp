/// \file
/// The parts of a Session together: start-up, sending, receiving, end.
#pragma once

#include "base/check.hpp"
#include "mpa/fpdu_locator.hpp"
#include "mpa/mpa.hpp"
#include "mpa/start_frames.hpp"

namespace rnic::mpa {

/// Tags of start-up octets; no tag of DDP has this `a`.
inline constexpr llp::RecordTag kStartTag{~0ull, 0};
inline constexpr llp::RecordTag kLastMessageTag{~0ull, 1};

class Session::Impl final : public framing::ReceiverOwner {
 public:
  Impl(const Config& config, framing::Role role, framing::HoldStore& hold, Counters& counters,
       framing::StartEvents& events, base::ByteView private_data, const framing::StartWish& wish)
      : config_(with_revision(config, role, wish)),
        role_(role),
        counters_(counters),
        events_(events),
        wish_(wish),
        plan_(plan_request(config_, wish)),
        parser_(role, config_,
                role == framing::Role::Initiator ? plan_.header.revision : config_.revision),
        locator_(config_, hold, counters),
        receiver_(hold, {config_.hold_limit, config_.early_limit, config_.out_of_order},
                  {counters.fpdus_in, counters.placed_in_order_octets, counters.placed_early_octets,
                   counters.held_octets, counters.hold_refused, counters.discarded_octets},
                  locator_, *this) {
    if (role == framing::Role::Responder) return;
    RNIC_CHECK(private_data.size() <= mpa::private_data_max(plan_));
    sender_.set(wire::kMpaRequestKey, plan_, private_data);
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
    RNIC_CHECK(!full_operation());
    user_ = nullptr;
  }

  // --- start-up: start.cpp ---
  void established(uint32_t emss, base::Now now);
  void take_over(uint32_t emss, uint64_t received, base::ByteView last_message, base::Now now);
  void answer(bool accepted, base::ByteView private_data, const framing::StartWish& wish);
  [[nodiscard]] size_t private_data_max() const;
  void on_timer(base::Now now);
  [[nodiscard]] base::Now next_deadline() const {
    const bool waiting = state_ == StartState::Delayed || state_ == StartState::Unheard ||
                         state_ == StartState::AwaitRtr;
    return starting() || waiting ? deadline_ : base::kNever;
  }
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] uint64_t sent() const { return sender_.end_offset(); }
  [[nodiscard]] bool left() const { return state_ == StartState::Left; }
  void hand_over_kept(llp::StreamSwitch& to, base::Now now);
  [[nodiscard]] const framing::Negotiated& negotiated() const { return agreed_; }
  [[nodiscard]] bool full_operation() const { return is_full_operation(state_); }

  // --- sending ---
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length, llp::Frame& out);
  void released(const llp::RecordTag& tag, uint64_t end_offset) {
    if (tag == kStartTag) {
      sender_.acknowledged(end_offset);
    } else if (tag == kLastMessageTag) {
      last_message_.acknowledged(end_offset);
    } else {
      user_->released_ulpdu(tag);
    }
  }
  void emss_changed(uint32_t emss);
  /// RFC 5044 s.A.2: with Nagle's rule small FPDUs wait for each other.
  [[nodiscard]] bool fills_segment(uint32_t octets) const {
    constexpr uint32_t kOverhead = 6;  // length and CRC; pads and markers are left out
    return !is_sending(state_) || user_->fills_segment(octets, kOverhead);
  }
  /// For the sender's side of silly window avoidance (RFC 9293 s.3.8.6.2.1): whether all FPDUs that
  /// wait, or the rest of the start-up, have at most `octets`.
  [[nodiscard]] bool all_fits(uint32_t octets) const;
  [[nodiscard]] uint32_t mulpdu() const { return mulpdu_of(emss_, agreed_.markers_send); }
  void ready() {
    if (is_sending(state_) && stream_ != nullptr) stream_->ready();
  }

  // --- receiving ---
  void clipped(base::Range range) { receiver_.clipped(range); }
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now);
  [[nodiscard]] uint32_t sure_room() const;
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets);
  void place(base::Range range, base::ByteView octets, base::Now now);
  void ordered(uint64_t offset, base::Now now);
  [[nodiscard]] uint32_t receive_room() const {
    // An incomplete FPDU at the delivery point takes no window: a window smaller than the FPDU
    // would close and never open again.
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

  void first_pdu(base::Now now) override;
  /// RFC 5044 s.7.1.2 rule 4: before an FPDU was validated not even a Terminate may leave.
  [[nodiscard]] bool may_send() const {
    return role_ == framing::Role::Initiator || is_sending(state_);
  }
  /// RFC 5044 s.8: after an error nothing more goes up; TCP stays open.
  void broken(framing::PduError error, base::Now now) override {
    const auto what = static_cast<llp::FramingError>(error);
    ++(what == llp::FramingError::Crc ? counters_.crc_errors : counters_.marker_errors);
    user_->framing_error(what, now);
    if (!may_send()) close();
  }

 private:
  static Config with_revision(Config config, framing::Role role, const framing::StartWish& wish) {
    if (role == framing::Role::Initiator) config.revision = wish.revision.value_or(config.revision);
    return config;
  }
  void set_state(StartState next) {
    RNIC_CHECK(kStartTransitions.allows(state_, next));
    state_ = next;
  }
  [[nodiscard]] bool starting() const { return is_starting(state_); }
  [[nodiscard]] bool parsing() const { return is_parsing(state_); }
  /// Why the start-up fails when a peer that lives ends the stream: without a Reply it may not
  /// serve this revision (RFC 6581 s.10).
  [[nodiscard]] framing::StartFailure end_of_stream(StartState state, bool reset) const {
    const bool asked = state == StartState::AwaitReply;
    const bool asking = state == StartState::SendRequest;
    if (!parser_.empty() || !(asked || (asking && reset)))
      return framing::StartFailure::StreamEnded;
    return reset ? framing::StartFailure::ResetBeforeReply : framing::StartFailure::NoReply;
  }
  size_t parse(base::ByteView octets, bool more_behind, base::Now now);
  size_t read_frame(base::ByteView octets, bool more_behind, base::Now now);
  void request_complete(bool more_behind, base::Now now);
  void reply_complete(base::Now now);
  void read_start_frame();
  void bad_start_frame(framing::StartFailure why, base::Now now);
  void enter_full_operation(StartState next);
  void begin_full_operation(StartState next, base::ByteView private_data, base::Now now);
  void count_start();
  void count_failure(framing::StartFailure why);
  void begin_sending();
  void start_frame_sent(base::Now now);
  void leave(framing::StartFailure why, base::ByteView private_data, base::Now now);
  void refuse(llp::FramingError error, base::Now now);
  void fail(framing::StartFailure why, base::ByteView private_data, base::Now now);
  void tell_failure(framing::StartFailure why, base::ByteView private_data, base::Now now);
  llp::Pulled pull_fpdu(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);

  Config config_;
  framing::Role role_;
  StartState state_ = StartState::Idle;
  Counters& counters_;
  framing::StartEvents& events_;
  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;
  uint32_t emss_ = 0;
  uint32_t reported_mulpdu_ = 0;
  framing::Negotiated agreed_;
  base::Now deadline_ = base::kNever;  // of the state: start-up, RTR, delay or silence
  framing::StartFailure refusal_ =
      framing::StartFailure::RejectedLocally;  // what SendReject ends with
  uint64_t received_ = 0;  // stream offset behind the octets of the peer's start frame taken
  MarkerGrid send_grid_;
  framing::StartWish wish_;
  StartPlan plan_;              // initiator: the Request; responder: the Reply
  framing::StartOffer offer_;   // what the peer's frame says
  bool peer_finished_ = false;  // the peer closed its half before the stream had another user
  base::ByteView ulp_data_;     // the private data of the peer's frame, without a prefix
  StartFrameParser parser_;
  StartFrameSender sender_;
  StartFrameSender last_message_;
  FpduLocator locator_;
  FpduReceiver receiver_;
};

}  // namespace rnic::mpa
