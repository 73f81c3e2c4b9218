#include "llp/end_word.hpp"

#include <gtest/gtest.h>

namespace rnic::llp {
namespace {

TEST(EndWord, IsSetOnceAndKeepsEachEnd) {
  for (int i = 0; i <= static_cast<int>(StreamEnd::Unreachable); ++i) {
    const auto how = static_cast<StreamEnd>(i);
    EndWord end;
    EXPECT_FALSE(end.get().has_value());
    end.set(how);
    EXPECT_EQ(end.get(), how);
    EXPECT_DEATH(end.set(how), "get");
  }
}

}  // namespace
}  // namespace rnic::llp
