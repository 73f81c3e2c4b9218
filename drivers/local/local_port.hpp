/// \file
/// LocalPort: a port on an Ethernet of the processes of one machine.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/fail.hpp"
#include "local/frame_pool.hpp"
#include "local/wire_folder.hpp"
#include "port/port.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::local {

struct Options {
  std::string folder;  ///< of the wire
  port::MacAddress mac{};
  uint32_t mtu = 1500;      ///< octets of the largest IP packet
  uint32_t buffers = 4096;  ///< frames that the device may hold at once
};

class LocalPort final : public port::Port {
 public:
  /// The most frames of one datagram.
  static constexpr uint32_t kMostFrames = 32;
  /// The most octets of one datagram, lengths included.
  static constexpr uint32_t kMostOctets = 64 * 1024;
  /// A receiver whose queue is full is waited for so long; then frames to it are dropped until it
  /// reads again.
  static constexpr base::Duration kPatience = std::chrono::milliseconds(20);
  /// The pause before the next try at a full queue.
  static constexpr base::Duration kRetry = std::chrono::microseconds(50);

  /// Joins the wire; the errors are those of WireFolder.
  static Result<std::unique_ptr<LocalPort>> open(const Options& options);
  /// The octets that a port takes.
  [[nodiscard]] static uint64_t memory_use(const Options& options);
  ~LocalPort() override;
  LocalPort(const LocalPort&) = delete;
  LocalPort& operator=(const LocalPort&) = delete;

  [[nodiscard]] const port::PortInfo& info() const override { return info_; }
  [[nodiscard]] const port::PortCounters& counters() const override { return counters_; }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override;
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { pool_.give_back(packets); }
  /// The next try at a full queue; at once while frames wait here to be handed up.
  [[nodiscard]] base::Now next_deadline() const override;
  /// The socket.
  std::optional<int> arm() override { return socket_.get(); }
  std::optional<port::LinkState> link() override { return port::LinkState::Up; }

 private:
  enum class Fate : uint8_t {
    Sent,
    Full,
    Gone,     ///< nobody reads there any more
    Refused,  ///< by the system, for another reason: the receiver may live
  };

  LocalPort(const Options& options, WireFolder folder, wakeup::Descriptor socket);

  // Sending.
  [[nodiscard]] static std::span<port::Packet> for_one_receiver(std::span<port::Packet> packets);
  bool carry(std::span<const port::Packet> frames, base::Now now);
  bool carry_to_one(const port::MacAddress& to, std::span<const port::Packet> frames,
                    base::Now now);
  void carry_to_all(std::span<const port::Packet> frames);
  void answer_for_the_dead(std::span<const port::Packet> frames);
  Fate send(const port::MacAddress& to, std::span<const port::Packet> frames);

  // Receiving.
  bool receive();
  bool hand_up(port::Packet& out);
  void drop_rest();

  port::PortInfo info_;
  port::PortCounters counters_;
  WireFolder folder_;
  wakeup::Descriptor socket_;
  FramePool pool_;
  std::vector<uint8_t> datagram_;  // the latest one
  base::ByteView unread_;          // what of it has not been handed up
  /// Resets that come from no process any more. Invariant: at most kMostFrames.
  std::deque<port::Packet> last_words_;
  /// Since when the queues of these have been full. Invariant: at most WireFolder::kMostMembers.
  std::map<port::MacAddress, base::Now> full_since_;
  base::Now retry_at_ = base::kNever;
};

}  // namespace rnic::local
