// validate() of the parts of MPA: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include "mpa/drop_policy.hpp"
#include "mpa/session.hpp"
#include "mpa/start_frames.hpp"
#include "mpa/suspicions.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::mpa {
namespace {

using test::notices;

RNIC_OPEN(DropPolicy, drop_counts_)
RNIC_OPEN(Session, start_)
RNIC_OPEN(StartFrameParser, have_)
RNIC_OPEN(StartFrameParser, header_)
RNIC_OPEN(Suspicions, entries_)
RNIC_OPEN(Suspicions, used_)

TEST(Damage, OfADropPolicy) {
  const Config config;
  FpduReader reader;
  framing::HoldStore store(64 * 2048);
  Counters counters;
  DropPolicy policy(config, reader, store, counters);
  notices(policy, "mpa/drop_policy.hpp: count.drops <=", [&] {
    drop_counts_(policy)[0].drops = UINT32_MAX;
  });
}

TEST(Damage, OfAStartFrame) {
  const Config config;
  StartFrameParser parser(framing::Role::Responder, config, 2);
  notices(parser, "mpa/start_frames.hpp: have_ <=", [&] { have_(parser) = 1u << 20; });
  notices(parser, "mpa/start_frames.hpp: !header_ ||", [&] { header_(parser).emplace(); });
}

TEST(Damage, OfASession) {
  const framing::HoldStorePtr store = framing::make_hold_store(64u << 10);
  Counters counters;
  test::FakeStartEvents events;
  test::FakeStream stream;
  Session session({}, framing::Role::Initiator, *store, counters, events, {});
  session.attach(stream);
  session.established(1460, {});
  notices(session, "mpa/session.hpp: start_ != nullptr || !starting()",
          [&] { start_(session).reset(); });
}

TEST(Damage, OfSuspicions) {
  Suspicions suspicions;
  auto& entry = entries_(suspicions)[0];
  const auto notes = [&](std::string_view check, auto damage) {
    notices(suspicions, check, damage);
  };
  notes("mpa/suspicions.cpp: entry.not_placed <= entry.range.size()", [&] {
    entry.range = {10, 20};
    entry.not_placed = 11;
  });
  notes("mpa/suspicions.cpp: entry.difference == 0", [&] {
    entry.range = {10, 20};
    entry.difference = 1;
  });
  notes("mpa/suspicions.cpp: used == used_", [&] { used_(suspicions) = 1; });
}

}  // namespace
}  // namespace rnic::mpa
