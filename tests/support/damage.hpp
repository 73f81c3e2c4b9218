/// \file
/// Damages what a class keeps to itself, for tests of its validate(): each of its checks has to be
/// seen to fail (scripts/check_invariants).
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "base/check.hpp"

/// For the unnamed namespace of a test: `member(object)` is the data member of that name, private
/// or not. An explicit instantiation may name what is private, and hands it on to the function that
/// it defines; the product's classes need no friend for that. Class may not have a comma in it.
#define RNIC_OPEN(Class, member)                \
  RNIC_OPEN_COUNTED(__COUNTER__, Class, member, \
                    [[maybe_unused]] inline auto& member(const Class& object))
/// As RNIC_OPEN(), for a class whose name is private, too.
#define RNIC_OPEN_HIDDEN(Class, member)         \
  RNIC_OPEN_COUNTED(__COUNTER__, Class, member, \
                    template <typename Hidden> auto& member(const Hidden& object))
#define RNIC_OPEN_COUNTED(number, Class, member, function) \
  RNIC_OPEN_AS(number, Class, member, function)
#define RNIC_OPEN_AS(number, Class, member, function)             \
  struct Key##number {                                            \
    friend constexpr auto opened(Key##number);                    \
  };                                                              \
  template <auto kMember>                                         \
  struct Opener##number {                                         \
    friend constexpr auto opened(Key##number) { return kMember; } \
  };                                                              \
  template struct Opener##number<&Class::member>;                 \
  function {                                                      \
    using Opened = std::remove_cvref_t<decltype(object)>;         \
    return const_cast<Opened&>(object).*opened(Key##number{});    \
  }

namespace rnic::test {

/// The regular expression of what a failed check prints. \param check "room/file: expression", of
/// which any part will do
inline std::string report_of(std::string_view check) {
  std::string pattern;
  const size_t colon = check.find(": ");
  RNIC_CHECK(colon != std::string_view::npos);
  for (size_t i = 0; i < check.size(); ++i) {
    if (i == colon) pattern += ":[0-9]+: CHECK failed: .*";
    if (i == colon || i == colon + 1) continue;
    if (std::string_view("\\^$.|?*+()[]{}").find(check[i]) != std::string_view::npos) {
      pattern += '\\';
    }
    pattern += check[i];
  }
  return pattern;
}

/// `validate` passes, and behind `damage`, which is done in a process of its own, it is this check
/// that fails. \param check see report_of()
template <typename Validate, typename Damage>
void expect_noticed(std::string_view check, Validate&& validate, Damage&& damage) {
  SCOPED_TRACE(check);
  validate();
  EXPECT_DEATH(
      {
        damage();
        validate();
      },
      report_of(check));
}

/// As expect_noticed(), for a part that needs nothing to recount itself.
template <typename Part, typename Damage>
void notices(Part& part, std::string_view check, Damage&& damage) {
  expect_noticed(
      check, [&part] { part.validate(); }, damage);
}

}  // namespace rnic::test
