// The folder that stands for /sys to libibverbs.

#include "rnic-run/device_tree.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "rnic-run/adapter.hpp"
#include "rnic-run/door.hpp"
#include "rnic-run/gid_table.hpp"

namespace rnic::run {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVerbs = "class/infiniband_verbs";
constexpr const char* kDevices = "class/infiniband";

/// The number of the node in the kernel's form: four groups of 16 bits.
std::string guid_groups() {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "%04x:%04x:%04x:%04x",
                static_cast<unsigned>(kNodeGuid >> 48 & 0xffff),
                static_cast<unsigned>(kNodeGuid >> 32 & 0xffff),
                static_cast<unsigned>(kNodeGuid >> 16 & 0xffff),
                static_cast<unsigned>(kNodeGuid & 0xffff));
  return text.data();
}

/// The interface that programs take for the device's: the first one with an IPv4 address that is
/// not the loopback, or else that one.
std::string interface_name() {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return "lo";
  std::string found = "lo";
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    const bool has_ipv4 = each->ifa_addr != nullptr && each->ifa_addr->sa_family == AF_INET;
    if (has_ipv4 && (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0) {
      found = each->ifa_name;
      break;
    }
  }
  freeifaddrs(all);
  return found;
}

/// The number of the network that this process is in: each has a tree of its own.
std::string network() {
  struct stat found {};
  return stat("/proc/self/ns/net", &found) == 0 ? std::to_string(found.st_ino) : "0";
}

/// The GIDs of the RoCE face.
GidTable gids(const Wishes& wishes) {
  const auto chosen = parse_ip(wishes.address.substr(0, wishes.address.find('/')));
  return chosen ? GidTable::of(*chosen, interface_name()) : GidTable::of_machine();
}

/// What libibverbs looks for under /sys of our device.
Variables files(const Wishes& wishes) {
  const std::string verbs = std::string(kVerbs) + "/";
  const std::string uverbs = verbs + kUverbsName + "/";
  const std::string device = std::string(kDevices) + "/" + kDeviceName + "/";
  Variables out{
          {verbs + "abi_version", "6"},
          {uverbs + "ibdev", kDeviceName},
          {uverbs + "dev", "1:3"},  // /dev/null, which the door opens for it
          {uverbs + "abi_version", "1"},
          {device + "node_guid", guid_groups()},
          {device + "fw_ver", "1"},
          {device + "hca_type", "softrnic"},
          {device + "ports/1/pkeys/0", "0xffff"},
          {device + "device/net/" + interface_name() + "/operstate", "up"},
          {"class/misc/rdma_cm/abi_version", "4"}};
  const bool is_roce = !wishes.roce.empty();
  out.emplace_back(device + "node_type", is_roce ? "1: CA" : "4: RNIC");
  if (!is_roce) {
    out.emplace_back(device + "ports/1/gids/0", guid_groups() + ":0000:0000:0000:0000");
    return out;
  }
  out.emplace_back(device + "ports/1/link_layer", "Ethernet");
  out.emplace_back(device + "ports/1/lid", "0x0");
  for (const auto& [name, text] : gids(wishes).files()) {
    out.emplace_back(device + "ports/1/" + name, text);
  }
  return out;
}

/// A folder of this user's alone, the same one each time.
Result<fs::path> own_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const bool has_one = runtime != nullptr && runtime[0] == '/' && access(runtime, W_OK) == 0;
  const fs::path folder =
      fs::path(has_one ? runtime : "/tmp") / ("softrnic-" + std::to_string(getuid()));
  mkdir(folder.c_str(), S_IRWXU);
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != getuid() ||
      (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return tl::unexpected(Error{ErrorCode::Environment,
                                folder.string() + " is not a folder of yours alone: remove it, or "
                                                  "set XDG_RUNTIME_DIR"});
  }
  return folder;
}

/// Writes one file. Another run may read it meanwhile, so that no file is ever half written.
std::error_code write(const fs::path& file, const std::string& text) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  const fs::path draft = file.string() + "." + std::to_string(getpid());
  if (std::ofstream(draft) << text << std::endl) {
    fs::rename(draft, file, error);
  } else {
    error = std::make_error_code(std::errc::no_space_on_device);
    unlink(draft.c_str());
  }
  return error;
}

template <typename F>
void for_each_in(const fs::path& folder, F&& visit) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) visit(*at);
}

/// Takes out the machine's devices that are gone, and ours under a name that it had before.
void remove_what_is_gone(const fs::path& folder) {
  for_each_in(folder, [](const fs::directory_entry& entry) {
    std::error_code error;
    const std::string name = entry.path().filename();
    const bool is_ours = name == kUverbsName || name == kDeviceName;
    const bool is_gone = entry.is_symlink(error) ? !fs::exists(entry.path(), error)
                                                 : entry.is_directory(error) && !is_ours;
    if (is_gone) fs::remove_all(entry.path(), error);
  });
}

/// Shows the machine's own devices in the tree, too. One that cannot be shown is left out.
void link_devices_of_the_machine(const fs::path& root) {
  for (const char* kind : {kVerbs, kDevices}) {
    remove_what_is_gone(root / kind);
    for_each_in(fs::path("/sys") / kind, [&](const fs::directory_entry& entry) {
      std::error_code error;
      const fs::path link = root / kind / entry.path().filename();
      if (!fs::exists(link, error)) fs::create_symlink(entry.path(), link, error);
    });
  }
}

/// Takes out the GIDs of addresses that the machine had in an earlier run.
void remove_other_gids(const fs::path& root, const Variables& wanted) {
  const fs::path port = fs::path(kDevices) / kDeviceName / "ports/1";
  for (const char* kind : {"gids", "gid_attrs/types", "gid_attrs/ndevs"}) {
    for_each_in(root / port / kind, [&](const fs::directory_entry& entry) {
      const std::string name = (port / kind / entry.path().filename()).string();
      const bool is_wanted = std::any_of(wanted.begin(), wanted.end(),
                                         [&](const auto& each) { return each.first == name; });
      std::error_code error;
      if (!is_wanted) fs::remove(entry.path(), error);
    });
  }
}

/// What the name of the tree says of the face.
std::string face_of(const Wishes& wishes) {
  if (wishes.roce.empty()) return "";
  std::string address = wishes.address.substr(0, wishes.address.find('/'));
  return "-roce" + (address.empty() ? "" : "-" + address);
}

}  // namespace

Result<fs::path> make_device_tree(const Wishes& wishes) {
  auto folder = own_folder();
  if (!folder) return folder;
  const fs::path root = *folder / ("sysfs-" + network() + face_of(wishes));
  const Variables wanted = files(wishes);
  for (const auto& [name, text] : wanted) {
    const fs::path file = root / name;
    if (const auto error = write(file, text)) {
      return tl::unexpected(Error{ErrorCode::Environment, file.string() + ": " + error.message()});
    }
  }
  remove_other_gids(root, wanted);
  link_devices_of_the_machine(root);
  return root;
}

}  // namespace rnic::run
