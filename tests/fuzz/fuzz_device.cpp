// Frames of any content for a device that listens. Input: two octets of length, then the frame,
// again and again; a length of 0 lets time pass instead.

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/endian.hpp"
#include "base/log.hpp"
#include "device/device.hpp"
#include "fuzz/small_device.hpp"
#include "sim/sim.hpp"

namespace {

using namespace std::chrono_literals;
namespace base = rnic::base;
namespace device = rnic::device;
namespace port = rnic::port;
namespace sim = rnic::sim;

sim::LinkConfig link_config() {
  sim::LinkConfig config;
  config.slots = 64;
  config.checksum = port::ChecksumMode::Trusted;  // content matters here, not luck with checksums
  return config;
}

class World {
 public:
  World() : link_(link_config()), device_(rnic::fuzz::small_device(1), link_.b(), now_) {
    base::set_log_level(base::LogLevel::Off);
    static_cast<void>(device_.listen(7471));
  }

  void inject(base::ByteView octets) {
    port::Packet packet;
    if (!link_.a().alloc({&packet, 1})) return;
    packet.length = std::min<uint32_t>(packet.room, static_cast<uint32_t>(octets.size()));
    std::memcpy(packet.data, octets.data(), packet.length);
    packet.l4_checksum = port::Checksum::Open;
    if (link_.a().tx_burst({&packet, 1}, now_) == 0) link_.a().free({&packet, 1});
    turn(1us);
  }

  void turn(base::Duration step) {
    now_ += step;
    device_.poll(now_);
    port::Packet packet;
    while (link_.a().rx_burst({&packet, 1}, now_) == 1) link_.a().free({&packet, 1});
    while (const auto event = device_.poll_event()) {
      if (const auto* asked = std::get_if<rnic::event::ConnectRequest>(&*event)) {
        static_cast<void>(device_.reject(asked->request, {}, now_));
      }
    }
  }

 private:
  base::Now now_ = base::from_nanos(1'000'000'000);
  sim::Link link_;
  device::Device device_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  World world;
  while (size >= 2) {
    const size_t length = std::min<size_t>(base::load_be16(data), size - 2);
    if (length == 0) {
      world.turn(50ms);
    } else {
      world.inject({data + 2, length});
    }
    data += 2 + length;
    size -= 2 + length;
  }
  return 0;
}
