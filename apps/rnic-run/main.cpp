// rnic-run: runs an RDMA program, unmodified, on a softrnic device.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "program/program.hpp"
#include "rnic-run/device_tree.hpp"
#include "rnic-run/program_file.hpp"
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
  constexpr char kSelf[] = "/proc/self/exe";
  const fs::path here = fs::read_symlink(kSelf, error).parent_path();
  if (error) {
    return tl::unexpected(Error{ErrorCode::Environment,
                                std::string(kSelf) + ": " + error.message() +
                                    ": it tells where this program and " + kDoorName +
                                    " are: mount /proc"});
  }
  for (const fs::path& folder : {here, here.parent_path() / RNIC_LIBRARIES}) {
    if (fs::exists(folder / kDoorName, error) && fs::exists(folder / kPluginName, error)) {
      return folder;
    }
  }
  return tl::unexpected(Error{ErrorCode::NotFound, std::string(kDoorName) + " and " + kPluginName +
                                                       " are not beside this program: build or "
                                                       "install both"});
}

/// The text as one word of a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char each : text) out += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return out + "'";
}

constexpr char kPreloadSeparators[] = ": ";  // as the loader has them

/// What to preload: the libraries that are preloaded already, then the door, once. It comes last,
/// since the runtime of a sanitizer has to be the first.
std::string preloaded(std::string_view before, const fs::path& door) {
  std::string out;
  while (!before.empty()) {
    const size_t length = std::min(before.find_first_of(kPreloadSeparators), before.size());
    const fs::path each(before.substr(0, length));
    before.remove_prefix(std::min(length + 1, before.size()));
    if (!each.empty() && each.filename() != kDoorName) out += each.string() + ":";
  }
  return out + door.string();
}

/// What AddressSanitizer is told before the user's own words, of which the last ones win. The door
/// says the same (for_sanitizers.cpp); a program that has options built in does not hear it there,
/// nor does one whose runtime is linked statically.
std::string asan_options() {
  const char* before = std::getenv("ASAN_OPTIONS");
  const std::string own = "verify_asan_link_order=0:intercept_tls_get_addr=0";
  if (before == nullptr || std::string_view(before).empty()) return own;
  const std::string_view said = before;
  return said.substr(0, own.size()) == own ? std::string(said) : own + ":" + before;
}

Result<Variables> environment(const Wishes& wishes, bool needs_dpdk, bool explain) {
  auto folder = libraries();
  if (!folder) return tl::unexpected(folder.error());
  if (folder->string().find_first_of(kPreloadSeparators) != std::string::npos) {
    return tl::unexpected(Error{ErrorCode::InvalidArgument,
                                "no library can be preloaded from \"" + folder->string() +
                                    "\", whose name has a space or a colon: move it"});
  }
  auto root = make_device_tree(wishes);
  if (!root) return tl::unexpected(root.error());
  if (needs_dpdk && !fs::exists(*folder / kPluginWithDpdkName)) {
    return tl::unexpected(Error{ErrorCode::NotFound,
                                std::string(kPluginWithDpdkName) +
                                    " is not beside this program, and the configuration's port "
                                    "needs DPDK: build or install it"});
  }
  const std::string plugin = (*folder / (needs_dpdk ? kPluginWithDpdk : kPlugin)).string();
  const char* before = std::getenv("LD_PRELOAD");
  // libibverbs ignores IBV_DRIVERS where RDMAV_DRIVERS is set.
  Variables out{{"LD_PRELOAD", preloaded(before != nullptr ? before : "", *folder / kDoorName)},
                {"SYSFS_PATH", root->string()},
                {"IBV_DRIVERS", plugin},
                {"RDMAV_DRIVERS", plugin},
                {"ASAN_OPTIONS", asan_options()}};
  if (explain) out.emplace_back("RNIC_EXPLAIN", "1");
  for (auto& each : wishes.as_variables()) out.push_back(std::move(each));
  return out;
}

int start(std::vector<std::string>& program) {
  std::vector<char*> arguments;
  for (std::string& word : program) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string why_not = why_nothing_is_preloaded(program[0]);
  if (!why_not.empty()) std::cerr << "rnic-run: " << why_not << std::endl;
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
  app.add_option("--capture", wishes.capture,
                 "records what is sent and received in this file (pcapng); %p in its name is "
                 "the number of the process");
  std::vector<std::string> faults;
  app.add_option("--fault", faults,
                 "what the device does wrong on each connection, as in \"drop fpdu 3 of message "
                 "7\", \"bad crc on read response 2\", \"terminate now\" or \"stall the "
                 "responder 2s\"; may be given several times")
      ->allow_extra_args(false);
  bool roce = false;
  app.add_flag("--roce", roce,
               "show the device as one of RoCE, for programs that connect queue pairs by GID and "
               "number, without rdma_cm; it is iWARP beneath");
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
  if (roce) wishes.roce = "1";
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
