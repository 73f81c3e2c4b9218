/// \file
/// Layer `crc`: CRC32C (Castagnoli), as RFC 5044 section 4.4 wants it for FPDUs.
///
/// One interface, several kernels, one slow reference (`crc32c_ref.cpp`) that proves them. The
/// kernel is chosen once at start by CPUID; the build is generic x86-64. ISA-L headers are included
/// only here.
///
/// All functions take and give the *running register*: start with kInit, finish with finish().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rnic::crc {

/// Start value of the running register.
inline constexpr uint32_t kInit = 0xffffffffu;

/// Running register -> CRC value. On the wire an MPA CRC is stored least significant octet first.
[[nodiscard]] constexpr uint32_t finish(uint32_t crc) { return ~crc; }

/// Fewer octets than these are short: one chain of instructions is as fast as any other way, and a
/// call that looks for another one costs as much as the octets.
inline constexpr size_t kShort = 96;

/// One implementation. `update` reads n octets; `copy` reads n octets once, writes them to dst and
/// returns the same register (src and dst must not overlap).
struct Kernel {
  std::string_view name;
  uint32_t (*update_short)(uint32_t crc, const uint8_t* data, size_t n);  ///< update, n < kShort
  uint32_t (*update)(uint32_t crc, const uint8_t* data, size_t n);
  uint32_t (*copy)(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n);
};

/// Kernels that this CPU can run, the reference first.
[[nodiscard]] std::span<const Kernel> available_kernels();

/// The kernel in use: the fastest available one by rule (see kernels.cpp).
[[nodiscard]] const Kernel& active();
/// Chooses by name (tests, benchmarks, configuration). False when this CPU has no such kernel. Not
/// thread-safe: call before the workers start.
bool select(std::string_view name);

namespace internal {
extern const Kernel* active_kernel;
}

[[nodiscard]] inline uint32_t update(uint32_t crc, const uint8_t* data, size_t n) {
  const Kernel& kernel = *internal::active_kernel;
  return n < kShort ? kernel.update_short(crc, data, n) : kernel.update(crc, data, n);
}
[[nodiscard]] inline uint32_t copy(uint32_t crc, uint8_t* dst, const uint8_t* src, size_t n) {
  return internal::active_kernel->copy(crc, dst, src, n);
}

/// The running register behind `octets` zero octets. CRCs are linear: what a part adds to the
/// register behind all is shift(update(0, part), octets behind the part).
[[nodiscard]] uint32_t shift(uint32_t crc, uint64_t octets);

}  // namespace rnic::crc
