/// \file
/// The switch of a build with mutants in it: which one is on. Included into every source that holds
/// mutants, in front of its first line.
#pragma once

namespace rnic::mutants {

inline constexpr int kMost = 8192;

extern int active;              ///< from RNIC_MUTANT; -1: none
extern unsigned char* reached;  ///< kMost octets; those of RNIC_MUTANTS_REACHED, if that is set

}  // namespace rnic::mutants

/// The mutant `number` is on. Remembers that it was asked for.
inline bool rnic_mutant(int number) {
  rnic::mutants::reached[number] = 1;
  return number == rnic::mutants::active;
}
