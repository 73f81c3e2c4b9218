// Which kernels this CPU has, and which of them is used.
#include "crc/kernels.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "crc/crc.hpp"

namespace rnic::crc {

namespace {

constexpr Kernel kRef{"ref", internal::update_ref, internal::update_ref, internal::copy_ref};
constexpr Kernel kSse42{"sse42", internal::update_short_sse42, internal::update_sse42,
                        internal::copy_sse42};
constexpr Kernel kAvx2{"avx2", internal::update_short_sse42, internal::update_avx2,
                       internal::copy_avx2};
constexpr Kernel kAvx512{"avx512", internal::update_short_sse42, internal::update_avx512,
                         internal::copy_avx512};
constexpr Kernel kWide{"avx512wide", internal::update_short_sse42, internal::update_wide,
                       internal::copy_wide};

// ISA-L runs on each CPU, whose short way is behind some questions about it.
Kernel isal(bool sse42) {
  return {"isal", sse42 ? internal::update_short_sse42 : internal::update_isal,
          internal::update_isal, internal::copy_isal};
}

// __builtin_cpu_supports asks CPUID and, for AVX and AVX-512, whether the system saves the
// registers.
bool has_sse42() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul"); }

bool has_avx2() {
  return has_sse42() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("vpclmulqdq");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

bool has_wide() { return has_avx512() && __builtin_cpu_supports("bmi2"); }

// Intel's CPUs with VPCLMULQDQ begin a product of 512 bits in each cycle, a Zen 4 every other one.
bool begins_one_each_cycle() { return __builtin_cpu_is("intel") != 0; }

// A kernel that does not agree with the reference on this CPU is not offered. The lengths are such
// that each kernel's way for long runs is taken, too.
bool agrees_with_reference(const Kernel& kernel) {
  std::array<uint8_t, 4093> octets;
  uint32_t state = 1;
  for (uint8_t& octet : octets) {
    state = state * 1664525u + 1013904223u;
    octet = static_cast<uint8_t>(state >> 24);
  }
  std::array<uint8_t, octets.size()> copied{};
  for (size_t n = 0; n <= octets.size(); n += 1 + n / 8) {
    const uint32_t expected = kRef.update(kInit, octets.data(), n);
    copied.fill(0);
    if (kernel.update(kInit, octets.data(), n) != expected) return false;
    if (n < kShort && kernel.update_short(kInit, octets.data(), n) != expected) return false;
    if (kernel.copy(kInit, copied.data(), octets.data(), n) != expected) return false;
    if (std::memcmp(copied.data(), octets.data(), n) != 0) return false;
  }
  return true;
}

struct Available {
  std::array<Kernel, 7> kernels;
  size_t count = 0;

  void offer(const Kernel& kernel, bool runs) {
    if (runs && agrees_with_reference(kernel)) kernels[count++] = kernel;
  }

  // In rising order of speed at FPDU sizes (tests/perf/crc_bench.cpp): the last one is the default.
  Available() {
    __builtin_cpu_init();
    kernels[count++] = kRef;
    offer(kSse42, has_sse42());
    offer(isal(has_sse42()), true);
    offer(kAvx2, has_avx2());
    if (begins_one_each_cycle()) {
      offer(kAvx512, has_avx512());
      offer(kWide, has_wide());
    } else {
      offer(kWide, has_wide());
      offer(kAvx512, has_avx512());
    }
  }
};

const Available& available() {
  static const Available instance;
  return instance;
}

}  // namespace

namespace internal {
// The reference until the choice is made: CRCs made by static initialisers are right, only slower.
const Kernel* active_kernel = &kRef;
}  // namespace internal

namespace {
[[maybe_unused]] const bool kChosen = [] {
  internal::active_kernel = &available().kernels[available().count - 1];
  return true;
}();
}  // namespace

std::span<const Kernel> available_kernels() {
  return {available().kernels.data(), available().count};
}

const Kernel& active() { return *internal::active_kernel; }

bool select(std::string_view name) {
  for (const Kernel& kernel : available_kernels()) {
    if (kernel.name == name) {
      internal::active_kernel = &kernel;
      return true;
    }
  }
  return false;
}

}  // namespace rnic::crc
