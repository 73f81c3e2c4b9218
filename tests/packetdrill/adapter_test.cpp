// The adapter as packetdrill sees it: through its one symbol, and the table that this fills.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>
#include <future>
#include <thread>
#include <vector>

#include "base/endian.hpp"
#include "packetdrill/interface_table.hpp"
#include "wire/inet_checksum.hpp"
#include "wire/ipv4.hpp"
#include "wire/tcp.hpp"

namespace rnic::packetdrill {
namespace {

namespace flag = wire::tcp_flag;

constexpr uint32_t kUs = 0xc0a80001;    // 192.168.0.1
constexpr uint32_t kPeer = 0xc0000201;  // 192.0.2.1
constexpr uint16_t kPort = 8080;
constexpr uint16_t kPeerPort = 40000;
constexpr uint32_t kIrs = 1000;

struct Packet {
  uint32_t seq = 0;
  uint32_t ack = 0;
  uint8_t flags = 0;
  uint16_t window = 60000;
  std::vector<uint8_t> payload;
  long long micros = 0;
  uint16_t port = 0;  ///< the stack's
};

/// The tool's side: makes packets, reads packets.
class Driver {
 public:
  explicit Driver(const char* flags = "ts=0,sack=0,ws=0,local=192.168.0.1") {
    handle_ = dlopen(RNIC_PD_ADAPTER, RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) ADD_FAILURE() << dlerror();
    const auto init = reinterpret_cast<void (*)(const char*, InterfaceTable*)>(
        dlsym(handle_, "packetdrill_interface_init"));
    init(flags, &table);
  }
  ~Driver() { table.free(table.self); }

  void inject(const Packet& p) {
    const auto length = static_cast<uint32_t>(20 + p.payload.size());
    std::vector<uint8_t> ip(20 + length);
    ip[0] = 0x45;
    base::store_be16(&ip[2], static_cast<uint16_t>(ip.size()));
    ip[8] = 64;
    ip[9] = wire::kProtocolTcp;
    base::store_be32(&ip[12], kPeer);
    base::store_be32(&ip[16], kUs);
    base::store_be16(&ip[10], wire::checksum_fold(wire::checksum_add(0, {ip.data(), 20})));
    wire::write_tcp(&ip[20], {.source_port = kPeerPort,
                              .destination_port = p.port != 0 ? p.port : kPort,
                              .sequence = base::Seq32(p.seq),
                              .acknowledgment = base::Seq32(p.ack),
                              .flags = p.flags,
                              .window = p.window,
                              .header_length = 20});
    std::copy(p.payload.begin(), p.payload.end(), ip.begin() + 40);
    const uint32_t sum = wire::pseudo_header_sum(kPeer, kUs, wire::kProtocolTcp, length);
    base::store_be16(&ip[36], wire::checksum_fold(wire::checksum_add(sum, {&ip[20], length})));
    EXPECT_EQ(table.netdev_send(table.self, ip.data(), ip.size()), 0);
  }
  Packet expect() {
    std::vector<uint8_t> buffer(65536);
    size_t count = buffer.size();
    Packet p;
    EXPECT_EQ(table.netdev_receive(table.self, buffer.data(), &count, &p.micros), 0);
    const auto ip = wire::parse_ipv4({buffer.data(), count});
    EXPECT_TRUE(ip.has_value()) << count << " octets";
    if (!ip) return p;
    EXPECT_EQ(wire::checksum_fold(wire::checksum_add(0, {buffer.data(), 20})), 0);
    const auto tcp = wire::TcpView::parse({&buffer[20], count - 20});
    EXPECT_TRUE(tcp.has_value());
    p.seq = tcp->sequence().value;
    p.ack = tcp->acknowledgment().value;
    p.flags = tcp->flags();
    p.window = tcp->window();
    p.port = tcp->source_port();
    p.payload.assign(tcp->payload().begin(), tcp->payload().end());
    return p;
  }
  long long micros() {
    timeval t{};
    table.gettimeofday(table.self, &t, nullptr);
    return t.tv_sec * 1000000ll + t.tv_usec;
  }
  void sleep_ms(uint32_t ms) { table.usleep(table.self, ms * 1000); }

