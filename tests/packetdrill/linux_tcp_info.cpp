#include "packetdrill/linux_tcp_info.hpp"

#include <linux/tcp.h>

#include <algorithm>
#include <cstring>

namespace rnic::packetdrill {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;

uint8_t linux_state(tcp::State state) {
  // The kernel's numbers are part of its user interface.
  switch (state) {
    case tcp::State::Established: return 1;
    case tcp::State::SynSent: return 2;
    case tcp::State::SynReceived: return 3;
    case tcp::State::FinWait1: return 4;
    case tcp::State::FinWait2: return 5;
    case tcp::State::TimeWait: return 6;
    case tcp::State::Closed: return 7;
    case tcp::State::CloseWait: return 8;
    case tcp::State::LastAck: return 9;
    case tcp::State::Listen: return 10;
    case tcp::State::Closing: return 11;
  }
  return 0;
}

uint8_t linux_loss_state(tcp::LossState state) {
  switch (state) {
    case tcp::LossState::Open: return TCP_CA_Open;
    case tcp::LossState::Disorder: return TCP_CA_Disorder;
    case tcp::LossState::Recovery: return TCP_CA_Recovery;
    case tcp::LossState::Loss: return TCP_CA_Loss;
  }
  return 0;
}

uint32_t micros(base::Duration d) {
  return static_cast<uint32_t>(duration_cast<microseconds>(d).count());
}

uint32_t millis(base::Duration d) {
  return static_cast<uint32_t>(duration_cast<milliseconds>(d).count());
}

void fill_congestion(const tcp::ConnectionInfo& info, tcp_info& out) {
  const uint32_t smss = std::max(info.emss, 1u);
  out.tcpi_ca_state = linux_loss_state(info.loss_state);
  out.tcpi_snd_cwnd = info.cwnd / smss;
  out.tcpi_snd_ssthresh = info.ssthresh == UINT32_MAX ? INT32_MAX : info.ssthresh / smss;
  out.tcpi_unacked = info.unacked;
  out.tcpi_sacked = info.sacked;
  out.tcpi_lost = info.lost;
  out.tcpi_retrans = info.retransmitted;
  out.tcpi_reordering = info.reorder_degree;
  out.tcpi_reord_seen = info.reordering_seen ? 1 : 0;
}

void fill_times(const tcp::ConnectionInfo& info, const SocketView& view, tcp_info& out) {
  out.tcpi_rto = micros(info.rto);
  out.tcpi_rtt = micros(info.srtt);
  out.tcpi_rttvar = micros(info.rttvar);
  out.tcpi_min_rtt = micros(info.min_rtt);
  const base::Now received = std::max(view.stream->last_received(), view.stream->established_at());
  if (received != base::Now{}) out.tcpi_last_data_recv = millis(view.now - received);
  const Holdups& h = view.holdups;
  out.tcpi_busy_time = micros(h.busy);
  out.tcpi_rwnd_limited = micros(h.by_peer_window);
  out.tcpi_sndbuf_limited = micros(h.by_send_buffer);
}

}  // namespace

void fill_linux_tcp_info(const tcp::ConnectionInfo& info, const SocketView& view, void* out,
                         size_t length) {
  tcp_info t{};
  t.tcpi_state = linux_state(info.state);
  t.tcpi_options = static_cast<uint8_t>((info.timestamps ? TCPI_OPT_TIMESTAMPS : 0) |
                                        (info.sack ? TCPI_OPT_SACK : 0) |
                                        (info.window_scaling ? TCPI_OPT_WSCALE : 0));
  t.tcpi_snd_wscale = info.snd_wind_shift & 15;
  t.tcpi_rcv_wscale = info.rcv_wind_shift & 15;
  t.tcpi_backoff = static_cast<uint8_t>(info.rto_backoff);
  t.tcpi_retransmits = info.window_probes == 0 ? t.tcpi_backoff : 0;
  t.tcpi_probes = static_cast<uint8_t>(info.window_probes);
  t.tcpi_snd_mss = info.emss;
  t.tcpi_rcv_mss = info.rcv_mss;
  t.tcpi_advmss = view.advertised_mss;
  t.tcpi_pmtu = info.path_mtu;
  t.tcpi_bytes_acked = view.stream->acknowledged();
  t.tcpi_bytes_received = view.stream->received();
  t.tcpi_notsent_bytes = view.stream->unsent();
  t.tcpi_snd_wnd = info.snd_wnd;
  fill_congestion(info, t);
  fill_times(info, view, t);
  std::memset(out, 0, length);
  std::memcpy(out, &t, std::min(length, sizeof t));
}

}  // namespace rnic::packetdrill
