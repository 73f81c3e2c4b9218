/// \file
/// Many connections between the two stacks of a TcpLink, with a RecordUser at either end of each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "unit/tcp/pair.hpp"

namespace rnic::testing {

class Crowd {
 public:
  /// That many connections begin, each with so many records to send to its peer.
  Crowd(int connections, int records, uint32_t octets, const tcp::Config& config_a = {},
        const tcp::Config& config_b = {})
      : link(config_a, config_b), each_sends(static_cast<uint64_t>(records) * octets) {
    RNIC_CHECK(link.b.listen({kAddressB, kPort}, acceptor).has_value());
    for (int i = 0; i < connections; ++i) {
      peers.push_back(std::make_unique<RecordUser>(22, 11));
      acceptor.next.push_back(peers.back().get());
      users.push_back(std::make_unique<RecordUser>(11, 22));
      RecordUser& user = *users.back();
      const auto result = link.a.connect({kAddressA, 0}, {kAddressB, kPort}, user, link.now);
      RNIC_CHECK(result.has_value());
      user.stream = *result;
      for (int k = 0; k < records; ++k) user.queue(octets);
    }
  }

  /// The peers have acknowledged everything.
  [[nodiscard]] bool all_released() const {
    return std::all_of(users.begin(), users.end(),
                       [this](const auto& user) { return user->released_to == each_sends; });
  }
  bool drain(base::Duration time) {
    return link.run_until([this] { return all_released(); }, time);
  }
  void expect_clean_peers() const {
    for (const auto& peer : peers) EXPECT_TRUE(peer->clean());
  }

  TcpLink link;
  UserAcceptor acceptor;
  std::vector<std::unique_ptr<RecordUser>> users;  ///< of link.a
  std::vector<std::unique_ptr<RecordUser>> peers;  ///< of link.b
  const uint64_t each_sends;                       ///< octets
};

}  // namespace rnic::testing
