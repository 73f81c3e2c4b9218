// What a segment costs in instructions. Run under callgrind, which counts inside the functions
// named receive_* and send_* only (./scripts/bench instructions does it):
//
//   segment_cost FUNCTION [SEGMENTS [SCENARIO]]
//
// Two hosts, each a TCP stack over a net::Interface over a simulated port, as in a device. The
// function's name only labels the output. Scenarios:
//
//   steady     the application, not the window, is the limit; the port vouches for checksums, so no
//              octet of the payload is touched
//   avoidance  after one loss, in congestion avoidance (CUBIC), with cwnd as the limit
//   whole      as steady, without header prediction
//   checksum   as steady, over a port that leaves checksums to software

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "bare_user.hpp"
#include "counted.hpp"
#include "device/egress.hpp"
#include "net/net.hpp"
#include "sim/sim.hpp"
#include "tcp/tcp.hpp"

namespace {

using namespace rnic;

constexpr uint32_t kBurst = 32;
constexpr uint16_t kPort = 4420;
constexpr uint32_t kWarmUp = 2'000;  // segments
constexpr uint64_t kLostPair = 40;
constexpr uint32_t kMeasured = 20'000;

IpAddress address_of(uint32_t side) { return IpAddress::v4(0x0a000001 + side); }

net::Config net_config(uint32_t side) {
  net::Config config;
  config.address = address_of(side);
  return config;
}

struct Host final : llp::Acceptor {
  Host(port::Port& wire, uint32_t side, base::Now now, bool prediction)
      : port(wire),
        interface(net_config(side), wire, now),
        egress(interface),
        stack({}, egress, {1, 2}, side, now) {
    stack.set_prediction(prediction);
  }

  llp::StreamUser* accept(llp::Stream& s, const Endpoint&, const Endpoint&, base::Now) override {
    stream = &s;
    return &user;
  }
  uint32_t take(base::Now now) { return held = port.rx_burst(frames, now); }
  void give_back() { port.free({frames.data(), held}); }
  void send(base::Now now) {
    stack.on_timers(now);
    stack.output(now);
    interface.flush(now);
  }

  port::Port& port;
  net::Interface interface;
  device::Egress egress;
  tcp::Stack stack;
  perf::BareUser user;
  llp::Stream* stream = nullptr;
  std::array<port::Packet, kBurst> frames{};
  uint32_t held = 0;
};

void input_burst(Host& host, base::Now now) {
  for (uint32_t i = 0; i < host.held; ++i) {
    auto ip = host.interface.input(host.frames[i], now);
    if (!ip) continue;
    host.stack.input({.source = ip->source,
                      .destination = ip->destination,
                      .tcp = ip->payload,
                      .checksum_verified = ip->l4_checksum_good,
                      .ecn = ip->ecn},
                     now);
  }
}

/// Was it the scenario that was measured?
bool as_meant(Host& sender, bool avoidance, base::Now now) {
  const tcp::Counters& sent = sender.stack.counters();
  if (avoidance && sender.stack.info(*sender.stream, now)->slow_start) {
    std::fprintf(stderr, "still in slow start\n");
    return false;
  }
  if (sent.timeouts != 0 || sent.retransmitted_segments > (avoidance ? 2 : 0)) {
    std::fprintf(stderr, "segments were lost\n");
    return false;
  }
  return true;
}

}  // namespace

// The names under which callgrind collects.
extern "C" {
RNIC_COUNTED void receive_data(Host* host, base::Now now) { input_burst(*host, now); }
RNIC_COUNTED void receive_acks(Host* host, base::Now now) { input_burst(*host, now); }
RNIC_COUNTED void send_data(Host* host, base::Now now) { host->send(now); }
RNIC_COUNTED void send_acks(Host* host, base::Now now) { host->send(now); }
}

namespace {

/// The way to the steady state is not counted.
struct Calls {
  void (*receive_data)(Host* host, base::Now now);
  void (*receive_acks)(Host* host, base::Now now);
  void (*send_data)(Host* host, base::Now now);
  void (*send_acks)(Host* host, base::Now now);
};
void input_uncounted(Host* host, base::Now now) { input_burst(*host, now); }
void send_uncounted(Host* host, base::Now now) { host->send(now); }
constexpr Calls kWarmUpCalls{input_uncounted, input_uncounted, send_uncounted, send_uncounted};
constexpr Calls kCountedCalls{receive_data, receive_acks, send_data, send_acks};

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  sim::LinkConfig config;
  const std::string_view scenario = argc > 3 ? argv[3] : "steady";
  const bool avoidance = scenario == "avoidance";
  config.checksum =
      scenario == "checksum" ? port::ChecksumMode::Software : port::ChecksumMode::Trusted;
  sim::Link link(config);
  base::Now now = base::from_nanos(1'000'000);
  Host left(link.a(), 0, now, scenario != "whole");
  Host right(link.b(), 1, now, scenario != "whole");
  if (!right.stack.listen({address_of(1), kPort}, right)) return 2;
  const auto stream =
      left.stack.connect({address_of(0), 0}, {address_of(1), kPort}, left.user, now);
  if (!stream) return 2;
  left.stream = *stream;

  uint64_t segments = 0;
  uint64_t acks = 0;
  uint64_t received = 0;
  const Calls* calls = &kWarmUpCalls;
  const auto turn = [&](bool pairs) {
    now += std::chrono::microseconds(10);
    // An output() sends a quantum at most: more of them, until cwnd is the limit.
    for (uint32_t i = 0; i < (avoidance ? 4u : 1u); ++i) calls->send_data(&left, now);
    now += std::chrono::microseconds(10);
    // The receiver answers after two segments, as a peer that is never behind does.
    while (right.take(now) != 0) {
      const uint32_t taken = right.held;
      const auto all = right.frames;
      for (uint32_t first = 0; first < taken; first += pairs ? 2 : taken) {
        right.held = pairs ? std::min(2u, taken - first) : taken;
        std::copy_n(all.begin() + first, right.held, right.frames.begin());
        if (avoidance && ++received == kLostPair) {
          right.give_back();
          continue;
        }
        calls->receive_data(&right, now);
        segments += right.held;
        right.give_back();
        calls->send_acks(&right, now);
      }
    }
    now += std::chrono::microseconds(10);
    while (left.take(now) != 0) {
      calls->receive_acks(&left, now);
      acks += left.held;
      left.give_back();
    }
  };
  while (left.user.established_count == 0 || right.user.established_count == 0) turn(true);
  left.user.to_send = kWarmUp;
  left.stream->ready();
  while (right.user.placed < uint64_t{kWarmUp} * 1448) turn(true);
  const uint32_t measured = argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : kMeasured;
  segments = acks = 0;
  calls = &kCountedCalls;
  left.user.to_send = measured;
  left.stream->ready();
  while (right.user.placed < (uint64_t{kWarmUp} + measured) * 1448) turn(true);
  if (!as_meant(left, avoidance, now)) return 1;
  std::printf("%s segments %llu acks %llu\n", what.empty() ? "all" : what.data(),
              static_cast<unsigned long long>(segments), static_cast<unsigned long long>(acks));
  return 0;
}
