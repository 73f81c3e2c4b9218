// validate() of what a device has: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <algorithm>
#include <utility>

#include "device/consumers.hpp"
#include "device/link_watch.hpp"
#include "device/listeners.hpp"
#include "device/terminate_tally.hpp"
#include "stream_pair.hpp"
#include "support/fake_port.hpp"

namespace rnic::device {
namespace {

using test::notices;
using StreamTable = std::remove_reference_t<decltype(std::declval<Device&>().streams())>;

RNIC_OPEN(ConnectionService, requests_)
RNIC_OPEN(PendingRequests, waiting_)
RNIC_OPEN(ConnectionService, connections_)
RNIC_OPEN(ConnectionTable, peers_)
RNIC_OPEN(Device, connections_)
RNIC_OPEN(QueuePair, connection_)
RNIC_OPEN(StreamTable, by_number_)
RNIC_OPEN(Listeners, all_)
RNIC_OPEN(Consumer, ledger_)
RNIC_OPEN(Consumers, all_)
RNIC_OPEN(Consumers, in_all_)
RNIC_OPEN(ResourceLedger, used_)
RNIC_OPEN(TerminateTally, counts_)
RNIC_OPEN(TerminateTally, used_)
RNIC_OPEN(LinkWatch, next_look_)
RNIC_OPEN(LinkWatch, told_)

class Damage : public Streams {};

TEST_F(Damage, OfConnections) {
  QueuePair* const near = left().make_qp();
  DevicePair::connect(near, right().make_qp());
  Device& device = *left().device;
  notices(device, "device/connection.cpp: qp_ == nullptr ||", [&] { connection_(*near) = {}; });
  notices(device, "device/pending_requests.cpp: count({}) == waiting_",
          [&] { ++waiting_(requests_(connections_(device))); });
}

TEST_F(Damage, OfThoseThatCountForTheirPeers) {
  Device& device = *left().device;
  llp::Admission& peers = peers_(connections_(connections_(device)));
  notices(device, "device/connection_table.cpp: counted == peers_.size()",
          [&] { peers.enter(IpAddress::v4(1), {}); });
}

TEST(DamageOfListeners, OfWhatWaits) {
  Listeners listeners;
  const Endpoint local{{}, 7};
  listeners.add(listeners.make({}, 0), local);
  test::expect_noticed(
      "device/listeners.hpp: each.second.waiting == count(",
      [&] { listeners.validate([](uint64_t) { return 0u; }); },
      [&] { ++all_(listeners)[local].waiting; });
}

TEST(DamageOfConsumers, OfWhatTheyHave) {
  Consumers consumers(1, {}, {});
  const auto check = [&] { consumers.validate(consumers.nothing_found(), 0, 0); };
  ResourceCounts& used = used_(ledger_(*all_(consumers)[0]));
  test::expect_noticed("device/consumers.cpp: of_objects == found[number]", check,
                       [&] { used.qps = 1; });
  used = {};
  test::expect_noticed("device/consumers.cpp: regions == 0", check, [&] { used.regions = 1; });
  used = {};
  test::expect_noticed("device/consumers.cpp: pieces == 0", check, [&] { used.pieces = 1; });
  used = {};
  test::expect_noticed("device/consumers.cpp: sum.used() == in_all_.used()", check,
                       [&] { used_(in_all_(consumers)).reads = 1; });
}

TEST(DamageOfConsumers, OfTheirHoldSpace) {
  Consumers consumers(1, {}, {});
  test::expect_noticed(
      "framing/hold_share.hpp: used_ == held",
      [&] { consumers.validate(consumers.nothing_found(), 0, 0); },
      [&] { consumers.hold_share(0)->add(1); });
}

TEST(DamageOfTerminates, OfPlaces) {
  TerminateTally tally;
  event::TerminateSent sent;
  for (uint8_t code = 0; code < 2; ++code) {
    sent.fault = {FaultLayer::Ddp, 1, code, "test"};
    tally.happened(sent);
  }
  notices(tally, "device/terminate_tally.hpp: used_ <= kMaxCodes",
          [&] { used_(tally) = TerminateTally::kMaxCodes + 1; });
  notices(tally, "device/terminate_tally.hpp: std::count_if(",
          [&] { counts_(tally)[1].code = counts_(tally)[0].code; });
}

TEST(DamageOfLinks, OfWhatIsTold) {
  test::FakePort port({.name = "fake"});
  port.link_state = port::LinkState::Up;
  DeviceCounters counters;
  const std::string name = "rnic0";
  LinkWatch link(name, port, counters, base::Now(std::chrono::seconds(1)));
  notices(link, "device/link_watch.cpp: seen_ == LinkState::Gone ||",
          [&] { told_(link) = port::LinkState::Gone; });
  notices(link, "device/link_watch.cpp: (next_look_ == base::kNever) ==",
          [&] { next_look_(link) = base::kNever; });
}

TEST_F(Damage, OfStreamingSockets) {
  StreamListener* const listener = listen();
  connected(listener);
  Device& device = *left().device;
  auto& numbers = by_number_(device.streams());
  const auto free = std::find(numbers.begin(), numbers.end(), nullptr);
  const auto taken = std::find_if(numbers.begin(), numbers.end(), [](auto* s) { return s; });
  notices(device, "device/socket_table.hpp: numbered == live()", [&] { *free = *taken; });
  notices(device, "device/socket_table.hpp: by_number_[handle.index] == &socket",
          [&] { std::swap(*free, *taken); });
}

}  // namespace
}  // namespace rnic::device
