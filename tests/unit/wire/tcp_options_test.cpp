#include "wire/tcp_options.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

TEST(Header, PaddingBehindTheOptionsIsZero_TCP_9293_3_1_06) {
  for (int which = 0; which < 8; ++which) {
    std::array<uint8_t, 40> out;
    out.fill(0xee);
    TcpOptionWriter writer(out.data());
    uint32_t used = 0;
    if ((which & 1) != 0) writer.mss(1460), used += 4;
    if ((which & 2) != 0) writer.window_scale(7), used += 4;
    if ((which & 4) != 0) writer.sack_permitted(), used += 2;
    const uint32_t length = writer.finish();
    EXPECT_EQ(length % 4, 0u);
    for (uint32_t i = used; i < length; ++i) EXPECT_EQ(out[i], 0) << which;
  }
}

// RFC 9293 s.3.2, RFC 7323 s.2.2 and 3.2, RFC 2018 s.2 and 3: each option as it is written.
TEST(TcpOptionsWire, EachAtItsPlace) {
  const auto made = [](size_t size, auto put) {
    return written(size, [&](uint8_t* p) {
      TcpOptionWriter writer(p);
      put(writer);
      EXPECT_EQ(writer.finish(), size);
    });
  };
  EXPECT_EQ(made(4, [](auto& w) { w.mss(1460); }), (Octets{2, 4, 0x05, 0xb4}));
  EXPECT_EQ(made(4, [](auto& w) { w.window_scale(7); }), (Octets{1, 3, 3, 7}));
  EXPECT_EQ(made(4, [](auto& w) { w.sack_permitted(); }), (Octets{4, 2, 0, 0}));
  EXPECT_EQ(made(12,
                 [](auto& w) {
                   w.nop();
                   w.nop();
                   w.timestamps({0x01020304, 0x11121314});
                 }),
            (Octets{1, 1, 8, 10, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14}));
  const SackBlock blocks[]{{base::Seq32(1), base::Seq32(2)}, {base::Seq32(3), base::Seq32(4)}};
  EXPECT_EQ(made(20, [&](auto& w) { w.sack(blocks, 2); }),
            (Octets{1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4}));
}

// All that fit together come back as they were written, in any order of reading.
TEST(TcpOptionsWire, ComeBackAsTheyWent) {
  const SackBlock block{base::Seq32(0xfffffff0), base::Seq32(0x10)};
  const Octets octets = written(32, [&](uint8_t* p) {
    TcpOptionWriter writer(p);
    writer.mss(9000);
    writer.sack_permitted();
    writer.timestamps({0xdeadbeef, 1});
    writer.window_scale(14);
    writer.sack(&block, 1);
    EXPECT_EQ(writer.finish(), 32u);
  });
  TcpOptions o;
  ASSERT_TRUE(o.parse(Exact(octets).view()));
  EXPECT_EQ(o.mss, 9000);
  EXPECT_TRUE(o.sack_permitted);
  ASSERT_TRUE(o.timestamps);
  EXPECT_EQ(o.timestamps->value, 0xdeadbeefu);
  EXPECT_EQ(o.timestamps->echo, 1u);
  EXPECT_EQ(o.window_scale, 14);
  ASSERT_EQ(o.sack_count, 1u);
  EXPECT_EQ(o.sack[0].left.value, 0xfffffff0u);
  EXPECT_EQ(o.sack[0].right.value, 0x10u);
}

// The two ways to read timestamps, in the place where they nearly always are and elsewhere, agree.
TEST(TcpOptionsWire, TimestampsByThemselvesAndWithOthers) {
  const Octets alone{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8};
  Octets others = alone;
  others.insert(others.end(), {1, 1, 1, 0});
  for (const Octets& octets : {alone, others}) {
    TcpOptions o;
    ASSERT_TRUE(o.parse(Exact(octets).view()));
    ASSERT_TRUE(o.timestamps);
    EXPECT_EQ(o.timestamps->value, 0x01020304u);
    EXPECT_EQ(o.timestamps->echo, 0x05060708u);
  }
}

// Each kind with each length in each room: nothing behind the room is read, and only a length that
// is none or that leaves the room is refused.
TEST(TcpOptionsWire, EveryKindLengthAndRoom) {
  const Octets fill(40, 1);
  for (uint32_t kind = 2; kind < 10; ++kind) {
    for (uint32_t length = 0; length < 45; ++length) {
      for (size_t room = 1; room <= 40; ++room) {
        Octets octets(fill.begin(), fill.begin() + static_cast<int>(room));
        octets[0] = static_cast<uint8_t>(kind);
        if (room > 1) octets[1] = static_cast<uint8_t>(length);
        TcpOptions o;
        ASSERT_EQ(o.parse(Exact(octets).view()), room > 1 && length >= 2 && length <= room)
            << kind << " of " << length << " in " << room;
      }
    }
  }
}

// A known option of another length says nothing, and does not hide what stands behind it.
TEST(TcpOptionsWire, AnotherLengthIsSkipped) {
  for (const Octets& wrong : {Octets{2, 3, 9}, Octets{3, 4, 9, 9}, Octets{4, 3, 9},
                              Octets{8, 6, 9, 9, 9, 9}, Octets{5, 6, 9, 9, 9, 9}, Octets{5, 2}}) {
    Octets octets = wrong;
    octets.insert(octets.end(), {2, 4, 0x12, 0x34});
    TcpOptions o;
    ASSERT_TRUE(o.parse(Exact(octets).view()));
    EXPECT_EQ(o.mss, 0x1234);
    EXPECT_FALSE(o.window_scale || o.sack_permitted || o.timestamps || o.sack_count != 0);
  }
}

TEST(TcpOptionsWire, AnUnknownKindIsSkipped) {
  for (const uint8_t kind : {6, 7, 9, 34, 253, 255}) {
    TcpOptions o;
    ASSERT_TRUE(o.parse(Octets{kind, 5, 9, 9, 9, 1, kind, 2, 2, 4, 0x12, 0x34})) << int{kind};
    EXPECT_EQ(o.mss, 0x1234);
  }
}

// RFC 2018 s.3: whole blocks, and as many as there are, which is four at most.
TEST(TcpOptionsWire, OneToFourWholeBlocks) {
  for (uint32_t length = 2; length <= 40; ++length) {
    Octets octets(40, 0);
    octets[0] = tcp_option::kSack;
    octets[1] = static_cast<uint8_t>(length);
    for (uint32_t i = 2; i < 40; ++i) octets[i] = i < length ? static_cast<uint8_t>(i) : uint8_t{1};
    TcpOptions o;
    ASSERT_TRUE(o.parse(Exact(octets).view())) << length;
    const bool whole = length >= 10 && length <= 34 && (length - 2) % 8 == 0;
    ASSERT_EQ(o.sack_count, whole ? (length - 2) / 8 : 0) << length;
    for (uint32_t i = 0; i < o.sack_count; ++i) {
      EXPECT_EQ(o.sack[i].left.value, base::load_be32(&octets[2 + 8 * i]));
      EXPECT_EQ(o.sack[i].right.value, base::load_be32(&octets[6 + 8 * i]));
    }
  }
}

TEST(TcpOptionsWire, NothingCountsBehindTheEnd) {
  TcpOptions o;
  EXPECT_TRUE(o.parse(Octets{1, 0, 2, 4, 0x12, 0x34, 8, 0}));
  EXPECT_FALSE(o.mss);
  EXPECT_TRUE(o.parse({}));
}

}  // namespace
}  // namespace rnic::wire
