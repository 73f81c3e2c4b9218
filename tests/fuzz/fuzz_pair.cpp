// Two devices that talk to each other, on a link that changes their frames. Input: an octet of
// choices (CRC off, markers, ULP framing, MPA revision 1), then steps: an octet that says which,
// and what the step needs. Checksums are not looked at, so that every change reaches the protocols.

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "base/log.hpp"
#include "device/device.hpp"
#include "fuzz/guarded_memory.hpp"
#include "fuzz/input.hpp"
#include "fuzz/small_device.hpp"
#include "sim/sim.hpp"

namespace {

using namespace std::chrono_literals;
using rnic::fuzz::GuardedMemory;
using rnic::fuzz::Input;
namespace base = rnic::base;
namespace fuzz = rnic::fuzz;
namespace mem = rnic::mem;
namespace device = rnic::device;
namespace port = rnic::port;
namespace rdmap = rnic::rdmap;
namespace sim = rnic::sim;

constexpr uint16_t kPort = 7471;
constexpr size_t kRegion = 16384;
constexpr uint32_t kDepth = 16;
constexpr size_t kMostChange = 64;  // octets of one change
constexpr int kMostTurns = 64;      // of both devices, in one step
constexpr size_t kMostPairs = 4;    // connections of one input

/// What is done to one frame on its way to a device.
struct Change {
  uint8_t skip = 0;  ///< frames that pass before
  uint8_t kind = 0;
  uint16_t at = 0;  ///< octets from the frame's end
  std::array<uint8_t, kMostChange> octets{};
  size_t length = 0;
};

/// Stands before a device and does the changes that wait, one frame each.
class Meddler final : public port::Port {
 public:
  explicit Meddler(port::Port& inner) : inner_(inner) {}

  void add(const Change& change) { changes_.push_back(change); }

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override {
    const uint32_t n = inner_.rx_burst(out, now);
    for (port::Packet& packet : out.first(n)) meddle(packet);
    return n;
  }
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override {
    return inner_.tx_burst(packets, now);
  }
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override { return inner_.next_deadline(); }

 private:
  void meddle(port::Packet& packet) {
    if (changes_.empty() || changes_.front().skip-- > 0) return;
    const Change change = changes_.front();
    changes_.erase(changes_.begin());
    const uint32_t at = packet.length - std::min<uint32_t>(change.at, packet.length);
    const size_t n = std::min<size_t>(change.length, packet.length - at);
    switch (change.kind % 4) {
      case 0:
        for (size_t i = 0; i < n; ++i) packet.data[at + i] ^= change.octets[i];
        break;
      case 1: std::memcpy(packet.data + at, change.octets.data(), n); break;
      case 2: packet.length = at; break;
      default: std::memset(packet.data + at, change.octets[0], packet.length - at); break;
    }
  }

  port::Port& inner_;
  std::vector<Change> changes_;
};

/// A device, its application's memory and what the application does.
class Side {
 public:
  Side(const device::DeviceConfig& config, port::Port& inner, base::Now now)
      : meddler(inner), device(std::make_unique<device::Device>(config, meddler, now)) {
    pd_ = *device->alloc_pd();
    cq_ = *device->create_cq(4 * kMostPairs * kDepth);
    register_region();
  }

