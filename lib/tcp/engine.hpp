/// \file
/// The engine behind Stack. It finds the connection of a segment, gives turns to send, fires
/// timers, and creates and destroys connections; connection.hpp has what a connection does.
///
/// engine.cpp handles events (segments, ICMP messages, timers, turns to send), listener.cpp opens
/// connections.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/prng.hpp"
#include "base/timer_wheel.hpp"
#include "tcp/challenge_acks.hpp"
#include "tcp/connection.hpp"
#include "tcp/connection_table.hpp"
#include "tcp/half_open.hpp"
#include "tcp/isn.hpp"
#include "tcp/listener_table.hpp"
#include "tcp/reply_queue.hpp"
#include "tcp/saved_records.hpp"
#include "tcp/segment.hpp"
#include "tcp/segment_out.hpp"
#include "tcp/shared.hpp"
#include "tcp/syn_cookies.hpp"
#include "tcp/syn_terms.hpp"
#include "tcp/tcp.hpp"
#include "tcp/time_wait.hpp"

namespace rnic::tcp {

class Engine {
 public:
  Engine(const Config& config, Egress& egress, const Secret& secret, uint64_t seed, base::Now now);

  Result<Endpoint> reserve(const Endpoint& local);
  Status unreserve(const Endpoint& local);
  Result<Endpoint> listen(const Endpoint& local, llp::Acceptor& acceptor,
                          const ConnectionOptions& options,
                          llp::PortClaim claim = llp::PortClaim::None);
  Status unlisten(const Endpoint& local);
  Result<llp::Stream*> connect(const Endpoint& local, const Endpoint& remote, llp::StreamUser& user,
                               const ConnectionOptions& options, base::Now now,
                               llp::PortClaim claim = llp::PortClaim::None);
  [[nodiscard]] const Config& config() const { return shared_.config; }
  [[nodiscard]] bool owns(const Connection& connection) const {
    return connection.belongs_to(shared_);
  }
  void on_timers(base::Now now);
  void output(base::Now now) {
    if (has_output() && !only_puts_off(now)) serve_round(now);
  }
  /// \return output() may have something to do
  [[nodiscard]] bool has_output() const {
    return is_pending() || shared_.round.front() != nullptr || !shared_.replies.empty();
  }
  [[nodiscard]] base::Now next_deadline() const;
  /// \return on_timers() may have something to do
  [[nodiscard]] bool due(base::Now now) {
    return (is_pending() && shared_.wheel.is_behind(now)) || !shared_.closed.empty() ||
           shared_.wheel.due(now);
  }
  [[nodiscard]] static base::MemoryUses memory_use(const Config& config);
  void input(const SegmentIn& segment, base::Now now);
  void icmp_error(const llp::IcmpError& error, base::Now now);
  [[nodiscard]] const Counters& counters() const { return shared_.counters; }
  [[nodiscard]] uint32_t live_connections() const {
    return connections_.live() + shared_.time_wait.live();
  }
  [[nodiscard]] bool quiescent() const;
  void force_isn(std::optional<uint32_t> isn) { forced_isn_ = isn; }
  void set_prediction(bool on) { predicting_ = on; }
  void set_bursts(bool on) { shared_.bursts = on; }
  uint64_t validate();

 private:
  // Opens.
  Connection* new_connection(const Endpoint& local, const Endpoint& remote,
                             const ConnectionOptions& options, base::Now now);
  [[nodiscard]] uint16_t choose_port(const Endpoint& local, const Endpoint& remote, base::Now now);
  [[nodiscard]] Status check_route(const Endpoint& local, const Endpoint& remote,
                                   base::Now now) const;
  [[nodiscard]] Result<Endpoint> choose_local(const Endpoint& local, const Endpoint& remote,
                                              llp::PortClaim claim, base::Now now);
  [[nodiscard]] Result<Endpoint> find_place(const char* call, const Endpoint& local);
  /// The number of the reservation that `local` is among, for a call that takes it over or ends it.
  [[nodiscard]] Result<uint32_t> find_reservation(const char* call, const Endpoint& local) const;
  /// Takes a segment for a listener (RFC 9293 s.3.10.7.2). \param old_snd_nxt SND.NXT of the
  /// incarnation in TIME-WAIT that the SYN ends
  void input_listen(Listener& listener, const Segment& segment,
                    std::optional<base::Seq32> old_snd_nxt, base::Now now);
  [[nodiscard]] uint16_t choose_listening_port();
  void keep_a_place(Listener& listener, base::Now now);
  void displace_half_open(const Listener& listener, const Endpoint& newcomer, base::Now now);
  void send_cookie(Listener& listener, const Segment& syn, base::Now now);
  [[nodiscard]] bool take_cookie(Listener& listener, const Segment& segment, base::Now now);

  // Segments.
  /// Finds the connection of a segment. \param in at least 20 octets. \param found set to the
  /// connection, or nullptr. \return the segment's header is as predicted
  [[nodiscard]] bool find_flow(const SegmentIn& in, Connection*& found);
  void input_any(Connection* connection, const SegmentIn& segment, base::Now now);
  void input_parsed(Connection* connection, const SegmentIn& segment, base::Now now);
  void input_no_connection(const Segment& segment, base::Now now);

  // Turns.
  /// There is work for the next turn, whatever the time.
  [[nodiscard]] bool is_pending() const {
    return shared_.round.pending() || !shared_.closed.empty();
  }
  void serve_round(base::Now now);
  [[nodiscard]] bool only_puts_off(base::Now now);
  [[nodiscard]] uint64_t octets_sent() const {
    return shared_.counters.octets_out + shared_.counters.retransmitted_octets;
  }
  void look_ahead();
  void finish_closed(base::Now now);

  Egress& egress_;
  const Secret secret_;
  base::SecretSource random_;
  Shared shared_;
  ListenerTable listeners_;
  SynCookies cookies_;
  ConnectionTable connections_;  // Declared after shared_, which outlives the connections.
  std::optional<uint32_t> forced_isn_;
  bool predicting_ = true;
  bool text_goes_ = true;  // the latest turn of a connection sent text
};

}  // namespace rnic::tcp
