#include "rnic-run/wishes.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

namespace rnic::run {

namespace {

namespace fs = std::filesystem;

// libfabric asks for completion queues that are deep beyond the need, and others for a protection
// domain and two completion queues for each connection.
constexpr char kOnSockets[] =
    "[[device]]\nname = \"rnic0\"\nport = \"socket\"\n"
    "[limits]\nmax_cq_depth = 1048576\nmax_pds = 1024\nmax_cqs = 2048\n";
// Nobody else on the wire has the address, so that it is not asked for first. A process that was
// killed says no farewell: its peer asks now and then whether it is there, and is told by the wire.
// One that a debugger holds is waited for. Such a wire takes frames of every size alike: where they
// get no answer for long the peer had no processor, and smaller segments would cut its FPDUs.
constexpr char kOnWire[] =
    "[[device]]\nname = \"rnic0\"\naddress = \"10.77.0.1/16\"\n"
    "[limits]\nmax_cq_depth = 1048576\nmax_pds = 1024\nmax_cqs = 2048\n[net]\ndad_transmits = 0\n"
    "[tcp]\nmtu_probing = false\nkeep_alive = true\nkeep_alive_idle = \"2s\"\n"
    "keep_alive_interval = \"2s\"\nkeep_alive_count = 255\n";

/// A wish with the variable that carries it.
struct Row {
  const char* variable;
  std::string Wishes::*wish;
};

constexpr Row kRows[] = {
    {"RNIC_CONFIG", &Wishes::config},   {"RNIC_WIRE", &Wishes::wire},
    {"RNIC_ADDRESS", &Wishes::address}, {"RNIC_IMPAIR", &Wishes::impair},
    {"RNIC_CAPTURE", &Wishes::capture}, {"RNIC_FAULT", &Wishes::fault},
    {"RNIC_ROCE", &Wishes::roce},
};

tl::unexpected<Error> wrong(const std::string& what) {
  return tl::unexpected(Error{ErrorCode::InvalidArgument, what});
}

/// "1%" as the configuration has it: "0.01". Anything else stays as it is.
std::string as_share(const std::string& value) {
  if (value.empty() || value.back() != '%') return value;
  char* end = nullptr;
  const double percent = std::strtod(value.c_str(), &end);
  if (end != value.c_str() + value.size() - 1) return value;
  std::ostringstream out;
  out << percent / 100;
  return out.str();
}

/// Over sockets each connection is a descriptor, as is each listener, and whoever resolves an
/// address has a port from then on: a program may resolve thousands before it connects. A process
/// that may have few gets few, and not no device.
struct Room {
  // What a device has where nobody says otherwise.
  static constexpr rlim_t kConnections = 1024;
  static constexpr rlim_t kListeners = 64;
  static constexpr rlim_t kMostListeners = 4096;

  /// \param descriptors that there are
  explicit Room(rlim_t descriptors)
      : connections(std::clamp<rlim_t>(descriptors, 1, kConnections)),
        listeners(std::clamp<rlim_t>(descriptors - std::min(descriptors, connections),
                                     std::min(connections, kListeners), kMostListeners)) {}
  static Room of_process() {
    rlimit there{};
    return Room(getrlimit(RLIMIT_NOFILE, &there) == 0 ? there.rlim_cur : kConnections);
  }

  rlim_t connections;
  rlim_t listeners;
};

/// The path with the number of this process for each %p: several may inherit the variable.
std::string of_this_process(std::string path) {
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at)) {
    path.replace(at, 2, std::to_string(getpid()));
  }
  return path;
}

}  // namespace

Wishes Wishes::of_environment() {
  Wishes out;
  for (const Row& row : kRows) {
    if (const char* value = std::getenv(row.variable)) out.*row.wish = value;
  }
  if (out.roce == "0") out.roce.clear();
  return out;
}

Variables Wishes::as_variables() const {
  Variables out;
  for (const Row& row : kRows) {
    if (!(this->*row.wish).empty()) out.emplace_back(row.variable, this->*row.wish);
  }
  return out;
}

Result<std::vector<std::string>> Wishes::impairments() const {
  std::vector<std::string> out;
  std::istringstream list(impair);
  for (std::string each; std::getline(list, each, ',');) {
    const size_t equals = each.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == each.size()) {
      return wrong("--impair: \"" + each +
                   "\" is no damage: write loss=1%, reorder=1%, duplicate=1%, corrupt=1%, "
                   "delay=1ms or jitter=1ms, and seed=7 for the same damage again, with commas "
                   "between");
    }
    const std::string what = each.substr(0, equals);
    // The configuration says drop; people say loss.
    out.push_back((what == "loss" ? "drop" : what) + "=" + as_share(each.substr(equals + 1)));
  }
  return out;
}

