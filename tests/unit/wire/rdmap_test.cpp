#include "wire/rdmap.hpp"

#include "exact.hpp"

namespace rnic::wire {
namespace {

// Figure 4, octet by octet.
TEST(AtomicWire, RequestIs52Octets_R7306_5_02) {
  const RdmapAtomicRequest r{.code = 2,
                             .id = 0x11121314,
                             .stag = 0x21222324,
                             .to = 0x3132333435363738ull,
                             .data = 0x4142434445464748ull,
                             .mask = 0x5152535455565758ull,
                             .compare = 0x6162636465666768ull,
                             .compare_mask = 0x7172737475767778ull};
  Octets octets(52, 0xaa);
  write_rdmap(octets.data(), r);
  const Octets expected{0,    0,    0,    2,    0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23,
                        0x24, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x41, 0x42,
                        0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x51, 0x52, 0x53, 0x54, 0x55,
                        0x56, 0x57, 0x58, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68,
                        0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78};
  EXPECT_EQ(octets, expected);
  octets[0] = octets[1] = octets[2] = 0xff;  // reserved bits are not checked
  octets[3] |= 0xf0;
  EXPECT_EQ(parse_rdmap_atomic_request(octets), r);
  expect_all_needed(octets, parse_rdmap_atomic_request);
}

// Figure 6, not the 32 octets of section 4.
TEST(AtomicWire, ResponseIs12Octets_R7306_5_03) {
  Octets octets(12);
  const RdmapAtomicResponse r{.id = 0x01020304, .original = 0x1112131415161718ull};
  write_rdmap(octets.data(), r);
  EXPECT_EQ(octets, (Octets{1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}));
  EXPECT_EQ(parse_rdmap_atomic_response(octets), r);
  expect_all_needed(octets, parse_rdmap_atomic_response);
}

// RFC 5040 figure 6, octet by octet.
TEST(ReadRequestWire, EveryFieldAtItsPlace) {
  const RdmapReadRequest r{.sink_stag = 0x01020304,
                           .sink_to = 0x1112131415161718,
                           .size = 0x21222324,
                           .source_stag = 0x31323334,
                           .source_to = 0x4142434445464748};
  const Octets octets = written(kRdmapReadRequestSize, [&](uint8_t* p) { write_rdmap(p, r); });
  EXPECT_EQ(octets, (Octets{0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16,
                            0x17, 0x18, 0x21, 0x22, 0x23, 0x24, 0x31, 0x32, 0x33, 0x34,
                            0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48}));
  EXPECT_EQ(parse_rdmap_read_request(Exact(octets).view()), r);
  expect_all_needed(octets, parse_rdmap_read_request);
}

// RFC 5040 s.4.1: version in the two high bits, then two that are sent as zero and not looked at.
TEST(RdmapControl, VersionAndOpcode) {
  for (uint8_t version = 0; version < 4; ++version) {
    for (uint8_t opcode = 0; opcode < 12; ++opcode) {
      const uint8_t control = rdmap_control(static_cast<RdmapOpcode>(opcode), version);
      EXPECT_EQ(control, version << 6 | opcode);
      const auto reserved = static_cast<uint8_t>(control | 0x30);
      EXPECT_EQ(rdmap_version(reserved), version);
      EXPECT_EQ(rdmap_opcode(reserved), opcode);
    }
  }
  EXPECT_EQ(rdmap_control(RdmapOpcode::Terminate, 1), 0x47);
  EXPECT_EQ(rdmap_control(RdmapOpcode::AtomicResponse, 1), 0x4b);
}

// Only four bits of an Atomic Request's first word are its code's.
TEST(AtomicWire, AWideCodeStaysInItsField) {
  const Octets octets = written(kRdmapAtomicRequestSize, [](uint8_t* p) {
    write_rdmap(p, RdmapAtomicRequest{.code = 0xff});
  });
  EXPECT_EQ(base::load_be32(octets.data()), 0x0fu);
}

}  // namespace
}  // namespace rnic::wire
