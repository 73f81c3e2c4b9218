#include "stream/world.hpp"

#include <algorithm>

namespace rnic::simulation {

namespace flag = wire::tcp_flag;

namespace {

constexpr uint16_t kListenPort = 4420;
constexpr uint16_t kFirstPort = 40'000;
constexpr uint64_t kStepLimit = 3'000'000;
constexpr uint64_t kStepsPerForged = 2;  // what is forged, and its answer on its way
constexpr base::Duration kTurn = std::chrono::microseconds(1);
// TIME-WAIT, lost last acknowledgments, what is underway.
constexpr base::Duration kAfterwards = std::chrono::minutes(30);

}  // namespace

StreamWorld::StreamWorld(const StreamPlan& plan, const Recording& recording)
    : plan_(plan),
      recording_(recording),
      prng_(plan.seed ^ 0x73747265616dull),
      attacker_(prng_.next()) {
  if (!recording.prefix.empty()) {
    trace_file_ = recording.open_trace();
    for (uint32_t side = 0; side < 2; ++side) {
      auto writer =
          pcap::Writer::open(recording.prefix + (side == 0 ? ".left" : ".right") + ".pcapng");
      if (writer) {
        captures_[side] = std::move(*writer);
      } else {
        recording.lose(writer.error().message);
      }
    }
  }
  for (uint32_t side = 0; side < 2; ++side) {
    paths_[side] = std::make_unique<Path>(
        plan_.path[side], prng_.next(),
        [this, side](Datagram&& d, base::Now now) { on_arrival(1 - side, std::move(d), now); });
  }
  build_hosts();
  for (uint32_t i = 0; i < plan_.connections; ++i) build_pipe(i);
  if (plan_.attack_gap.count() != 0) next_attack_ = now_;
}

StreamWorld::~StreamWorld() {
  recording_.close_trace(trace_file_);
  for (uint32_t side = 0; side < 2; ++side) {
    if (captures_[side] == nullptr) continue;
    captures_[side]->flush();
    recording_.check_capture(side == 0 ? "left" : "right", *captures_[side]);
  }
}

IpAddress StreamWorld::address(uint32_t side) const {
  return plan_.ipv6 ? IpAddress(0xfd00000000000000, 1 + side) : IpAddress::v4(0x0a000001u + side);
}

void StreamWorld::build_hosts() {
  for (uint32_t side = 0; side < (plan_.plain_peer ? 1u : 2u); ++side) {
    HostPlan host;
    host.address = address(side);
    host.peer = address(1 - side);
    host.network = plan_.network;
    host.mtu = plan_.mtu[side];
    host.tcp = plan_.tcp[side];
    host.port_full = plan_.port_full;
    host.poll_gap = plan_.poll_gap;
    host.pause = plan_.pause;
    host.pause_max = plan_.pause_max;
    host.seed = prng_.next();
    hosts_[side] = std::make_unique<Host>(
        host, verdict_, now_,
        [this, side](Datagram&& d, base::Now now) { on_sent(side, std::move(d), now); },
        [this, side](const Datagram& d, base::Now) { on_arriving(side, d); },
        [this, side](const Datagram& d, Fate fate, base::Now now) {
          for (auto& pipe : pipes_) pipe->judge->delivered(side, d, fate, now);
        });
    hosts_[side]->listen(kListenPort);
  }
}

void StreamWorld::build_pipe(uint32_t number) {
  pipes_.push_back(std::make_unique<Pipe>());
  Pipe& pipe = *pipes_.back();
  pipe.active = plan_.plain_peer ? (plan_.peer.active ? 1 : 0) : uint32_t(prng_.below(2));
  std::array<uint64_t, 2> keys{prng_.next(), prng_.next()};
  std::array<JudgedSide, 2> judged;
  for (uint32_t side = 0; side < 2; ++side) {
    pipe.ends[side] = {address(side), side == pipe.active
                                          ? static_cast<uint16_t>(kFirstPort + number)
                                          : kListenPort};
    judged[side].end = pipe.ends[side];
    judged[side].ours = hosts_[side] != nullptr;
    judged[side].key = keys[side];
    judged[side].octets = plan_.application[side].octets;
    judged[side].forgets_syns = plan_.flood != 0;
    judged[side].prompt = !plan_.tcp[side].pacing && plan_.pause == 0 &&
                          plan_.tcp[side].max_records_per_connection > 64;
    judged[side].ecn_on_syn = plan_.tcp[side].congestion_control == CongestionControl::Dctcp;
    judged[side].ecn_on_control = plan_.tcp[side].dctcp_ect_on_control;
    judged[side].initial_segments = plan_.tcp[side].initial_window_segments;
    octets_ += plan_.application[side].octets;
  }
  const std::string name = "stream " + std::to_string(number);
  for (uint32_t side = 0; side < 2; ++side) {
    const StreamContent content{keys[side], keys[1 - side], judged[side].octets,
                                judged[1 - side].octets};
    if (hosts_[side] == nullptr) {
      peer_ = std::make_unique<PlainPeer>(
          plan_.peer, plan_.application[side], content, pipe.ends[side], pipe.ends[1 - side],
          prng_.next(), verdict_,
          [this, side](Datagram&& d, base::Now now) { on_sent(side, std::move(d), now); });
      continue;
    }
    pipe.applications[side] =
        make_application(name + (side == 0 ? " left" : " right"), plan_.application[side], content,
                         prng_.next(), verdict_);
    Application* application = pipe.applications[side].get();
    hosts_[side]->add(*application);
    judged[side].gone = [application] { return application->how_ended().has_value(); };
    if (side != pipe.active) hosts_[side]->expect(pipe.ends[1 - side].port, *application);
    if (plan_.whole_records && plan_.application[side].records) {
      judged[side].is_boundary = [application](uint64_t o) { return application->is_boundary(o); };
    }
  }
  pipe.judge = std::make_unique<Judge>(name, judged, verdict_);
  if (hosts_[pipe.active] != nullptr) {
    if (hosts_[1 - pipe.active] != nullptr) {
      for (uint32_t i = 0; i < plan_.flood; ++i) flood(1 - pipe.active);
    }
    hosts_[pipe.active]->connect(pipe.ends[pipe.active], pipe.ends[1 - pipe.active],
                                 *pipe.applications[pipe.active], now_);
  }
}

void StreamWorld::trace(uint32_t side, const char* what, const Datagram& d) {
  if (captures_[side] != nullptr) {
    captures_[side]->append(now_, ethernet_frame(d),
                            *what == 's' ? pcap::Way::Outbound : pcap::Way::Inbound);
  }
  if (trace_file_ == nullptr) return;
  std::fprintf(trace_file_, "%.6f %u %s %u>%u seq %u ack %u flags %02x win %u len %u\n",
               static_cast<double>(base::nanos(now_)) * 1e-9, side, what,
               base::load_be16(d.tcp.data()), base::load_be16(d.tcp.data() + 2), d.sequence(),
               base::load_be32(&d.tcp[8]), d.flags(), base::load_be16(&d.tcp[14]), d.payload());
}

void StreamWorld::on_sent(uint32_t side, Datagram&& d, base::Now now) {
  trace(side, "sent", d);
  fingerprint_.sent(side, d.tcp, now);
  if (plan_.flood != 0 && d.destination != address(1 - side)) return;
  const uint32_t mtu = hosts_[side] != nullptr ? hosts_[side]->mtu(now) : 65'535;
  bool known = false;
  for (auto& pipe : pipes_) {
    if (pipe->judge == nullptr || !pipe->judge->matches(side, d)) continue;
    pipe->judge->sent(side, d, mtu, now);
    known = true;
  }
  if (!known) verdict_.fail("judge", "a segment with addresses or ports of no stream");
  paths_[side]->send(std::move(d), now);
}

void StreamWorld::on_arrival(uint32_t side, Datagram&& d, base::Now now) {
  if (hosts_[side] != nullptr) {
    hosts_[side]->receive(std::move(d));
    return;
  }
  on_arriving(side, d);
  for (auto& pipe : pipes_) pipe->judge->delivered(side, d, Fate::Taken, now);
  peer_->receive(d, now);
}

void StreamWorld::on_arriving(uint32_t side, const Datagram& d) {
  trace(side, "received", d);
  for (auto& pipe : pipes_) pipe->judge->arriving(side);
}

void StreamWorld::attack() {
  next_attack_ = now_ + base::Duration(static_cast<int64_t>(
                            prng_.below(static_cast<uint64_t>(plan_.attack_gap.count()) + 1)));
  const Pipe& pipe = *pipes_[prng_.below(pipes_.size())];
  const auto side = static_cast<uint32_t>(prng_.below(2));
  if (hosts_[side] == nullptr || !hosts_[side]->idle()) return;
  const Application& victim = *pipe.applications[side];
  const auto numbers = pipe.judge->numbers(side);
  // An end that has gone answers everything with RST, as it should.
  if (!numbers || victim.how_ended()) return;
  if (plan_.flood != 0) flood(side);
  if (prng_.chance(plan_.informed_forger ? 0.7 : 0.15)) return forge_message(pipe, side, *numbers);
  const Datagram d = attacker_.forge(*pipe.judge, side, *numbers);
  trace(side, "forged", d);
  ++attacks_;
  pipe.judge->forged(side, d);
  hosts_[side]->inject(d, now_);
  hosts_[side]->validate();
}

void StreamWorld::forge_message(const Pipe& pipe, uint32_t side, const Judge::Numbers& numbers) {
  // RFC 5927 s.4.1: what is quoted was never in flight.
  Datagram d = attacker_.quoted(*pipe.judge, side, numbers);
  constexpr std::array kKinds{llp::IcmpError::Kind::Hard, llp::IcmpError::Kind::Soft,
                              llp::IcmpError::Kind::SourceQuench,
                              llp::IcmpError::Kind::PacketTooBig};
  const llp::IcmpError::Kind kind =
      plan_.informed_forger ? llp::IcmpError::Kind::PacketTooBig : kKinds[prng_.below(4)];
  Host& host = *hosts_[side];
  const bool informed = plan_.informed_forger && prng_.chance(0.5);
  if (informed) {
    const uint32_t flight = std::max(numbers.snd_nxt - numbers.snd_una, 1u);
    base::store_be32(&d.tcp[wire::kTcpSequenceAt],
                     static_cast<uint32_t>(numbers.snd_una + prng_.below(flight)));
  }
  ++messages_;
  const uint32_t mtu = host.mtu(now_);
  const uint64_t reductions = host.stack().counters().path_mtu_reductions;
  host.icmp({.kind = kind,
             .mtu = static_cast<uint32_t>(prng_.below(2000)),
             .quoted_length = d.ip_length(),
             .source = d.source,
             .destination = d.destination,
             .tcp = base::ByteView(d.tcp).first(prng_.between(0, 20))},
            now_);
  host.validate();
  // A message about nothing that is in flight changes nothing at once; no message takes the path
  // below what every net carries (RFC 791, RFC 8200 s.5).
  if (!informed && host.stack().counters().path_mtu_reductions != reductions) {
    verdict_.fail("forged", "a forged message reduced the path MTU");
  }
  if (host.mtu(now_) < std::min(mtu, plan_.ipv6 ? 1280u : 68u)) {
    verdict_.fail("forged", "a path of " + std::to_string(host.mtu(now_)) + " octets");
  }
}

void StreamWorld::flood(uint32_t side) {
  if (hosts_[side] == nullptr) return;
  hosts_[side]->inject(attacker_.spoofed_syn({address(side), kListenPort}), now_);
  ++attacks_;
}

void StreamWorld::shrink_paths() {
  for (uint32_t side = 0; side < 2; ++side) {
    const PathPlan& path = plan_.path[side];
    if (path.later_mtu == 0 || shrunk_[side] || now_ < started_ + path.mtu_at) continue;
    shrunk_[side] = true;
    paths_[side]->set_mtu(path.later_mtu,
                          [this, side](const Datagram& d, uint32_t mtu, base::Now now) {
                            router_says(side, d, mtu, now);
                          });
  }
}

void StreamWorld::router_says(uint32_t side, const Datagram& d, uint32_t mtu, base::Now now) {
  const RouterNews news = plan_.path[side].news;
  if (news == RouterNews::Nothing || hosts_[side] == nullptr) return;
  ++messages_;
  news_.emplace(now + plan_.path[side].delay, News{side, news == RouterNews::Mtu ? mtu : 0, d});
}

void StreamWorld::deliver_news() {
  while (!news_.empty() && news_.begin()->first <= now_) {
    const News news = std::move(news_.begin()->second);
    news_.erase(news_.begin());
    const Datagram& d = news.packet;
    hosts_[news.side]->icmp({.kind = llp::IcmpError::Kind::PacketTooBig,
                             .mtu = news.mtu,
                             .quoted_length = d.ip_length(),
                             .source = d.source,
                             .destination = d.destination,
                             .tcp = base::ByteView(d.tcp).first(8)},
                            now_);
    hosts_[news.side]->validate();
  }
}

void StreamWorld::step() {
  ++steps_;
  shrink_paths();
  deliver_news();
  for (auto& path : paths_) path->run(now_);
  for (auto& host : hosts_) {
    if (host != nullptr) host->run(now_);
  }
  if (peer_ != nullptr) peer_->run(now_);
  for (const auto& pipe : pipes_) {
    for (uint32_t side = 0; side < 2; ++side) {
      const Application* application = pipe->applications[side].get();
      if (application != nullptr) pipe->judge->turned(side, application->given(), now_);
    }
  }
  if (next_attack_ <= now_) attack();
}

base::Now StreamWorld::next_event() const {
  base::Now next = base::kNever;
  for (const auto& path : paths_) next = base::earlier(next, path->next_deadline());
  if (!news_.empty()) next = base::earlier(next, news_.begin()->first);
  for (const auto& host : hosts_) {
    if (host != nullptr) next = base::earlier(next, host->next_deadline(now_));
  }
  if (peer_ != nullptr) next = base::earlier(next, peer_->next_deadline());
  return over() ? next : base::earlier(next, next_attack_);
}

bool StreamWorld::over() const {
  for (const auto& pipe : pipes_) {
    for (const auto& application : pipe->applications) {
      if (application == nullptr) continue;
      if (!application->how_ended() || application->is_behind()) return false;
    }
  }
  return peer_ == nullptr || peer_->done();
}

bool StreamWorld::quiet() const {
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    if (!host->idle() || !host->stack().quiescent() || host->stack().live_connections() != 0) {
      return false;
    }
  }
  return paths_[0]->empty() && paths_[1]->empty();
}

