#include "device/connect_rules.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/fail.hpp"

namespace rnic::device {

using base::fail;

namespace {

uint16_t reads_of(std::optional<uint32_t> option, uint32_t own) {
  if (option == kReadsByApplication) return kReadsByApplication;
  return static_cast<uint16_t>(std::min<uint32_t>(option.value_or(own), kReadsByApplication - 1u));
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
  start_options.revision = options.revision.value_or(config.revision);
  start_options.exchange_reads = options.exchange_reads.value_or(config.exchange_reads);
  start_options.peer_to_peer = options.peer_to_peer.value_or(config.peer_to_peer);
  start_options.ird = reads_of(options.ird, spec.ird);
  start_options.ord = reads_of(options.ord, spec.ord);
  start_options.ord_required =
      static_cast<uint16_t>(std::min<uint32_t>(options.ord_required, 0x3ffe));
  return start_options;
}

Status ConnectRules::check_framing(Framing framing) const {
  if (framing > Framing::Tuf) {
    return fail(ErrorCode::InvalidArgument, "a number without a name for framing: Mpa or Tuf");
  }
  if (framing != Framing::Tuf || own_stack_ || config_.tuf.markers_receive) return {};
  return fail(ErrorCode::Unsupported,
              "over sockets of the system, which show no segments, ULP framing has marker mode "
              "only: set tuf.markers = true");
}

Status ConnectRules::check_options(const QueuePair& qp, const ConnectOptions& options) const {
  if (options.revision.value_or(0) > 2) {
    return fail(ErrorCode::InvalidArgument, "MPA has the revisions 0, 1 and 2");
  }
  const auto fits = [](std::optional<uint32_t> wanted, uint32_t own) {
    return !wanted || *wanted <= own || *wanted == kReadsByApplication;
  };
  if (!fits(options.ird, qp.spec().ird) || !fits(options.ord, qp.spec().ord)) {
    return fail(ErrorCode::InvalidArgument,
                "IRD or ORD of the connection is above the queue pair's: create it with more");
  }
  if ((options.packing || options.nagle) && !own_stack_) {
    return fail(ErrorCode::InvalidArgument,
                "packing and nagle are the choice of a device with a port of its own; the system's "
                "TCP makes its segments by itself");
  }
  if (options.framing.value_or(Framing::Mpa) == Framing::Tuf) {
    if (!options.revision) return {};  // either side may send first: Go is the RTR
    return fail(ErrorCode::InvalidArgument,
                "ULP framing has no MPA revision: leave the revision out, or connect over MPA");
  }
  const bool enhanced = options.revision.value_or(config_.mpa.revision) == 2;
  if (options.peer_to_peer.value_or(config_.mpa.peer_to_peer) && !enhanced) {
    return fail(ErrorCode::InvalidArgument,
                "an RTR (peer to peer) needs MPA revision 2: set mpa.revision = 2");
  }
  return {};
}

Status ConnectRules::check_request(base::ByteView private_data,
                                   const framing::StartOptions& start_options) const {
  const mpa::StartPlan plan = mpa::plan_request(config_.mpa, start_options);
  return check_private_data(private_data, mpa::private_data_max(plan), plan.header.revision);
}

}  // namespace rnic::device