  device::QueuePair* add_qp() {
    device::QueuePairSpec spec;
    spec.answer_close = false;
    spec.pd = pd_;
    spec.send_cq = spec.receive_cq = cq_;
    spec.send_depth = spec.receive_depth = kDepth;
    spec.ird = spec.ord = 2;
    qps.push_back(*device->create_qp(spec));
    register_victim(*qps.back());
    for (uint32_t i = 0; i < 4; ++i) post_receive(*qps.back(), i * 512, 512);
    return qps.back();
  }
  void post_receive(device::QueuePair& qp, uint32_t at, uint32_t length) {
    rnic::ReceiveRequest work;
    work.sges = {sge(at, length)};
    static_cast<void>(qp.post_receive(work));
  }
  void post_send(device::QueuePair& qp, Input& input, const Side& peer) {
    rnic::SendRequest work;
    work.opcode = static_cast<rnic::Opcode>(input.octet() % 13);
    if (work.opcode == rnic::Opcode::Receive) work.opcode = rnic::Opcode::Send;
    const bool atomic = rnic::is_atomic(work.opcode);
    const bool none =
        work.opcode == rnic::Opcode::Immediate || work.opcode == rnic::Opcode::LocalInvalidate;
    const uint16_t at = input.number();
    const uint32_t length = atomic ? 8 : input.number() % 4096;
    if (!none) work.sges = {sge(at % kRegion, length)};
    const bool binds =
        work.opcode == rnic::Opcode::BindWindow || work.opcode == rnic::Opcode::FastRegister;
    if (binds) work.grant = grant_for(work.opcode, input);
    work.remote = {peer.stag.value, input.number() & (atomic ? ~uint64_t{7} : ~uint64_t{0})};
    work.invalidate_stag = none ? stag.value : peer.victim_of(qp);
    static_cast<void>(qp.post_send(work));
  }
  /// Mostly one that can be given: the next key of what stands there, and rights of the region's.
  rnic::MemoryGrant grant_for(rnic::Opcode opcode, Input& input) {
    uint32_t& bound = opcode == rnic::Opcode::BindWindow ? window : allocated;
    if (bound == 0 && opcode == rnic::Opcode::BindWindow) {
      bound = device->allocate_window(pd_, rnic::WindowType::QueuePair).value_or(mem::Stag{}).value;
    } else if (bound == 0) {
      bound = device->allocate_region(pd_, 4).value_or(mem::Stag{}).value;
    }
    if ((input.octet() & 7) != 0) bound = rnic::next_key(bound);
    return {.stag = bound,
            .access = static_cast<rnic::Access>(input.octet() & 0x3e),
            .offset = input.number()};
  }
  void register_region() {
    mem::RegionSpec spec;
    spec.address = memory.begin();
    spec.length = memory.size();
    spec.pd = pd_;
    spec.rights = rnic::Access::LocalWrite | rnic::Access::RemoteWrite | rnic::Access::RemoteRead |
                  rnic::Access::RemoteAtomic | rnic::Access::Bind;
    spec.offset = 0;
    if (const auto made = device->register_memory(spec)) stag = *made;
  }
  /// What the peer may invalidate is for the stream of one queue pair.
  void register_victim(const device::QueuePair& qp) {
    mem::RegionSpec spec;
    spec.address = memory.begin();
    spec.length = memory.size();
    spec.pd = pd_;
    spec.rights = rnic::Access::RemoteWrite | rnic::Access::RemoteInvalidate;
    spec.stream = qp.stream();
    const auto made = device->register_memory(spec);
    victims.push_back(made ? *made : stag);
  }
  /// What `theirs`, a queue pair of the peer, tries to invalidate here.
  [[nodiscard]] uint32_t victim_of(const device::QueuePair& theirs) const {
    return victims.empty() ? stag.value : victims[(theirs.number() - 1) % victims.size()].value;
  }
  /// Polls its queue; no completion is of another device's queue pair.
  void take_completions() {
    std::array<rnic::Completion, 16> some;
    while (cq_->poll(some) > 0) continue;
  }

  Meddler meddler;
  GuardedMemory memory{kRegion};
  mem::Stag stag;
  std::vector<mem::Stag> victims;
  uint32_t window = 0;     // 0: not allocated yet
  uint32_t allocated = 0;  // likewise
  std::vector<device::QueuePair*> qps;
  std::unique_ptr<device::Device> device;

 private:
  [[nodiscard]] rnic::Sge sge(uint32_t at, uint32_t length) const {
    return {at, length, stag.value};
  }

