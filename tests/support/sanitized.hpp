/// \file
/// Tells whether a sanitizer is at work. Then malloc() and the address space are the sanitizer's,
/// and what a test says about memory does not hold.
#pragma once

namespace rnic::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif
/// The reason of a test that skips itself for it.
inline constexpr const char* kNotMeasured = "memory is not measured under a sanitizer";

}  // namespace rnic::test
