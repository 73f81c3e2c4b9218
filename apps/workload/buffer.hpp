/// \file
/// Page-aligned memory between guard pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/error.hpp"

namespace rnic::workload {

enum class Paging : uint8_t {
  Huge,             ///< transparent huge pages asked for, and all of them there from the beginning
  HugeWhenTouched,  ///< the same, but none of them is there before it is touched
  Small,            ///< pages of 4 KB that exist when they are first touched
};

class Buffer {
 public:
  Buffer() = default;
  /// Its octets are 0.
  static Result<Buffer> allocate(size_t octets, Paging paging = Paging::Huge);
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  [[nodiscard]] std::span<uint8_t> octets() const { return {data_, size_}; }
  [[nodiscard]] uint8_t* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  void* mapping_ = nullptr;
  size_t mapped_ = 0;
  uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace rnic::workload
