/// \file
/// The common part of the sessions of all framings: it knows the stream below and the endpoint
/// above, has the receiver with its window, and remembers the MULPDU that was told.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "framing/config.hpp"
#include "framing/receiver.hpp"
#include "framing/start.hpp"

namespace rnic::framing {

/// A framing's Session derives from it and brings along the start-up, the building of frames and
/// the Locator. Once the start-up is through (full_operation()) the four steps of receiving are the
/// receiver's; before, octets may be those of a start frame, which only the framing knows.
template <Locator L>
class SessionBase : public StartSession, private ReceiverOwner {
 public:
  // StartSession
  void attach(llp::Stream& stream) final {
    stream_ = &stream;
    receiver_.attach(&stream);
  }
  void bind(llp::FramingUser& user) final {
    user_ = &user;
    receiver_.bind(&user);
  }
  void unbind() final {
    RNIC_CHECK(!full_operation());
    user_ = nullptr;
  }
  [[nodiscard]] uint64_t held() const final { return receiver_.held(); }
  [[nodiscard]] uint64_t arrived() const final { return receiver_.arrived(); }
  [[nodiscard]] const ReceiverStats& receiver_stats() const final { return receiver_.stats(); }
  void validate() const final {
    receiver_.validate();
    validate_start();
    RNIC_CHECK(!full_operation() || user_ != nullptr);
  }

  // llp::StreamUser
  void clipped(base::Range range) final { receiver_.clipped(range); }
  [[nodiscard]] uint32_t sure_room() const final { return receiver_.sure_room(); }
  /// A start frame has room of its own; the octets behind it are asked about when it is whole.
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets) final {
    if (full_operation()) return receiver_.takes(range, octets);
    return static_cast<uint32_t>(std::min(octets.size(), wanted_of_start()));
  }
  [[nodiscard]] uint32_t receive_room() const final {
    if (receiver_.waits()) return 0;  // the right edge of the window stays where it is
    // An incomplete PDU at the delivery point takes no window: a window smaller than the PDU would
    // close and never open again.
    const uint64_t held = receiver_.held() - receiver_.held_in_order();
    return held < receive_window_ ? receive_window_ - static_cast<uint32_t>(held) : 0;
  }

  // llp::Framing
  void discard_received() final { receiver_.discard(); }
  bool resume(base::Now now) final { return receiver_.resume(now); }
  void close() final {
    if (stream_ != nullptr) stream_->close();
  }
  void abort() final {
    if (stream_ != nullptr) stream_->abort();
  }

 protected:
  /// \param locator a member of the derived session: it is only remembered here
  SessionBase(const Config& config, HoldStore& hold, const ReceiverCounters& counters, L& locator)
      : receiver_(hold, {config.hold_limit, config.early_limit, config.out_of_order}, counters,
                  locator, *this),
        receive_window_(config.receive_window) {}

  /// nullptr: none was attached yet, or it is gone.
  [[nodiscard]] llp::Stream* stream() const { return stream_; }
  /// nullptr: no endpoint is bound.
  [[nodiscard]] llp::FramingUser* user() const { return user_; }
  [[nodiscard]] uint32_t emss() const { return emss_; }

  void set_emss(uint32_t emss) { emss_ = emss; }
  /// Full operation begins: from here on the MULPDU is told when it becomes another one.
  void note_mulpdu() { told_mulpdu_ = mulpdu(); }
  /// In full operation: tells the user of the MULPDU if it is another one now. \return it is
  bool tell_mulpdu() {
    if (mulpdu() == told_mulpdu_) return false;
    note_mulpdu();
    user_->mulpdu_changed(told_mulpdu_);
    return true;
  }

  /// In full operation: the peer has closed its direction, which ends a wait.
  void tell_peer_finished(base::Now now) {
    if (receiver_.waits()) user_->end_wait(now);
    user_->peer_finished(receiver_.at_boundary(), now);
  }

  /// ended() in two steps; what the start-up has to say of it comes between them. First: the stream
  /// is gone.
  void detach() {
    stream_ = nullptr;
    receiver_.attach(nullptr);
  }
  /// Last: the endpoint and the owner are told, who may destroy the session from here on.
  void tell_ended(StartEvents& owner, StreamEnd how, base::Now now) {
    receiver_.discard();
    if (user_ != nullptr) user_->ended(how, now);
    owner.stream_ended(how, now);
  }

  Receiver<L> receiver_;

 private:
  /// Octets of the peer until the start-up's next decision; SIZE_MAX when it awaits no frame.
  [[nodiscard]] virtual size_t wanted_of_start() const = 0;
  /// Checks the invariants of the framing's own start-up.
  virtual void validate_start() const = 0;

  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;
  uint32_t emss_ = 0;
  uint32_t told_mulpdu_ = 0;  // to the user; 0 before full operation
  uint32_t receive_window_;
};

}  // namespace rnic::framing