Outcome StreamWorld::run() {
  const base::Now limit = started_ + plan_.limit;
  base::Now over_at = base::kNever;
  while (!verdict_.failed()) {
    step();
    if (over_at == base::kNever && over()) over_at = now_;
    if (over_at != base::kNever && quiet()) break;
    const base::Now next = next_event();
    if (next == base::kNever) {
      verdict_.fail("stall", over_at == base::kNever ? "nothing will ever happen again"
                                                     : "something was not returned");
      break;
    }
    now_ = std::max(next, now_ + kTurn);
    if (steps_ > kStepLimit + kStepsPerForged * attacks_) verdict_.fail("stall", "too many steps");
    if (over_at == base::kNever && now_ > limit) verdict_.fail("stall", "too much virtual time");
    if (over_at != base::kNever && now_ > over_at + kAfterwards) {
      verdict_.fail("returned", "connections or memory are left long after the end");
    }
  }
  if (!verdict_.failed()) finish();
  Outcome outcome;
  count(outcome.totals);
  if (verdict_.failed()) outcome.state = describe();
  outcome.ok = !verdict_.failed();
  outcome.checker = verdict_.checker();
  outcome.message = verdict_.message();
  outcome.virtual_seconds = static_cast<double>((now_ - started_).count()) * 1e-9;
  outcome.steps = steps_;
  outcome.fingerprint = fingerprint();
  return outcome;
}

