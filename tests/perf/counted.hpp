#pragma once
// One word for the functions that callgrind counts by name.

/// Keeps a function whole under its own name: it is not inlined, and a twin is not merged with it.
/// GCC alone knows the stronger attribute; the figures that are committed are GCC's.
#if __has_cpp_attribute(gnu::noipa)
#define RNIC_COUNTED [[gnu::noipa]]
#else
#define RNIC_COUNTED [[gnu::noinline]]
#endif
