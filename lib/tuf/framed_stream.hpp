/// \file
/// FramedStream: the user's face of ULP framing. Whole PDUs in, whole PDUs out, over one Stream;
/// plain octets before framing is enabled, and in a direction where it never is.
///
/// Sending keeps PDUs as they were submitted, in a ring, and builds framing headers and markers
/// straight into the segment; a retransmission builds the same octets again. Receiving keeps the
/// raw octets in a ring by their stream offset and takes PDUs out of it in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/fail.hpp"
#include "llp/stream.hpp"
#include "tuf/alignment_watch.hpp"
#include "tuf/counters.hpp"
#include "tuf/parser.hpp"

namespace rnic::tuf {

struct StreamConfig {
  PduFormat format = PduFormat::length_first();
  bool packing = true;              ///< several PDUs in a framing PDU (s.5; appendix A.4)
  bool emergency = false;           ///< PDUs up to 512 octets below an EMSS of 512 (appendix A.5)
  bool emsgsize_on_growth = false;  ///< the next send() says EMSGSIZE once (appendix A.2)
  uint32_t max_pdu = wire::kTufPduMax;           ///< marker mode, either way, octets
  uint16_t send_interval = kIntervalDefault;     ///< octets (appendix A.6)
  uint16_t receive_interval = kIntervalDefault;  ///< octets (appendix A.7)
  uint32_t middlebox_limit = 4096;               ///< see AlignmentWatch; 0: off
  uint32_t ring_octets = 256u << 10;             ///< each way; at least kRingMin
};
/// A ring holds the longest PDU with its markers, and one that is being read.
inline constexpr uint32_t kRingMin = 128u << 10;

/// Memory of somebody else's for the rings, StreamConfig::ring_octets each; outlives the stream.
struct StreamRings {
  uint8_t* send = nullptr;
  uint8_t* receive = nullptr;
};

enum class SendResult : uint8_t {
  Ok,
  MessageSize,  ///< EMSGSIZE: longer than pdu_limit(), or EMSS has grown: ask again
  Full,         ///< no room in the ring: later
  Malformed,    ///< its length field does not tell its length
  Closed,       ///< after close(), or the stream has ended
};
[[nodiscard]] const char* to_string(SendResult result);

enum class ReceiveKind : uint8_t {
  Pdu,      ///< `length` octets were taken
  Nothing,  ///< nothing whole is there now
  NoRoom,   ///< the PDU has `length` octets; nothing was taken
  Broken,   ///< error() says how; nothing follows
};
struct Received {
  ReceiveKind kind = ReceiveKind::Nothing;
  uint32_t length = 0;
};

/// Told on the owner's thread.
class FramedStreamEvents {
 public:
  virtual ~FramedStreamEvents() = default;
  /// usable_emss() has another value (s.3, s.5.1).
  virtual void emss_changed(uint32_t usable_emss) { (void)usable_emss; }
  /// A long run of segments without a whole framing PDU (s.5.2): stop framing, or use markers.
  virtual void middlebox_suspected() {}
};

/// As tcp::ByteStream: the application side may be another thread than the owner's, which is told
/// to call serve(). What changes modes is the owner's, while the application side keeps still.
class FramedStream : public llp::StreamUser {
 public:
  /// \param counters with two threads: of framed streams alone. What the application side counts
  /// is counted atomically.
  /// \param rings without them the stream takes memory of its own
  FramedStream(const StreamConfig& config, Counters& counters, FramedStreamEvents* events = nullptr,
               StreamRings rings = {});
  FramedStream(const FramedStream&) = delete;
  FramedStream& operator=(const FramedStream&) = delete;

  /// Names the stream; once, before anything is sent.
  void attach(llp::Stream& stream) { stream_ = &stream; }

  // --- Modes (appendix A.1), before or after the connection is established ---

