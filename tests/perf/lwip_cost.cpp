// Goodput of lwIP's TCP, which ./scripts/bench tells as that of a peer: one stream, both ends on
// one core of one process, over a pair of interfaces in memory. What passes such an interface is
// copied once, as every driver of lwIP has to, since TCP keeps what it sends; its TCP checksums are
// made and checked, and there is no CRC. What has come is copied into a region, which is compared
// behind each run, outside of the time.
//
// usage: lwip_cost SECONDS   prints one line of JSON; exit 1: an octet was wrong, or none came
extern "C" {  // which its header of the system lacks
#include <lwip/sys.h>
}
#include <lwip/init.h>
#include <lwip/ip.h>
#include <lwip/netif.h>
#include <lwip/pbuf.h>
#include <lwip/tcp.h>
#include <lwip/tcpip.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace {

constexpr uint16_t kPort = 7471;
constexpr uint16_t kMtu = 1500;
constexpr size_t kRegion = 1u << 20;     // octets of source and of target
constexpr uint64_t kRun = 128u << 20;    // octets between two comparisons
constexpr uint32_t kTurns = 1024;        // between two looks at the time
constexpr double kPatience = 10;         // seconds without an octet

double seconds_of(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

/// One of two interfaces: what is sent at the other one comes here.
struct Interface {
  netif device{};
  Interface* peer = nullptr;
  std::deque<pbuf*> arrived;

  static err_t set_up(netif* device) {
    device->mtu = kMtu;
    device->output = [](netif* from, pbuf* packet, const ip4_addr_t*) -> err_t {
      pbuf* copy = pbuf_clone(PBUF_RAW, PBUF_RAM, packet);
      if (copy == nullptr) return ERR_MEM;
      static_cast<Interface*>(from->state)->peer->arrived.push_back(copy);
      return ERR_OK;
    };
    return ERR_OK;
  }

  void add(Interface& other, uint8_t number) {
    peer = &other;
    ip4_addr_t address;
    ip4_addr_t mask;
    IP4_ADDR(&address, 10, 0, 0, number);
    IP4_ADDR(&mask, 255, 255, 255, 0);
    netif_add(&device, &address, &mask, &address, this, set_up, ip_input);
    netif_set_link_up(&device);
    netif_set_up(&device);
  }

  /// Hands up what had come by now.
  void deliver() {
    for (size_t count = arrived.size(); count != 0; --count) {
      pbuf* packet = arrived.front();
      arrived.pop_front();
      if (device.input(packet, &device) != ERR_OK) pbuf_free(packet);
    }
  }
};

/// A stream from the near interface to the far one.
class Stream {
 public:
  Stream() : source_(kRegion), target_(kRegion) {
    for (size_t i = 0; i < kRegion; ++i) source_[i] = static_cast<uint8_t>(i * 131 >> 3);
  }

  bool connect();
  /// Moves `octets`; false: they do not come.
  bool run(uint64_t octets);
  void poison() { std::fill(target_.begin(), target_.end(), uint8_t{0xee}); }
  [[nodiscard]] bool verified() const { return source_ == target_; }

 private:
  static err_t on_accept(void* of, tcp_pcb* came, err_t) {
    tcp_arg(came, of);
    tcp_recv(came, on_receive);
    return ERR_OK;
  }
  static err_t on_receive(void* of, tcp_pcb* pcb, pbuf* came, err_t) {
    if (came != nullptr) static_cast<Stream*>(of)->take(pcb, came);
    return ERR_OK;
  }
  void take(tcp_pcb* pcb, pbuf* came);
  void fill();
  /// One turn of both ends.
  void turn();

  Interface near_;
  Interface far_;
  tcp_pcb* sender_ = nullptr;
  bool connected_ = false;
  std::vector<uint8_t> source_;
  std::vector<uint8_t> target_;
  uint64_t end_ = 0;  // of the run, as octets of all runs
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
};

void Stream::take(tcp_pcb* pcb, pbuf* came) {
  for (const pbuf* part = came; part != nullptr; part = part->next) {
    std::span octets(static_cast<const uint8_t*>(part->payload), part->len);
    while (!octets.empty()) {
      const size_t at = received_ % kRegion;
      const size_t now = std::min(octets.size(), kRegion - at);
      std::memcpy(&target_[at], octets.data(), now);
      received_ += now;
      octets = octets.subspan(now);
    }
  }
  tcp_recved(pcb, came->tot_len);
  pbuf_free(came);
}

void Stream::fill() {
  while (sent_ < end_) {
    const size_t at = sent_ % kRegion;
    const uint64_t room =
        std::min<uint64_t>({tcp_sndbuf(sender_), kRegion - at, end_ - sent_, 0xffff});
    if (room == 0 || tcp_write(sender_, &source_[at], static_cast<u16_t>(room), 0) != ERR_OK) break;
    sent_ += room;
  }
  tcp_output(sender_);
}

void Stream::turn() {
  far_.deliver();
  near_.deliver();
}

bool Stream::connect() {
  near_.add(far_, 1);
  far_.add(near_, 2);
  tcp_pcb* listener = tcp_new();
  sender_ = tcp_new();
  // Each connection stays on its interface: both addresses belong to this one stack.
  tcp_bind_netif(listener, &far_.device);
  tcp_bind_netif(sender_, &near_.device);
  if (tcp_bind(listener, &far_.device.ip_addr, kPort) != ERR_OK) return false;
  listener = tcp_listen(listener);
  tcp_arg(listener, this);
  tcp_accept(listener, on_accept);
  tcp_nagle_disable(sender_);  // the last octets of a run do not wait for a delayed ACK
  tcp_bind(sender_, &near_.device.ip_addr, 0);
  tcp_arg(sender_, this);
  const auto up = [](void* of, tcp_pcb*, err_t) -> err_t {
    static_cast<Stream*>(of)->connected_ = true;
    return ERR_OK;
  };
  if (tcp_connect(sender_, &far_.device.ip_addr, kPort, up) != ERR_OK) return false;
  for (int i = 0; i < 16 && !connected_; ++i) turn();
  return connected_;
}

bool Stream::run(uint64_t octets) {
  end_ += octets;
  uint64_t before = received_;
  double moved_at = seconds_of(CLOCK_MONOTONIC);
  for (uint32_t turns = 1; received_ != end_; ++turns) {
    fill();
    turn();
    if (turns % kTurns != 0) continue;
    // lwIP's own thread has the timers, and wants its turn.
    UNLOCK_TCPIP_CORE();
    sched_yield();
    LOCK_TCPIP_CORE();
    const double now = seconds_of(CLOCK_MONOTONIC);
    if (received_ != before) moved_at = now;
    if (now - moved_at > kPatience) return false;
    before = received_;
  }
  return true;
}

int measure(double seconds) {
  Stream stream;
  if (!stream.connect() || !stream.run(kRegion)) {
    std::fprintf(stderr, "lwip_cost: no connection, or nothing comes\n");
    return 1;
  }
  double elapsed = 0;
  double processor = 0;
  uint64_t octets = 0;
  while (elapsed < seconds) {
    stream.poison();
    const double begin = seconds_of(CLOCK_MONOTONIC);
    const double spent = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    const bool came = stream.run(kRun);
    elapsed += seconds_of(CLOCK_MONOTONIC) - begin;
    processor += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - spent;
    octets += kRun;
    if (came && stream.verified()) continue;
    std::fprintf(stderr, "lwip_cost: %s\n", came ? "an octet is wrong" : "octets do not come");
    return 1;
  }
  const double gigabits = static_cast<double>(octets) * 8 / 1e9;
  std::printf("{\"goodput_gbps\": %.3f, \"gb_per_cpu_s\": %.3f, \"measured_s\": %.2f, "
              "\"mtu\": %u, \"verified\": true}\n",
              gigabits / elapsed, gigabits / processor, elapsed, unsigned{kMtu});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc == 2 ? std::strtod(argv[1], nullptr) : 0;
  if (!(seconds > 0)) {
    std::fprintf(stderr, "usage: lwip_cost SECONDS\n");
    return 2;
  }
  static std::atomic<bool> started{false};
  tcpip_init([](void*) { started.store(true); }, nullptr);
  while (!started.load()) sched_yield();
  LOCK_TCPIP_CORE();
  const int status = measure(seconds);
  std::fflush(stdout);
  // lwIP's own thread does not end, and the stream that its timers would look at is gone: so it
  // never has the lock again.
  std::_Exit(status);
}
