/// \file
/// MPA's session: the start-up, sending, receiving and the end of one connection.
#pragma once

#include <memory>

#include "base/check.hpp"
#include "framing/session_base.hpp"
#include "llp/stream_switch.hpp"
#include "mpa/config.hpp"
#include "mpa/counters.hpp"
#include "mpa/fpdu_locator.hpp"
#include "mpa/start_state.hpp"
#include "mpa/start_up.hpp"

namespace rnic::mpa {

class alignas(64) Session final : public framing::SessionBase<FpduLocator> {
 public:
  /// The start-up begins when the stream is established. `private_data` goes into the Request and
  /// has at most private_data_max(plan_request(config, start_options)) octets.
  Session(const Config& config, framing::Role role, framing::HoldStore& hold, Counters& counters,
          framing::StartEvents& events, base::ByteView private_data,
          const framing::StartOptions& start_options = {});

  /// Called instead of established() when the stream has carried streaming octets (RFC 5044
  /// s.7.1.3). The peer's start frame begins at `received`. Ours follows the octets sent before,
  /// and `last_message`, when there is one, goes out before our start frame (s.7.1.5).
  void take_over(uint32_t emss, uint64_t received, base::ByteView last_message, base::Now now);
  /// Stream offsets behind the octets taken of the peer's start frame, and behind our start frame
  /// once it was handed to the stream; before full operation.
  [[nodiscard]] uint64_t received() const { return received_; }
  [[nodiscard]] uint64_t sent() const { return start_->sender.end_offset(); }
  /// While left(), once the stream has another user: gives that user the octets that came ahead of
  /// the peer's start frame.
  void hand_over_kept(llp::StreamSwitch& to, base::Now now);

  // The start-up: start.cpp
  void established(uint32_t emss, base::Now now) override;
  [[nodiscard]] size_t private_data_max() const override;
  [[nodiscard]] base::Now next_deadline() const override;
  void on_timer(base::Now now) override;
  [[nodiscard]] bool left() const override { return state_ == StartState::Left; }
  [[nodiscard]] const framing::Negotiated& negotiated() const override { return agreed_; }
  [[nodiscard]] bool full_operation() const override { return is_full_operation(state_); }

  // Sending: session.cpp
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  /// Once the start-up is over, all records are FPDUs.
  void released_run(llp::RecordRun run) override {
    if (start_ != nullptr) return StreamUser::released_run(run);
    user()->released_ulpdus(run);
  }
  void emss_changed(uint32_t emss) override;
  /// With Nagle's rule small FPDUs wait for each other (RFC 5044 s.A.2).
  [[nodiscard]] bool fills_segment(uint32_t octets) const override;
  /// For the sender's silly window avoidance (RFC 9293 s.3.8.6.2.1). \return all waiting FPDUs, or
  /// the rest of our start frame, have at most `octets`
  [[nodiscard]] bool all_fits(uint32_t octets) const override;
  [[nodiscard]] uint32_t mulpdu() const override { return mulpdu_of(emss(), agreed_.markers_send); }
  [[nodiscard]] uint8_t version() const override;
  void ready() override;
  /// RFC 5044 s.7.1.2 rule 4: before an FPDU was validated not even a Terminate may leave.
  [[nodiscard]] bool may_send() const override {
    return role_ == framing::Role::Initiator || is_sending(state_);
  }

  /// The memory that it works with. The locator, which arrivals alone need, stands last in it.
  [[nodiscard]] llp::WorkingSet::Part working_part() const {
    const auto* const arrivals = reinterpret_cast<const uint8_t*>(&locator_);
    const auto sending = arrivals - reinterpret_cast<const uint8_t*>(this);
    return {.at = this, .taking = sizeof *this, .sending = static_cast<uint16_t>(sending)};
  }

  // Receiving and the end: session.cpp
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  [[nodiscard]] bool place_ordered(base::Range range, base::ByteView octets,
                                   base::Now now) override;
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  // framing::ReceiverOwner
  void first_pdu(base::Now now) override;
  void broken(framing::PduError error, base::Now now) override;

  void set_state(StartState next) {
    RNIC_CHECK(kStartTransitions.allows(state_, next));
    state_ = next;
  }
  [[nodiscard]] bool starting() const { return is_starting(state_); }
  [[nodiscard]] bool parsing() const { return is_parsing(state_); }
  [[nodiscard]] size_t wanted_of_start() const override {
    return parsing() ? start_->parser.wanted() : SIZE_MAX;
  }
  void answer(bool accepted, base::ByteView private_data,
              const framing::StartOptions& start_options) override;
  void fail(framing::StartFailure why, base::ByteView private_data, base::Now now) override;
  void validate_start() const override {
    if (start_ != nullptr) start_->validate();
    RNIC_CHECK(start_ != nullptr || !starting());
  }
  /// The reason of the failure when the peer itself ends the stream: if it has sent no Reply, it
  /// may not serve this revision (RFC 6581 s.10).
  [[nodiscard]] framing::StartFailure end_of_stream(StartState state, bool reset) const;
  [[nodiscard]] framing::StartFailure failure_of(StartState state, StreamEnd how) const;
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
  /// Frees what the start-up has worked with if it is over.
  void end_start_up() {
    if (start_ == nullptr) [[likely]] return;
    if (full_operation() && start_->is_acknowledged()) start_.reset();
  }
  void leave(framing::StartFailure why, base::ByteView private_data, base::Now now);
  void refuse(llp::FramingError error, base::Now now);
  void tell_failure(framing::StartFailure why, base::ByteView private_data, base::Now now);
  llp::Pulled pull_fpdu(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now);

  framing::Role role_;
  StartState state_ = StartState::Idle;
  bool peer_finished_ = false;  // the peer closed its half before the stream had another user
  Counters& counters_;
  framing::StartEvents& events_;
  framing::Negotiated agreed_;
  base::Now deadline_ = base::kNever;  // of the current state: start-up, RTR, delay or silence
  uint64_t received_ = 0;  // stream offset behind the octets of the peer's start frame taken
  MarkerGrid send_grid_;
  std::unique_ptr<StartUp> start_;  // nullptr: full operation has begun, and nothing is sent again
  FpduLocator locator_;
};

}  // namespace rnic::mpa
