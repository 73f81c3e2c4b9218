/// \file
/// The memory that one device of rnic-spin works on, and what may be in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace rnic::spin {

/// A store that everything is sent from, a target that peers write to and Reads fetch into, slots
/// for receives and words for atomics, with a guard around each. Whatever moves goes to the place
/// in the target that it had in the store: each octet of the target is that of the store or was
/// never written. An octet that was put to a wrong place shows, whoever put it there.
class Field {
 public:
  static constexpr size_t kOctets = 64 << 10;  ///< of the store and of the target
  static constexpr size_t kSlot = 1024;        ///< octets of a slot
  static constexpr size_t kSlots = 1024;
  static constexpr size_t kWords = 64;
  static constexpr size_t kUnit = 8;  ///< messages begin at multiples of it

  Field();

  [[nodiscard]] std::span<std::byte> store() const { return part(0); }
  [[nodiscard]] std::span<std::byte> target() const { return part(1); }
  [[nodiscard]] std::span<std::byte> inbox() const { return part(2); }
  [[nodiscard]] std::span<std::byte> words() const { return part(3); }
  [[nodiscard]] std::span<std::byte> slot(size_t number) const {
    return inbox().subspan(number * kSlot, kSlot);
  }
  [[nodiscard]] uint64_t word(size_t number) const;

  /// \return what is wrong with the guards, the store or the target
  [[nodiscard]] std::optional<std::string> check() const;
  /// \return what is wrong with `length` octets of the target from `from` on, which were fetched
  [[nodiscard]] std::optional<std::string> check_fetched(size_t from, size_t length) const;
  /// \return what is wrong with a message of `length` octets in a slot, or behind it
  /// \param from the place of its octets in the sender's store
  [[nodiscard]] std::optional<std::string> check_message(size_t slot, size_t from,
                                                         size_t length) const;
  void clear_slot(size_t number) const;

 private:
  static constexpr size_t kGuard = 4096;
  static constexpr size_t kParts = 4;
  static constexpr size_t kSizes[kParts] = {kOctets, kOctets, kSlot * kSlots, kWords * kUnit};

  [[nodiscard]] static size_t begin_of(size_t part);
  [[nodiscard]] std::span<std::byte> part(size_t number) const {
    return {octets_.get() + begin_of(number), kSizes[number]};
  }

  size_t size_;
  std::unique_ptr<std::byte[]> octets_;
};

}  // namespace rnic::spin
