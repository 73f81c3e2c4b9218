#include "socket/system_info.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace rnic::socket {

TransportInfo ask_info(System& system, int descriptor) {
  using std::chrono::microseconds;
  using std::chrono::milliseconds;
  tcp_info info{};
  socklen_t size = sizeof info;
  TransportInfo told;
  if (system.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return told;
  told.rtt = microseconds(info.tcpi_rtt);
  told.rtt_variation = microseconds(info.tcpi_rttvar);
  told.rto = microseconds(info.tcpi_rto);
  told.idle = milliseconds(std::min(info.tcpi_last_data_recv, info.tcpi_last_ack_recv));
  told.mss = info.tcpi_snd_mss;
  // The system counts the window in segments.
  told.cwnd = uint64_t{info.tcpi_snd_cwnd} * info.tcpi_snd_mss;
  told.ssthresh = uint64_t{info.tcpi_snd_ssthresh} * info.tcpi_snd_mss;
  told.in_flight = uint64_t{info.tcpi_unacked} * info.tcpi_snd_mss;
  told.retransmitted = info.tcpi_total_retrans;
  return told;
}

bool has_waiting_peer(System& system, int descriptor) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (system.getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return true;
  return info.tcpi_unacked != 0;  // of a socket that listens: the peers in its backlog
}

}  // namespace rnic::socket
