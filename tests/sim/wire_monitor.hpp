/// \file
/// What both devices put on the wire and what they get from it, judged without their code.
///
/// - A retransmission carries the octets of the first transmission.
/// - A receiver that has SACKed octets never asks for them again.
/// - Each direction of each connection goes through a ReferenceReceiver.
/// - No end sends an ACK that says nothing new and answers nothing (IdleAcks).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fingerprint.hpp"
#include "heard_acks.hpp"
#include "idle_acks.hpp"
#include "reference_receiver.hpp"
#include "tap_port.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

/// TCP ports of a connection, by device.
struct PortPair {
  uint16_t port[2] = {0, 0};
  friend auto operator<=>(const PortPair&, const PortPair&) = default;
};

class WireMonitor final : public FrameListener {
 public:
  /// A message that the reference receiver of device `to` delivers.
  using Deliver = std::function<void(const PortPair&, uint32_t to, const WireMessage&)>;

  /// A segment with a right checksum is handed to device `to`; `damaged`: its octets that differ
  /// from what was sent.
  using Arrive =
      std::function<void(const PortPair&, uint32_t to, base::Range, std::vector<uint64_t> damaged)>;

  /// Segments whose text device `side` has dropped, on its upper layer's verdict or for want of
  /// room.
  using Refusals = std::function<uint64_t(uint32_t side)>;

  /// \param fingerprint is told of every frame that is sent
  WireMonitor(Verdict& verdict, Fingerprint& fingerprint, Deliver deliver, Arrive arrive,
              Refusals refusals)
      : verdict_(verdict),
        fingerprint_(fingerprint),
        deliver_(std::move(deliver)),
        arrive_(std::move(arrive)),
        refusals_(std::move(refusals)) {}

  /// The FPDU of MPA that device `sender` has made an octet part of; empty: not known.
  [[nodiscard]] std::optional<base::Range> fpdu_at(const PortPair& ports, uint32_t sender,
                                                   uint64_t offset);

  void frame_sent(uint32_t side, base::ByteView frame, base::Now now) override;
  void frame_received(uint32_t side, const port::Packet& frame, base::Now now) override;

  /// Where each direction of each connection stands, for a report of a failure.
  [[nodiscard]] std::string describe() const;

 private:
  /// One direction: what its sender says and what its receiver gets.
  struct Half {
    bool synchronised = false;
    uint32_t first = 0;           // sequence number of stream offset 0
    std::vector<uint8_t> octets;  // as first sent
    std::vector<bool> known;
    std::map<uint64_t, uint64_t> sacked;  // what the receiver has reported, begin -> end
    std::unique_ptr<ReferenceReceiver> reference;
    std::vector<uint64_t> boundaries;  // of its FPDUs, as far as somebody asked
    IdleAcks idle_acks;                // of what its sender says
    uint32_t next = 0;                 // sequence number behind all that it has sent
    uint32_t acked = 0;                // its last ACK field
    std::optional<uint32_t> edge;      // right edge of the windows that it has offered
    bool fin_sent = false;
    bool sack = false;  // on its SYN, as is the next
    std::optional<uint8_t> scale;
    // What has reached its sender, of the opposite stream.
    std::vector<uint8_t> got;
    uint32_t got_next = 0;  // offset of the first octet that has not
    std::optional<uint32_t> got_fin;
    HeardAcks heard_acks;
    std::optional<uint32_t> ts_recent;  // RFC 7323 s.4.3

    /// Numbers of the opposite stream's order that are behind it, its FIN counted.
    [[nodiscard]] uint32_t order() const { return got_next + (got_fin == got_next ? 1 : 0); }
    void note_got(uint32_t begin, uint32_t end);
  };
  struct Connection {
    std::array<Half, 2> half;  // by sender
    [[nodiscard]] bool sack_agreed() const { return half[0].sack && half[1].sack; }
    /// A window of `sender`, in octets, of its field.
    [[nodiscard]] uint32_t window(uint32_t sender, uint16_t field, bool syn) const {
      const bool scaled = half[0].scale && half[1].scale && !syn;
      return uint32_t{field} << (scaled ? std::min<uint32_t>(*half[sender].scale, 14) : 0);
    }
  };
  struct Segment;

  Connection& connection(const PortPair& ports);
  void synchronise(const PortPair& ports, Connection& c, uint32_t sender, uint32_t sequence);
  void check_content(const PortPair& ports, Half& half, int64_t offset, base::ByteView payload);
  [[nodiscard]] std::vector<uint64_t> damaged_in(const Half& half, uint64_t offset,
                                                 base::ByteView payload) const;
  [[nodiscard]] bool find_next_boundary(Half& half) const;
  void check_news(const PortPair& ports, Connection& c, uint32_t side, const Segment& segment);
  /// RFC 9293 s.3.10.7.4, first, fourth and fifth: it is answered and dropped.
  [[nodiscard]] static bool refused(const Connection& c, uint32_t side, const Segment& segment,
                                    const wire::TcpOptions& options);
  void note_question(Connection& c, uint32_t side, const Segment& segment);
  void check_acknowledgement(const PortPair& ports, Half& acknowledged, const Segment& segment);

  Verdict& verdict_;
  Fingerprint& fingerprint_;
  Deliver deliver_;
  Arrive arrive_;
  Refusals refusals_;
  std::map<PortPair, Connection> connections_;
};

}  // namespace rnic::simulation
