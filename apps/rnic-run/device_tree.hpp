/// \file
/// The folder that stands for /sys to libibverbs.
#pragma once

#include <filesystem>

#include "rnic/error.hpp"

namespace rnic::run {

/// Makes the folder that libibverbs is to read in place of /sys (SYSFS_PATH): it has softrnic's
/// device, and leads to those of the machine. It belongs to this user, and stays: each run in the
/// same network takes the same one. \return its path
Result<std::filesystem::path> make_device_tree();

}  // namespace rnic::run
