// The wire of a machine's processes: who is on it, what arrives, and what nobody can break.

#include "local/local_port.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "offload/offload.hpp"
#include "wire/ipv4.hpp"
#include "wire/tcp.hpp"

namespace rnic::local {
namespace {

using namespace std::chrono_literals;

constexpr port::MacAddress kA{0x02, 0, 10, 77, 0, 1};
constexpr port::MacAddress kB{0x02, 0, 10, 77, 0, 2};
constexpr port::MacAddress kC{0x02, 0, 10, 77, 0, 3};
constexpr port::MacAddress kEverybody{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr base::Now kStart = base::Now(1s);

using Octets = std::vector<uint8_t>;
using Frames = std::vector<Octets>;

/// A frame of a protocol that nobody knows, so that no checksum is looked for in it.
Octets frame_to(const port::MacAddress& to, const port::MacAddress& from, size_t payload,
                uint8_t first = 1) {
  Octets out(to.begin(), to.end());
  out.insert(out.end(), from.begin(), from.end());
  out.insert(out.end(), {0x88, 0xb5});
  out.resize(out.size() + payload);
  std::iota(out.end() - static_cast<ptrdiff_t>(payload), out.end(), first);
  return out;
}

class LocalWire : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "rnic-wire-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<LocalPort> join(const port::MacAddress& mac, uint32_t buffers = 256) {
    auto port = LocalPort::open({.folder = folder_, .mac = mac, .buffers = buffers});
    EXPECT_TRUE(port.has_value()) << (port ? "" : port.error().message);
    return port ? std::move(*port) : nullptr;
  }
  WireFolder wire() { return std::move(*WireFolder::open(folder_)); }
  [[nodiscard]] bool has_file(const char* name) const {
    return std::filesystem::exists(folder_ + "/" + name);
  }

