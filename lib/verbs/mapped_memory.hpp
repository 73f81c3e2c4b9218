/// \file
/// Whether memory is the process's own, as the kernel tells it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/fail.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::verbs {

/// A range of addresses whose pages are mapped alike.
struct Mapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool readable = false;
  bool writable = false;
};

/// The mapping that has `address`; nothing: there is none.
using FindMapping = std::function<std::optional<Mapping>(uint64_t address)>;

/// InvalidArgument, with the first address at fault, unless each octet of `memory` is mapped and
/// readable, and writable where that is asked for. No octet is touched. \param call for the message
[[nodiscard]] Status check_mapped(const char* call, std::span<const std::byte> memory,
                                  bool writable, const FindMapping& find);

/// The mappings of this process, as /proc/self/maps tells them. It is opened at construction, so
/// that later calls need no descriptor. Any thread.
class ProcessMaps {
 public:
  ProcessMaps();

  /// check_mapped() of the process as it is now: by one question a mapping where the kernel takes
  /// them (Linux 6.11), else all of them are read. Environment: they could not be opened.
  [[nodiscard]] Status check(const char* call, std::span<const std::byte> memory,
                             bool writable) const;

 private:
  [[nodiscard]] std::optional<Mapping> ask(uint64_t address) const;
  [[nodiscard]] std::string text() const;

  const wakeup::Descriptor maps_;
  const bool takes_questions_;
};

/// What the text of a /proc/self/maps says of an address.
[[nodiscard]] std::optional<Mapping> mapping_in(const std::string& maps, uint64_t address);

}  // namespace rnic::verbs
