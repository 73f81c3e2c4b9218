#include "tcp/engine.hpp"

namespace rnic::tcp {

namespace {
constexpr uint64_t kPortPurpose = 0x706f727473;  // what the secret is used for here

/// A connection has a set for each direction.
uint32_t range_sets_of(const Config& config) {
  return std::min(config.max_range_sets, 2 * config.max_connections);
}
}  // namespace

Engine::Engine(const Config& config, Egress& egress, const Secret& secret, uint64_t seed,
               base::Now now)
    : config_(config),
      egress_(egress),
      secret_(secret),
      random_(secret, seed ^ kPortPurpose),
      wheel_(now),
      record_pool_(config.max_records, config.max_connections, config.max_records_per_connection),
      range_pool_(range_sets_of(config)),
      saved_(config.max_saved_octets),
      scratch_(kMaxRecordOctets),
      listeners_(config.max_listeners),
      connections_(config.max_connections),
      by_slot_(config.max_connections),
      free_slots_(config.max_connections),
      flows_(config.max_connections, secret),
      time_wait_(config.max_time_wait, config.time_wait, secret),
      cookies_(secret) {
  if (!config.syn_cookies && config.max_half_open != 0) {
    half_open_by_age_.emplace(half_open_limit(), secret);
  }
}

base::MemoryUses Engine::memory_use(const Config& config) {
  const uint32_t connections = config.max_connections;
  return {
      {"limits.max_connections", base::Slab<Connection>::octets_for(connections) +
                                     base::ZeroArray<Connection*>::octets_for(connections) +
                                     base::FreeNumbers::octets_for(connections) +
                                     FlowTable::octets_for(connections)},
      {"tcp.max_records", RecordPool::chunk_octets_for(config.max_records, connections)},
      {"tcp.max_records_per_connection",
       RecordPool::directory_octets_for(config.max_records, connections,
                                        config.max_records_per_connection)},
      {"tcp.max_range_sets", RangePool::octets_for(range_sets_of(config))},
      {"tcp.max_saved_octets", SavedRecords::octets_for(config.max_saved_octets)},
      {"tcp.max_listeners", ListenerTable::octets_for(config.max_listeners)},
      {"tcp.max_time_wait", TimeWaitTable::octets_for(config.max_time_wait)},
  };
}

Engine::~Engine() {
  connections_.for_each([this](base::Handle, Connection& c) { wheel_.cancel(c.timer); });
  wheel_.cancel(time_wait_timer_);
}

base::Now Engine::next_deadline() const {
  // What the output stage owes is due at once for whoever only polls by deadlines.
  return output_pending_ || !doomed_.empty() ? base::Now{} : wheel_.next_deadline();
}

bool Engine::quiescent() const {
  return replies_.empty() && record_pool_.live() == 0 && range_pool_.in_use() == 0 &&
         saved_.blocks_in_use() == 0 && connections_.live() == 0;
}

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

void Connection::ready() {
  user_ready = true;
  engine.make_ready(*this);
}
void Connection::close() { engine.close_stream(*this); }
void Connection::abort() { engine.abort_stream(*this); }
void Connection::room_grew() { engine.room_grew(*this); }

class Stack::Impl : public Engine {
 public:
  using Engine::Engine;
};

Stack::Stack(const Config& config, Egress& egress, std::array<uint64_t, 2> secret, uint64_t seed,
             base::Now now)
    : impl_(std::make_unique<Impl>(config, egress, secret, seed, now)) {}
Stack::~Stack() = default;
base::MemoryUses Stack::memory_use(const Config& config) { return Engine::memory_use(config); }

Status Stack::listen(const Endpoint& local, llp::Acceptor& acceptor) {
  return impl_->listen(local, acceptor, default_options());
}
Status Stack::listen(const Endpoint& local, llp::Acceptor& acceptor,
                     const ConnectionOptions& options) {
  return impl_->listen(local, acceptor, options);
}
Status Stack::unlisten(const Endpoint& local) { return impl_->unlisten(local); }
Result<llp::Stream*> Stack::connect(const Endpoint& local, const Endpoint& remote,
                                    llp::StreamUser& user, base::Now now) {
  return impl_->connect(local, remote, user, default_options(), now);
}
Result<llp::Stream*> Stack::connect(const Endpoint& local, const Endpoint& remote,
                                    llp::StreamUser& user, const ConnectionOptions& options,
                                    base::Now now) {
  return impl_->connect(local, remote, user, options, now);
}
ConnectionOptions Stack::default_options() const { return ConnectionOptions(impl_->config()); }
ConnectionOptions Stack::options(const llp::Stream& stream) const {
  return static_cast<const Connection&>(stream).options;
}
Status Stack::set_options(llp::Stream& stream, const ConnectionOptions& options, base::Now now) {
  return impl_->set_options(static_cast<Connection&>(stream), options, now);
}
void Stack::on_timers(base::Now now) { impl_->on_timers(now); }
void Stack::output(base::Now now) { impl_->output(now); }
base::Now Stack::next_deadline() const { return impl_->next_deadline(); }
void Stack::input(const SegmentIn& segment, base::Now now) { impl_->input(segment, now); }
void Stack::icmp_error(const IcmpError& error, base::Now now) { impl_->icmp_error(error, now); }
const Counters& Stack::counters() const { return impl_->counters(); }
uint32_t Stack::live_connections() const { return impl_->live_connections(); }
bool Stack::quiescent() const { return impl_->quiescent(); }
std::optional<ConnectionInfo> Stack::info(llp::Stream& stream) const {
  auto* connection = dynamic_cast<Connection*>(&stream);
  if (connection == nullptr || &connection->engine != impl_.get()) return std::nullopt;
  return impl_->info(*connection);
}
void Stack::validate() { impl_->validate(); }
void Stack::force_isn(std::optional<uint32_t> isn) { impl_->force_isn(isn); }
void Stack::set_prediction(bool on) { impl_->set_prediction(on); }

}  // namespace rnic::tcp
