// What CRC32C of an FPDU takes by each kernel that this CPU has: ns of the best of many short
// slices, in interleaved rounds, hot in the cache.
//
//   crc_cost [ROUNDS]
//
// Every kernel's result is compared with the reference's: one that is wrong has no figure. A line
// for each: length, kernel, ns. Beside `isal`, which is what that library takes on this CPU, stands
// `isal-00` and `isal-01`, of which it takes one where there is no AVX-512.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "crc/crc.hpp"

// ISA-L's own, of which it takes one; absent where it was built otherwise.
extern "C" {
[[gnu::weak]] unsigned crc32_iscsi_00(unsigned char* data, int n, unsigned crc);
[[gnu::weak]] unsigned crc32_iscsi_01(unsigned char* data, int n, unsigned crc);
}

namespace {

using namespace rnic;
using Clock = std::chrono::steady_clock;

constexpr std::array<size_t, 2> kLengths{1444, 8944};  // FPDUs of MTU 1500 and 9000
constexpr size_t kOffset = 54;                         // of an FPDU in its frame
constexpr uint32_t kCalls = 256;                       // of a slice

struct Row {
  size_t length = 0;
  const crc::Kernel* kernel = nullptr;
  double best_ns = 1e9;
};

template <unsigned (*kUpdate)(unsigned char*, int, unsigned)>
uint32_t update_isal(uint32_t crc, const uint8_t* data, size_t n) {
  return kUpdate(const_cast<uint8_t*>(data), static_cast<int>(n), crc);
}

std::vector<crc::Kernel> compared() {
  const auto ours = crc::available_kernels();
  std::vector<crc::Kernel> all(ours.begin(), ours.end());
  if (__builtin_cpu_supports("pclmul") == 0 || &crc32_iscsi_00 == nullptr) return all;
  const auto first = &update_isal<crc32_iscsi_00>;
  const auto second = &update_isal<crc32_iscsi_01>;
  all.push_back({"isal-00", first, first, nullptr});
  all.push_back({"isal-01", second, second, nullptr});
  return all;
}

double slice(const Row& row, const uint8_t* data, uint32_t& sum) {
  const auto begun = Clock::now();
  for (uint32_t i = 0; i < kCalls; ++i) sum ^= row.kernel->update(crc::kInit, data, row.length);
  const std::chrono::duration<double, std::nano> took = Clock::now() - begun;
  return took.count() / kCalls;
}

}  // namespace

int main(int argc, char** argv) {
  const long rounds = argc > 1 ? std::atol(argv[1]) : 200;
  if (rounds < 1 || rounds > 1'000'000) {
    std::fprintf(stderr, "usage: crc_cost [ROUNDS]\n");
    return 2;
  }
  std::vector<uint8_t> octets(kOffset + kLengths.back());
  for (size_t i = 0; i < octets.size(); ++i) octets[i] = static_cast<uint8_t>(i * 37 + i / 251);
  const uint8_t* data = octets.data() + kOffset;
  const std::vector<crc::Kernel> kernels = compared();
  std::vector<Row> rows;
  for (const size_t length : kLengths) {
    const uint32_t right = kernels.front().update(crc::kInit, data, length);
    for (const crc::Kernel& kernel : std::span(kernels).subspan(1)) {
      if (kernel.update(crc::kInit, data, length) != right) {
        std::fprintf(stderr, "crc_cost: a kernel is wrong\n");
        return 1;
      }
      rows.push_back({length, &kernel});
    }
  }
  uint32_t sum = 0;
  for (long round = 0; round < rounds; ++round) {
    for (Row& row : rows) row.best_ns = std::min(row.best_ns, slice(row, data, sum));
  }
  for (const Row& row : rows) {
    std::printf("%zu %.*s %.2f\n", row.length, static_cast<int>(row.kernel->name.size()),
                row.kernel->name.data(), row.best_ns);
  }
  return sum == 0x12345678 ? 3 : 0;  // so that nothing of it is left out
}