void StreamWorld::finish() {
  for (const auto& pipe : pipes_) {
    for (const auto& application : pipe->applications) {
      if (application != nullptr) application->check_end();
    }
  }
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    const tcp::Counters& c = host->stack().counters();
    if (plan_.whole_records && c.resegmented_records != 0) {
      verdict_.fail("records", std::to_string(c.resegmented_records) + " records were cut");
    }
  }
}

uint64_t StreamWorld::fingerprint() {
  for (const auto& pipe : pipes_) {
    for (const auto& application : pipe->applications) {
      if (application == nullptr) continue;
      fingerprint_.number(application->given());
      const auto ended = application->how_ended();
      fingerprint_.number(ended ? 1 + uint64_t(*ended) : 0);
    }
  }
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    host->stack().counters().for_each(
        [&](const base::CounterRow& row) { fingerprint_.counter("tcp", row); });
  }
  return fingerprint_.value();
}

std::string StreamWorld::describe() const {
  std::string text = "at " + std::to_string(static_cast<double>((now_ - started_).count()) * 1e-9) +
                     " s, step " + std::to_string(steps_) + "\n";
  for (const auto& pipe : pipes_) text += pipe->judge->describe();
  if (peer_ != nullptr) text += peer_->describe();
  for (uint32_t side = 0; side < 2; ++side) {
    if (hosts_[side] == nullptr) continue;
    text += "side " + std::to_string(side) + ":";
    hosts_[side]->stack().counters().for_each([&](const base::CounterRow& row) {
      if (row.value != 0) text += " " + std::string(row.name) + " " + std::to_string(row.value);
    });
    text += "\n";
  }
  return text;
}

void StreamWorld::count(Totals& totals) const {
  totals.worlds = 1;
  totals.octets = octets_;
  totals.forged = attacks_;
  totals.icmp = messages_;
  for (const auto& path : paths_) {
    const Path::Counters& c = path->counters();
    totals.frames += c.packets;
    totals.drops += c.dropped;
    totals.reordered += c.reordered;
    totals.duplicated += c.duplicated;
    totals.corrupted += c.corrupted;
    totals.cut += c.cut;
    totals.joined += c.joined;
    totals.marked += c.marked;
    totals.too_big += c.too_big;
  }
  for (const auto& host : hosts_) {
    if (host == nullptr) continue;
    const tcp::Counters& c = host->stack().counters();
    totals.retransmissions += c.retransmitted_segments;
    totals.timeouts += c.timeouts;
    totals.resegmented += c.resegmented_records;
    totals.probes += c.window_probes;
    totals.challenges += c.challenge_acks;
    totals.paws += c.paws_rejected;
    totals.recoveries += c.fast_recoveries;
    totals.mtu_reductions += c.path_mtu_reductions;
    totals.black_holes += c.black_holes;
  }
}

}  // namespace rnic::simulation
