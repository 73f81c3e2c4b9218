/// \file
/// StreamFrames: a stream of octets as the frames of a TCP connection.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.hpp"
#include "base/seq32.hpp"
#include "base/time.hpp"
#include "pcap/writer.hpp"
#include "rnic/address.hpp"
#include "wire/ether.hpp"

namespace rnic::recorder {

/// Writes what one end of a connection has seen as frames that could have carried it: a handshake,
/// segments in order, FIN or RST. Nothing is lost or sent again, and sequence numbers begin at 0;
/// what the system's TCP put on the wire looked otherwise.
class StreamFrames {
 public:
  /// Octets of a segment: with its headers it fits a packet of either IP version.
  static constexpr size_t kMostOctets = 60'000;

  /// \param writer outlives it
  StreamFrames(pcap::Writer& writer, const Endpoint& local, const Endpoint& remote);

  /// Our SYN.
  void ask(base::Now now);
  /// The handshake, or its rest behind ask(). Calls behind the first change nothing.
  void establish(base::Now now);
  /// Octets of the stream, from us (`Outbound`) or from the peer.
  void octets(pcap::Way way, base::ByteView octets, base::Now now);
  /// Calls behind the first of a side, or behind a reset, change nothing.
  void finish(pcap::Way way, base::Now now);
  void reset(pcap::Way way, base::Now now);

  [[nodiscard]] bool has_finished(pcap::Way way) const;

 private:
  /// One end, and what it has said.
  struct End {
    Endpoint at;
    wire::MacAddress mac{};
    base::Seq32 next;
    bool has_finished = false;
  };
  [[nodiscard]] const End& from(pcap::Way way) const {
    return way == pcap::Way::Outbound ? ours_ : peers_;
  }
  /// Writes a segment, whose sequence numbers its sender has used up then.
  void segment(pcap::Way way, uint8_t flags, base::ByteView payload, base::Now now);
  void write_headers(const End& from, const End& to, uint8_t flags, size_t payload);

  pcap::Writer& writer_;
  End ours_;
  End peers_;
  bool has_asked_ = false;
  bool is_established_ = false;
  bool is_reset_ = false;
  std::vector<uint8_t> frame_;  // of the latest segment
};

}  // namespace rnic::recorder
