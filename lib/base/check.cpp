#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace rnic::base {

void check_failed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace rnic::base
