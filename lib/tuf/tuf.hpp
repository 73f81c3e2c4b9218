/// \file
/// Layer `tuf`: ULP framing for TCP (draft-ietf-tsvwg-tcp-ulp-frame-00), beside MPA.
///
/// Two modes let a receiver find PDUs behind a hole in the stream. *Alignment mode*: every segment
/// is one framing PDU, 8 octets of length and key and one or more ULP PDUs; a segment whose length
/// and key are right is placed whatever came before it. *Marker mode*: at every interval of the
/// stream 4 octets tell where the next PDU begins. *Atomic mode* adds nothing and sends each buffer
/// as one segment.
///
///   FramedStream  the user's face (framed_stream.hpp): whole PDUs in and out, in order
///   Session       under DDP, in the place of MPA: PDUs are placed as soon as they are found
///
/// Invariants: a part of a framing PDU never looks like a whole one on the wire (s.5.2); nothing is
/// delivered before every earlier octet has arrived (s.1, s.5.4). The framing has no checksum of
/// its own and relies on TCP's. docs/decisions/0006 has the readings of the draft.
#pragma once

#include <cstdint>
#include <memory>

#include "framing/config.hpp"
#include "framing/framing.hpp"
#include "tuf/counters.hpp"
#include "tuf/modes.hpp"
#include "tuf/negotiation.hpp"

namespace rnic::tuf {

/// What one connection does; each field is a run-time option.
struct Config : framing::Config {
  bool align_receive = true;    ///< ask the peer for alignment mode, where segments are seen
  bool markers_receive = true;  ///< ask the peer for marker mode, when it has no alignment mode
  bool packing = true;          ///< several DDP segments in a framing PDU, when the peer agrees
  uint16_t marker_interval = kIntervalDefault;  ///< asked of the peer, octets
  uint32_t max_pdu = wire::kTufPduMax;          ///< asked of the peer, marker mode, octets
  uint32_t middlebox_limit = 4096;              ///< see AlignmentWatch; 0: off
};
/// Least marker interval under DDP, octets.
inline constexpr uint16_t kSessionIntervalMin = 512;

/// Which ULPDUs stand in a packed framing PDU, until it is acknowledged; one store for a device,
/// with all its memory taken at start.
class PackStore;
struct PackStoreDeleter {
  void operator()(PackStore* store) const;
};
using PackStorePtr = std::unique_ptr<PackStore, PackStoreDeleter>;
[[nodiscard]] PackStorePtr make_pack_store(uint32_t ulpdus);
/// What such a store asks the machine for.
[[nodiscard]] uint64_t pack_store_octets(uint32_t ulpdus);
[[nodiscard]] uint32_t packed_ulpdus(const PackStore& store);

/// The owner of a session is told these besides framing::StartEvents.
class SessionEvents {
 public:
  virtual ~SessionEvents() = default;
  /// Something between the ends resegments the stream (s.5.2).
  virtual void middlebox_suspected(base::Now now) = 0;
  /// The framed stream is broken; after this call the FramingUser is told error 3 (RFC 5044 s.8).
  virtual void stream_broken(Error error, base::Now now) = 0;
};

class Session final : public framing::StartSession {
 public:
  /// \param key of what this end sends in alignment mode (KeySource)
  /// \param private_data of the Request, at most wire::kTufPrivateDataMax octets
  /// \param hold, pack, counters, events outlive the session
  /// \param wish initiator: IRD and ORD, when exchange_reads says so; nothing else of it counts
  Session(const Config& config, framing::Role role, wire::TufKey key, framing::HoldStore& hold,
          PackStore& pack, Counters& counters, framing::StartEvents& events,
          base::ByteView private_data, SessionEvents* session_events = nullptr,
          const framing::StartWish& wish = {});
  ~Session() override;

  [[nodiscard]] const Agreed& agreed() const;

  // framing::StartSession
  void attach(llp::Stream& stream) override;
  void bind(llp::FramingUser& user) override;
  void unbind() override;
  void accept(base::ByteView private_data, base::Now now,
              const framing::StartWish& wish = {}) override;
  void reject(base::ByteView private_data, base::Now now,
              const framing::StartWish& wish = {}) override;
  [[nodiscard]] size_t private_data_max() const override { return wire::kTufPrivateDataMax; }
  [[nodiscard]] bool left() const override { return false; }
  [[nodiscard]] base::Now next_deadline() const override;
  void on_timer(base::Now now) override;
  [[nodiscard]] const framing::Negotiated& negotiated() const override;
  [[nodiscard]] bool full_operation() const override;
  [[nodiscard]] uint64_t held() const override;
  [[nodiscard]] uint64_t arrived() const override;

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  [[nodiscard]] uint32_t cut(base::ByteView piece) const override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  void clipped(base::Range range) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  [[nodiscard]] uint32_t sure_room() const override;
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t emss) override;
  [[nodiscard]] uint32_t receive_room() const override;
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

  // llp::Framing
  [[nodiscard]] uint32_t mulpdu() const override;
  [[nodiscard]] uint8_t version() const override { return 1; }
  void ready() override;
  void discard_received() override;
  void close() override;
  void abort() override;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rnic::tuf
