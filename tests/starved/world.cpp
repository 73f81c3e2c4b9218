#include "world.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>

namespace rnic::starved {

namespace {

// Tables of few places: what is lost of one is soon missed, and a process starts quickly.
constexpr const char* kLimits = R"toml(
[limits]
max_qps = 8
max_cqs = 8
max_pds = 6
max_regions = 8
max_connections = 16
max_pending_requests = 4
max_starting = 4
max_events = 64
max_work_depth = 64
hold_octets = "256KB"
max_packed = 64
max_streams = 8
stream_buffer = "8KB"
stream_octets = "128KB"
max_framed_streams = 4
framed_buffer = "128KB"

[framing]
hold_limit = "128KB"

[tcp]
max_listeners = 4
max_half_open = 8
max_time_wait = 64
max_range_sets = 64
max_records = 1024
max_records_per_connection = 256
max_saved_octets = "64KB"
rto_initial = "50ms"
rto_min = "20ms"
delayed_ack = "1ms"
time_wait = "0s"

[eal]
hugepages = "off"
memory_mb = 64
)toml";

std::string own_address(int last) {
  const auto pid = static_cast<unsigned>(getpid());
  return "127." + std::to_string(1 + (pid >> 8) % 250) + "." + std::to_string(pid % 256) + "." +
         std::to_string(last);
}

}  // namespace

std::string name_of(const Setting& setting) {
  return std::string(setting.below == Below::Sockets ? "Sockets" : "Wire") +
         (setting.threaded ? "Threaded" : "Inline");
}

std::string config_text(const Setting& setting) {
  std::string text = kLimits;
  text += setting.threaded ? "[worker]\nmode = \"threaded\"\nidle = \"sleep\"\n" : "";
  const bool sockets = setting.below == Below::Sockets;
  if (!sockets) text += "[[wire]]\nname = \"loop\"\nring_size = 64\n";
  for (const int i : {0, 1}) {
    const std::string port = sockets ? "socket" : "wire:loop:" + std::to_string(i);
    const std::string address =
        sockets ? own_address(i + 1) + "/8" : "10.0.0." + std::to_string(i + 1) + "/24";
    text += "[[device]]\nname = \"rnic" + std::to_string(i) + "\"\nport = \"" + port +
            "\"\naddress = \"" + address + "\"\n";
  }
  return text;
}

void broken(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(99);
}

World::World(const Setting& with, const std::vector<std::string>& overrides)
    : setting(with), config(Config::from_text(config_text(with), "starved.toml")) {
  for (const std::string& one : overrides) config.set(one);
  context.emplace(must(Context::open(config)));
  near_.emplace(must(context->device("rnic0")));
  far_.emplace(must(context->device("rnic1")));
  near_address = near().address();
  far_address = far().address();
  framing.send_key = framing.receive_key = 0x123456789abc;
  std::iota(octets.begin(), octets.end(), uint8_t{1});
}

World::~World() {
  // In the order that the API asks for.
  near_link = blocking::Connection();
  far_link = blocking::Connection();
  blocking_listener = blocking::Listener();
  reserved_port = PortReservation();
  near_adapter.reset();
  far_adapter.reset();
  near_framed.close();
  far_framed.close();
  framed_listener.reset();
  near_stream.close();
  far_stream.close();
  listener.reset();
  qp.reset();
  a.qp = QueuePair();
  b.qp = QueuePair();
  region.reset();
  cq.reset();
  for (End* end : {&a, &b}) {
    end->region = MemoryRegion();
    end->cq = CompletionQueue();
    end->pd = ProtectionDomain();
  }
  pd.reset();
  consumer.reset();
  if (!turn_until([&] { return near().quiescent() && far().quiescent(); })) {
    broken("something is connected, queued or held though everything was destroyed");
  }
  near_.reset();
  far_.reset();
  context.reset();
}