  uint32_t pd_ = 0;
  device::CompletionQueue* cq_ = nullptr;
};

class World {
 public:
  explicit World(uint8_t choices)
      : link_(link_config()),
        left_(device_config(choices, 0), link_.a(), now_),
        right_(device_config(choices, 1), link_.b(), now_) {
    base::set_log_level(base::LogLevel::Off);
    static_cast<void>(right_.device->listen(kPort));
    connect();
    turn(1us, kMostTurns);
  }
  ~World() {
    turn(1ms, kMostTurns);
    left_.device.reset();
    right_.device.reset();
    left_.memory.check();
    right_.memory.check();
    fuzz::demand(link_.held() == 0);
  }

  void step(Input& input) {
    const uint8_t what = input.octet();
    Side& from = (what & 0x80) != 0 ? right_ : left_;
    Side& to = (what & 0x80) != 0 ? left_ : right_;
    device::QueuePair* qp =
        from.qps.empty() ? nullptr : from.qps[(what >> 4) % 8 % from.qps.size()];
    switch (what & 0x0f) {
      case 0: turn(100us, input.octet() % kMostTurns); break;
      case 1: turn(50ms, input.octet() % 8); break;
      case 2: to.meddler.add(change(input)); break;
      case 3:
        if (qp != nullptr) from.post_receive(*qp, input.number() % kRegion, input.number() % 2048);
        break;
      case 4:
        from.device->release_memory(from.stag);
        from.register_region();
        break;
      case 5:
        if (qp != nullptr) static_cast<void>(from.device->disconnect(*qp));
        break;
      case 6: connect(); break;
      case 7:
        if (qp != nullptr) {
          std::erase(from.qps, qp);
          static_cast<void>(from.device->destroy_qp(qp));
        }
        break;
      default:
        if (qp != nullptr) from.post_send(*qp, input, to);
        break;
    }
    turn(10us, 4);
  }

 private:
  static device::DeviceConfig device_config(uint8_t choices, uint32_t index) {
    device::DeviceConfig config = fuzz::small_device(index);
    config.mpa.crc = (choices & 1) == 0;
    config.mpa.markers_receive = (choices & 2) != 0;
    if ((choices & 4) != 0) config.framing = rnic::Framing::Tuf;
    config.mpa.revision = (choices & 8) != 0 ? 1 : 2;
    config.mpa.silent_drop = (choices & 16) == 0;
    return config;
  }
  static sim::LinkConfig link_config() {
    sim::LinkConfig config;
    config.slots = 64;
    config.checksum = port::ChecksumMode::Trusted;
    return config;
  }
  static Change change(Input& input) {
    Change change;
    change.skip = input.octet() % 8;
    change.kind = input.octet();
    change.at = input.number() % 2048;
    const base::ByteView octets = input.octets(input.octet() % (kMostChange + 1));
    std::copy(octets.begin(), octets.end(), change.octets.begin());
    change.length = octets.size();
    return change;
  }

  void connect() {
    if (left_.qps.size() >= kMostPairs) return;
    static_cast<void>(left_.device->connect(
        *left_.add_qp(), {right_.device->config().net.address, kPort}, {}, now_));
  }
  void turn(base::Duration step, int turns) {
    for (int i = 0; i < turns; ++i) {
      now_ += step;
      for (Side* side : {&left_, &right_}) {
        side->device->poll(now_);
        side->take_completions();
        serve_events(*side);
      }
    }
    left_.memory.check();
    right_.memory.check();
  }
  void serve_events(Side& side) {
    while (const auto event = side.device->poll_event()) {
      const auto* asked = std::get_if<rnic::event::ConnectRequest>(&*event);
      if (asked == nullptr) continue;
      if (side.qps.size() < kMostPairs) {
        static_cast<void>(side.device->accept(asked->request, *side.add_qp(), {}, now_));
      } else {
        static_cast<void>(side.device->reject(asked->request, {}, now_));
      }
    }
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  sim::Link link_;
  Side left_;
  Side right_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, std::min<size_t>(size, 4096));
  World world(input.octet());
  while (!input.empty()) world.step(input);
  return 0;
}
