#include "base/check.hpp"
#include "tcp/engine.hpp"

namespace rnic::tcp {

const char* to_string(State state) {
  switch (state) {
    case State::Closed: return "CLOSED";
    case State::Listen: return "LISTEN";
    case State::SynSent: return "SYN-SENT";
    case State::SynReceived: return "SYN-RECEIVED";
    case State::Established: return "ESTABLISHED";
    case State::FinWait1: return "FIN-WAIT-1";
    case State::FinWait2: return "FIN-WAIT-2";
    case State::CloseWait: return "CLOSE-WAIT";
    case State::Closing: return "CLOSING";
    case State::LastAck: return "LAST-ACK";
    case State::TimeWait: return "TIME-WAIT";
  }
  return "?";
}

class alignas(64) Stack::Impl : public Engine {
 public:
  using Engine::Engine;

  /// \return nullptr: the stream is another transport's, or another stack's
  [[nodiscard]] const Connection* find(const llp::Stream& stream) const {
    const auto* connection = dynamic_cast<const Connection*>(&stream);
    return connection != nullptr && owns(*connection) ? connection : nullptr;
  }
  /// Precondition: the stream is one of this stack's.
  [[nodiscard]] const Connection& connection_of(const llp::Stream& stream) const {
    const Connection* of_this_stack = find(stream);
    RNIC_CHECK(of_this_stack != nullptr);
    return *of_this_stack;
  }
  [[nodiscard]] Connection& connection_of(llp::Stream& stream) {
    const Connection* of_this_stack = find(stream);
    RNIC_CHECK(of_this_stack != nullptr);
    return dynamic_cast<Connection&>(stream);
  }
};

Stack::Stack(const Config& config, Egress& egress, std::array<uint64_t, 2> secret, uint64_t seed,
             base::Now now)
    : impl_(std::make_unique<Impl>(config, egress, secret, seed, now)) {}
Stack::~Stack() = default;
base::MemoryUses Stack::memory_use(const Config& config) { return Engine::memory_use(config); }

Result<Endpoint> Stack::reserve(const Endpoint& local) { return impl_->reserve(local); }
Status Stack::unreserve(const Endpoint& reserved) { return impl_->unreserve(reserved); }
Result<Endpoint> Stack::listen(const Endpoint& local, llp::Acceptor& acceptor,
                               llp::PortClaim claim, const TcpOptions& options) {
  const auto all = merged(default_options(), options);
  if (!all) return tl::unexpected(all.error());
  return impl_->listen(local, acceptor, *all, claim);
}
Result<Endpoint> Stack::listen(const Endpoint& local, llp::Acceptor& acceptor,
                               const ConnectionOptions& options, llp::PortClaim claim) {
  return impl_->listen(local, acceptor, options, claim);
}
Status Stack::unlisten(const Endpoint& local) { return impl_->unlisten(local); }
Result<llp::Stream*> Stack::connect(const Endpoint& local, const Endpoint& remote,
                                    llp::StreamUser& user, base::Now now, llp::PortClaim claim,
                                    const TcpOptions& options) {
  const auto all = merged(default_options(), options);
  if (!all) return tl::unexpected(all.error());
  return impl_->connect(local, remote, user, *all, now, claim);
}
Status Stack::choose(llp::Stream& stream, const TcpOptions& given, base::Now now) {
  const auto all = merged(options(stream), given);
  return all ? set_options(stream, *all, now) : tl::unexpected(all.error());
}
Result<llp::Stream*> Stack::connect(const Endpoint& local, const Endpoint& remote,
                                    llp::StreamUser& user, const ConnectionOptions& options,
                                    base::Now now, llp::PortClaim claim) {
  return impl_->connect(local, remote, user, options, now, claim);
}
ConnectionOptions Stack::default_options() const { return ConnectionOptions(impl_->config()); }
ConnectionOptions Stack::options(const llp::Stream& stream) const {
  return impl_->connection_of(stream).binding().options;
}
Status Stack::set_options(llp::Stream& stream, const ConnectionOptions& options, base::Now now) {
  if (Status good = check(options, "set_options"); !good) return good;
  impl_->connection_of(stream).set_options(options, now);
  return {};
}
void Stack::on_timers(base::Now now) { impl_->on_timers(now); }
void Stack::output(base::Now now) { impl_->output(now); }
bool Stack::due(base::Now now) { return impl_->due(now); }
bool Stack::has_output() const { return impl_->has_output(); }
base::Now Stack::next_deadline() const { return impl_->next_deadline(); }
void Stack::input(const SegmentIn& segment, base::Now now) { impl_->input(segment, now); }
void Stack::icmp_error(const llp::IcmpError& error, base::Now now) {
  impl_->icmp_error(error, now);
}
const Counters& Stack::counters() const { return impl_->counters(); }
uint32_t Stack::live_connections() const { return impl_->live_connections(); }
bool Stack::quiescent() const { return impl_->quiescent(); }
std::optional<ConnectionInfo> Stack::info(const llp::Stream& stream, base::Now now) const {
  const Connection* connection = impl_->find(stream);
  if (connection == nullptr) return std::nullopt;
  return connection->info(now);
}
TransportInfo Stack::describe(const llp::Stream& stream, base::Now now) const {
  const auto known = info(stream, now);
  if (!known) return {};
  TransportInfo told;
  told.rtt = known->srtt;
  told.rtt_variation = known->rttvar;
  told.rto = known->rto;
  told.idle = known->idle;
  told.mss = known->emss;
  told.cwnd = known->cwnd;
  told.ssthresh = known->ssthresh;
  told.in_flight = known->pipe;
  told.peer_window = known->snd_wnd;
  told.retransmitted = known->resent_segments;
  return told;
}
uint64_t Stack::validate() { return impl_->validate(); }
void Stack::force_isn(std::optional<uint32_t> isn) { impl_->force_isn(isn); }
void Stack::set_prediction(bool on) { impl_->set_prediction(on); }
void Stack::set_bursts(bool on) { impl_->set_bursts(on); }

}  // namespace rnic::tcp
