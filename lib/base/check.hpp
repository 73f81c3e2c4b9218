/// \file
/// CHECK for our own bugs (never for wire input, never for the user's mistakes). CHECK stays on in
/// release builds; DCHECK is for what is too hot for that.
#pragma once

namespace rnic::base {

/// Prints file, line and expression to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* expression);

}  // namespace rnic::base

#define RNIC_CHECK(expression)                                     \
  do {                                                             \
    if (!(expression)) [[unlikely]]                                \
      ::rnic::base::check_failed(__FILE__, __LINE__, #expression); \
  } while (false)

#ifdef NDEBUG
#define RNIC_DCHECK(expression) \
  do {                          \
  } while (false)
#else
#define RNIC_DCHECK(expression) RNIC_CHECK(expression)
#endif
