// Section 8: MPA at one end only.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "base/log.hpp"
#include "experiments.hpp"
#include "services.hpp"
#include "sim/sim.hpp"

namespace rnic::experiment {

namespace {

constexpr uint16_t kMpaPort = 7471;
constexpr uint16_t kPlainPort = 9;
constexpr const char* kHello = "MPA HELLO\n";
constexpr const char* kHelloAck = "MPA HELLO ACK\n";

/// Two devices: the left one has MPA, the right one a plain application.
class Bench {
 public:
  Bench() : link_(link_config()) {
    base::set_log_level(base::LogLevel::Off);
    for (uint32_t i = 0; i < 2; ++i) {
      device::DeviceConfig config;
      config.name = i == 0 ? "left" : "right";
      config.net.address = IpAddress::v4(0x0a000001u + i);
      config.seed = i + 1;
      config.tcp.max_connections = 16;
      config.tcp.max_records = 4096;
      config.tcp.max_records_per_connection = 1024;
      config.tcp.time_wait = std::chrono::milliseconds(1);
      config.limits.max_qps = 8;
      config.limits.max_cqs = 8;
      config.limits.max_regions = 8;
      config.limits.max_connections = 8;
      config.limits.max_streams = 8;
      config.limits.stream_buffer = 64u << 10;
      config.limits.stream_octets = 1u << 20;
      config.limits.hold_octets = 1u << 20;
      port::Port& port = i == 0 ? static_cast<port::Port&>(link_.a()) : link_.b();
      devices_[i] = std::make_unique<device::Device>(config, port, now_);
    }
  }

  device::Device& left() { return *devices_[0]; }
  device::Device& right() { return *devices_[1]; }
  [[nodiscard]] base::Now now() const { return now_; }
  [[nodiscard]] static Endpoint end(uint32_t i, uint16_t port) {
    return {IpAddress::v4(0x0a000001u + i), port};
  }

  device::QueuePair* make_qp() {
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = *left().alloc_pd();
    spec.send_cq = *left().create_cq(16);
    spec.receive_cq = *left().create_cq(16);
    spec.send_depth = spec.receive_depth = 8;
    return *left().create_qp(spec);
  }

  /// Runs both devices and `applications` until `done` says so. \return done()
  bool run(const std::function<void()>& applications, const std::function<bool()>& done,
           base::Duration limit = std::chrono::seconds(200)) {
    const base::Now end = now_ + limit;
    while (now_ < end) {
      applications();
      if (done()) return true;
      const uint32_t work = left().poll(now_) + right().poll(now_);
      while (auto event = left().poll_event()) events.push_back(std::move(*event));
      if (work != 0 || left().doorbell_ringing() || right().doorbell_ringing()) {
        now_ += std::chrono::microseconds(1);
        continue;
      }
      const base::Now next = base::earlier(left().next_deadline(), right().next_deadline());
      if (next == base::kNever) break;
      now_ = std::max(now_ + base::Duration(1), next);
    }
    return done();
  }

  std::vector<Event> events;  ///< of the left device

 private:
  static sim::LinkConfig link_config() {
    sim::LinkConfig config;
    config.a_to_b.delay = config.b_to_a.delay = std::chrono::microseconds(500);
    config.a_to_b.bits_per_second = config.b_to_a.bits_per_second = 1'000'000'000;
    config.slots = 1024;
    return config;
  }

