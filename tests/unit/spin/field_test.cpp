#include "rnic-spin/field.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rnic::spin {
namespace {

constexpr std::byte kWrong{0x11};

/// Moves octets as a device would.
void move(const Field& field, size_t from, size_t length, size_t to) {
  std::ranges::copy(field.store().subspan(from, length), field.target().subspan(to).begin());
}

TEST(Field, NothingIsWrongBeforeAnythingMoves) {
  const Field field;
  EXPECT_FALSE(field.check());
  EXPECT_EQ(field.word(Field::kWords - 1), 0u);
}

TEST(Field, OctetsMayGoToTheirPlaceAndToNoOther) {
  const Field field;
  move(field, 80, 100, 80);
  EXPECT_FALSE(field.check());
  EXPECT_FALSE(field.check_fetched(80, 100));
  move(field, 80, 100, 88);
  EXPECT_TRUE(field.check());
}

TEST(Field, WhatWasFetchedIsThereToTheLastOctet) {
  const Field field;
  move(field, 0, 99, 0);
  EXPECT_FALSE(field.check_fetched(0, 99));
  EXPECT_TRUE(field.check_fetched(0, 100));
}

TEST(Field, AnOctetBesideEachPartShows) {
  const Field field;
  for (const auto part : {field.store(), field.target(), field.inbox(), field.words()}) {
    for (std::byte* const beside : {part.data() - 1, part.data() + part.size()}) {
      const std::byte before = *beside;
      *beside = kWrong;
      EXPECT_TRUE(field.check());
      *beside = before;
      EXPECT_FALSE(field.check());
    }
  }
}

TEST(Field, AChangeOfTheStoreShows) {
  const Field field;
  field.store()[777] ^= kWrong;
  EXPECT_TRUE(field.check());
}

TEST(Field, AMessageIsAStretchOfTheStoreWithNothingBehindIt) {
  const Field field;
  const auto slot = field.slot(3);
  std::ranges::copy(field.store().subspan(4096, 100), slot.begin());
  EXPECT_FALSE(field.check_message(3, 4096, 100));
  EXPECT_TRUE(field.check_message(3, 4096, 99));  // an octet behind it
  EXPECT_TRUE(field.check_message(3, 4096, 101));
  EXPECT_TRUE(field.check_message(3, 4088, 100));
  slot[50] ^= kWrong;
  EXPECT_TRUE(field.check_message(3, 4096, 100));
  field.clear_slot(3);
  EXPECT_FALSE(field.check_message(3, 0, 0));
  EXPECT_TRUE(field.check_message(3, 4096, 8));  // what nobody has sent
  EXPECT_TRUE(field.check_message(3, 0, Field::kSlot + 1));
}

}  // namespace
}  // namespace rnic::spin
