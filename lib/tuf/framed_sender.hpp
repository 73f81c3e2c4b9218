/// \file
/// FramedSender: the sending half of a FramedStream.
#pragma once

#include <cstdint>

#include "llp/stream.hpp"
#include "rnic/error.hpp"
#include "tuf/batch.hpp"
#include "tuf/counters.hpp"
#include "tuf/offered_emss.hpp"
#include "tuf/stream_config.hpp"
#include "tuf/submission_ring.hpp"

namespace rnic::tuf {

enum class SendResult : uint8_t {
  Ok,
  MessageSize,  ///< EMSGSIZE: the PDU is longer than pdu_limit(), or EMSS has grown: ask for the
                ///< limit again
  Full,         ///< there is no room in the ring now
  Malformed,    ///< the PDU's length field does not match its length
  Closed,       ///< close() was called, or the stream has ended
};
[[nodiscard]] const char* to_string(SendResult result);

/// Each sending operation gets a segment of its own in this mode (s.5.1; appendix A).
[[nodiscard]] constexpr bool begins_segment(FramedSendMode mode) {
  return mode == FramedSendMode::Align || mode == FramedSendMode::Atomic;
}

/// Keeps the submitted octets as they are and builds framing headers and markers straight into the
/// segment. The application side submits and asks for limits; all other calls are made on the
/// owner's side, and those that change the layout (modes, intervals, limits) while the application
/// side makes no calls. The two sides share only the atomics of the ring and of OfferedEmss.
class FramedSender {
 public:
  /// \param ring memory of config.ring_octets octets; outlives the sender
  FramedSender(const StreamConfig& config, uint8_t* ring, Counters& counters);

  // --- Layout: owner's side, while the application side makes no calls ---

  /// Changes the mode from the next PDU on. WrongState: PDUs submitted in the mode before are not
  /// sent yet.
  Status set_mode(FramedSendMode mode, wire::TufKey key);
  /// Changes the marker interval. WrongState: an earlier change is not acknowledged yet.
  Status set_interval(uint16_t octets);
  void set_packing(bool on) { packing_ = on; }
  void set_emergency(bool on) { emergency_ = on; }
  void set_max_pdu(uint32_t octets) { layout_.max_pdu = octets; }
  [[nodiscard]] FramedSendMode mode() const { return layout_.mode; }
  [[nodiscard]] uint16_t interval() const { return interval_; }
  [[nodiscard]] bool packing() const { return packing_; }

  // --- Application side ---

  SendResult send(base::ByteView pdu);
  [[nodiscard]] bool has_room(size_t pdu) const { return ring_.has_room(pdu); }
  [[nodiscard]] uint64_t unacknowledged() const { return ring_.unacknowledged(); }
  /// The most octets that can be submitted in the present mode without being fragmented (appendix
  /// A.3).
  [[nodiscard]] uint32_t usable_emss() const;
  /// The longest PDU that send() takes now (s.3).
  [[nodiscard]] uint32_t pdu_limit() const;

  // --- Owner's side ---

  void established(uint32_t emss) { emss_.establish(emss); }
  void emss_changed(uint32_t emss) { emss_.report(emss); }
  /// Octets are submitted that pull() has not given yet.
  [[nodiscard]] bool has_unsent() const { return is_open() || cursor_ != ring_.written(); }
  // These calls are those of llp::StreamUser.
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out);
  void rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length, llp::Frame& out);
  [[nodiscard]] uint32_t cut(base::ByteView octets);
  void released(const llp::RecordTag& tag, uint64_t end_offset);
  [[nodiscard]] uint32_t pending() const;
  void validate() const;

 private:
  [[nodiscard]] bool is_open() const { return open_done_ != 0; }
  SendResult refuse_size();
  [[nodiscard]] uint32_t piece(uint64_t begin, uint32_t n);
  void count_batch(const Batch& b, uint64_t offset, uint32_t n);

  Counters& counters_;
  SubmissionRing ring_;
  OfferedEmss emss_;
  SendLayout layout_;
  const BatchWriter writer_{ring_, layout_};
  bool packing_;
  bool emergency_;
  const bool emsgsize_on_growth_;
  uint16_t interval_;  // interval of marker mode, also for the next time that this mode begins

  uint64_t submitted_ = 0;  // application: stream offset behind the last PDU of marker mode

  // Owner. Invariants: released_ <= pulled_; while a batch is open, open_done_ < open_.size and
  // cursor_ == open_.at.
  uint64_t cursor_ = 0;     // ring position of the next submission to be sent
  Batch open_;              // the batch whose first octets were sent
  uint32_t open_done_ = 0;  // octets of open_ that were sent; 0: no batch is open
  uint64_t pulled_ = 0;     // stream offset
  uint64_t released_ = 0;   // stream offset
  FramedSendMode last_mode_ = FramedSendMode::Plain;  // mode of the record pulled last
};

}  // namespace rnic::tuf
