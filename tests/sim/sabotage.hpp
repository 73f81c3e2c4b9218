/// \file
/// The proof that the checkers see: every planted defect must be caught.
#pragma once

#include <cstdint>
#include <string>

namespace rnic::simulation {

/// Prints a table of defects and by which seed and checker each was caught.
/// \param pattern profiles whose worlds are run; empty: one of each family a seed
/// \return exit status: 0 all caught, 1 not all, 2 this build has no defects.
int run_sabotage(uint64_t first_seed, uint32_t workers, const std::string& pattern);

}  // namespace rnic::simulation
