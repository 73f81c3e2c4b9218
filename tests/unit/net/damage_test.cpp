// validate() of the tables of an interface: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/dad.hpp"
#include "net/fragments.hpp"
#include "net/neighbours.hpp"
#include "net/path_mtu.hpp"
#include "net/routes.hpp"
#include "net/tx_queue.hpp"
#include "support/fake_port.hpp"
#include "support/plain_reassembler.hpp"

namespace rnic::net {
namespace {

using test::notices;

RNIC_OPEN(Dad, tentative_)
RNIC_OPEN(Fragments, datagrams_)
RNIC_OPEN(Fragments, octets_)
RNIC_OPEN(Neighbours, entries_)
RNIC_OPEN(Neighbours, heads_)
RNIC_OPEN(Neighbours, made_)
RNIC_OPEN(Neighbours, size_)
RNIC_OPEN(PathMtu, entries_)
RNIC_OPEN(PathMtu, used_)
RNIC_OPEN(TxQueue, first_spare_)
RNIC_OPEN(TxQueue, open_)
RNIC_OPEN(TxQueue, spare_count_)
RNIC_OPEN(TxQueue, unsent_count_)

constexpr base::Now kBegin = base::from_nanos(1'000'000'000);
constexpr port::MacAddress kPortMac{2, 0, 0, 0, 0, 1};
constexpr IpAddress kHost = IpAddress::v4(0x0a000001);

Config config_of(const IpAddress& address) {
  Config config;
  config.address = address;
  return config;
}

TEST(Damage, OfWhatIsKnownOfPaths) {
  PathMtu paths(std::chrono::minutes(10));
  paths.reduce(IpAddress::v4(0xc0000201), 1400, kBegin);
  auto& entries = entries_(paths);
  const size_t other = entries[0].mtu == 0 ? 0 : 1;
  const size_t used = static_cast<size_t>(
      std::find_if(entries.begin(), entries.end(), [](const auto& e) { return e.mtu != 0; }) -
      entries.begin());
  notices(paths, "net/path_mtu.hpp: place(entries_[i].destination) == i",
          [&] { std::swap(entries[used], entries[other]); });
  notices(paths, "net/path_mtu.hpp: entries_[i].mtu >=", [&] { entries[used].mtu = 67; });
  notices(paths, "net/path_mtu.hpp: used == used_", [&] { ++used_(paths); });
}

TEST(Damage, OfFramesOnTheirWay) {
  test::FakePort port(port::PortInfo{"fake", kPortMac, 1500, port::ChecksumMode::Software}, 8);
  Counters counters;
  TxQueue queue(port, counters);
  notices(queue, "net/tx_queue.hpp: unsent_count_ + open_ <= kBurst", [&] { open_(queue) = 1000; });
  notices(queue, "net/tx_queue.hpp: unsent_[i].data != nullptr", [&] { unsent_count_(queue) = 1; });
  notices(queue, "net/tx_queue.hpp: spare.data != nullptr", [&] { spare_count_(queue) = 1; });
  notices(queue, "net/tx_queue.hpp: first_spare_ < kBurst", [&] { first_spare_(queue) = 1000; });
}

TEST(Damage, OfTentativeAddresses) {
  const Config config = config_of(kHost);
  Routes routes(config, kPortMac);
  Counters counters;
  Dad dad(config, routes, counters, kBegin);
  notices(dad, "net/dad.cpp: !routes_.is_ours(t.address)", [&] {
    tentative_(dad).push_back({kHost, 1, kBegin});
  });
}

TEST(Damage, OfDatagramsInFragments) {
  test::PlainReassembler reassembler;
  Counters counters;
  Fragments fragments(config_of(kHost), &reassembler, counters);
  auto& datagram = datagrams_(fragments)[0];
  const auto notes = [&](std::string_view check, auto damage) {
    notices(fragments, check, [&] {
      datagram.taken = true;
      damage();
    });
  };
  notes("net/fragments.cpp: d.octets ==", [&] { datagram.octets = 1; });
  notes("net/fragments.cpp: d.quoted <= kQuote", [&] { datagram.quoted = 1000; });
  notes("net/fragments.cpp: next_deadline_ <= d.deadline", [&] { datagram.deadline = kBegin; });
  notes("net/fragments.cpp: octets == octets_", [&] { octets_(fragments) = 1; });
}

struct Nobody final : NeighbourUser {
  void solicit(const IpAddress&, const port::MacAddress*, base::Now) override {}
  void unpark(port::Packet&, const port::MacAddress&, base::Now) override {}
  void drop_parked(port::Packet&) override {}
};

TEST(Damage, OfNeighbours) {
  Nobody user;
  Counters counters;
  Neighbours neighbours(config_of(kHost), user, counters, kBegin);
  auto& entry = entries_(neighbours)[0];
  // One whose address is asked for, in no chain yet.
  const auto notes = [&](std::string_view check, auto damage) {
    notices(neighbours, check, [&] {
      made_(neighbours) = size_(neighbours) = 1;
      entry.state = NeighbourState::Incomplete;
      entry.deadline = base::kNever;
      entry.next = UINT32_MAX;
      damage();
    });
  };
  notes("net/neighbours.cpp: entry.parked_first < kParked", [&] { entry.parked_count = 1000; });
  notes("net/neighbours.cpp: entry.parked_count == 0 ||", [&] {
    entry.state = NeighbourState::Reachable;
    entry.parked_count = 1;
  });
  notes("net/neighbours.cpp: next_deadline_ <= entry.deadline", [&] { entry.deadline = kBegin; });
  notes("net/neighbours.cpp: size == size_", [&] { ++size_(neighbours); });
  notes("net/neighbours.cpp: ++chained <= size_", [&] { heads_(neighbours)[0] = 1; });
  notes("net/neighbours.cpp: (hash(entries_[i].ip)", [&] { heads_(neighbours)[1] = 0; });
  notes("net/neighbours.cpp: chained == size_", [] {});
}

}  // namespace
}  // namespace rnic::net
