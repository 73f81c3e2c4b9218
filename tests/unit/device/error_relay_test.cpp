#include "device/error_relay.hpp"

#include <gtest/gtest.h>

#include "support/record_user.hpp"
#include "support/tcp_link.hpp"

namespace rnic::testing {
namespace {

TEST(ErrorRelay, AnErrorOfTheNetworkReachesTheConnectionItQuotes) {
  struct Case {
    llp::IcmpError::Kind kind;
    uint64_t tcp::Counters::*counter;
  };
  for (const Case& c : {Case{llp::IcmpError::Kind::Hard, &tcp::Counters::icmp_hard},
                        Case{llp::IcmpError::Kind::Soft, &tcp::Counters::icmp_soft},
                        Case{llp::IcmpError::Kind::SourceQuench, &tcp::Counters::icmp_ignored},
                        Case{llp::IcmpError::Kind::PacketTooBig, &tcp::Counters::icmp_ignored}}) {
    TcpLink link;
    std::vector<uint8_t> syn;
    link.seen = [&](const LinkFrame& f) { syn = f.tcp; };
    link.hook = [](const LinkFrame&) { return Fate{.drop = true}; };
    RecordUser user{1, 2};
    user.stream = *link.a.connect({kAddressA, 0}, {kAddressB, 80}, user, link.now);
    link.step();
    ASSERT_GE(syn.size(), 8u);
    device::ErrorRelay relay(link.a);
    relay.icmp_error({.kind = c.kind,
                      .type = 3,
                      .code = 0,
                      .mtu = 1000,
                      .quoted_length = 60,
                      .source = kAddressA,
                      .destination = kAddressB,
                      .tcp = base::ByteView(syn).first(8)},
                     link.now);
    EXPECT_EQ(link.a.counters().*c.counter, 1u);
    EXPECT_EQ(user.how_ended.has_value(), c.kind == llp::IcmpError::Kind::Hard);
  }
}

}  // namespace
}  // namespace rnic::testing
