// update and copy of every CRC kernel of this CPU at FPDU sizes.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "crc/crc.hpp"

namespace {

using rnic::crc::Kernel;

void run_update(benchmark::State& state, const Kernel& kernel) {
  const auto n = static_cast<size_t>(state.range(0));
  const std::vector<uint8_t> source(n, 0x5a);
  uint32_t crc = rnic::crc::kInit;
  for (auto _ : state) crc = kernel.update(crc, source.data(), n);
  benchmark::DoNotOptimize(crc);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * n));
}

void run_copy(benchmark::State& state, const Kernel& kernel) {
  const auto n = static_cast<size_t>(state.range(0));
  const std::vector<uint8_t> source(n, 0x5a);
  std::vector<uint8_t> destination(n);
  uint32_t crc = rnic::crc::kInit;
  for (auto _ : state) {
    crc = kernel.copy(crc, destination.data(), source.data(), n);
    benchmark::ClobberMemory();
  }
  benchmark::DoNotOptimize(crc);
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * n));
}

}  // namespace

int main(int argc, char** argv) {
  for (const Kernel& kernel : rnic::crc::available_kernels()) {
    for (const int64_t n : {16, 64, 512, 1444, 4096, 8944, 65536}) {
      const std::string suffix = std::string("/").append(kernel.name);
      benchmark::RegisterBenchmark((std::string("update").append(suffix)).c_str(), run_update,
                                   kernel)
          ->Arg(n);
      benchmark::RegisterBenchmark((std::string("copy").append(suffix)).c_str(), run_copy, kernel)
          ->Arg(n);
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
