// rnic-run: runs an RDMA program, unmodified, on a softrnic device.

#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "rnic-run/adapter.hpp"
#include "rnic-run/wishes.hpp"
#include "rnic/configuration.hpp"

namespace rnic::run {
namespace {

namespace fs = std::filesystem;

constexpr int kUsage = 2;
constexpr int kNotFound = 127;  // as a shell has it
constexpr int kNotRun = 126;
constexpr char kDoorName[] = "librnic-door.so";
// libibverbs puts the version of its private interface behind the name.
constexpr char kPlugin[] = "librnic";
constexpr char kPluginWithDpdk[] = "librnic-dpdk";
constexpr char kPluginName[] = "librnic-rdmav34.so";
constexpr char kPluginWithDpdkName[] = "librnic-dpdk-rdmav34.so";

int refuse(const std::string& what, int status = kUsage) {
  std::cerr << "rnic-run: " << what << "\n";
  return status;
}

/// The folder of the door and the plugin: beside this program, or where they are installed.
Result<fs::path> libraries() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder : {here, here.parent_path() / RNIC_LIBRARIES}) {
    if (fs::exists(folder / kDoorName, error) && fs::exists(folder / kPluginName, error)) {
      return folder;
    }
  }
  return tl::unexpected(Error{ErrorCode::NotFound, std::string(kDoorName) + " and " + kPluginName +
                                                       " are not beside this program: build or "
                                                       "install both"});
}

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

/// What libibverbs looks for under /sys, with one device.
std::vector<std::pair<std::string, std::string>> tree() {
  const std::string verbs = "class/infiniband_verbs/";
  const std::string device = "class/infiniband/rnic0/";
  return {{verbs + "abi_version", "6"},
          {verbs + "uverbs0/ibdev", kDeviceName},
          {verbs + "uverbs0/dev", "1:3"},  // /dev/null, which the door opens for it
          {verbs + "uverbs0/abi_version", "1"},
          {device + "node_type", "4: RNIC"},
          {device + "node_guid", guid_groups()},
          {device + "fw_ver", "1"},
          {device + "hca_type", "softrnic"},
          {device + "ports/1/gids/0", guid_groups() + ":0000:0000:0000:0000"},
          {device + "ports/1/pkeys/0", "0xffff"},
          {device + "device/net/" + interface_name() + "/operstate", "up"},
          {"class/misc/rdma_cm/abi_version", "4"}};
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

/// Puts the tree there. Another run may read it meanwhile, so that no file is ever half written.
Result<fs::path> make_tree() {
  auto folder = own_folder();
  if (!folder) return folder;
  const fs::path root = *folder / ("sysfs-" + network());
  for (const auto& [name, text] : tree()) {
    const fs::path file = root / name;
    std::error_code error;
    fs::create_directories(file.parent_path(), error);
    const fs::path draft = file.string() + "." + std::to_string(getpid());
    const bool written = static_cast<bool>(std::ofstream(draft) << text << std::endl);
    if (written) {
      fs::rename(draft, file, error);
    } else {
      error = std::make_error_code(std::errc::no_space_on_device);
      unlink(draft.c_str());
    }
    if (error) {
      return tl::unexpected(Error{ErrorCode::Environment, file.string() + ": " + error.message()});
    }
  }
  return root;
}

/// The text as one word of a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char each : text) out += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return out + "'";
}

Result<Variables> environment(const Wishes& wishes, bool needs_dpdk, bool explain) {
  auto folder = libraries();
  if (!folder) return tl::unexpected(folder.error());
  auto root = make_tree();
  if (!root) return tl::unexpected(root.error());
  if (needs_dpdk && !fs::exists(*folder / kPluginWithDpdkName)) {
    return tl::unexpected(Error{ErrorCode::NotFound,
                                std::string(kPluginWithDpdkName) +
                                    " is not beside this program, and the configuration's port "
                                    "needs DPDK: build or install it"});
  }
  const std::string plugin = (*folder / (needs_dpdk ? kPluginWithDpdk : kPlugin)).string();
  std::string preload = (*folder / kDoorName).string();
  const char* before = std::getenv("LD_PRELOAD");
  if (before != nullptr && before[0] != '\0' && std::strstr(before, kDoorName) == nullptr) {
    preload += std::string(":") + before;
  }
  // libibverbs ignores IBV_DRIVERS where RDMAV_DRIVERS is set.
  Variables out{{"LD_PRELOAD", preload},
                {"SYSFS_PATH", root->string()},
                {"IBV_DRIVERS", plugin},
                {"RDMAV_DRIVERS", plugin}};
  if (explain) out.emplace_back("RNIC_EXPLAIN", "1");
  for (auto& each : wishes.as_variables()) out.push_back(std::move(each));
  return out;
}

