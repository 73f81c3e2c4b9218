/// \file
/// Connections over a Path: real TCP, a real framing session at each end, a Source at the initiator
/// and a Sink at the responder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "messages.hpp"
#include "path.hpp"
#include "tuf/tuf.hpp"
#include "unaligned.hpp"

namespace rnic::experiment {

/// How messages become segments.
enum class Framing : uint8_t {
  Mpa,                  ///< FPDUs aligned to segments, no markers
  MpaMarkers,           ///< the same, with markers
  MpaUnaligned,         ///< no alignment, no markers
  MpaUnalignedMarkers,  ///< no alignment, markers
  TufKey,               ///< ULP framing, alignment mode (48-bit key)
  TufMarkers,           ///< ULP framing, marker mode
};
[[nodiscard]] const char* to_string(Framing framing);

inline constexpr uint32_t kEmss = 1460;  ///< octets, on Ethernet without options

struct RigConfig {
  PathConfig path;
  Framing framing = Framing::Mpa;
  bool packing = true;
  bool crc = true;
  uint16_t max_segment = 0;     ///< of the initiator, octets; 0: as the path lets
  uint16_t tuf_interval = 512;  ///< of marker mode, octets
  uint32_t connections = 1;
  uint32_t message_octets = 1;
  uint32_t receive_window = 4u << 20;
  uint64_t hold_octets = 8u << 20;
};

/// A stack for a rig: no timestamps, so that EMSS is the MTU less 40; slow start as RFC 5681 has
/// it.
[[nodiscard]] tcp::Config plain_tcp();

/// One connection, messages of 64 KB, through a path that loses and cuts segments by chance.
/// \param loss share of the segments lost \param split share cut in two
[[nodiscard]] RigConfig hard_path(Framing framing, double loss, double split, uint64_t seed);

class Rig {
 public:
  explicit Rig(const RigConfig& config);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  /// Connects everything. False: a start-up did not come to its end.
  bool start();
  /// Every connection sends so many messages more.
  void send(uint64_t messages);
  /// Runs until everything sent is delivered and acknowledged. False: it was not, within `limit`.
  bool finish(base::Duration limit = std::chrono::seconds(600));

  [[nodiscard]] Path& path() { return path_; }
  [[nodiscard]] const tcp::Counters& tcp(uint32_t end) { return path_.stack(end).counters(); }
  [[nodiscard]] const mpa::Counters& mpa(uint32_t end) const { return mpa_counters_[end]; }
  [[nodiscard]] const tuf::Counters& tuf(uint32_t end) const { return tuf_counters_[end]; }
  [[nodiscard]] framing::HoldStore& hold() { return *hold_[kResponder]; }
  [[nodiscard]] uint64_t held(uint32_t connection) const;  ///< at the responder, now
  /// The number of the connection that a frame of the initiator belongs to; connections(): none.
  [[nodiscard]] uint32_t connection_of(const Frame& frame) const;
  [[nodiscard]] uint32_t connections() const { return config_.connections; }
  [[nodiscard]] Source& source(uint32_t connection);
  [[nodiscard]] Sink& sink(uint32_t connection);
  [[nodiscard]] uint64_t delivered() const;  ///< payload octets, all connections
  [[nodiscard]] uint64_t early() const;      ///< payload octets placed ahead of the order
  [[nodiscard]] uint64_t wrong() const;      ///< ULPDUs that were not what was sent; errors
  [[nodiscard]] uint64_t acknowledged() const;
  /// The initiator's view of one connection.
  [[nodiscard]] tcp::ConnectionInfo info(uint32_t connection);

 private:
  class Owner;
  class Acceptor;
  struct Connection;

  std::unique_ptr<framing::StartSession> make_session(uint32_t end, Owner& owner, uint32_t number);
  [[nodiscard]] uint64_t sum(uint64_t (Sink::*value)() const) const;

  RigConfig config_;
  base::Prng prng_;
  std::array<mpa::Counters, 2> mpa_counters_;
  std::array<tuf::Counters, 2> tuf_counters_;
  std::array<framing::HoldStorePtr, 2> hold_;
  std::array<tuf::PackStorePtr, 2> pack_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<uint32_t> by_port_;  // initiator's port -> connection + 1
  std::unique_ptr<Acceptor> acceptor_;
  Path path_;  // the last: its stacks call the sessions
};

}  // namespace rnic::experiment
