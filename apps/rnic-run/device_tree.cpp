// The folder that stands for /sys to libibverbs.

#include "rnic-run/device_tree.hpp"

#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
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
constexpr const char* kTemporary = "/tmp";
constexpr mode_t kForAll = S_IRWXU | S_IRGRP | S_IXGRP | S_IROTH | S_IXOTH;

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
          {device + "ports/1/state", "4: ACTIVE"},
          {device + "ports/1/phys_state", "5: LinkUp"},
          {device + "device/net/" + interface_name() + "/operstate", "up"},
          {"class/misc/rdma_cm/abi_version", "4"}};
  const bool is_roce = !wishes.roce.empty();
  out.emplace_back(device + "node_type", is_roce ? kTypeOfRoce : "4: RNIC");
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

/// What stands below the root: files with their text, and links with where they lead.
struct Contents {
  Variables files;
  Variables links;
};

template <typename F>
void for_each_in(const fs::path& folder, F&& visit) {
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) visit(*at);
}

/// Leads to the machine's own devices.
Variables links_to_devices_of_the_machine() {
  Variables out;
  for (const char* kind : {kVerbs, kDevices}) {
    for_each_in(fs::path("/sys") / kind, [&](const fs::directory_entry& entry) {
      const std::string name = entry.path().filename();
      if (name == kUverbsName || name == kDeviceName) return;
      out.emplace_back(std::string(kind) + "/" + name, entry.path());
    });
  }
  std::sort(out.begin(), out.end());  // they come in any order
  return out;
}

/// The name of the tree, which tells what it has.
std::string name_of(const Contents& wanted) {
  std::string all;
  for (const Variables* list : {&wanted.files, &wanted.links}) {
    for (const auto& [name, text] : *list) all += name + '\n' + text + '\n';
  }
  std::array<char, 32> name;
  std::snprintf(name.data(), name.size(), "sysfs-%016zx", std::hash<std::string>()(all));
  return name.data();
}

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// \return whether the folder has all of it: something may have cleaned up there
bool has(const fs::path& root, const Contents& wanted) {
  const auto has_file = [&](const auto& each) {
    return text_of(root / each.first) == each.second + '\n';
  };
  const auto has_link = [&](const auto& each) {
    std::error_code error;
    return fs::read_symlink(root / each.first, error) == each.second;
  };
  return std::all_of(wanted.files.begin(), wanted.files.end(), has_file) &&
         std::all_of(wanted.links.begin(), wanted.links.end(), has_link);
}

std::error_code last_error() { return {errno != 0 ? errno : EIO, std::generic_category()}; }

std::error_code write(const fs::path& root, const Contents& wanted) {
  std::error_code error;
  for (const auto& [name, text] : wanted.files) {
    const fs::path file = root / name;
    fs::create_directories(file.parent_path(), error);
    errno = 0;
    if (!(std::ofstream(file) << text << std::endl)) return last_error();
  }
  for (const auto& [name, target] : wanted.links) {
    fs::create_directories((root / name).parent_path(), error);
    fs::create_symlink(target, root / name, error);
    if (error) return error;
  }
  return {};
}

/// While it lives all may read what is made, whatever the user's files are like: the program may
/// change its user, and nothing in the tree is secret.
class ReadableByAll {
 public:
  ReadableByAll() : before_(umask(S_IWGRP | S_IWOTH)) {}
  ReadableByAll(const ReadableByAll&) = delete;
  ReadableByAll& operator=(const ReadableByAll&) = delete;
  ~ReadableByAll() { umask(before_); }

 private:
  const mode_t before_;
};

tl::unexpected<Error> not_there(const fs::path& folder, const std::string& why) {
  return tl::unexpected(Error{ErrorCode::Environment,
                              "the device's files have no place: " + folder.string() + why +
                                  ", or set XDG_RUNTIME_DIR to a folder of yours alone"});
}

/// The folder of this user's below `base`.
Result<fs::path> own_folder_in(const fs::path& base) {
  const fs::path folder = base / ("softrnic-" + std::to_string(getuid()));
  if (mkdir(folder.c_str(), kForAll) != 0 && errno != EEXIST) {
    return not_there(base, ": " + last_error().message() + ": make it one that can be written");
  }
  struct stat found {};
  if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != getuid() ||
      (found.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return not_there(folder, " is no folder of yours alone: remove it");
  }
  chmod(folder.c_str(), kForAll);
  return folder;
}

/// \return whether root's programs find it when they have changed their user, too
bool may_be_entered(const char* folder) {
  struct stat found {};
  return getuid() != 0 || (stat(folder, &found) == 0 && (found.st_mode & S_IXOTH) != 0);
}

/// A folder that this user alone writes, the same one each time.
Result<fs::path> own_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime == nullptr || runtime[0] != '/') return own_folder_in(kTemporary);
  const bool is_first = may_be_entered(runtime);
  auto folder = own_folder_in(is_first ? runtime : kTemporary);
  return folder ? folder : own_folder_in(is_first ? kTemporary : runtime);
}

/// Puts the whole tree there in one step. Where another run was faster, its tree is the same; one
/// that is no longer whole changes places with ours.
std::error_code put(const fs::path& draft, const fs::path& root, const Contents& wanted) {
  if (rename(draft.c_str(), root.c_str()) == 0) return {};
  const std::error_code error = last_error();
  if (has(root, wanted)) return {};
  if (renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, root.c_str(), RENAME_EXCHANGE) == 0) return {};
  return error;
}

}  // namespace

Result<fs::path> make_device_tree(const Wishes& wishes) {
  const ReadableByAll readable;
  auto folder = own_folder();
  if (!folder) return folder;
  const Contents wanted{files(wishes), links_to_devices_of_the_machine()};
  const fs::path root = *folder / name_of(wanted);
  if (has(root, wanted)) return root;
  std::string draft = *folder / "draft-XXXXXX";
  std::error_code error;
  if (mkdtemp(draft.data()) == nullptr || chmod(draft.c_str(), kForAll) != 0) {
    error = last_error();
  } else {
    error = write(draft, wanted);
    if (!error) error = put(draft, root, wanted);
    std::error_code ignored;
    fs::remove_all(draft, ignored);
  }
  if (error) return not_there(*folder, ": " + error.message() + ": make room there");
  return root;
}

}  // namespace rnic::run
