/// \file
/// What a test's process holds of memory that C++ gave it: who links live_memory.cpp has operator
/// new and delete replaced.
#pragma once

#include <cstdint>

namespace rnic::test {

/// Octets, as malloc() rounds them, that operator new has given and operator delete has not got
/// back.
[[nodiscard]] int64_t live_octets();

/// Operator new gives memory `n` times more, then throws once, and gives again.
void refuse_memory_after(int64_t n);
/// It refuses nothing from here on. \return it has
bool refuse_no_more();

}  // namespace rnic::test