  std::string folder_;
};

/// \return how many frames the port took; those that it did not are given back to it
uint32_t send(LocalPort& port, const std::vector<Octets>& frames, base::Now now = kStart) {
  std::vector<port::Packet> packets(frames.size());
  EXPECT_TRUE(port.alloc(packets));
  for (size_t i = 0; i < frames.size(); ++i) {
    std::copy(frames[i].begin(), frames[i].end(), packets[i].data);
    packets[i].length = static_cast<uint32_t>(frames[i].size());
  }
  const uint32_t taken = port.tx_burst(packets, now);
  port.free(std::span(packets).subspan(taken));
  return taken;
}

std::vector<Octets> receive(LocalPort& port, size_t at_once = 64) {
  std::vector<Octets> out;
  std::vector<port::Packet> packets(at_once);
  while (const uint32_t count = port.rx_burst(packets, kStart)) {
    for (const port::Packet& packet : std::span(packets).first(count)) {
      out.emplace_back(packet.data, packet.data + packet.length);
    }
    port.free(std::span(packets).first(count));
  }
  return out;
}

bool is_readable(int fd) {
  pollfd one{fd, POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

TEST_F(LocalWire, FramesOfEveryLengthArriveInOrder) {
  const auto a = join(kA);
  const auto b = join(kB);
  std::vector<Octets> sent;
  for (size_t payload = 0; payload <= 1500; payload += 30) {
    sent.push_back(frame_to(kB, kA, payload));
  }
  ASSERT_EQ(send(*a, sent), sent.size());
  EXPECT_EQ(receive(*b), sent);
  ASSERT_EQ(send(*b, {frame_to(kA, kB, 7)}), 1u);
  EXPECT_EQ(receive(*a), Frames{frame_to(kA, kB, 7)});
  EXPECT_EQ(b->counters().rx_frames, sent.size());
  EXPECT_EQ(a->counters().tx_frames, sent.size());
  EXPECT_EQ(a->counters().tx_octets, b->counters().rx_octets);
}

TEST_F(LocalWire, FramesForSeveralReceiversKeepToTheirOwn) {
  const auto a = join(kA);
  const auto b = join(kB);
  const auto c = join(kC);
  ASSERT_EQ(send(*a, {frame_to(kB, kA, 1), frame_to(kC, kA, 2), frame_to(kC, kA, 3),
                      frame_to(kB, kA, 4)}),
            4u);
  EXPECT_EQ(receive(*b), (Frames{frame_to(kB, kA, 1), frame_to(kB, kA, 4)}));
  EXPECT_EQ(receive(*c), (Frames{frame_to(kC, kA, 2), frame_to(kC, kA, 3)}));
}

TEST_F(LocalWire, AGroupIsEverybodyElse) {
  const auto a = join(kA);
  const auto b = join(kB);
  const auto c = join(kC);
  ASSERT_EQ(send(*a, {frame_to(kEverybody, kA, 5)}), 1u);
  EXPECT_EQ(receive(*a), Frames{});
  EXPECT_EQ(receive(*b), Frames{frame_to(kEverybody, kA, 5)});
  EXPECT_EQ(receive(*c), Frames{frame_to(kEverybody, kA, 5)});
}

TEST_F(LocalWire, AnAddressHasOnePort) {
  auto a = join(kA);
  const auto second = LocalPort::open({.folder = folder_, .mac = kA});
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::AlreadyExists);
  EXPECT_NE(second.error().message.find(folder_), std::string::npos);
  a.reset();
  EXPECT_FALSE(has_file("02000a4d0001"));
  EXPECT_NE(join(kA), nullptr);
}

TEST_F(LocalWire, TheFileOfADeadProcessIsReplaced) {
  { const auto died = wire().claim(kA); }  // its socket is gone, and its file is not
  ASSERT_TRUE(has_file("02000a4d0001"));
  const auto a = join(kA);
  const auto b = join(kB);
  ASSERT_EQ(send(*b, {frame_to(kA, kB, 9)}), 1u);
  EXPECT_EQ(receive(*a), Frames{frame_to(kA, kB, 9)});
}

TEST_F(LocalWire, FramesToTheDeadVanishAndTheirFileGoes) {
  { const auto died = wire().claim(kB); }
  const auto a = join(kA);
  EXPECT_EQ(send(*a, {frame_to(kB, kA, 1), frame_to(kC, kA, 1)}), 2u);  // nobody ever was kC
  EXPECT_FALSE(has_file("02000a4d0002"));
  EXPECT_EQ(a->counters().tx_discarded, 2u);
  EXPECT_EQ(a->next_deadline(), base::kNever);
}

/// A TCP segment over IPv4, from kA at 10.77.0.1 to kB at 10.77.0.2.
Octets segment(uint8_t flags, size_t payload) {
  Octets out = frame_to(kB, kA, 40 + payload, 0);
  out[12] = 0x08;
  out[13] = 0x00;
  uint8_t* ip = out.data() + 14;
  wire::write_ipv4(ip, {.total_length = static_cast<uint16_t>(40 + payload),
                        .ttl = 64,
                        .protocol = wire::kProtocolTcp,
                        .source = 0x0a4d0001,
                        .destination = 0x0a4d0002});
  wire::write_tcp(ip + 20, {.source_port = 1000,
                            .destination_port = 2000,
                            .sequence = base::Seq32(500),
                            .acknowledgment = base::Seq32(900),
                            .flags = flags});
  return out;
}

TEST_F(LocalWire, TheDeadAnswerByAReset) {
  using namespace wire::tcp_flag;
  const auto a = join(kA);
  struct Row {
    uint8_t flags;
    size_t payload;
    uint32_t sequence;
    uint32_t acknowledgment;
    uint8_t answer;  // its flags; 0: there is none
  };
  for (const Row& row : {Row{kAck, 10, 900, 0, kRst}, Row{kSyn, 0, 0, 501, kRst | kAck},
                         Row{kFin, 7, 0, 508, kRst | kAck}, Row{kRst, 0, 0, 0, 0}}) {
    ASSERT_EQ(send(*a, {segment(row.flags, row.payload)}), 1u);
    EXPECT_EQ(a->next_deadline() <= kStart, row.answer != 0);
    const Frames got = receive(*a);
    ASSERT_EQ(got.size(), row.answer != 0 ? 1u : 0u);
    if (got.empty()) continue;
    const auto at = offload::locate_tcp(got[0]);
    ASSERT_TRUE(at && at->end == got[0].size());
    EXPECT_TRUE(offload::tcp_checksum_good(got[0], *at));
    const Octets back = frame_to(kA, kB, 0);
    EXPECT_TRUE(std::equal(back.begin(), back.begin() + 12, got[0].begin()));
    const auto ip = wire::parse_ipv4(base::ByteView(got[0]).subspan(at->ip));
    ASSERT_TRUE(ip.has_value());
    EXPECT_EQ(ip->source, 0x0a4d0002u);
    EXPECT_EQ(ip->destination, 0x0a4d0001u);
    const auto tcp = wire::TcpView::parse(base::ByteView(got[0]).subspan(at->tcp));
    ASSERT_TRUE(tcp.has_value());
    EXPECT_EQ(tcp->source_port(), 2000u);
    EXPECT_EQ(tcp->destination_port(), 1000u);
    EXPECT_EQ(tcp->sequence().value, row.sequence);
    EXPECT_EQ(tcp->acknowledgment().value, row.acknowledgment);
    EXPECT_EQ(tcp->flags(), row.answer);
  }
}

TEST_F(LocalWire, AFullReceiverIsWaitedForAndThenDoneWithout) {
  const auto a = join(kA);
  const auto b = join(kB);
  const auto c = join(kC);
  const std::vector<Octets> one{frame_to(kB, kA, 1400)};
  size_t taken = 0;
  while (send(*a, one) == 1 && taken < 100'000) ++taken;
  ASSERT_LT(taken, 100'000u);
  EXPECT_EQ(a->next_deadline(), kStart + LocalPort::kRetry);
  EXPECT_EQ(a->counters().tx_discarded, 0u);

  // What stands behind its frame waits, too, until the patience is over.
  const std::vector<Octets> two{one.front(), frame_to(kC, kA, 3)};
  EXPECT_EQ(send(*a, two, kStart + LocalPort::kPatience - 1ns), 0u);
  EXPECT_EQ(send(*a, two, kStart + LocalPort::kPatience), 2u);
  EXPECT_EQ(a->counters().tx_discarded, 1u);
  EXPECT_EQ(receive(*c).size(), 1u);

  EXPECT_EQ(receive(*b).size(), taken);
  EXPECT_EQ(send(*a, one, kStart + 1s), 1u);
  EXPECT_EQ(receive(*b), one);
}

TEST_F(LocalWire, AThreadThatSleepsOnItIsWoken) {
  const auto a = join(kA);
  const auto b = join(kB);
  const auto fd = b->arm();
  ASSERT_TRUE(fd.has_value());
  EXPECT_FALSE(is_readable(*fd));
  send(*a, {frame_to(kB, kA, 1), frame_to(kB, kA, 2), frame_to(kB, kA, 3)});
  EXPECT_TRUE(is_readable(*fd));

  // The rest of a datagram is not in the socket any more.
  std::array<port::Packet, 1> first;
  ASSERT_EQ(b->rx_burst(first, kStart), 1u);
  b->free(first);
  EXPECT_LE(b->next_deadline(), kStart);
  EXPECT_EQ(receive(*b, 1).size(), 2u);
  EXPECT_EQ(b->next_deadline(), base::kNever);
}

TEST_F(LocalWire, WithoutABufferAFrameIsDroppedAndCounted) {
  const auto a = join(kA);
  const auto b = join(kB, 2);
  std::array<port::Packet, 2> all;
  ASSERT_TRUE(b->alloc(all));
  std::array<port::Packet, 1> none;
  EXPECT_FALSE(b->alloc(none));
  send(*a, {frame_to(kB, kA, 1)});
  EXPECT_EQ(receive(*b), Frames{});
  EXPECT_EQ(b->counters().rx_dropped, 1u);
  b->free(all);
  send(*a, {frame_to(kB, kA, 2)});
  EXPECT_EQ(receive(*b).size(), 1u);
}

/// Writes a datagram of any octets into the socket of kA, as any process of the user can.
void write_datagram(const WireFolder& wire, const Octets& octets) {
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const int room = 1 << 20;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
  const SocketAddress address = wire.address_of(kA);
  EXPECT_EQ(sendto(fd, octets.data(), octets.size(), 0, address.get(), address.size()),
            static_cast<ssize_t>(octets.size()));
  close(fd);
}

Octets with_length(size_t length, const Octets& frame) {
  Octets out{static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
  out.insert(out.end(), frame.begin(), frame.end());
  return out;
}

TEST_F(LocalWire, WhatIsNoFrameIsDroppedAndCounted) {
  const auto a = join(kA);
  const auto other = wire();
  const Octets good = frame_to(kA, kB, 30);
  const Octets longest = frame_to(kA, kB, 1500 + port::kLinkHeader - 14);
  Octets with_rest = with_length(good.size(), good);
  with_rest.push_back(0);
  uint64_t dropped = 0;
  for (const auto& [octets, frames] : std::vector<std::pair<Octets, size_t>>{
           {{}, 0},
           {{0}, 0},
           {{0, 0}, 0},
           {with_length(13, Octets(13)), 0},
           {with_length(good.size() + 1, good), 0},
           {with_length(65535, good), 0},
           {with_length(longest.size() + 1, Octets(longest.size() + 1)), 0},
           {Octets(LocalPort::kMostOctets + 1), 0},
           {with_rest, 1}}) {
    write_datagram(other, octets);
    EXPECT_EQ(receive(*a).size(), frames) << octets.size() << " octets";
    EXPECT_EQ(a->counters().rx_dropped, ++dropped) << octets.size() << " octets";
  }
  write_datagram(other, with_length(longest.size(), longest));
  EXPECT_EQ(receive(*a), Frames{longest});
}

TEST_F(LocalWire, ABurstOfEmptyDatagramsEndsTheTurn) {
  const auto a = join(kA);
  const auto other = wire();
  for (int i = 0; i < 3; ++i) write_datagram(other, {});
  std::array<port::Packet, 2> out;
  EXPECT_EQ(a->rx_burst(out, kStart), 0u);
  EXPECT_EQ(a->counters().rx_dropped, 2u);
  EXPECT_EQ(a->rx_burst(out, kStart), 0u);
  EXPECT_EQ(a->counters().rx_dropped, 3u);
}

TEST_F(LocalWire, AFolderThatCannotBeOneIsRefused) {
  const std::string file = folder_ + "/file";
  std::ofstream(file) << "no folder";
  for (const std::string& path :
       {std::string(), file, folder_ + "/missing/wire", std::string(kMostPath + 1, 'x')}) {
    const auto port = LocalPort::open({.folder = path, .mac = kA});
    ASSERT_FALSE(port.has_value()) << path;
    EXPECT_NE(port.error().message.find("local wire"), std::string::npos);
  }
}

TEST_F(LocalWire, ANewFolderIsItsUsersAlone) {
  const std::string path = folder_ + "/new";
  const auto port = LocalPort::open({.folder = path, .mac = kA});
  ASSERT_TRUE(port.has_value());
  struct stat found {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0700u);
}

}  // namespace
}  // namespace rnic::local
