/// \file
/// The session of ULP framing under DDP: negotiation, sending, receiving and the end of one
/// connection.
#pragma once

#include <vector>

#include "base/check.hpp"
#include "framing/session_base.hpp"
#include "framing/start_frame_sender.hpp"
#include "tuf/config.hpp"
#include "tuf/counters.hpp"
#include "tuf/negotiation.hpp"
#include "tuf/pack_store.hpp"
#include "tuf/pdu_locator.hpp"
#include "tuf/session_events.hpp"
#include "tuf/start_frames.hpp"
#include "tuf/start_state.hpp"

namespace rnic::tuf {

class Session final : public framing::SessionBase<PduLocator> {
 public:
  /// \param key the key of this end's framing PDUs in alignment mode (KeySource)
  /// \param private_data for the Request, at most wire::kTufPrivateDataMax octets
  /// \param hold, pack, counters, events outlive the session
  /// \param start_options initiator: IRD and ORD, used if exchange_reads is set; the others are
  /// ignored
  Session(const Config& config, framing::Role role, wire::TufKey key, framing::HoldStore& hold,
          PackStore& pack, Counters& counters, framing::StartEvents& events,
          base::ByteView private_data, SessionEvents* session_events = nullptr,
          const framing::StartOptions& start_options = {});

  [[nodiscard]] const Agreed& agreed() const { return agreed_; }

  // The negotiation: start.cpp
  void established(uint32_t emss, base::Now now) override;
  void on_timer(base::Now now) override;
  [[nodiscard]] base::Now next_deadline() const override {
    return starting() ? deadline_ : base::kNever;
  }
  [[nodiscard]] size_t private_data_max() const override { return wire::kTufPrivateDataMax; }
  [[nodiscard]] bool left() const override { return false; }
  [[nodiscard]] bool full_operation() const override { return state_ == StartState::Done; }
  [[nodiscard]] const framing::Negotiated& negotiated() const override { return negotiated_; }

  // Receiving and the end: session.cpp
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

  // Sending: session.cpp
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  [[nodiscard]] uint32_t cut(base::ByteView piece) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  void emss_changed(uint32_t emss) override;
  [[nodiscard]] uint32_t mulpdu() const override;
  [[nodiscard]] uint8_t version() const override { return 1; }
  void ready() override;

 private:
  // framing::ReceiverOwner
  void broken(framing::PduError error, base::Now now) override;

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
  [[nodiscard]] size_t wanted_of_start() const override { return parsing() ? wanted() : SIZE_MAX; }
  void answer(bool accepted, base::ByteView private_data,
              const framing::StartOptions& start_options) override;
  void fail(framing::StartFailure why, base::ByteView private_data, base::Now now) override;
  void validate_start() const override {
    reader_.validate();
    sender_.validate();
    send_grid_.validate();
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
  wire::TufKey key_;
  framing::StartOptions start_options_;  // initiator
  framing::StartFailure refusal_ = framing::StartFailure::RejectedLocally;
  Agreed agreed_;
  framing::StartOffer offer_;  // contents of the peer's start frame
  framing::Negotiated negotiated_;
  base::Now deadline_ = base::kNever;
  MarkerGrid send_grid_;

  // Initiator: the private data of our Request until the Request is made, then that of the Reply
  // until the stream is framed.
  std::vector<uint8_t> request_data_;
  framing::StartFrameSender sender_;
  StartFrameReader reader_;
  wire::TufStart own_;
  PduLocator locator_;
};

}  // namespace rnic::tuf
