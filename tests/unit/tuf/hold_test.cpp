// Over a transport that can drop nothing, what has no room stays with it: sure_room() and takes().
#include <numeric>

#include "framing/hold_store.hpp"
#include "session_pair.hpp"

namespace rnic::tuf {
namespace {

/// A sends marked PDUs; B's transport is a socket of the system, and all hold space is another
/// session's.
class NoHoldSpace : public ::testing::Test {
 protected:
  static constexpr uint32_t kUlpdus = 12;

  NoHoldSpace() : p_(marked(512), marked(512), 8192), other_(*p_.b.hold_store, UINT32_MAX) {
    p_.b.stream.traits_value = {};
    p_.b.session->attach(p_.b.stream);  // which looks at them
    p_.start();
    for (uint32_t i = 0; i < kUlpdus; ++i) sent_.push_back(numbered_ulpdu(i, 20 + i * 117));
    p_.send(sent_);
    framed_ = p_.framed();
    begin_ = p_.first_octet;
  }
  void use_up() {
    const Octets zero(1u << 17);
    for (uint64_t at = 0;;) {
      const uint32_t n = other_.room_in({at, at + zero.size()}, true);
      if (n == 0) return;
      other_.add({at, at + n}, base::ByteView(zero).first(n), true, framing::kUnlocated);
      at += n;
    }
  }
  /// The transport looks at what it has, and hands up what is taken. \return how much that was.
  uint32_t offer(size_t have) {
    const base::ByteView octets = base::ByteView(framed_).subspan(done_, have - done_);
    const uint64_t at = begin_ + done_;
    const uint32_t taken = p_.b.session->takes({at, at + octets.size()}, octets);
    EXPECT_LE(taken, octets.size());
    if (taken != 0) p_.b.in.receive(at, octets.first(taken));
    done_ += taken;
    return taken;
  }

  SessionPair p_;
  framing::HeldOctets other_;
  std::vector<Octets> sent_;
  Octets framed_;
  uint64_t begin_ = 0;
  size_t done_ = 0;
};

// A PDU is taken when it is whole, and not one octet of the next one before.
TEST_F(NoHoldSpace, WholePdusAreTaken) {
  use_up();
  EXPECT_EQ(p_.b.session->sure_room(), 0u);
  const uint64_t held = framing::held_octets(*p_.b.hold_store);
  uint32_t steps = 0;
  for (size_t have = 1; have <= framed_.size(); ++have) {
    const size_t before = p_.b.user.delivered.size();
    const uint32_t taken = offer(have);
    EXPECT_EQ(p_.b.user.delivered.size() - before, taken != 0 ? 1u : 0u) << have;
    EXPECT_EQ(framing::held_octets(*p_.b.hold_store), held) << have;
    steps += taken != 0 ? 1 : 0;
  }
  EXPECT_EQ(steps, kUlpdus);
  EXPECT_TRUE(p_.b.user.delivered == sent_);
  EXPECT_EQ(p_.b.counters.hold_refused, 0u);
  EXPECT_EQ(p_.b.stream.aborts, 0);
}

// Many at once, and a part of one: the part stays, and goes when the rest is there.
TEST_F(NoHoldSpace, APartStays) {
  use_up();
  for (size_t have = 700; have < framed_.size(); have += 1300) {
    offer(have);
    EXPECT_EQ(offer(have), 0u) << "nothing whole is left";
    EXPECT_LT(done_, have);
  }
  offer(framed_.size());
  EXPECT_EQ(done_, framed_.size());
  EXPECT_TRUE(p_.b.user.delivered == sent_);
  EXPECT_EQ(p_.b.stream.aborts, 0);
}

// A transport that hands up octets without asking loses the connection, since there is no room for
// the part of a PDU.
TEST_F(NoHoldSpace, UnaskedItIsTheEnd) {
  use_up();
  p_.b.in.receive(begin_, base::ByteView(framed_).first(30));
  EXPECT_EQ(p_.b.counters.hold_refused, 1u);
  EXPECT_EQ(p_.b.stream.aborts, 1);
}

// With space a part is taken, without a look where that is sure; space that comes back is told.
TEST_F(NoHoldSpace, WithSpaceEverythingIsTaken) {
  EXPECT_GT(p_.b.session->sure_room(), framed_.size() / 2);
  EXPECT_EQ(offer(30), 30u);
  EXPECT_EQ(offer(framed_.size()), framed_.size() - 30);
  EXPECT_TRUE(p_.b.user.delivered == sent_);
  EXPECT_GT(p_.b.stream.grew, 0);
  // What will be thrown away needs none.
  use_up();
  p_.b.session->discard_received();
  EXPECT_EQ(p_.b.session->sure_room(), UINT32_MAX);
}

}  // namespace
}  // namespace rnic::tuf
