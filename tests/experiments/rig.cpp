#include "rig.hpp"

#include "base/check.hpp"

namespace rnic::experiment {

namespace {

constexpr uint16_t kPort = 7471;

bool is_tuf(Framing framing) {
  return framing == Framing::TufKey || framing == Framing::TufMarkers;
}
bool is_unaligned(Framing framing) {
  return framing == Framing::MpaUnaligned || framing == Framing::MpaUnalignedMarkers;
}
bool has_mpa_markers(Framing framing) {
  return framing == Framing::MpaMarkers || framing == Framing::MpaUnalignedMarkers;
}

PathConfig path_for(const RigConfig& config) {
  PathConfig path = config.path;
  tcp::Config& tcp = path.tcp;
  // What is not aligned fills its segments itself.
  tcp.pack_records = config.packing && !is_unaligned(config.framing);
  tcp.max_connections = std::max(64u, config.connections + 8);
  tcp.max_half_open = tcp.max_half_open_per_listener = tcp.max_connections;
  tcp.max_range_sets = std::max(256u, 2 * config.connections);
  tcp.max_records = std::max(tcp.max_records, 16 * config.connections);
  return path;
}

}  // namespace

const char* to_string(Framing framing) {
  switch (framing) {
    case Framing::Mpa: return "MPA, aligned";
    case Framing::MpaMarkers: return "MPA, aligned, markers";
    case Framing::MpaUnaligned: return "MPA, neither";
    case Framing::MpaUnalignedMarkers: return "MPA, markers only";
    case Framing::TufKey: return "TUF, key";
    case Framing::TufMarkers: return "TUF, markers";
  }
  return "unknown";
}

tcp::Config plain_tcp() {
  tcp::Config config;
  config.timestamps = false;
  config.congestion_control = CongestionControl::NewReno;
  config.hystart = false;
  config.mtu_probing = false;
  config.max_records_per_connection = 65536;
  config.max_records = 262'144;
  return config;
}

RigConfig hard_path(Framing framing, double loss, double split, uint64_t seed) {
  RigConfig config;
  config.path.tcp = plain_tcp();
  config.path.loss = loss;
  config.path.split = split;
  config.path.seed = seed;
  config.framing = framing;
  config.message_octets = 64 * 1024;
  return config;
}

/// Accepts what is asked for, and remembers how the start-up went.
class Rig::Owner final : public framing::StartEvents {
 public:
  void request_received(const framing::StartOffer&, base::ByteView, base::Now now) override {
    session->accept({}, now);
  }
  void started(const framing::Negotiated&, base::ByteView, base::Now) override { running = true; }
  void start_failed(framing::StartFailure, base::ByteView, base::Now) override { failed = true; }

  framing::StartSession* session = nullptr;
  bool running = false;
  bool failed = false;
};

struct Rig::Connection {
  explicit Connection(uint32_t message_octets) : source(message_octets) {}
  Source source;
  Sink sink;
  std::array<Owner, 2> owners;
  std::array<std::unique_ptr<framing::StartSession>, 2> sessions;
  std::unique_ptr<Unaligned> unaligned;
  llp::Stream* stream = nullptr;  // the initiator's
};

class Rig::Acceptor final : public llp::Acceptor {
 public:
  explicit Acceptor(Rig& rig) : rig_(rig) {}
  llp::StreamUser* accept(llp::Stream& stream, const Endpoint&, const Endpoint& remote,
                          base::Now) override {
    const uint32_t number = rig_.by_port_[remote.port];
    if (number == 0) return nullptr;
    framing::StartSession& session = *rig_.connections_[number - 1]->sessions[kResponder];
    session.attach(stream);
    return &session;
  }