End World::end(Device& device) {
  End end;
  end.device = device;
  end.pd = must(device.alloc_pd());
  end.cq = must(device.create_cq(64));
  QueuePairOptions options;
  options.send_depth = options.receive_depth = 8;
  options.ird = options.ord = 2;
  end.qp = must(end.pd.create_qp(end.cq, end.cq, options));
  end.octets.resize(2048);
  end.region = must(end.pd.register_memory(
      std::as_writable_bytes(std::span(end.octets)),
      Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead | Access::Bind));
  return end;
}

bool World::await_completion(CompletionQueue& queue, Completion& out) {
  return turn_until([&] { return queue.poll({&out, 1}) == 1; });
}

void World::connect(End& x, End& y, uint16_t port) {
  event::ConnectRequest got;
  must(far().listen(port));
  const std::array<uint8_t, 2> name{static_cast<uint8_t>(port >> 8), static_cast<uint8_t>(port)};
  must(x.qp.connect({far_address, port}, name));
  // One that an earlier attempt has left may still be on its way.
  const auto is_this = [&] { return std::ranges::equal(got.private_data, name); };
  do {
    if (!await(far(), got)) broken("no connection request comes");
    if (!is_this()) static_cast<void>(far().reject(got.request));
  } while (!is_this());
  must(y.qp.accept(got.request));
  event::Established up;
  if (!await(near(), up, x.qp.number())) {
    broken("the initiator is not connected");
  }
  if (!await(far(), up, y.qp.number())) {
    broken("the responder is not connected");
  }
  must(far().unlisten(port));
}

void World::connect_stream(uint16_t port) {
  near_stream = must(near().connect_stream({far_address, port}));
  const bool open = turn_until([this] {
    if (!far_stream.is_valid()) {
      if (auto stream = listener->accept()) far_stream = std::move(*stream);
    }
    return far_stream.is_valid() && near_stream.state() == StreamState::Open;
  });
  if (!open) broken("no stream comes about");
}

void World::connect_framed(uint16_t port) {
  near_framed = must(near().connect_framed({far_address, port}, framing));
  const bool open = turn_until([this] {
    if (!far_framed.is_valid()) {
      if (auto stream = framed_listener->accept()) far_framed = std::move(*stream);
    }
    return far_framed.is_valid() && near_framed.state() == StreamState::Open;
  });
  if (!open) broken("no framed stream comes about");
}

void World::settle() {
  constexpr int64_t kQuietNs = 3'000'000;  // longer than a worker sleeps
  int64_t quiet_since = context->now().count();
  int turns = 0;
  turn_until([&] {
    bool any = false;
    for (Device* device : {&near(), &far()}) {
      while (const auto got = device->poll_event()) {
        any = true;
        const auto* asked = std::get_if<event::ConnectRequest>(&*got);
        if (asked != nullptr) static_cast<void>(device->reject(asked->request));
      }
    }
    if (any) turns = 0;
    if (any) quiet_since = context->now().count();
    return ++turns > 20 && (!setting.threaded || context->now().count() - quiet_since > kQuietNs);
  });
}

void World::prove_traffic() {
  End x = end(near()), y = end(far());
  connect(x, y, ++next_port_);
  std::iota(x.octets.begin(), x.octets.end(), uint8_t{3});
  ReceiveRequest receive{.id = 1};
  receive.sges = {y.region.sge(1024, 512)};
  must(y.qp.post_receive(receive));
  SendRequest send{.id = 2};
  send.sges = {x.region.sge(0, 1024)};
  send.opcode = Opcode::Write;
  send.remote = {y.region.stag(), y.region.address()};
  must(x.qp.post_send(send));
  send.opcode = Opcode::Send;
  send.sges[0] = x.region.sge(1024, 512);
  must(x.qp.post_send(send));
  Completion done;
  for (CompletionQueue* queue : {&x.cq, &x.cq, &y.cq}) {
    if (!await_completion(*queue, done)) broken("a completion does not come");
    if (done.status != CompletionStatus::Success) {
      broken(std::string("a request did not succeed: ") + to_string(done.status));
    }
  }
  if (!std::equal(x.octets.begin(), x.octets.begin() + 1536, y.octets.begin())) {
    broken("what came is not what was sent");
  }
}

}  // namespace rnic::starved
