/// \file
/// The folder that stands for /sys to libibverbs.
#pragma once

#include <filesystem>

#include "rnic-run/wishes.hpp"
#include "rnic/error.hpp"

namespace rnic::run {

/// Makes the folder that libibverbs is to read in place of /sys (SYSFS_PATH): it has softrnic's
/// device, and leads to those of the machine. All of it appears at once and nothing in it changes:
/// runs that want the same share one, at the same time, too, and others get another one. All may
/// read it; it belongs to this user, and stays. \return its path
/// \param wishes which face it has, and its address where that was chosen
Result<std::filesystem::path> make_device_tree(const Wishes& wishes);

}  // namespace rnic::run