Result<std::vector<std::string>> Wishes::faults() const {
  std::vector<std::string> out;
  std::istringstream list(fault);
  for (std::string each; std::getline(list, each, ';');) {
    const auto planned = parse_planned_fault(each);
    if (!planned) return wrong("--fault: " + planned.error().message);
    if (needs_frames(*planned) && wire.empty() && config.empty()) {
      return wrong("--fault: \"" + each +
                   "\" is done to frames, and a device on the system's sockets sends none: name a "
                   "local wire by --wire FOLDER");
    }
    out.push_back(to_string(*planned));
  }
  return out;
}

Result<Config> Wishes::configuration() const {
  if (Status status = check(); !status) return tl::unexpected(status.error());
  auto damage = impairments();
  if (!damage) return tl::unexpected(damage.error());
  auto planned = faults();
  if (!planned) return tl::unexpected(planned.error());
  auto out = !config.empty() ? Config::from_file(config)
                             : Config::from_text(wire.empty() ? kOnSockets : kOnWire, "rnic-run");
  if (!out) return out;
  if (!wire.empty()) out->set("device.rnic0.port=local:" + wire);
  if (!address.empty()) out->set("device.rnic0.address=" + address);
  for (const std::string& each : *damage) out->set("device.*.impair." + each);
  if (!capture.empty()) out->set("device.*.capture.file=" + of_this_process(capture));
  if (!planned->empty()) {
    std::string list;
    for (const std::string& line : *planned) list += (list.empty() ? "\"" : ",\"") + line + "\"";
    out->set("device.*.fault=[" + list + "]");
  }
  // Nothing else damages what is in memory: a wrong CRC is the fault that somebody planned, and it
  // shows at once instead of after eight retransmissions.
  if (!wire.empty() && impair.empty()) out->set("mpa.silent_drop=false");
  // A peer that is on the wire answers at once, unless frames are lost. Over sockets the system
  // waits three seconds for an answer to ARP.
  const std::string patience = impair.empty() ? "10s" : "30s";
  if (!wire.empty()) out->set("tcp.connect_timeout=" + patience);
  // Servers that listen for one connection after the other count on a client that is slower than
  // they are, as it is over the system's sockets: here both sides drive their devices themselves.
  // The queue pairs of --roce have no listeners, and ask again by themselves.
  if (!wire.empty() && roce.empty()) out->set("tcp.refused_time=300ms");
  // Peers may come before the program has named them, or by the hundred at once.
  const Room room = wire.empty() ? Room::of_process() : Room(RLIM_INFINITY);
  if (config.empty()) {
    out->set("limits.max_connections=" + std::to_string(room.connections))
        .set("limits.max_pending_requests=" + std::to_string(room.connections))
        .set("tcp.max_listeners=" + std::to_string(room.listeners));
  }
  out->set("worker.mode=threaded").set("worker.idle=sleep");
  return out;
}

Status Wishes::check() const {
  if (!config.empty() && !wire.empty()) {
    return wrong("--wire: the configuration says where the device's frames go: leave one of the "
                 "two out");
  }
  if (!address.empty() && wire.empty()) {
    return wrong("--address: it is the device's address on a local wire: name one by --wire");
  }
  if (!impair.empty() && wire.empty() && config.empty()) {
    return wrong("--impair: a device on the system's sockets has no frames to damage: name a local "
                 "wire by --wire FOLDER");
  }
  if (!roce.empty() && roce != "1") {
    return wrong("RNIC_ROCE: \"" + roce + "\" says neither yes nor no: set it to 1 or to 0");
  }
  std::error_code error;
  if (fs::exists(config, error) && !fs::is_regular_file(config, error)) {
    return wrong("--config: " + config + " is no regular file, and rnic-run and each program read "
                 "it anew");
  }
  if (!roce.empty() && !config.empty()) {
    return wrong("--roce: a device's GIDs are its addresses, which a configuration does not tell "
                 "rnic-run: leave --config out");
  }
  if (!roce.empty() && !wire.empty() && address.empty()) {
    return wrong("--roce: on a local wire the device's GID is its address: choose one by "
                 "--address, as in 10.77.0.5/16");
  }
  if (auto damage = impairments(); !damage) return tl::unexpected(damage.error());
  return {};
}

}  // namespace rnic::run
