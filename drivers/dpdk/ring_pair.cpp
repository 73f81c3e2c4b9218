#include <rte_mbuf.h>

#include <string>
#include <utility>

#include "base/starved.hpp"
#include "dpdk/device_setup.hpp"
#include "dpdk/ethdev.hpp"
#include "dpdk/mbuf_pool.hpp"
#include "dpdk/ring_port.hpp"
#include "dpdk/wire_alarm.hpp"

namespace rnic::dpdk {
namespace {

/// What becomes of frames that nobody receives any more.
struct Discarded {
  void operator()(rte_mbuf* frame) const { rte_pktmbuf_free(frame); }
  void operator()(const port::Packet&) const {}
};

/// The rings between the two ports and the pools of both; shared by them, as either may hold
/// buffers of the other's pool.
struct Medium {
  explicit Medium(uint32_t frames) : to_a(frames), to_b(frames) {}
  Medium(const Medium&) = delete;
  Medium& operator=(const Medium&) = delete;
  ~Medium() {
    for (FrameRing* ring : {&to_a, &to_b}) {
      ring->consume(SIZE_MAX, Discarded{});
    }
  }

  MbufPool pool_a;
  MbufPool pool_b;
  FrameRing to_a;
  FrameRing to_b;
  std::unique_ptr<WireAlarm> wakes_a;  // gone before the rings
  std::unique_ptr<WireAlarm> wakes_b;
};

Result<std::shared_ptr<Medium>> make_medium(const RingPairOptions& options) {
  std::shared_ptr<Medium> medium;
  if (!base::attempt([&] { medium = std::make_shared<Medium>(options.ring_size); })) {
    return base::fail(ErrorCode::ResourceExhausted,
                      "no memory for rings of " + std::to_string(options.ring_size) + " frames");
  }
  auto wakes_a = WireAlarm::make(medium->to_a, options.one_thread);
  if (!wakes_a) return tl::unexpected(wakes_a.error());
  medium->wakes_a = std::move(*wakes_a);
  auto wakes_b = WireAlarm::make(medium->to_b, options.one_thread);
  if (!wakes_b) return tl::unexpected(wakes_b.error());
  medium->wakes_b = std::move(*wakes_b);
  for (MbufPool* pool : {&medium->pool_a, &medium->pool_b}) {
    auto made = make_pool(options.pool_size, options.mtu + port::kLinkHeader);
    if (!made) return tl::unexpected(made.error());
    *pool = std::move(*made);
  }
  return medium;
}

std::unique_ptr<port::Port> make_port(std::string_view name, const port::MacAddress& mac,
                                      uint32_t mtu, const RingEnd& end,
                                      std::shared_ptr<Medium> medium) {
  port::PortInfo info;
  info.name = name;
  info.mac = mac;
  info.mtu = mtu;
  info.checksum = port::ChecksumMode::Trusted;
  return std::make_unique<RingPort>(std::move(info), end, std::move(medium));
}

}  // namespace

Result<PortPair> open_ring_pair(std::string_view name_a, std::string_view name_b,
                                const RingPairOptions& options) {
  if (auto status = check_sizes(options.mtu, options.ring_size, options.pool_size); !status) {
    return tl::unexpected(status.error());
  }
  auto medium = make_medium(options);
  if (!medium) return tl::unexpected(medium.error());
  Medium& m = **medium;
  return PortPair{
      make_port(name_a, options.mac_a, options.mtu,
                {&m.to_a, &m.to_b, m.pool_a.get(), m.wakes_a.get(), m.wakes_b.get()}, *medium),
      make_port(name_b, options.mac_b, options.mtu,
                {&m.to_b, &m.to_a, m.pool_b.get(), m.wakes_b.get(), m.wakes_a.get()}, *medium)};
}

}  // namespace rnic::dpdk