  /// From the next PDU on. Unsupported: this transport does not keep records whole (Atomic, Align).
  /// WrongState: what was submitted in the mode before is not sent yet.
  Status set_send_mode(FramedSendMode mode, wire::TufKey key = 0);
  /// From the next octet on that receive() would give. Unsupported: this transport does not show
  /// segments (Align).
  Status set_receive_mode(FramedReceiveMode mode, wire::TufKey key = 0);
  /// Whether set_send_mode(), set_receive_mode() can succeed.
  [[nodiscard]] bool supports(FramedSendMode mode) const;
  [[nodiscard]] bool supports(FramedReceiveMode mode) const;
  [[nodiscard]] FramedSendMode send_mode() const { return send_mode_; }
  [[nodiscard]] FramedReceiveMode receive_mode() const { return layout_.mode; }

  void set_packing(bool on) { config_.packing = on; }
  void set_emergency(bool on) { config_.emergency = on; }
  /// At any time; it counts for marker mode only, from the next marker on: the peer has to change
  /// at the same one. WrongState: an earlier change is not acknowledged yet.
  Status set_send_interval(uint16_t octets);
  Status set_receive_interval(uint16_t octets);
  [[nodiscard]] uint16_t send_interval() const { return config_.send_interval; }
  [[nodiscard]] uint16_t receive_interval() const { return config_.receive_interval; }
  [[nodiscard]] bool packing() const { return config_.packing; }
  /// Longest PDU sent or taken in marker mode.
  void set_max_pdu(uint32_t octets) { config_.max_pdu = layout_.max_pdu = octets; }

  // --- Application side ---

