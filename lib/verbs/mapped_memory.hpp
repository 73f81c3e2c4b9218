/// \file
/// Checks by the kernel's maps whether memory belongs to the process.
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

/// Finds the mapping that contains `address`; nothing: there is none.
using FindMapping = std::function<std::optional<Mapping>(uint64_t address)>;

/// InvalidArgument, with the first address at fault, unless each octet of `memory` is mapped and
/// readable, and also writable if `writable`. No octet is touched. \param call for the message
[[nodiscard]] Status check_mapped(const char* call, std::span<const std::byte> memory,
                                  bool writable, const FindMapping& find);

/// The mappings of this process, as /proc/self/maps tells them. It is opened at construction, so
/// that later calls need no descriptor. Any thread.
class ProcessMaps {
 public:
  ProcessMaps();

  /// Does check_mapped() with the mappings of the process now: by one query per mapping if the
  /// kernel supports it (Linux 6.11), otherwise by reading all of them. Environment: the file could
  /// not be opened.
  [[nodiscard]] Status check(const char* call, std::span<const std::byte> memory,
                             bool writable) const;

 private:
  [[nodiscard]] std::optional<Mapping> ask(uint64_t address) const;
  [[nodiscard]] std::string text() const;

  const wakeup::Descriptor maps_;
  const bool takes_questions_;
};

/// The mapping of an address in the text of a /proc/self/maps; nothing: there is none.
[[nodiscard]] std::optional<Mapping> mapping_in(const std::string& maps, uint64_t address);

}  // namespace rnic::verbs
