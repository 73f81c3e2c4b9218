/// \file
/// The slow, obvious peer: RFC 9293 written the plainest way, for one connection. The receive side
/// is a map of octets; the send side keeps a window in flight and starts again at SND.UNA when
/// nothing moves. It is rude where the specifications let it be, or where a broken or hostile peer
/// would be: odd sizes, overlaps, other content for octets that are committed, holes, old
/// duplicates, octets beyond the window, a window that it takes back, SACKed octets that it
/// forgets.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "stream/application.hpp"
#include "stream/datagram.hpp"
#include "stream/plan.hpp"
#include "verdict.hpp"
#include "wire/tcp_options.hpp"

namespace rnic::simulation {

class PlainPeer {
 public:
  using Send = std::function<void(Datagram&&, base::Now)>;

  PlainPeer(const PeerPlan& plan, const ApplicationPlan& application, const StreamContent& content,
            const Endpoint& local, const Endpoint& remote, uint64_t seed, Verdict& verdict,
            Send send);

  void receive(const Datagram& d, base::Now now);
  /// Whatever is due.
  void run(base::Now now);
  [[nodiscard]] base::Now next_deadline() const;
  /// Both FINs are acknowledged. It goes on answering.
  [[nodiscard]] bool done() const { return fin_acked_ && fin_received_; }
  [[nodiscard]] std::string describe() const;

 private:
  enum class Phase : uint8_t { Closed, SynSent, SynReceived, Open };

  struct Segment {
    uint32_t seq = 0;
    uint32_t ack = 0;
    uint8_t flags = 0;
    uint16_t window = 0;
    base::ByteView payload;
    wire::TcpOptions options;
    [[nodiscard]] bool has(uint8_t f) const { return (flags & f) != 0; }
  };

  // plain_receive.cpp
  void take_syn(const Segment& s, base::Now now);
  void take_ack(const Segment& s, base::Now now);
  void take_text(const Segment& s, base::Now now);
  void open(base::Now now);
  void read(base::Now now);
  [[nodiscard]] uint64_t window_edge() const;

  // plain_send.cpp
  void transmit(base::Now now);
  bool send_something(base::Now now);
  /// What the stack has already, as long as the peer repeats itself.
  bool repeat(base::Now now);
  bool send_over_committed(base::Now now);
  bool send_duplicate(base::Now now);
  bool send_new(base::Now now);
  bool send_fill(base::Now now);
  void send_fin(base::Now now);
  void retransmit(base::Now now);
  void send_range(uint64_t begin, uint64_t end, bool stale, base::Now now);
  void send_ack(base::Now now);
  void forget();
  void send_syn(base::Now now);
  void emit(uint64_t offset, base::ByteView payload, uint8_t flags, bool stale, base::Now now);
  [[nodiscard]] uint32_t most_payload() const;
  [[nodiscard]] uint32_t odd_size();
  [[nodiscard]] uint32_t clock(base::Now now) const {
    return static_cast<uint32_t>(base::nanos(now) / 1'000'000) + clock_start_;
  }
  void fail(const std::string& what) { verdict_.fail("plain peer", what); }

  const PeerPlan plan_;
  const ApplicationPlan application_;
  const StreamContent content_;
  const Endpoint local_;
  const Endpoint remote_;
  base::Prng prng_;
  Verdict& verdict_;
  Send send_;
  Phase phase_ = Phase::Closed;
  const uint32_t iss_;
  const uint32_t clock_start_;

  // Agreed on the SYNs.
  uint32_t their_mss_ = 536;
  bool scale_ = false;
  uint32_t their_shift_ = 0;
  bool timestamps_ = false;
  bool sack_ = false;
  uint32_t ts_recent_ = 0;

  // Receive side: octets by stream offset.
  uint32_t irs_ = 0;
  std::vector<bool> have_;
  std::vector<uint8_t> octets_;
  uint64_t rcv_nxt_ = 0;
  uint64_t read_ = 0;    // what the user has taken
  uint64_t shrunk_ = 0;  // octets of the buffer that are gone
  uint64_t newest_ = 0;  // an octet of the newest segment, for the first SACK block
  uint32_t reneged_ = 0;
  std::optional<uint64_t> their_fin_;
  bool fin_received_ = false;
  uint32_t unacked_segments_ = 0;
  bool ack_now_ = false;
  base::Now ack_at_ = base::kNever;
  base::Now stopped_until_{};
  bool stopped_once_ = false;

  // Send side.
  std::vector<bool> committed_;  // acknowledged or SACKed: what the stack can never take again
  uint64_t snd_una_ = 0;
  uint64_t snd_max_ = 0;  // highest octet sent
  uint64_t edge_ = 0;
  bool fin_sent_ = false;
  bool fin_acked_ = false;
  base::Duration rto_;
  base::Now rto_at_ = base::kNever;
  base::Now next_send_{};
  // Each repetition is answered. Some hundred thousand show what there is to see: with more, a
  // stream that waits for long time-outs beside them would need more steps than a world has.
  uint32_t repetitions_left_ = 200'000;
};

}  // namespace rnic::simulation
