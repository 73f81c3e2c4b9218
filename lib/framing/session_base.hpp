/// \file
/// The common part of the sessions of all framings: the stream below, the endpoint above, the
/// receiver with its window, and the MULPDU that the user was told.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.hpp"
#include "base/starved.hpp"
#include "framing/config.hpp"
#include "framing/receiver.hpp"
#include "framing/start.hpp"

namespace rnic::framing {

/// The Session of a framing derives from this class and adds the start-up, the building of frames
/// and the Locator. After the start-up (full_operation()) the receiver does the four steps of
/// receiving; before, octets may belong to a start frame, which only the framing knows.
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
  void accept(base::ByteView private_data, base::Now,
              const StartOptions& start_options = {}) final {
    RNIC_CHECK(private_data.size() <= private_data_max());
    answer(true, private_data, start_options);
  }
  void reject(base::ByteView private_data, base::Now,
              const StartOptions& start_options = {}) final {
    RNIC_CHECK(private_data.size() <= private_data_max());
    answer(false, private_data, start_options);
  }
  [[nodiscard]] uint64_t held() const final { return receiver_.held(); }
  void share_hold(HoldSharePtr share) final { receiver_.share_hold(std::move(share)); }
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
  /// A start frame has room of its own. The transport asks about the octets behind it when the
  /// frame is whole.
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
  bool resume(base::Now now) final {
    if (receiver_.resume(now)) return true;
    if (finished_behind_wait_ && stream_ != nullptr) tell_peer_finished(now);
    return false;
  }
  void close() final {
    if (stream_ != nullptr) stream_->close();
  }
  void abort() final {
    if (stream_ != nullptr) stream_->abort();
  }

 protected:
  /// \param locator a member of the derived session, of which only the reference is kept here
  SessionBase(const Config& config, HoldStore& hold, const ReceiverCounters& counters, L& locator)
      : receiver_(hold,
                  {config.hold_limit, config.early_limit, config.out_of_order, config.fast_path},
                  counters, locator, *this),
        receive_window_(config.receive_window) {}

  /// nullptr: no stream was attached yet, or it is gone.
  [[nodiscard]] llp::Stream* stream() const { return stream_; }
  /// nullptr: no endpoint is bound.
  [[nodiscard]] llp::FramingUser* user() const { return user_; }
  [[nodiscard]] uint32_t emss() const { return emss_; }

  void set_emss(uint32_t emss) { emss_ = emss; }
  /// Full operation begins: from now on the user is told when the MULPDU changes.
  void note_mulpdu() { told_mulpdu_ = mulpdu(); }
  /// In full operation: tells the user of the MULPDU if it has changed. \return it has changed
  bool tell_mulpdu() {
    if (mulpdu() == told_mulpdu_) return false;
    note_mulpdu();
    user_->mulpdu_changed(told_mulpdu_);
    return true;
  }

  /// In full operation: the peer has closed its direction. A ULPDU that waits is before its FIN.
  void tell_peer_finished(base::Now now) {
    finished_behind_wait_ = receiver_.waits();
    if (!finished_behind_wait_) user_->peer_finished(receiver_.at_boundary(), now);
  }

  /// Has `read()` take what it wants of `octets` for the start frame, and fails the start-up if
  /// there is no memory for that. \return octets used
  template <typename Read>
  size_t parse_start(base::ByteView octets, base::Now now, Read&& read) {
    size_t used = 0;
    if (base::attempt([&] { used = read(); })) return used;
    fail(StartFailure::OutOfMemory, {}, now);
    return octets.size();
  }

  /// The first step of ended(): the stream is gone. A start-up reports its failure between the two
  /// steps.
  void detach() {
    stream_ = nullptr;
    receiver_.attach(nullptr);
  }
  /// The last step of ended(): tells the endpoint and then the owner, which may destroy the
  /// session.
  void tell_ended(StartEvents& owner, StreamEnd how, base::Now now) {
    receiver_.discard();
    if (user_ != nullptr) user_->ended(how, now);
    owner.stream_ended(how, now);
  }

  Receiver<L> receiver_;

 private:
  /// The number of octets of the peer that the start-up needs for its next decision; SIZE_MAX when
  /// it awaits no frame.
  [[nodiscard]] virtual size_t wanted_of_start() const = 0;
  /// Begins to answer the Request; does nothing if the start-up has failed meanwhile, because
  /// start_failed() said so.
  virtual void answer(bool accepted, base::ByteView private_data,
                      const StartOptions& start_options) = 0;
  /// The start-up has failed: closes the stream, and tells the owner.
  virtual void fail(StartFailure why, base::ByteView private_data, base::Now now) = 0;
  /// Checks the invariants of the framing's own start-up.
  virtual void validate_start() const = 0;

  llp::Stream* stream_ = nullptr;
  llp::FramingUser* user_ = nullptr;
  uint32_t emss_ = 0;
  uint32_t told_mulpdu_ = 0;  // the MULPDU that the user knows; 0 before full operation
  uint32_t receive_window_;
  bool finished_behind_wait_ = false;  // the user waits before the peer's FIN, and is not told yet
};

}  // namespace rnic::framing