 private:
  Rig& rig_;
};

Rig::Rig(const RigConfig& config)
    : config_(config),
      prng_(config.path.seed ^ 0x726967),
      by_port_(65536),
      acceptor_(std::make_unique<Acceptor>(*this)),
      path_(path_for(config)) {
  for (uint32_t end = 0; end < 2; ++end) {
    hold_[end] = framing::make_hold_store(end == kResponder ? config.hold_octets : 1u << 20);
    pack_[end] = tuf::make_pack_store(1u << 16);
  }
  for (uint32_t i = 0; i < config.connections; ++i) {
    connections_.push_back(std::make_unique<Connection>(config.message_octets));
    Connection& c = *connections_.back();
    for (uint32_t end = 0; end < 2; ++end) {
      c.sessions[end] = make_session(end, c.owners[end], i);
      c.owners[end].session = c.sessions[end].get();
    }
    c.sessions[kInitiator]->bind(c.source);
    c.sessions[kResponder]->bind(c.sink);
    if (is_unaligned(config.framing)) {
      c.unaligned = std::make_unique<Unaligned>(
          *c.sessions[kInitiator], static_cast<uint32_t>(prng_.between(1, config.path.mtu - 41)));
    }
  }
}

Rig::~Rig() = default;

std::unique_ptr<framing::StartSession> Rig::make_session(uint32_t end, Owner& owner,
                                                         uint32_t number) {
  const auto role = end == kInitiator ? framing::Role::Initiator : framing::Role::Responder;
  if (!is_tuf(config_.framing)) {
    mpa::Config mpa;
    mpa.crc = config_.crc;
    mpa.markers_receive = end == kResponder && has_mpa_markers(config_.framing);
    mpa.receive_window = config_.receive_window;
    // The draft's receiver takes cut FPDUs as they come: it has no silent drop to suspect them.
    if (is_unaligned(config_.framing)) mpa.silent_drop = false;
    return std::make_unique<mpa::Session>(mpa, role, *hold_[end], mpa_counters_[end], owner,
                                          base::ByteView{});
  }
  tuf::Config tuf;
  tuf.packing = config_.packing;
  tuf.align_receive = config_.framing == Framing::TufKey;
  tuf.marker_interval = config_.tuf_interval;
  tuf.receive_window = config_.receive_window;
  const wire::TufKey key = prng_.next() & wire::kTufKeyMask;
  static_cast<void>(number);
  return std::make_unique<tuf::Session>(tuf, role, key, *hold_[end], *pack_[end],
                                        tuf_counters_[end], owner, base::ByteView{});
}

bool Rig::start() {
  RNIC_CHECK(
      path_.stack(kResponder).listen({path_.address(kResponder), kPort}, *acceptor_).has_value());
  const Endpoint remote{path_.address(kResponder), kPort};
  uint32_t begun = 0;
  uint32_t ready = 0;
  // A few at a time: a thousand SYNs at once are no experiment.
  return path_.run_until(
      [&] {
        while (ready < begun && connections_[ready]->source.may_send_now()) ++ready;
        while (begun < connections_.size() && begun - ready < 64) {
          Connection& c = *connections_[begun];
          llp::StreamUser& user = c.unaligned != nullptr
                                      ? static_cast<llp::StreamUser&>(*c.unaligned)
                                      : *c.sessions[kInitiator];
          tcp::ConnectionOptions options = path_.stack(kInitiator).default_options();
          options.max_segment = config_.max_segment;
          auto stream =
              path_.stack(kInitiator)
                  .connect({path_.address(kInitiator), 0}, remote, user, options, path_.now());
          RNIC_CHECK(stream.has_value());
          c.stream = *stream;
          c.sessions[kInitiator]->attach(**stream);
          by_port_[(*stream)->local().port] = ++begun;
        }
        return ready == connections_.size();
      },
      std::chrono::seconds(600));
}

void Rig::send(uint64_t messages) {
  for (auto& c : connections_) {
    c->source.add(messages);
    c->sessions[kInitiator]->ready();
  }
}

bool Rig::finish(base::Duration limit) {
  uint32_t done = 0;  // connections that are known to be
  return path_.run_until(
      [&] {
        while (done < connections_.size()) {
          const Connection& c = *connections_[done];
          if (c.sink.delivered() < c.source.wanted() ||
              c.source.acknowledged() < c.source.wanted()) {
            return false;
          }
          ++done;
        }
        return true;
      },
      limit);
}

uint64_t Rig::held(uint32_t connection) const {
  return connections_[connection]->sessions[kResponder]->held();
}
uint32_t Rig::connection_of(const Frame& frame) const {
  const uint32_t number = by_port_[frame.source_port()];
  return number == 0 ? connections() : number - 1;
}
Source& Rig::source(uint32_t connection) { return connections_[connection]->source; }
Sink& Rig::sink(uint32_t connection) { return connections_[connection]->sink; }

uint64_t Rig::sum(uint64_t (Sink::*value)() const) const {
  uint64_t all = 0;
  for (const auto& c : connections_) all += (c->sink.*value)();
  return all;
}
uint64_t Rig::delivered() const { return sum(&Sink::delivered); }
uint64_t Rig::early() const { return sum(&Sink::early); }
uint64_t Rig::wrong() const {
  uint64_t all = sum(&Sink::wrong);
  for (const auto& c : connections_) {
    if (c->sink.error() != llp::FramingError::None || c->owners[0].failed || c->owners[1].failed) {
      ++all;
    }
  }
  return all;
}
tcp::ConnectionInfo Rig::info(uint32_t connection) {
  return *path_.stack(kInitiator).info(*connections_[connection]->stream, path_.now());
}
uint64_t Rig::acknowledged() const {
  uint64_t all = 0;
  for (const auto& c : connections_) all += c->source.acknowledged();
  return all;
}

}  // namespace rnic::experiment
