#include "switch.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace rnic::mutants {

namespace {

unsigned char own[kMost];

/// Memory that is a file, so that what children and programs that crash have reached is known, too.
unsigned char* memory_of(const char* path) {
  const int descriptor = ::open(path, O_RDWR | O_CLOEXEC);
  if (descriptor < 0) return own;
  void* memory = ::mmap(nullptr, kMost, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  return memory == MAP_FAILED ? own : static_cast<unsigned char*>(memory);
}

}  // namespace

int active = -1;
unsigned char* reached = own;

/// Before the first static object is made.
__attribute__((constructor(101))) static void choose() {
  if (const char* number = std::getenv("RNIC_MUTANT")) active = std::atoi(number);
  if (const char* path = std::getenv("RNIC_MUTANTS_REACHED")) reached = memory_of(path);
}

}  // namespace rnic::mutants
