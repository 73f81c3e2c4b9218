#include "device/connect_rules.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.hpp"
#include "tcp/connection_options.hpp"

namespace rnic::device {

using base::fail;

namespace {

/// RFC 6581 s.9.1: what is above is kReadsByApplication.
constexpr uint32_t kMostReads = kReadsByApplication - 1u;

uint16_t reads_of(std::optional<uint32_t> option, uint32_t own) {
  if (option == kReadsByApplication) return kReadsByApplication;
  return static_cast<uint16_t>(std::min<uint32_t>(option.value_or(own), kMostReads));
}

/// ULP framing knows only the time-out; any other field of a policy would change nothing.
bool has_more_than_a_timeout(const StartPolicy& policy) {
  return policy.revision || policy.permissive || policy.crc || policy.markers_receive ||
         policy.markers_send || policy.rtr || policy.first_fpdu_delay || policy.rtr_timeout ||
         policy.silent_drop || policy.reads_in_private_data || policy.fall_back;
}

/// \return whether `time` is in [least, most]; no time is in every range
bool in_range(std::optional<std::chrono::nanoseconds> time, std::chrono::nanoseconds least,
              std::chrono::nanoseconds most) {
  return !time || (*time >= least && *time <= most);
}

tl::unexpected<Error> no_own_tcp() {
  return fail(
      ErrorCode::InvalidArgument,
      "packing is the choice of a device with a port of its own; of a device on sockets it is "
      "the system's: leave it out");
}

}  // namespace

Status ConnectRules::check_private_data(base::ByteView private_data, size_t most,
                                        uint8_t revision) {
  if (private_data.size() <= most) return {};
  std::string message = "private data of " + std::to_string(private_data.size()) +
                        " octets: at most " + std::to_string(most) + " with MPA revision " +
                        std::to_string(revision);
  if (revision == 2) message += "; revision 1 carries 512";
  return fail(ErrorCode::InvalidArgument, std::move(message));
}

framing::StartOptions ConnectRules::make_start_options(const ConnectOptions& options,
                                                       const QueuePairSpec& spec) const {
  const mpa::Config& config = config_.mpa;
  framing::StartOptions start_options;
  start_options.revision = options.start.revision.value_or(config.revision);
  start_options.exchange_reads = options.exchange_reads.value_or(config.exchange_reads);
  start_options.peer_to_peer = options.peer_to_peer.value_or(config.peer_to_peer);
  start_options.ird = reads_of(options.ird, spec.ird);
  start_options.ord = reads_of(options.ord, spec.ord);
  start_options.ord_required = static_cast<uint16_t>(options.ord_required);  // in its range
  return start_options;
}

Status ConnectRules::check_framing(Framing framing) const {
  if (framing > Framing::Tuf) {
    return fail(ErrorCode::InvalidArgument, "a number without a name for framing: use Mpa or Tuf");
  }
  if (framing != Framing::Tuf || own_stack_ || config_.tuf.markers_receive) return {};
  return fail(ErrorCode::Unsupported,
              "over sockets of the system, which show no segments, ULP framing has marker mode "
              "only: set tuf.markers = true");
}

Status ConnectRules::check_policy(const StartPolicy& policy, Framing framing) {
  const auto wrong = [](const char* why) { return fail(ErrorCode::InvalidArgument, why); };
  if (policy.revision.value_or(0) > 2)
    return wrong("no revision of MPA (StartPolicy::revision): use 0, 1 or 2");
  using std::chrono::milliseconds;
  if (!in_range(policy.timeout, milliseconds(10), std::chrono::hours(1)) ||
      !in_range(policy.rtr_timeout, milliseconds(1), std::chrono::hours(1))) {
    return wrong(
        "out of its range (StartPolicy): give a timeout of 10 ms to an hour, an rtr_timeout of 1 "
        "ms "
        "to an hour");
  }
  if (!in_range(policy.first_fpdu_delay, milliseconds(0), std::chrono::minutes(1))) {
    return wrong("out of its range (StartPolicy): give a first_fpdu_delay of 0 to a minute");
  }
  if (policy.rtr && !policy.rtr->send && !policy.rtr->write && !policy.rtr->read) {
    return wrong(
        "no kind of RTR is left (StartPolicy::rtr): leave one for a peer-to-peer start-up");
  }
  if (framing != Framing::Tuf || !has_more_than_a_timeout(policy)) return {};
  return wrong(
      "ULP framing has no MPA revision, nor anything else that StartPolicy says but its timeout: "
      "leave that out, or connect over MPA");
}

Status ConnectRules::check_listen(const ListenOptions& options) const {
  const Framing framing = options.framing.value_or(config_.framing);
  if (auto status = check_framing(framing); !status) return status;
  if (options.backlog == 0u) {
    return fail(ErrorCode::InvalidArgument,
                "listen: a backlog of 0 takes nobody: give at least 1, or leave it out");
  }
  if (auto status = check_tcp(options.tcp, "ListenOptions::tcp"); !status) return status;
  return check_policy(options.start, framing);
}

Status ConnectRules::check_options(const QueuePair& qp, const ConnectOptions& options) const {
  const auto fits = [](std::optional<uint32_t> wanted, uint32_t own) {
    return !wanted || *wanted <= own || *wanted == kReadsByApplication;
  };
  if (!fits(options.ird, qp.spec().ird) || !fits(options.ord, qp.spec().ord)) {
    return fail(ErrorCode::InvalidArgument,
                "IRD or ORD of the connection is above the queue pair's: create it with more");
  }
  if (options.ord_required > kMostReads) {
    return fail(ErrorCode::InvalidArgument,
                "ConnectOptions::ord_required " + std::to_string(options.ord_required) +
                    ": a start-up tells of at most " + std::to_string(kMostReads) + " Reads");
  }
  if (options.packing && !own_stack_) return no_own_tcp();
  return check_tcp(options.tcp, "ConnectOptions::tcp");
}

Status ConnectRules::check_answer(const QueuePair& qp, const ConnectOptions& options) const {
  // An answer follows the listener's policy; what could be nobody's is a mistake all the same.
  if (auto status = check_policy(options.start, Framing::Mpa); !status) return status;
  return check_options(qp, options);
}

Status ConnectRules::check_tcp(const TcpOptions& options, const char* what) const {
  if (options == TcpOptions{}) return {};
  if (!own_stack_ && (options.ecn || options.pacing || options.congestion_control)) {
    return fail(ErrorCode::Unsupported,
                std::string(what) +
                    ": over sockets ECN, pacing and congestion control are the system's: leave "
                    "them out, or give the device a port of its own");
  }
  const auto merged = tcp::merged(tcp::ConnectionOptions(config_.tcp), options);
  if (!merged) return tl::unexpected(merged.error());
  return tcp::check(*merged, what);
}

Status ConnectRules::check_connect(const QueuePair& qp, const ConnectOptions& options) const {
  const Framing framing = options.framing.value_or(Framing::Mpa);
  if (auto status = check_framing(framing); !status) return status;
  if (auto status = check_policy(options.start, framing); !status) return status;
  if (auto status = check_options(qp, options); !status) return status;
  if (framing == Framing::Tuf) return {};  // either side may send first: Go is the RTR
  const bool enhanced = options.start.revision.value_or(config_.mpa.revision) == 2;
  if (options.peer_to_peer.value_or(config_.mpa.peer_to_peer) && !enhanced) {
    return fail(ErrorCode::InvalidArgument,
                "an RTR (peer to peer) needs MPA revision 2: set mpa.revision = 2");
  }
  return {};
}

mpa::Config ConnectRules::mpa_config(const StartPolicy& policy) const {
  mpa::Config config = config_.mpa;
  config.revision = policy.revision.value_or(config.revision);
  config.permissive = policy.permissive.value_or(config.permissive);
  config.crc = policy.crc.value_or(config.crc);
  config.markers_receive = policy.markers_receive.value_or(config.markers_receive);
  config.markers_send_allowed = policy.markers_send.value_or(config.markers_send_allowed);
  const RtrKinds rtr =
      policy.rtr.value_or(RtrKinds{config.rtr_send, config.rtr_write, config.rtr_read});
  config.rtr_send = rtr.send;
  config.rtr_write = rtr.write;
  config.rtr_read = rtr.read;
  config.first_fpdu_delay = policy.first_fpdu_delay.value_or(config.first_fpdu_delay);
  config.start_timeout = policy.timeout.value_or(config.start_timeout);
  config.rtr_timeout = policy.rtr_timeout.value_or(config.rtr_timeout);
  config.silent_drop = policy.silent_drop.value_or(config.silent_drop);
  config.reads_in_private_data =
      policy.reads_in_private_data.value_or(config.reads_in_private_data);
  config.redial = policy.fall_back.value_or(config.redial);
  return config;
}

tuf::Config ConnectRules::tuf_config(const StartPolicy& policy) const {
  tuf::Config config = config_.tuf;
  config.start_timeout = policy.timeout.value_or(config.start_timeout);
  return config;
}

Status ConnectRules::check_request(base::ByteView private_data, const mpa::Config& config,
                                   const framing::StartOptions& start_options) {
  const mpa::StartPlan plan = mpa::plan_request(config, start_options);
  return check_private_data(private_data, mpa::private_data_max(plan), plan.header.revision);
}

}  // namespace rnic::device