  int listener() {
    const int fd = table.socket(table.self, AF_INET, SOCK_STREAM, IPPROTO_TCP);
    EXPECT_GE(fd, 0);
    const sockaddr_in at = address(kUs, kPort);
    EXPECT_EQ(table.bind(table.self, fd, reinterpret_cast<const sockaddr*>(&at), sizeof at), 0);
    EXPECT_EQ(table.listen(table.self, fd, 1), 0);
    return fd;
  }
  /// The peer opens. \return our initial sequence number.
  uint32_t shake_hands() {
    inject({.seq = kIrs, .flags = flag::kSyn});
    const Packet answer = expect();
    EXPECT_EQ(answer.flags, flag::kSyn | flag::kAck);
    EXPECT_EQ(answer.ack, kIrs + 1);
    inject({.seq = kIrs + 1, .ack = answer.seq + 1, .flags = flag::kAck});
    return answer.seq;
  }
  int accept(int fd) { return table.accept(table.self, fd, nullptr, nullptr); }
  static sockaddr_in address(uint32_t ip, uint16_t port) {
    sockaddr_in in{};
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    in.sin_addr.s_addr = htonl(ip);
    return in;
  }
  [[nodiscard]] void* handle() const { return handle_; }

  InterfaceTable table;

 private:
  void* handle_ = nullptr;
};

TEST(PacketdrillAdapter, FillsTheWholeTable) {
  Driver d;
  const void* const* entries = reinterpret_cast<const void* const*>(&d.table);
  for (size_t i = 0; i < sizeof d.table / sizeof(void*); ++i) EXPECT_NE(entries[i], nullptr) << i;
  EXPECT_EQ(d.table.epoll_create(d.table.self, 1), -1);
  EXPECT_EQ(errno, ENOSYS);
}

TEST(PacketdrillAdapter, HandshakeDataBothWaysAndClose) {
  Driver d;
  const int listener = d.listener();
  const uint32_t iss = d.shake_hands();
  const int fd = d.accept(listener);
  ASSERT_GE(fd, 0);

  d.inject(
      {.seq = kIrs + 1, .ack = iss + 1, .flags = flag::kAck | flag::kPsh, .payload = {1, 2, 3}});
  EXPECT_EQ(d.expect().ack, kIrs + 4);
  std::vector<uint8_t> got(10);
  ASSERT_EQ(d.table.read(d.table.self, fd, got.data(), got.size()), 3);
  EXPECT_EQ(std::vector<uint8_t>(got.begin(), got.begin() + 3), (std::vector<uint8_t>{1, 2, 3}));

  const std::vector<uint8_t> said{9, 8, 7, 6};
  ASSERT_EQ(d.table.write(d.table.self, fd, said.data(), said.size()), 4);
  const Packet sent = d.expect();
  EXPECT_EQ(sent.payload, said);
  EXPECT_EQ(sent.seq, iss + 1);
  d.inject({.seq = kIrs + 4, .ack = iss + 5, .flags = flag::kAck});

  EXPECT_EQ(d.table.close(d.table.self, fd), 0);
  EXPECT_EQ(d.expect().flags, flag::kFin | flag::kAck);
  d.inject({.seq = kIrs + 4, .ack = iss + 6, .flags = flag::kAck | flag::kFin});
  EXPECT_EQ(d.expect().ack, kIrs + 5);
  EXPECT_EQ(d.table.close(d.table.self, fd), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(PacketdrillAdapter, RetransmitsInVirtualTime) {
  Driver d("ts=0,sack=0,ws=0,rto_min=200,local=192.168.0.1");
  const int listener = d.listener();
  const uint32_t iss = d.shake_hands();
  const int fd = d.accept(listener);
  uint8_t octet = 1;
  ASSERT_EQ(d.table.write(d.table.self, fd, &octet, 1), 1);
  long long before = d.expect().micros;
  for (const int wait : {200, 400, 800, 1600}) {
    const Packet again = d.expect();
    EXPECT_EQ(again.seq, iss + 1);
    EXPECT_NEAR(static_cast<double>(again.micros - before) / 1000, wait, 1);
    before = again.micros;
  }
}

TEST(PacketdrillAdapter, TheClockRunsOnByReading) {
  Driver d;
  const long long first = d.micros();
  EXPECT_EQ(d.micros(), first + 1);
  d.sleep_ms(5000);
  EXPECT_EQ(d.micros(), first + 5000002);
}

TEST(PacketdrillAdapter, NothingToComeEndsTheWaiting) {
  Driver d;
  d.listener();
  std::vector<uint8_t> buffer(2048);
  size_t count = buffer.size();
  long long when = 0;
  EXPECT_EQ(d.table.netdev_receive(d.table.self, buffer.data(), &count, &when), 0);
  EXPECT_EQ(count, 0u);
}

TEST(PacketdrillAdapter, TcpInfoInTheKernelsLayoutAndPastTheTable) {
  Driver d;
  const int listener = d.listener();
  const uint32_t iss = d.shake_hands();
  const int fd = d.accept(listener);
  std::vector<uint8_t> octets(3 * 536);
  ASSERT_EQ(d.table.write(d.table.self, fd, octets.data(), octets.size()),
            static_cast<ssize_t>(octets.size()));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(d.expect().payload.size(), 536u);
  // As packetdrill does: with the C library's function, which a preloaded adapter stands for.
  const auto get =
      reinterpret_cast<int (*)(int, int, int, void*, socklen_t*)>(dlsym(d.handle(), "getsockopt"));
  tcp_info info{};
  socklen_t length = sizeof info;
  ASSERT_EQ(get(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
  EXPECT_EQ(length, sizeof info);
  EXPECT_EQ(info.tcpi_state, TCP_ESTABLISHED);
  EXPECT_EQ(info.tcpi_ca_state, TCP_CA_Open);
  EXPECT_EQ(info.tcpi_unacked, 3u);
  EXPECT_EQ(info.tcpi_snd_cwnd, 10u);
  EXPECT_EQ(info.tcpi_snd_mss, 536u);
  EXPECT_EQ(info.tcpi_lost, 0u);
  for (int i = 0; i < 3; ++i) {
    d.inject({.seq = kIrs + 1, .ack = iss + 1, .flags = flag::kAck});
  }
  ASSERT_EQ(get(fd, IPPROTO_TCP, TCP_INFO, &info, &length), 0);
  EXPECT_EQ(info.tcpi_ca_state, TCP_CA_Recovery);
  EXPECT_EQ(info.tcpi_lost, 1u);
  EXPECT_EQ(info.tcpi_retrans, 1u);
}

TEST(PacketdrillAdapter, ABlockedAcceptEndsWhenTheHandshakeDid) {
  Driver d;
  const int listener = d.listener();
  d.table.fcntl(d.table.self, listener, F_SETFL, long{O_RDWR | O_NONBLOCK});
  EXPECT_EQ(d.accept(listener), -1);
  EXPECT_EQ(errno, EAGAIN);
  d.table.fcntl(d.table.self, listener, F_SETFL, long{O_RDWR});
  long long ended = 0;
  auto accepted = std::async(std::launch::async, [&] {
    const int fd = d.accept(listener);
    ended = d.micros();
    return fd;
  });
  d.sleep_ms(100);
  d.shake_hands();
  const long long now = d.micros();
  EXPECT_GE(accepted.get(), 0);
  EXPECT_NEAR(static_cast<double>(ended), static_cast<double>(now), 3);
}

TEST(PacketdrillAdapter, ABlockedReadAndABlockedPollEnd) {
  Driver d;
  const int listener = d.listener();
  const uint32_t iss = d.shake_hands();
  const int fd = d.accept(listener);
  std::vector<uint8_t> buffer(100);
  auto reading = std::async(std::launch::async, [&] {
    return d.table.read(d.table.self, fd, buffer.data(), buffer.size());
  });
  while (d.table.usleep(d.table.self, 1000) == 0 &&
         reading.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    if (d.micros() % 20 == 0) {
      d.inject(
          {.seq = kIrs + 1, .ack = iss + 1, .flags = flag::kAck | flag::kPsh, .payload = {5, 6}});
    }
  }
  EXPECT_EQ(reading.get(), 2);
  // The same thread that moves the time: it moves it itself.
  const long long before = d.micros();
  pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
  EXPECT_EQ(d.table.poll(d.table.self, &poll, 1, 700), 0);
  EXPECT_NEAR(static_cast<double>(d.micros() - before), 700000, 10);
}

TEST(PacketdrillAdapter, ConnectThatIsRefused) {
  Driver d;
  const int fd = d.table.socket(d.table.self, AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const sockaddr_in to = Driver::address(kPeer, kPeerPort);
  EXPECT_EQ(d.table.connect(d.table.self, fd, reinterpret_cast<const sockaddr*>(&to), sizeof to),
            -1);
  EXPECT_EQ(errno, EINPROGRESS);
  const Packet syn = d.expect();
  EXPECT_EQ(syn.flags, flag::kSyn);
  d.inject({.ack = syn.seq + 1, .flags = flag::kRst | flag::kAck, .port = syn.port});
  int error = 0;
  socklen_t length = sizeof error;
  EXPECT_EQ(d.table.getsockopt(d.table.self, fd, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST(PacketdrillAdapterDeath, AFlagThatIsNone) {
  EXPECT_EXIT(Driver("speed=9"), testing::ExitedWithCode(2), "no flag \"speed\"");
  EXPECT_EXIT(Driver("iw=ten"), testing::ExitedWithCode(2), "iw takes no such value");
}

}  // namespace
}  // namespace rnic::packetdrill