  /// One sending operation: a whole PDU, or any octets in the modes without PDUs.
  SendResult send(base::ByteView pdu);
  /// The next whole PDU, or plain octets.
  Received receive(base::ByteSpan out);
  /// Octets of PDUs without regard to their boundaries, framing headers and markers removed.
  uint32_t read(base::ByteSpan out);
  /// send() would not find the ring full.
  [[nodiscard]] bool has_room(size_t pdu) const {
    return unacknowledged() + kSubmissionHeader + pdu <= config_.ring_octets;
  }
  /// Appendix A.3: the most that can be submitted without being fragmented, in the present mode.
  [[nodiscard]] uint32_t usable_emss() const;
  /// The longest PDU that send() takes now.
  [[nodiscard]] uint32_t pdu_limit() const;
  /// Octets submitted that the peer's TCP has not acknowledged, with 4 a submission.
  [[nodiscard]] uint64_t unacknowledged() const {
    return written_.load(std::memory_order_relaxed) - freed_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Error error() const { return error_; }
  [[nodiscard]] bool is_established() const { return established_.load(std::memory_order_acquire); }
  [[nodiscard]] bool peer_has_finished() const {
    return peer_finished_.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::optional<StreamEnd> how_ended() const;
  /// receive() took so much that the owner should hear of it (serve()).
  [[nodiscard]] bool room_is_news() const;

  // --- Owner's side ---

  /// Tells the stream what the application did since.
  void serve();
  /// Half close behind what was sent.
  void close();
  void abort() {
    if (stream_ != nullptr) stream_->abort();
  }
  [[nodiscard]] llp::Stream* stream() { return stream_; }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  [[nodiscard]] uint32_t cut(base::ByteView piece) const override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  void clipped(base::Range range) override { clipped_ = range; }
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t emss) override;
  [[nodiscard]] uint32_t receive_room() const override;
  [[nodiscard]] uint32_t pending() const override;
  [[nodiscard]] uint32_t unread() const override {
    return static_cast<uint32_t>(ordered_.load(std::memory_order_relaxed) -
                                 read_.load(std::memory_order_acquire));
  }
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  static constexpr uint32_t kSubmissionHeader = 4;  // length, mode

  /// Consecutive submissions that are sent as one: a framing PDU, a PDU with its markers, a buffer.
  struct Batch {
    uint64_t at = 0;     // of its first submission, in the ring
    uint64_t past = 0;   // behind its last
    uint32_t count = 0;  // submissions
    uint32_t body = 0;   // their octets
    uint32_t size = 0;   // octets of the stream
    FramedSendMode mode = FramedSendMode::Plain;
  };
  struct Submission {
    uint32_t length = 0;
    FramedSendMode mode = FramedSendMode::Plain;
  };

  // framed_send.cpp
  [[nodiscard]] Submission submission(uint64_t at) const;
  void copy_in(uint64_t at, base::ByteView octets);
  void copy_out(uint64_t at, uint8_t* dst, uint32_t n) const;
  [[nodiscard]] Batch batch(uint64_t at, uint32_t count, uint64_t offset) const;
  [[nodiscard]] Batch next_batch(uint32_t n, uint64_t offset) const;
  void write(const Batch& b, uint64_t begin, uint32_t from, uint32_t n, uint8_t* dst) const;
  void write_body(const Batch& b, uint32_t from, uint32_t n, uint8_t* dst) const;
  void write_marked(const Batch& b, uint64_t begin, uint32_t from, uint32_t n, uint8_t* dst) const;
  [[nodiscard]] uint32_t piece(const Batch& b, uint64_t begin, uint32_t n) const;
  void count_batch(const Batch& b, uint64_t offset, uint32_t n);
  [[nodiscard]] uint32_t aligned_max(uint32_t emss) const;
  void tell_emss();
  SendResult refuse_size();

  // framed_receive.cpp
  bool fetch(uint64_t offset, uint8_t* dst, uint32_t n) const;
  [[nodiscard]] bool next_unit(Unit& unit);
  void take(const Unit& unit);
  void break_off(Error error);
  void follow_boundaries(uint64_t offset);

  StreamConfig config_;
  Counters& counters_;
  FramedStreamEvents* events_;
  llp::Stream* stream_ = nullptr;

  // Sending. The ring holds a header of 4 octets (length, mode) and the octets of each submission.
  std::unique_ptr<uint8_t[]> own_rings_;
  uint8_t* send_;
  FramedSendMode send_mode_ = FramedSendMode::Plain;
  wire::TufKey send_key_ = 0;
  bool has_send_key_ = false;
  MarkerGrid send_grid_;
  uint64_t submitted_ = 0;  // application: stream offset behind the last PDU of marker mode
  bool closed_ = false;
  uint64_t cursor_ = 0;  // owner: ring position of the next submission to be sent
  Batch open_;           // the batch whose first octets were sent
  uint32_t open_done_ = 0;
  uint64_t pulled_ = 0;                               // stream offset
  uint64_t released_ = 0;                             // stream offset
  FramedSendMode last_mode_ = FramedSendMode::Plain;  // of the record pulled last
  uint32_t emss_ = 0;                                 // of the transport
  uint32_t offered_ = 0;  // a larger one that the transport would try with a PDU of its size
  uint32_t before_growth_ = 0;
  uint64_t largest_since_ = 0;  // record pulled since EMSS grew
  uint32_t told_emss_ = 0;

  // Receiving.
  uint8_t* receive_;
  ReceiveLayout layout_;
  Error error_ = Error::None;
  uint64_t frame_end_ = 0;  // application
  uint32_t part_read_ = 0;  // application: octets of the next PDU that read() has given
  base::Range clipped_;
  AlignmentWatch watch_;
  uint64_t boundary_ = 0;  // owner: the next framing PDU begins here

  // Written by the owner, read by the application.
  alignas(64) std::atomic<uint64_t> freed_{0};  // ring position of the oldest octet needed
  std::atomic<uint64_t> ordered_{0};            // stream offset
  std::atomic<uint64_t> told_{0};               // read_ when serve() last told of the room
  std::atomic<uint32_t> visible_{0};            // EMSS that the ULP may count on
  std::atomic<bool> growth_untold_{false};      // EMSS has grown: emsgsize_on_growth
  std::atomic<bool> established_{false};
  std::atomic<bool> peer_finished_{false};
  std::atomic<uint8_t> ended_{0xff};
  // Written by the application, read by the owner.
  alignas(64) std::atomic<uint64_t> written_{0};  // ring position
  std::atomic<uint64_t> read_{0};                 // stream offset
};

}  // namespace rnic::tuf