int start(std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (std::string& word : program) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int why = errno;
  return refuse(program[0] + ": " + std::strerror(why), why == ENOENT ? kNotFound : kNotRun);
}

constexpr const char* kWithValue[] = {"--config", "--wire",    "--address",
                                      "--impair", "--capture", "--fault"};

/// Makes the paths good for every folder, and checks all that the options say of the device.
/// \return whether it needs DPDK
Result<bool> complete(Wishes& wishes) {
  std::error_code error;
  // The program may change its folder first.
  for (std::string* path : {&wishes.config, &wishes.wire, &wishes.capture}) {
    if (!path->empty()) *path = fs::absolute(*path, error).string();
  }
  const auto config = wishes.configuration();
  if (!config) return tl::unexpected(config.error());
  return config->needs_dpdk();
}

/// The faults as the variable has them.
std::string joined(const std::vector<std::string>& faults) {
  std::string out;
  for (const std::string& each : faults) out += (out.empty() ? "" : ";") + each;
  return out;
}

/// The number of words before the program's name: those are this program's.
int own_words(int argc, char** argv) {
  int count = 1;
  while (count < argc && argv[count][0] == '-') {
    if (std::strcmp(argv[count], "--") == 0) break;
    const bool takes_value = std::any_of(std::begin(kWithValue), std::end(kWithValue),
                                         [&](const char* each) {
                                           return std::strcmp(argv[count], each) == 0;
                                         });
    count += takes_value ? 2 : 1;
  }
  return std::min(count, argc);
}

int run_program(int argc, char** argv) {
  const int own = own_words(argc, argv);
  std::vector<std::string> program(argv + own, argv + argc);
  if (!program.empty() && program.front() == "--") program.erase(program.begin());
  CLI::App app(
      "Runs an RDMA program, unmodified, on a softrnic device: without a kernel module, "
      "without rights and without hardware. See docs/run-your-program.md.\n"
      "Usage: rnic-run [OPTIONS] PROGRAM [ARGUMENTS]");
  Wishes wishes = Wishes::of_environment();
  bool print = false;
  bool explain = false;
  app.add_option("--config", wishes.config,
                 "configuration (TOML); default: the sockets of the system")
      ->check(CLI::ExistingFile);
  app.add_option("--wire", wishes.wire,
                 "folder of a local wire: frames between the processes of this machine, carried by "
                 "softrnic's own TCP");
  app.add_option("--address", wishes.address,
                 "the device's address there, as in 10.77.0.5/16; default: the first that is free");
  app.add_option("--impair", wishes.impair,
                 "damage that the frames suffer, as in loss=1%,reorder=1%,seed=7; give both sides "
                 "the same");
  app.add_option("--capture", wishes.capture, "records the frames in this file (pcapng)");
  std::vector<std::string> faults;
  app.add_option("--fault", faults,
                 "what the device does wrong on each connection, as in \"drop fpdu 3 of message "
                 "7\", \"bad crc on read response 2\", \"terminate now\" or \"stall the "
                 "responder 2s\"; may be given several times")
      ->allow_extra_args(false);
  app.add_flag("--explain", explain,
               "say on stderr why the device refuses a call: the program gets an errno alone");
  app.add_flag("--print-environment", print,
               "print the variables that do the same for every program of a shell");
  try {
    app.parse(own, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return refuse(error.what());
  }
  if (program.empty() && !print) return refuse("name a program to run: rnic-run rping -s");
  if (!faults.empty()) wishes.fault = joined(faults);
  const auto needs_dpdk = complete(wishes);
  if (!needs_dpdk) return refuse(needs_dpdk.error().message);
  auto variables = environment(wishes, *needs_dpdk, explain);
  if (!variables) return refuse(variables.error().message);
  for (const auto& [name, value] : *variables) {
    if (print) std::cout << "export " << name << "=" << quoted(value) << "\n";
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::cout.flush();
  return program.empty() ? 0 : start(program);
}

}  // namespace
}  // namespace rnic::run

int main(int argc, char** argv) {
  return rnic::program::run("rnic-run", [&] { return rnic::run::run_program(argc, argv); });
}