  base::Now now_ = base::from_nanos(1'000'000);
  sim::Link link_;
  std::array<std::unique_ptr<device::Device>, 2> devices_;
};

std::string events_of(const Bench& bench) {
  std::string text;
  for (const Event& event : bench.events) {
    if (!text.empty()) text += ", ";
    text += to_string(event);
  }
  return text.empty() ? "none" : text;
}

/// The error code of an attempt that has failed, 0 where it has none; nothing: it has not failed.
std::optional<uint8_t> code_of(const Event& event) {
  const auto of = [](const event::Ending& e) { return e.fault ? e.fault->code : uint8_t{0}; };
  if (const auto* failed = std::get_if<event::ConnectFailed>(&event)) return of(*failed);
  if (const auto* failed = std::get_if<event::RequestFailed>(&event)) return of(*failed);
  if (const auto* gone = std::get_if<event::RequestWithdrawn>(&event)) return of(*gone);
  if (std::holds_alternative<event::Rejected>(event)) return uint8_t{0};
  return std::nullopt;
}

std::string error_of(const Bench& bench) {
  for (const Event& event : bench.events) {
    const auto code = code_of(event);
    if (!code) continue;
    return (*code == 0 ? "" : "error " + std::to_string(*code) + ": ") + common(event).detail;
  }
  return "";
}

/// The counters of the MPA end that tell what happened.
std::string counters_of(device::Device& device) {
  std::string text;
  device.for_each_counter([&](const std::string& layer, const base::CounterRow& row) {
    const std::string name = row.name;
    const bool tells =
        (layer == "mpa" && name.rfind("start", 0) == 0) || name == "connects_redialed";
    if (!tells || row.value == 0) return;
    if (!text.empty()) text += ", ";
    text += layer + "." + name + " " + std::to_string(row.value);
  });
  return text;
}

void finish_case(EnablementCase& one, Bench& bench, const PlainEnd& plain,
                 std::optional<base::Now> begun, bool over) {
  one.error = error_of(bench);
  one.event = events_of(bench);
  one.counter = counters_of(bench.left());
  one.peer_sees = plain.seen();
  one.delivered = bench.left().mpa_counters().fpdus_in;
  if (over && begun) {
    one.milliseconds = static_cast<double>((bench.now() - *begun).count()) * 1e-6;
  }
}

/// Our initiator comes to a plain server.
EnablementCase initiator_at(const Service& service) {
  EnablementCase one{service.name, "initiator", {}, {}, {}, {}};
  Bench bench;
  auto listener = bench.right().listen_stream(Bench::end(1, kPlainPort), 4);
  device::QueuePair* qp = bench.make_qp();
  static_cast<void>(bench.left().connect(*qp, Bench::end(1, kPlainPort), {}, bench.now()));
  std::vector<std::unique_ptr<PlainEnd>> plain;  // a second one when it is tried again
  std::optional<base::Now> begun;
  const bool over = bench.run(
      [&] {
        while (device::StreamSocket* socket = (*listener)->next()) {
          plain.push_back(std::make_unique<PlainEnd>(bench.right(), service));
          plain.back()->take(socket);
          if (!begun) begun = bench.now();
        }
        for (auto& end : plain) end->work();
      },
      [&] {
        return begun && !bench.events.empty() && bench.left().live_connections() == 0 &&
               std::all_of(plain.begin(), plain.end(), [](auto& end) { return end->is_over(); });
      });
  finish_case(one, bench, *plain.front(), begun, over);
  return one;
}

/// A plain client comes to our responder.
EnablementCase responder_for(const Service& service) {
  EnablementCase one{service.name, "responder", {}, {}, {}, {}};
  Bench bench;
  static_cast<void>(bench.left().listen(kMpaPort));
  PlainEnd plain(bench.right(), service);
  plain.take(*bench.right().connect_stream(Bench::end(0, kMpaPort), {}, bench.now()));
  std::optional<base::Now> begun;
  const bool over = bench.run(
      [&] {
        if (!begun && plain.socket()->is_established()) begun = bench.now();
        plain.work();
      },
      [&] { return plain.is_over() && bench.left().live_connections() == 0; });
  finish_case(one, bench, plain, begun, over);
  return one;
}

/// Octet-stream negotiation (figure 5): our passive ULP takes a line for a Hello, answers, and
/// turns to MPA; the other end never meant it.
EnablementCase false_hello(const char* name, const std::string& behind) {
  EnablementCase one{name, "responder behind a Hello", {}, {}, {}, {}};
  Bench bench;
  auto listener = bench.left().listen_stream(Bench::end(0, kPlainPort), 4);
  // What lies behind the Hello is said when the Ack has come: earlier it would be unread octets.
  PlainEnd plain(bench.right(), {.name = name, .greeting = kHello, .answer = behind});
  plain.take(*bench.right().connect_stream(Bench::end(0, kPlainPort), {}, bench.now()));
  device::StreamSocket* ours = nullptr;
  std::string heard;
  std::optional<base::Now> begun;
  const bool over = bench.run(
      [&] {
        if (ours == nullptr) ours = (*listener)->next();
        if (ours != nullptr && !begun) {
          std::array<uint8_t, 64> room;
          heard.append(room.begin(), room.begin() + ours->take(room));
          if (heard == kHello) {
            begun = bench.now();
            const std::string ack = kHelloAck;
            static_cast<void>(bench.left().await_rdma(
                *ours, {reinterpret_cast<const uint8_t*>(ack.data()), ack.size()}, bench.now()));
          }
        }
        plain.work();
      },
      [&] { return begun && plain.is_over() && bench.left().live_connections() == 0; });
  finish_case(one, bench, plain, begun, over);
  return one;
}

/// Figure 5, the other way: our active ULP says Hello and hears something that is no Ack, or takes
/// it for one and turns to MPA.
EnablementCase hello_to(const Service& service) {
  EnablementCase one{std::string(service.name) + ", taken for a Hello Ack",
                     "initiator behind a Hello",
                     {},
                     {},
                     {},
                     {}};
  Bench bench;
  auto listener = bench.right().listen_stream(Bench::end(1, kPlainPort), 4);
  device::QueuePair* qp = bench.make_qp();
  device::StreamSocket* ours =
      *bench.left().connect_stream(Bench::end(1, kPlainPort), {}, bench.now());
  PlainEnd plain(bench.right(), service);
  bool said = false;
  std::optional<base::Now> begun;
  const bool over = bench.run(
      [&] {
        if (plain.socket() == nullptr) plain.take((*listener)->next());
        plain.work();
        if (!ours->is_established() || begun) return;
        if (!said && ours->reserve_ring()) {
          const std::string hello = kHello;
          ours->put({reinterpret_cast<const uint8_t*>(hello.data()), hello.size()});
          bench.left().ring_doorbell(ours->doorbell());
          said = true;
        }
        std::array<uint8_t, 256> room;
        if (ours->take(room) == 0) return;
        begun = bench.now();
        static_cast<void>(bench.left().connect(*qp, *ours, {}, bench.now()));
      },
      [&] { return begun && plain.is_over() && bench.left().live_connections() == 0; });
  finish_case(one, bench, plain, begun, over);
  return one;
}

}  // namespace

std::vector<EnablementCase> enablement_cases() {
  std::vector<EnablementCase> all;
  for (const Service& service : plain_servers()) all.push_back(initiator_at(service));
  for (const Service& service : plain_clients()) all.push_back(responder_for(service));
  all.push_back(false_hello("false Hello, then text", "MAIL FROM:<someone@example>\r\n"));
  all.push_back(false_hello("false Hello, then nothing", ""));
  all.push_back(hello_to({.name = "echo", .echoes = true}));
  all.push_back(hello_to({.name = "SMTP's error 500", .answer = "500 unknown command\r\n"}));
  return all;
}

Experiment enablement(const Options&) {
  Experiment e;
  e.name = "enablement";
  e.title = "MPA at one end only";
  e.requirements = "MPAA-8-01, MPAA-8-02, MPAA-8-03, MPAA-8-04, MPAA-8-05, MPAA-8-06, MPAA-8-07";
  e.draft =
      "Section 8: an MPA end connected to a plain TCP service or client detects it quickly and "
      "closes; the other end sees octets that it does not understand and is not harmed; a false "
      "Hello in octet-stream negotiation ends in a protocol error or a time-out. The draft's MPA "
      "began with a marker of four zero octets; RFC 5044 begins with a key of 16 octets, which no "
      "service takes for anything, and which tells a wrong peer by its first octet.";
  e.setup =
      "Two devices, 1 Gb/s, round trip 1 ms: MPA at the left one, streaming sockets with the "
      "behaviour of the services at the right one; nothing is configured beyond the defaults "
      "(framing.start_timeout 60 s). The time runs from the TCP connection to the end of it at "
      "both sides. An initiator whose Request draws no octet but a close tries once more with "
      "revision 1 (mpa.redial); the responder's application is told of a wrong client by an event, "
      "which it need not answer.";
  Table table{"enablement",
              "What each side sees",
              {"the other end", "our end", "error", "event", "counters", "the other end sees",
               "ms to the end", "FPDUs given to DDP"},
              {}};
  uint64_t delivered = 0;
  uint32_t open = 0;
  uint32_t quick = 0;
  const std::vector<EnablementCase> cases = enablement_cases();
  for (const EnablementCase& one : cases) {
    table.rows.push_back({one.peer, one.mpa_role, one.error, one.event, one.counter, one.peer_sees,
                          one.milliseconds < 0 ? "open" : number(one.milliseconds, 1),
                          number(one.delivered)});
    delivered += one.delivered;
    if (one.milliseconds < 0) ++open;
    if (one.milliseconds >= 0 && one.milliseconds < 100) ++quick;
  }
  e.findings.push_back(
      "Of " + number(static_cast<uint64_t>(cases.size())) + " pairings " + number(quick) +
      " end within 100 ms, " + number(static_cast<uint64_t>(cases.size()) - quick - open) +
      " with a time-out, because the other end says nothing at all; " + number(open) +
      " stay open. " + number(delivered) + " FPDUs were given to DDP.");
  e.tables.push_back(std::move(table));
  return e;
}

}  // namespace rnic::experiment
