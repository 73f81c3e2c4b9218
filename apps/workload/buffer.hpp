/// \file
/// Page-aligned memory between guard pages, transparent huge pages asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "rnic/error.hpp"

namespace rnic::workload {

class Buffer {
 public:
  Buffer() = default;
  static Result<Buffer> allocate(size_t octets);
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
