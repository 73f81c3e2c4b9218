#include "settings/table.hpp"

#include <limits>

namespace rnic::settings {
namespace {

template <auto M>
Target in_eal(Scope& s) {
  return &(s.eal->*M);
}
template <auto M>
Target in_worker(Scope& s) {
  return &(s.worker->*M);
}
template <auto M>
Target in_wire(Scope& s) {
  return &(s.wire->*M);
}
template <auto M>
Target in_device(Scope& s) {
  return &(s.device->*M);
}
template <auto M>
Target in_config(Scope& s) {
  return &(s.device->config.*M);
}
template <auto M>
Target in_tcp(Scope& s) {
  return &(s.device->config.tcp.*M);
}
template <auto M>
Target in_framing(Scope& s) {
  return &(s.device->framing.*M);
}
template <auto M>
Target in_mpa(Scope& s) {
  return &(s.device->config.mpa.*M);
}
template <auto M>
Target in_tuf(Scope& s) {
  return &(s.device->config.tuf.*M);
}
template <auto M>
Target in_net(Scope& s) {
  return &(s.device->config.net.*M);
}
template <auto M>
Target in_limits(Scope& s) {
  return &(s.device->config.limits.*M);
}
template <auto M>
Target in_quotas(Scope& s) {
  return &(s.device->config.quotas.*M);
}
template <auto M>
Target in_socket(Scope& s) {
  return &(s.device->socket.*M);
}
template <auto M>
Target in_impair(Scope& s) {
  return &(s.device->impair.config.*M);
}
Target device_faults(Scope& s) { return &s.device->fault_lines; }
Target impair_enabled(Scope& s) { return &s.device->impair.enabled; }
Target impair_seed(Scope& s) { return &s.device->impair.seed; }
Target capture_file(Scope& s) { return &s.device->capture.file; }
Target device_address(Scope& s) {
  return InterfaceAddress{&s.device->config.net.address, &s.device->config.net.prefix_length};
}

constexpr int64_t kKb = 1 << 10;
constexpr int64_t kGb = 1 << 30;
constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMinute = 60 * kSecond;
constexpr int64_t kHour = 60 * kMinute;
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
constexpr Range kNone{};
constexpr Range kShare{0, 1};
constexpr Range kMtu{576, 9216};

using enum Tier;

constexpr std::string_view kNameRange = "1..31 letters, digits, _ and -";

using Eal = EalSettings;
using Wk = WorkerSettings;
using Wire = WireSettings;
using Dev = DeviceSettings;
using Nic = device::DeviceConfig;
using Tcp = tcp::Config;
using Frm = framing::Config;
using Mpa = mpa::Config;
using Tuf = tuf::Config;
using Net = net::Config;
using Lim = device::Limits;
using Quo = ResourceCounts;
using Imp = impair::Config;
using Sock = socket::Config;

constexpr Section kSections[] = {
    {"eal", "[eal]", false, "How DPDK is started."},
    {"worker", "[worker]", false, "Who polls the devices."},
    {"tcp", "[tcp]", true, "The TCP engine."},
    {"framing", "[framing]", true,
     "Which framing stands between TCP and DDP, and what MPA and ULP framing have in common."},
    {"mpa", "[mpa]", true, "MPA framing (RFC 5044)."},
    {"tuf", "[tuf]", true,
     "ULP framing (draft-ietf-tsvwg-tcp-ulp-frame-00), where it stands in the place of MPA. It has "
     "no CRC."},
    {"net", "[net]", true, "IPv4 and IPv6, their neighbours, ICMP and fragments."},
    {"socket", "[socket]", true,
     "Devices whose port is \"socket\": RDMA over the system's own TCP (RFC 5044 section 5). Of "
     "[tcp] they take nagle, pack_records, the keep_alive keys, user_timeout, connect_timeout, "
     "close_timeout, receive_window and max_listeners; everything else of TCP is the system's. "
     "They have no streaming sockets and no silent drop."},
    {"limits", "[limits]", true,
     "How much a device can hold. Its memory is asked for at start, and touched as it fills: what "
     "the machine does not have is refused, with what is asked for and what is there."},
    {"quotas", "[quotas]", true,
     "How much of a device each consumer may have, unless it sets a quota itself "
     "(Device::create_consumer()); what is made for no consumer is the application's, which is "
     "one, "
     "too. 0: as much as the device has."},
    {"wire", "[[wire]]", false,
     "A pair of cross-connected ports in memory. Its ends are \"wire:NAME:0\" and "
     "\"wire:NAME:1\"."},
    {"device", "[[device]]", false, "A software RNIC on one port. There is at least one."},
    {"device.impair", "[device.impair]", false,
     "A bad network: damages the frames that the device sends, by a generator of its own. A "
     "section "
     "with any key in it is on. The device at the other end of an impaired wire completes and "
     "checks its "
     "checksums, too."},
    {"device.capture", "[device.capture]", false, "Records what the device sends and receives."},
};

// One row per key: its tier, its target, unit, range, and what it does.
// clang-format off
constexpr Key kKeys[] = {
    {"eal", "hugepages", Basic, in_eal<&Eal::hugepages>, "", kNone,
     "memory from hugepages: when enough are free, or it is an error, or never"},
    {"eal", "memory_mb", Basic, in_eal<&Eal::memory_mb>, "MB", {64, 1 << 20},
     "memory for all buffers of the process"},
    {"eal", "args", Advanced, in_eal<&Eal::args>, "", kNone,
     "appended to DPDK's own arguments as they are", {}, "list of strings"},

    {"worker", "mode", Basic, in_worker<&Wk::mode>, "", kNone,
     "inline: the application's thread polls; threaded: threads of the context, and while they "
     "sleep any that polls, posts or calls"},
    {"worker", "idle", Basic, in_worker<&Wk::idle>, "", kNone,
     "what a thread with nothing to do does, a device's own and one in wait_until(); sleep: in the "
     "kernel, until something comes (a port that cannot tell is looked at every 50 us, which takes "
     "some percent of a core); auto: the same, but the thread looks for work for up to 200 us "
     "before, as long as that finds some and nobody else needs the core"},
    {"worker", "count", Basic, in_worker<&Wk::count>, "", {0, 1024},
     "threaded: how many threads there are, which get the devices in turn; 0: one for each device"},
    {"worker", "cores", Basic, in_worker<&Wk::cores>, "", {0, 1023},
     "threaded: the core of each thread, in the order of the threads; empty: not pinned"},

    {"tcp", "sack", Conformance, in_tcp<&Tcp::sack>, "", kNone,
     "offer selective acknowledgements (RFC 2018)"},
    {"tcp", "timestamps", Conformance, in_tcp<&Tcp::timestamps>, "", kNone,
     "offer timestamps (RFC 7323)"},
    {"tcp", "window_scaling", Conformance, in_tcp<&Tcp::window_scaling>, "", kNone,
     "offer window scaling (RFC 7323)"},
    {"tcp", "ecn", Basic, in_tcp<&Tcp::ecn>, "", kNone,
     "explicit congestion notification (RFC 3168): never, when the peer asks, or asked for; DCTCP "
     "asks unless off"},
    {"tcp", "ecn_syn_attempts", Conformance, in_tcp<&Tcp::ecn_syn_attempts>, "", {1, 32},
     "SYNs that ask for ECN before one goes without (RFC 3168 section 6.1.1.1)"},
    {"tcp", "congestion_control", Basic, in_tcp<&Tcp::congestion_control>, "", kNone,
     "what sizes the window of a connection; dctcp (RFC 8257) at both ends, inside a data center "
     "only"},
    {"tcp", "cubic_fast_convergence", Conformance, in_tcp<&Tcp::cubic_fast_convergence>, "", kNone,
     "CUBIC gives way to new flows (RFC 9438 section 4.7)"},
    {"tcp", "hystart", Conformance, in_tcp<&Tcp::hystart>, "", kNone,
     "CUBIC leaves its first slow start when the round-trip time rises (RFC 9406)"},
    {"tcp", "hystart_rtt_threshold_min", Conformance, in_tcp<&Tcp::hystart_rtt_threshold_min>,
     "time", {kUs, kSecond}, "the least rise that counts (MIN_RTT_THRESH)"},
    {"tcp", "hystart_rtt_threshold_max", Conformance, in_tcp<&Tcp::hystart_rtt_threshold_max>,
     "time", {kUs, kSecond}, "the rise that always counts (MAX_RTT_THRESH)"},
    {"tcp", "hystart_css_rounds", Conformance, in_tcp<&Tcp::hystart_css_rounds>, "", {1, 64},
     "rounds of conservative slow start (CSS_ROUNDS)"},
    {"tcp", "hystart_css_growth_divisor", Conformance, in_tcp<&Tcp::hystart_css_growth_divisor>,
     "", {2, 64},
     "how much slower conservative slow start grows (CSS_GROWTH_DIVISOR)"},
    {"tcp", "dctcp_gain_shift", Conformance, in_tcp<&Tcp::dctcp_gain_shift>, "", {1, 15},
     "DCTCP's estimation gain is 2 to the minus this (RFC 8257 section 4.2)"},
    {"tcp", "dctcp_ect_on_control", Conformance, in_tcp<&Tcp::dctcp_ect_on_control>, "", kNone,
     "DCTCP: pure ACKs, retransmissions and probes are ECN-capable, too (RFC 8257 section 4.1)"},
    {"tcp", "frto", Conformance, in_tcp<&Tcp::frto>, "", kNone,
     "find spurious time-outs by sending new data first (RFC 5682)"},
    {"tcp", "tail_loss_probe", Conformance, in_tcp<&Tcp::tail_loss_probe>, "", kNone,
     "probe for a lost tail after two round trips, ahead of the RTO (RFC 8985 section 7)"},
    {"tcp", "recovery_probe", Conformance, in_tcp<&Tcp::recovery_probe>, "", kNone,
     "probe in a fast recovery, too, where RFC 8985 section 7.2 waits for the RTO (SHOULD)"},
    {"tcp", "tlp_max_ack_delay", Conformance, in_tcp<&Tcp::tlp_max_ack_delay>, "time", {0, kSecond},
     "how late the peer's ACK of a lone segment may be (TLP.max_ack_delay)"},
    {"tcp", "reordering_max", Conformance, in_tcp<&Tcp::reordering_max>, "time", {0, kSecond},
     "a segment that others have overtaken counts as lost after this at the latest, where some "
     "came so late before; 0: after one round trip (RFC 8985 section 6.2)"},
    {"tcp", "loss_acks", Conformance, in_tcp<&Tcp::loss_acks>, "", {0, 2},
     "behind two holes within 384 KB: ACKs that go before the one of a burst, so that one lost ACK "
     "stops nobody; 0: nor is an ACK repeated where nothing follows it, up to 4 MB behind a hole"},
    {"tcp", "pacing", Conformance, in_tcp<&Tcp::pacing>, "", kNone,
     "spread each window over the round-trip time"},
    {"tcp", "pacing_slow_start_percent", Conformance, in_tcp<&Tcp::pacing_slow_start_percent>, "%",
     {100, 1000},
     "pacing rate in slow start, of window / round-trip time"},
    {"tcp", "pacing_percent", Conformance, in_tcp<&Tcp::pacing_percent>, "%", {100, 1000},
     "pacing rate in congestion avoidance, of window / round-trip time"},
    {"tcp", "idle_restart", Conformance, in_tcp<&Tcp::idle_restart>, "", kNone,
     "idle for longer than the RTO: start again from the initial window (RFC 5681 section 4.1)"},
    {"tcp", "initial_window_segments", Conformance, in_tcp<&Tcp::initial_window_segments>,
     "segments", {0, 64},
     "initial congestion window, of at most 1460 octets each beyond two (RFC 6928); 0: the table "
     "of RFC 5681"},
    {"tcp", "growth_limit_segments", Conformance, in_tcp<&Tcp::growth_limit_segments>, "segments",
     {1, 64},
     "growth of the congestion window for one ACK in slow start (RFC 3465); 1 is strict"},
    {"tcp", "max_cwnd", Advanced, in_tcp<&Tcp::max_cwnd>, "octets", {4 * kKb, kGb},
     "largest congestion window"},
    {"tcp", "receive_window", Basic, in_tcp<&Tcp::receive_window>, "octets", {4 * kKb, kGb},
     "octets offered to the peer past what was delivered in order. A streaming socket offers no "
     "more than its buffer"},
    {"tcp", "rto_initial", Advanced, in_tcp<&Tcp::rto_initial>, "time", {kMs, kMinute},
     "retransmission time-out before the first measurement (RFC 6298)"},
    {"tcp", "rto_min", Basic, in_tcp<&Tcp::rto_min>, "time", {100 * kUs, kMinute},
     "shortest retransmission time-out; RFC 6298 says 1 s. Keep it above the peer's delayed ACK"},
    {"tcp", "rto_max", Advanced, in_tcp<&Tcp::rto_max>, "time", {kMs, kHour},
     "longest retransmission time-out; RFC 6298 says at least 60 s"},
    {"tcp", "delayed_ack", Advanced, in_tcp<&Tcp::delayed_ack>, "time", {0, 499 * kMs},
     "how long an ACK may wait for another segment; below 500 ms (RFC 9293 section 3.8.6.3)"},
    {"tcp", "time_wait", Advanced, in_tcp<&Tcp::time_wait>, "time", {0, 4 * kMinute},
     "TIME-WAIT; RFC 9293 says 4 minutes, timestamps and the choice of the ISN guard a shorter "
     "one"},
    {"tcp", "user_timeout", Basic, in_tcp<&Tcp::user_timeout>, "time", {10 * kMs, 24 * kHour},
     "a connection without progress for so long is given up"},
    {"tcp", "connect_timeout", Basic, in_tcp<&Tcp::connect_timeout>, "time", {10 * kMs, kHour},
     "an active open is given up after"},
    {"tcp", "refused_time", Advanced, in_tcp<&Tcp::refused_time>, "time", {0, kMinute},
     "an active open that is refused asks again every 10 ms until so long after its begin: the "
     "server may be about to listen; 0: a refusal is the end, as RFC 9293 has it"},
    {"tcp", "syn_retries", Advanced, in_tcp<&Tcp::syn_retries>, "", {0, 32},
     "repetitions of a SYN or SYN-ACK"},
    {"tcp", "close_timeout", Advanced, in_tcp<&Tcp::close_timeout>, "time", {kMs, kHour},
     "we sent FIN and the peer's does not come: RST after"},
    {"tcp", "orphan_timeout", Advanced, in_tcp<&Tcp::orphan_timeout>, "time", {0, 24 * kHour},
     "closed, and the peer acknowledges nothing more, though it may answer probes of its shut "
     "window: RST after; 0: never"},
    {"tcp", "pack_records", Advanced, in_tcp<&Tcp::pack_records>, "", kNone,
     "several small records (FPDUs) in one segment"},
    {"tcp", "nagle", Advanced, in_tcp<&Tcp::nagle>, "", kNone,
     "hold back a short segment while another is unacknowledged (RFC 9293 section 3.7.4), "
     "also of small FPDUs (RFC 5044 appendix A.2)"},
    {"tcp", "keep_alive", Basic, in_tcp<&Tcp::keep_alive>, "", kNone,
     "probe silent connections (RFC 9293 section 3.8.4)"},
    {"tcp", "keep_alive_idle", Basic, in_tcp<&Tcp::keep_alive_idle>, "time", {kMs, 7 * 24 * kHour},
     "silence before the first probe"},
    {"tcp", "keep_alive_interval", Advanced, in_tcp<&Tcp::keep_alive_interval>, "time",
     {kMs, kHour},
     "between probes"},
    {"tcp", "keep_alive_count", Advanced, in_tcp<&Tcp::keep_alive_count>, "", {2, 255},
     "probes without an answer that end the connection"},
    {"tcp", "syn_cookies", Advanced, in_tcp<&Tcp::syn_cookies>, "", kNone,
     "answer SYNs beyond the limits of half-open connections by cookies (RFC 4987)"},
    {"tcp", "mtu_probing", Conformance, in_tcp<&Tcp::mtu_probing>, "", kNone,
     "find paths that swallow full segments, and larger sizes by probes (RFC 4821)"},
    {"tcp", "mtu_probe_from_base", Conformance, in_tcp<&Tcp::mtu_probe_from_base>, "", kNone,
     "begin every connection with segments of 1024 octets (IPv6: 1280) and probe upward"},
    {"tcp", "mtu_probe_interval", Conformance, in_tcp<&Tcp::mtu_probe_interval>, "time",
     {5 * kMinute, 24 * kHour},
     "between two searches for a larger path MTU (RFC 1191 section 6.3)"},
    {"tcp", "max_time_wait", Advanced, in_tcp<&Tcp::max_time_wait>, "", {1, 1 << 22},
     "connections in TIME-WAIT at once, 64 octets each; the oldest gives way"},
    {"tcp", "max_range_sets", Advanced, in_tcp<&Tcp::max_range_sets>, "", {2, 1 << 20},
     "connections that remember ranges beyond a hole, 1 KB each and direction; at the limit an "
     "out-of-order segment is dropped"},
    {"tcp", "max_listeners", Advanced, in_tcp<&Tcp::max_listeners>, "", {1, 65535},
     "ports that are listened on or reserved at once"},
    {"tcp", "max_half_open", Advanced, in_tcp<&Tcp::max_half_open>, "", {1, 65536},
     "connections in SYN-RECEIVED at once; <= limits.max_connections, and never more than half of "
     "it. Beyond that a SYN is answered by a cookie; without cookies the oldest of the address "
     "(IPv6: the /64) that holds most gives way"},
    {"tcp", "max_half_open_per_listener", Advanced, in_tcp<&Tcp::max_half_open_per_listener>, "",
     {1, 65536},
     "the same, of one listening port"},
    {"tcp", "max_records_per_connection", Advanced, in_tcp<&Tcp::max_records_per_connection>,
     "records",
     {16, 1 << 20}, "unacknowledged records of one connection; <= tcp.max_records"},
    {"tcp", "max_records", Advanced, in_tcp<&Tcp::max_records>, "records", {16, 1 << 24},
     "unacknowledged records of the device; from 64 * limits.max_connections on each connection "
     "may have 16 whatever the others hold, so that peers that acknowledge nothing stop no other"},
    {"tcp", "max_saved_octets", Advanced, in_tcp<&Tcp::max_saved_octets>, "octets", {65536, kGb},
     "copies of records that had to be cut for retransmission, of the device"},
    {"tcp", "challenge_ack_limit", Conformance, in_tcp<&Tcp::challenge_ack_limit>, "",
     {1, 1'000'000},
     "challenge ACKs of the device in each tcp.challenge_ack_interval (RFC 5961 section 7)"},
    {"tcp", "challenge_ack_interval", Conformance, in_tcp<&Tcp::challenge_ack_interval>, "time",
     {kMs, kMinute},
     "the time for which tcp.challenge_ack_limit counts"},
    {"tcp", "ephemeral_first", Advanced, in_tcp<&Tcp::ephemeral_first>, "port", {1024, 65535},
     "active opens choose a port from here to 65535 (RFC 6056)"},

    {"framing", "protocol", Basic, in_config<&Nic::framing>, "", kNone,
     "what stands between TCP and DDP on connections that do not say: MPA or ULP framing"},
    {"framing", "out_of_order", Conformance, in_framing<&Frm::out_of_order>, "", kNone,
     "place FPDUs, or framing PDUs, that arrive out of order and can be located"},
    {"framing", "start_timeout", Advanced, in_framing<&Frm::start_timeout>, "time",
     {10 * kMs, kHour}, "for the whole start-up, such as the exchange of Request and Reply"},
    {"framing", "hold_limit", Advanced, in_framing<&Frm::hold_limit>, "octets", {0, kGb},
     "octets of one connection that wait to be located; <= limits.hold_octets"},
    {"framing", "early_limit", Advanced, in_framing<&Frm::early_limit>, "PDUs", {0, 1 << 20},
     "FPDUs, or framing PDUs, of one connection placed ahead of the order"},

    {"mpa", "crc", Basic, in_mpa<&Mpa::crc>, "", kNone,
     "ask for CRC32C; it is off only when both sides say so. false: only for a path that protects "
     "as well, such as IPsec end to end; the log warns"},
    {"mpa", "markers", Basic, in_mpa<&Mpa::markers_receive>, "", kNone,
     "ask the peer to put markers into what it sends us"},
    {"mpa", "markers_send_allowed", Advanced, in_mpa<&Mpa::markers_send_allowed>, "", kNone,
     "false: refuse a peer that asks us for markers"},
    {"mpa", "check_all_markers", Conformance, in_mpa<&Mpa::check_all_markers>, "", kNone,
     "each marker of an FPDU is compared with its place, in order, too (RFC 5044 section 8); "
     "without, those that locate an FPDU are used and the CRC decides; always without CRC"},
    {"mpa", "silent_drop", Advanced, in_mpa<&Mpa::silent_drop>, "", kNone,
     "a segment with a bad CRC is dropped as if it had been lost; false: the stream is terminated"},
    {"mpa", "drop_limit", Conformance, in_mpa<&Mpa::drop_limit>, "drops", {0, 1000},
     "silent drops of one range before the stream is terminated"},
    {"mpa", "revision", Advanced, in_mpa<&Mpa::revision>, "", {0, 2},
     "highest MPA revision: 2 is RFC 6581, 1 RFC 5044; 0 is the draft's profile, which serves "
     "nothing else"},
    {"mpa", "permissive", Advanced, in_mpa<&Mpa::permissive>, "", kNone,
     "serve peers of revision 0 as well, with DDP and RDMAP of version 0 (RFC 5044 appendix C)"},
    {"mpa", "exchange_reads", Advanced, in_mpa<&Mpa::exchange_reads>, "", kNone,
     "revision 2: an initiator whose application does not say agrees on IRD and ORD (RFC 6581); "
     "false: its Request has revision 2 and no enhanced data, unless it is peer to peer"},
    {"mpa", "reads_limit", Advanced, in_mpa<&Mpa::reads_limit>, "reads", {1, 16382},
     "highest IRD and ORD told to a peer; Linux siw terminates above 128"},
    {"mpa", "reads_in_private_data", Conformance, in_mpa<&Mpa::reads_in_private_data>, "", kNone,
     "revision 1: IRD and ORD as two numbers of 32 bits before the private data, and a Read as "
     "RTR (Chelsio under Windows)"},
    {"mpa", "peer_to_peer", Basic, in_mpa<&Mpa::peer_to_peer>, "", kNone,
     "revision 2: an initiator whose application does not say sends an RTR, so that either side "
     "may send first (RFC 6581)"},
    {"mpa", "rtr_send", Conformance, in_mpa<&Mpa::rtr_send>, "", kNone,
     "a zero-length Send may be the RTR"},
    {"mpa", "rtr_write", Conformance, in_mpa<&Mpa::rtr_write>, "", kNone,
     "a zero-length Write may be the RTR"},
    {"mpa", "rtr_read", Conformance, in_mpa<&Mpa::rtr_read>, "", kNone,
     "a zero-length Read may be the RTR"},
    {"mpa", "rtr_timeout", Advanced, in_mpa<&Mpa::rtr_timeout>, "time", {kMs, kHour},
     "a responder that has replied waits so long for the RTR"},
    {"mpa", "redial", Advanced, in_mpa<&Mpa::redial>, "", kNone,
     "a revision 2 request that is answered by a close is tried once more with revision 1"},
    {"mpa", "reject_closes", Conformance, in_mpa<&Mpa::reject_closes>, "", kNone,
     "MPA itself closes TCP after a reject (RFC 5044 section 7.1.4.2); false: it leaves TCP to the "
     "application, or to the device where no application wants it (section 7.1.2)"},
    {"mpa", "first_fpdu_delay", Advanced, in_mpa<&Mpa::first_fpdu_delay>, "time", {0, kMinute},
     "an initiator holds back its first FPDU so long after the Reply, once a connection, or until "
     "the peer sends: Linux siw installs its receiver behind its Reply, and what comes before is "
     "acknowledged and never read. When the peer has sent nothing 200 ms later, an RDMA Write "
     "without octets wakes it, once. 0s: both off, the default on a wire of this process"},

    {"tuf", "align", Advanced, in_tuf<&Tuf::align_receive>, "", kNone,
     "ask the peer for alignment mode: every segment one framing PDU (not over sockets of the "
     "system, which show no segments)"},
    {"tuf", "markers", Advanced, in_tuf<&Tuf::markers_receive>, "", kNone,
     "ask the peer for marker mode, where it is not alignment mode"},
    {"tuf", "packing", Advanced, in_tuf<&Tuf::packing>, "", kNone,
     "several DDP segments in one framing PDU, when the peer says so, too"},
    {"tuf", "marker_interval", Conformance, in_tuf<&Tuf::marker_interval>, "octets", {512, 65535},
     "distance of the markers asked of the peer"},
    {"tuf", "max_pdu", Conformance, in_tuf<&Tuf::max_pdu>, "octets", {256, 65528},
     "longest PDU asked of the peer in marker mode; as much of one that a loss has hit is kept"},
    {"tuf", "middlebox_limit", Conformance, in_tuf<&Tuf::middlebox_limit>, "segments", {0, 1 << 30},
     "unaligned segments in a row that tell of a resegmenting middlebox (those with two framing "
     "PDUs count 64 times); 0: never"},

    {"net", "ttl", Advanced, in_net<&Net::ttl>, "hops", {1, 255},
     "time to live, or hop limit, of what we send"},
    {"net", "neighbours", Advanced, in_net<&Net::neighbours>, "", {1, 65536},
     "neighbours known at once, of both IP versions"},
    {"net", "arp_lifetime", Conformance, in_net<&Net::arp_lifetime>, "time", {kSecond, 24 * kHour},
     "a neighbour is asked for again after (ARP)"},
    {"net", "nd_lifetime", Conformance, in_net<&Net::nd_lifetime>, "time", {kSecond, 24 * kHour},
     "a neighbour is asked for again after (IPv6, RFC 4861)"},
    {"net", "neighbour_retry", Conformance, in_net<&Net::neighbour_retry>, "time",
     {10 * kMs, kMinute}, "between two requests for one neighbour"},
    {"net", "neighbour_retries", Conformance, in_net<&Net::neighbour_retries>, "", {1, 100},
     "requests before a neighbour is unreachable"},
    {"net", "dad_transmits", Conformance, in_net<&Net::dad_transmits>, "", {0, 10},
     "solicitations that nobody answers before an IPv6 address of ours is used, neighbour_retry "
     "apart (duplicate address detection, RFC 4862 section 5.4); 0: it is used at once"},
    {"net", "icmp_per_second", Advanced, in_net<&Net::icmp_per_second>, "1/s", {0, 1'000'000},
     "echo replies; 0: none"},
    {"net", "icmp_errors_per_second", Advanced, in_net<&Net::icmp_errors_per_second>, "1/s",
     {0, 1'000'000}, "ICMP errors that are sent; 0: none"},
    {"net", "path_mtu_lifetime", Conformance, in_net<&Net::path_mtu_lifetime>, "time",
     {5 * kMinute, 24 * kHour},
     "what is known of a smaller path MTU is forgotten after (RFC 1191 section 6.3)"},
    {"net", "fragments", Conformance, in_net<&Net::fragments>, "", kNone,
     "received IP fragments (the choices of RFC 5044 appendix A.5.1): drop them; keep one datagram "
     "of the mtu's size; keep reassembly_datagrams, each up to 65,515 octets; one of these; "
     "several that share reassembly_octets. With drop and mtu the sender is told (ICMP) what "
     "fits; drop and one lose what has crossed the network, and are there for comparison"},
    {"net", "reassembly_octets", Conformance, in_net<&Net::reassembly_octets>, "octets",
     {64 * kKb, 64 << 20},
     "of all datagrams together that wait for their fragments (fragments = \"spanning\")"},
    {"net", "reassembly_datagrams", Conformance, in_net<&Net::reassembly_datagrams>, "datagrams",
     {0, 1024},
     "fragmented datagrams being put together at once; each takes at most 8 fragments of the MTU's "
     "size; 0: fragments are dropped"},
    {"net", "reassembly_timeout", Conformance, in_net<&Net::reassembly_timeout>, "time",
     {100 * kMs, 2 * kMinute}, "a datagram whose fragments do not all come is given up after"},

    {"socket", "send_buffer", Advanced, in_socket<&Sock::send_buffer>, "octets",
     {4 * kKb, 16 << 20},
     "what a connection holds until the system takes it; a segment has no more"},
    {"socket", "receive_buffer", Advanced, in_socket<&Sock::receive_buffer>, "octets",
     {4 * kKb, 1 << 20},
     "most that is read at once; one buffer a device"},
    {"socket", "backlog", Basic, in_socket<&Sock::backlog>, "", {1, 65535},
     "connections of one listening port that wait to be taken from the system, which has a limit "
     "of its own (net.core.somaxconn)"},
    {"socket", "system_send_buffer", Advanced, in_socket<&Sock::system_send_buffer>, "octets",
     {0, kGb},
     "SO_SNDBUF of every connection; 0: the system decides as it goes"},
    {"socket", "system_receive_buffer", Advanced, in_socket<&Sock::system_receive_buffer>,
     "octets", {0, kGb},
     "SO_RCVBUF of every connection; 0: the system decides as it goes"},
    {"socket", "align", Conformance, in_socket<&Sock::align>, "", kNone,
     "ask the system to begin segments where FPDUs begin (MSG_EOR)"},

    {"limits", "max_qps", Basic, in_limits<&Lim::max_qps>, "", {1, 65535}, "queue pairs"},
    {"limits", "max_cqs", Advanced, in_limits<&Lim::max_cqs>, "", {1, 65536}, "completion queues"},
    {"limits", "max_pds", Advanced, in_limits<&Lim::max_pds>, "", {1, 65536}, "protection domains"},
    {"limits", "max_consumers", Advanced, in_limits<&Lim::max_consumers>, "", {1, 4096},
     "consumers that the application creates"},
    {"limits", "max_srqs", Advanced, in_limits<&Lim::max_srqs>, "", {1, 65536},
     "shared receive queues"},
    {"limits", "max_regions", Basic, in_limits<&Lim::max_regions>, "", {1, (1 << 23) - 1},
     "registered memory regions, windows and what fast registration has allocated included"},
    {"limits", "max_pieces", Advanced, in_limits<&Lim::max_pieces>, "", {0, 1LL << 32},
     "pieces of memory of all regions that have more than one, and as many as STags for fast "
     "registration may have; 16 octets each"},
    {"limits", "max_connections", Basic, in_limits<&Lim::max_connections>, "", {1, 65536},
     "connections at once: RDMA connections, those being made included; and all that TCP has, "
     "those of streams, too, but not those in TIME-WAIT. On sockets each is a descriptor, and more "
     "than the process may have (ulimit -n) are refused at start"},
    {"limits", "max_starting", Advanced, in_limits<&Lim::max_starting>, "", {1, 65536},
     "inbound connections that have not sent a whole Request; for the next one the oldest of the "
     "address (IPv6: the /64) that holds most gives way; never above limits.max_connections"},
    {"limits", "silence", Basic, in_limits<&Lim::silence>, "time", {0, 7 * 24 * kHour},
     "when a place for a connection is needed (limits.max_connections, descriptors), an "
     "established inbound one gives way that has been silent for so long: no octet came, no work "
     "request completed, none is outstanding; of the address (IPv6: the /64) that holds most of "
     "them the longest silent; 0: never"},
    {"limits", "max_pending_requests", Advanced, in_limits<&Lim::max_pending_requests>, "",
     {1, 65536},
     "inbound requests that the application has not answered; <= limits.max_connections"},
    {"limits", "max_events", Advanced, in_limits<&Lim::max_events>, "", {16, 1 << 20},
     "asynchronous events not yet read"},
    {"limits", "max_work_depth", Basic, in_limits<&Lim::max_work_depth>, "requests", {1, 1 << 20},
     "deepest send or receive queue"},
    {"limits", "max_cq_depth", Advanced, in_limits<&Lim::max_cq_depth>, "completions",
     {0, 1 << 22},
     "deepest completion queue; 0: twice limits.max_work_depth"},
    {"limits", "max_reads", Basic, in_limits<&Lim::max_reads>, "reads", {1, 16383},
     "highest IRD and ORD of a queue pair"},
    {"limits", "registered_octets", Advanced, in_limits<&Lim::registered_octets>, "octets",
     {0, 1LL << 50},
     "registered by all consumers together; 0: as much as they want"},
    {"limits", "cq_entries", Advanced, in_limits<&Lim::cq_entries>, "completions", {0, 1LL << 50},
     "what all completion queues hold together, each a power of two; 0: as much as they want"},
    {"limits", "total_reads", Advanced, in_limits<&Lim::total_reads>, "reads", {0, kGb},
     "IRD and ORD of all queue pairs together; 0: as many as they want"},
    {"limits", "peer_connections", Basic, in_limits<&Lim::peer_connections>, "", {0, 65536},
     "inbound connections of one address (IPv6: of a /64) that ask or are established, and with "
     "them its Reads and held octets; one more is reset; 0: as many as there are places"},
    {"limits", "hold_octets", Advanced, in_limits<&Lim::hold_octets>, "octets",
     {64 * kKb, 64 * kGb},
     "octets of all connections that wait to be located"},
    {"limits", "max_streams", Basic, in_limits<&Lim::max_streams>, "", {1, 4096},
     "streaming sockets at once"},
    {"limits", "stream_buffer", Basic, in_limits<&Lim::stream_buffer>, "octets",
     {4 * kKb, 64 << 20},
     "what a streaming socket holds for sending, and for receiving; <= limits.stream_octets"},
    {"limits", "max_packed", Advanced, in_limits<&Lim::max_packed>, "", {0, 1 << 24},
     "segments of DDP packed into framing PDUs and not acknowledged (tuf.packing)"},
    {"limits", "stream_octets", Advanced, in_limits<&Lim::stream_octets>, "octets",
     {4 * kKb, 64 * kGb},
     "buffers of all streaming sockets: a buffer is taken when its socket first sends or receives"},
    {"limits", "max_framed_streams", Advanced, in_limits<&Lim::max_framed_streams>, "", {1, 4096},
     "framed streams at once"},
    {"limits", "framed_buffer", Advanced, in_limits<&Lim::framed_buffer>, "octets",
     {128 * kKb, 4 << 20},
     "what a framed stream holds for sending, and for receiving"},

    {"quotas", "pds", Advanced, in_quotas<&Quo::pds>, "", {0, kGb},
     "protection domains"},
    {"quotas", "regions", Advanced, in_quotas<&Quo::regions>, "", {0, kGb},
     "regions and windows of its domains, and what fast registration has allocated"},
    {"quotas", "registered_octets", Advanced, in_quotas<&Quo::registered_octets>, "octets",
     {0, 1LL << 50},
     "of all its regions"},
    {"quotas", "pieces", Advanced, in_quotas<&Quo::pieces>, "", {0, 1LL << 32},
     "pieces of memory of its regions that have more than one, and as many as its STags for fast "
     "registration may have; in all there are limits.max_pieces"},
    {"quotas", "cqs", Advanced, in_quotas<&Quo::cqs>, "", {0, kGb},
     "completion queues"},
    {"quotas", "cq_entries", Advanced, in_quotas<&Quo::cq_entries>, "completions", {0, 1LL << 50},
     "what its completion queues hold together; each holds a power of two"},
    {"quotas", "srqs", Advanced, in_quotas<&Quo::srqs>, "", {0, kGb},
     "shared receive queues"},
    {"quotas", "qps", Advanced, in_quotas<&Quo::qps>, "", {0, kGb},
     "queue pairs"},
    {"quotas", "reads", Advanced, in_quotas<&Quo::reads>, "reads", {0, kGb},
     "IRD and ORD of all its queue pairs together"},
    {"quotas", "listeners", Advanced, in_quotas<&Quo::listeners>, "", {0, kGb},
     "endpoints that it listens on for RDMA connections, and ports that it has reserved"},
    {"quotas", "requests", Advanced, in_quotas<&Quo::requests>, "", {0, kGb},
     "requests of peers to its listeners that it has not answered; more are reset"},
    {"quotas", "held_octets", Advanced, in_quotas<&Quo::held_octets>, "octets", {0, 1LL << 50},
     "received on its connections and not placed yet; more is not acknowledged, so that the peers "
     "send it again"},

    {"wire", "name", Basic, in_wire<&Wire::name>, "", kNone, "names the wire's ends",
     "required", kNameRange},
    {"wire", "mtu", Basic, in_wire<&Wire::mtu>, "octets", kMtu, "largest IP packet"},
    {"wire", "ring_size", Advanced, in_wire<&Wire::ring_size>, "frames", {64, 32768},
     "frames in flight in one direction; rounded up to a power of two"},

    {"device", "name", Basic, in_config<&Nic::name>, "", kNone, "names the device",
     "\"rnic\" and its index", kNameRange},
    {"device", "port", Basic, in_device<&Dev::port>, "", kNone,
     "where the frames come from: a wire's end, a PCI address (a NIC bound to vfio-pci), a virtual "
     "DPDK device with its arguments, or a folder that is the wire of this machine's processes "
     "(no DPDK, no rights). Or no frames at all: \"socket\", the system's own TCP",
     "required",
     "\"wire:NAME:0\", \"0000:01:00.0\", \"net_af_packet0,iface=veth0\", "
     "\"local:/tmp/wire\", \"socket\""},
    {"device", "mac", Basic, in_device<&Dev::mac>, "", kNone, "Ethernet address",
     "wire: 02:00:00:00:00: and 1 + index; local: 02:00: and the IPv4 address; else the port's "
     "own"},
    {"device", "address", Basic, device_address, "", kNone,
     "IP address and prefix length. With port = \"socket\" it may be left out: every address that "
     "the system has; one that is given is one of those, and its prefix length means nothing",
     "required; socket: none",
     "\"10.0.0.1/24\", \"fd00::1/64\""},
    {"device", "addresses", Basic, in_net<&Net::addresses>, "", kNone,
     "further addresses, of either IP version; a link-local IPv6 address comes by itself"},
    {"device", "gateway", Basic, in_net<&Net::gateway>, "", kNone,
     "for IPv4 destinations outside the device's networks", "none"},
    {"device", "gateway6", Basic, in_net<&Net::gateway6>, "", kNone,
     "for IPv6 destinations outside the device's networks", "none"},
    {"device", "routes", Basic, in_net<&Net::routes>, "", kNone,
     "static routes, the longest prefix wins; at most 64"},
    {"device", "vlan", Basic, in_net<&Net::vlan>, "", {0, 4094},
     "802.1Q identifier: frames are sent with this tag, others are dropped; 0: untagged"},
    {"device", "mtu", Basic, in_device<&Dev::mtu>, "octets", kMtu,
     "largest IP packet; not above the wire's", "the wire's; else 1500"},
    {"device", "seed", Conformance, in_config<&Nic::seed>, "", {0, kAll},
     "with random_secret = false: what others must not guess is computed from it", "1 + index"},
    {"device", "check_aliases", Advanced, in_config<&Nic::check_aliases>, "", kNone,
     "to find mistakes: a warning, and device aliased_stags, where memory is given to peers for "
     "writing who may not trust each other, of two domains or two queue pairs; each such "
     "registration walks over all regions"},
    {"device", "order_bursts", Conformance, in_config<&Nic::order_bursts>, "", kNone,
     "where a path reorders, the segments of a burst are taken in the order of their sequence "
     "numbers, and those behind a hole with the next burst"},
    {"device", "rdma_extensions", Advanced, in_config<&Nic::rdma_extensions>, "", kNone,
     "atomics and Immediate Data (RFC 7306); false: a message of theirs is an unexpected opcode"},
    {"device", "several_threads", Advanced, in_device<&Dev::several_threads>, "", kNone,
     "every queue of the device may be used by several threads at once, as if each had been made "
     "with the option of that name; false: those that were made with it"},
    {"device", "fault", Advanced, device_faults, "", kNone,
     "what the device does wrong on purpose, for tests: each of them on each connection, with a "
     "line in the log when it is done; at most 16. Faults of frames (drop, bad crc) need a port "
     "with frames. rnic/planned_fault.hpp says what is counted how", {},
     "each \"drop fpdu 3 of message 7\", \"bad crc on fpdu 1 of message 7\", \"bad crc on read "
     "response 2\", \"terminate now\", \"terminate at message 7\", \"stall the responder 2s\", "
     "\"stall the responder 2s at request 3\""},
    {"device", "random_secret", Conformance, in_device<&Dev::random_secret>, "", kNone,
     "ports (RFC 6056), STags, keys and initial sequence numbers (RFC 6528) come from the system's "
     "entropy; false: from the seed, for repeatable runs, with a warning"},

    {"device.impair", "enabled", Advanced, impair_enabled, "", kNone,
     "false: off, whatever else is said here",
     "true where the section has a key"},
    {"device.impair", "seed", Conformance, impair_seed, "", {0, kAll},
     "of what happens to the frames; the one that is drawn is logged, and gives the same damage "
     "again. Ports, STags and sequence numbers do not come from it",
     "drawn; with random_secret = false the device's seed"},
    {"device.impair", "drop", Basic, in_impair<&Imp::drop>, "share", kShare, "frames lost"},
    {"device.impair", "burst_enter", Conformance, in_impair<&Imp::burst_enter>, "share", kShare,
     "frames that begin a burst of loss"},
    {"device.impair", "burst_leave", Conformance, in_impair<&Imp::burst_leave>, "share", kShare,
     "lost frames of a burst that are its last"},
    {"device.impair", "reorder", Advanced, in_impair<&Imp::reorder>, "share", kShare,
     "frames held back"},
    {"device.impair", "reorder_min", Conformance, in_impair<&Imp::reorder_min>, "frames", {1, 1024},
     "a frame is held back until so many others have passed, at least"},
    {"device.impair", "reorder_max", Conformance, in_impair<&Imp::reorder_max>, "frames", {1, 1024},
     "a frame is held back until at most so many others have passed; >= reorder_min"},
    {"device.impair", "reorder_timeout", Conformance, in_impair<&Imp::reorder_timeout>, "time",
     {kUs, 10 * kSecond}, "a frame is held back no longer than this"},
    {"device.impair", "duplicate", Advanced, in_impair<&Imp::duplicate>, "share", kShare,
     "frames sent twice"},
    {"device.impair", "corrupt", Advanced, in_impair<&Imp::corrupt>, "share", kShare,
     "frames with a bit changed"},
    {"device.impair", "repair", Conformance, in_impair<&Imp::repair>, "share", kShare,
     "of the corrupted frames, those whose TCP checksum is made right again: only the CRC sees "
     "them"},
    {"device.impair", "resegment", Conformance, in_impair<&Imp::resegment>, "share", kShare,
     "TCP segments cut in two, as a middlebox does"},
    {"device.impair", "delay", Advanced, in_impair<&Imp::delay>, "time", {0, 10 * kSecond},
     "time by which every frame is late"},
    {"device.impair", "jitter", Advanced, in_impair<&Imp::jitter>, "time", {0, 10 * kSecond},
     "time drawn for each frame, up to this, by which it is late beside delay"},

    {"device.capture", "file", Basic, capture_file, "", kNone,
     "pcapng file of the frames as they pass the port, for Wireshark; over sockets of the system, "
     "which show none, frames that could have carried what is sent and received", "required here",
     "a path"},
};
// clang-format on

}  // namespace

std::span<const Section> all_sections() { return kSections; }
std::span<const Key> all_keys() { return kKeys; }

const Section* find_section(std::string_view name) {
  for (const Section& section : kSections) {
    if (section.name == name) return &section;
  }
  return nullptr;
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const Key& key : kKeys) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace rnic::settings
