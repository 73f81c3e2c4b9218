// ISA-L's crc32_iscsi: it takes and gives the raw register, as we do, and chooses its own code by
// CPUID.
#include <isa-l/crc.h>

#include <algorithm>
#include <cstring>

#include "crc/kernels.hpp"

namespace rnic::crc::internal {

namespace {

// ISA-L counts in int.
constexpr size_t kLongestCall = size_t{1} << 30;
// Octets that stay in L1 between the copy and the CRC.
constexpr size_t kCopyBlock = 1024;

}  // namespace

uint32_t update_isal(uint32_t crc, const uint8_t* data, size_t n) {
  while (n != 0) {
    const size_t take = std::min(n, kLongestCall);
    // ISA-L's buffer argument lacks const; it only reads.
    crc = crc32_iscsi(const_cast<uint8_t*>(data), static_cast<int>(take), crc);
    data += take;
    n -= take;
  }
  return crc;
}

// The CRC is made over the copy: the source may be memory that a peer writes at this very moment,
// and the CRC must be that of the octets which go out.
uint32_t copy_isal(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  while (n != 0) {
    const size_t take = std::min(n, kCopyBlock);
    std::memcpy(dst, src, take);
    crc = crc32_iscsi(dst, static_cast<int>(take), crc);
    dst += take;
    src += take;
    n -= take;
  }
  return crc;
}

}  // namespace rnic::crc::internal
