#include "settings/checks.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "net/routes.hpp"
#include "settings/derived.hpp"
#include "settings/values.hpp"

namespace rnic::settings {
namespace {

bool on_wire(const DeviceSettings& device) { return device.port.starts_with(kWirePrefix); }

/// The Ethernet address that a device on a local wire has by its IP address, so that nobody else on
/// the wire has either.
Mac mac_of(const IpAddress& address) {
  const uint64_t folded = address.low() ^ address.high();
  const uint32_t host =
      address.is_v4() ? address.as_v4() : static_cast<uint32_t>(folded ^ folded >> 32);
  return {0x02,
          0,
          static_cast<uint8_t>(host >> 24),
          static_cast<uint8_t>(host >> 16),
          static_cast<uint8_t>(host >> 8),
          static_cast<uint8_t>(host)};
}

std::string table(size_t index) { return "device#" + std::to_string(index); }

const WireSettings* wire_of(const Settings& settings, const DeviceSettings& device) {
  for (const WireSettings& wire : settings.wires) {
    const std::string ends = std::string(kWirePrefix) + wire.name + ":";
    if (device.port == ends + "0" || device.port == ends + "1") return &wire;
  }
  return nullptr;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

/// The text by which an address is told from others. Two of which there is no text would be the
/// same, so that a lack of memory has to end the check.
std::string distinct(const IpAddress& address) {
  std::string text = to_string(address);
  if (text.empty()) throw std::bad_alloc();
  return quoted(text);
}

bool good_name(std::string_view name) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  return !name.empty() && name.size() <= 31 &&
         name.find_first_not_of(kAllowed) == std::string_view::npos;
}

/// Checks the rules that concern one device alone.
class DeviceChecks {
 public:
  DeviceChecks(const Settings& settings, size_t index, const Places& places, Findings& findings)
      : settings_(settings),
        device_(settings.devices[index]),
        id_(table(index)),
        places_(places),
        findings_(findings) {}

  void run() {
    check_name();
    check_port();
    if (device_.on_socket()) {
      check_socket();
    } else {
      check_address();
    }
    check_mtu();
    check_tcp();
    check_mpa();
    check_limits();
    check_impair();
    check_faults();
    if (set("seed") && device_.random_secret) {
      wrong("seed",
            "means nothing with random_secret = true: give impair.seed for the same damage again, "
            "or random_secret = false for the same ports, STags and sequence numbers (only in "
            "tests)");
    }
    if (places_.any_below(id_ + ".capture") && device_.capture.file.empty()) {
      wrong("capture.file", "is empty: name a file, or leave the section out");
    }
  }

 private:
  /// \param key below the device: "mtu", "tcp.rto_min"
  void wrong(const std::string& key, const std::string& message) {
    const bool shared = !places_.given(id_ + "." + key) && places_.given(key);
    findings_.add(places_.of(id_, key), shared ? key : "device." + device_.config.name + "." + key,
                  message);
  }
  /// Reports the violation of a rule between two keys at the place where one of them was set.
  void wrong_pair(const std::string& key, const std::string& other, const std::string& message) {
    wrong(!set(key) && set(other) ? other : key, message);
  }
  [[nodiscard]] bool set(const std::string& key) const {
    return places_.given(id_ + "." + key) || places_.given(key);
  }

  void check_name() {
    if (!good_name(device_.config.name)) {
      wrong("name",
            quoted(device_.config.name) + " is no good name: 1 to 31 letters, digits, _ and -");
    }
  }

  void check_port() {
    if (device_.port.empty()) {
      wrong("port",
            "is missing: write a wire's end (\"wire:NAME:0\"), a PCI address, a virtual "
            "device (\"net_af_packet0,iface=veth0\"), a folder (\"local:/tmp/wire\") or "
            "\"socket\"");
    } else if (device_.on_local()) {
      check_folder();
    } else if (on_wire(device_) && wire_of(settings_, device_) == nullptr) {
      std::vector<std::string> ends;
      for (const WireSettings& wire : settings_.wires) {
        for (const char* end : {":0", ":1"}) {
          ends.push_back(std::string(kWirePrefix) + wire.name + end);
        }
      }
      const std::string meant = nearest(device_.port, ends);
      wrong("port", "there is no " + quoted(device_.port) +
                        (!meant.empty() ? "; did you mean " + quoted(meant) + "?"
                         : ends.empty() ? ": add [[wire]] with a name"
                                        : ": the first wire's ends are " + quoted(ends[0]) +
                                              " and " + quoted(ends[1])));
    }
  }

  void check_folder() {
    const size_t octets = device_.local_folder().size();
    if (octets >= 1 && octets <= local::kMostPath) return;
    wrong("port", quoted(device_.port) + " has a path of " + std::to_string(octets) +
                      " octets: name a folder, by 1 to " + std::to_string(local::kMostPath) +
                      ", as in \"local:/tmp/wire\"");
  }

  void check_socket() {
    const net::Config& net = device_.config.net;
    std::vector<net::Prefix> own = net.addresses;
    if (set("address")) own.push_back({net.address, net.prefix_length});
    for (const net::Prefix& prefix : own) {
      if (prefix.address.is_unicast()) continue;
      wrong("address", quoted(to_string(prefix.address)) +
                           " is no address of a host: take one that this machine has, as in "
                           "\"127.0.0.1/8\", or leave the key out for all of them");
    }
    if (set("mpa.silent_drop") && device_.config.mpa.silent_drop) {
      wrong("mpa.silent_drop",
            "cannot be kept over sockets of the system, whose TCP has acknowledged what we read: "
            "write false for this device");
    }
    const tuf::Config& tuf = device_.config.tuf;
    if ((set("tuf.align") && tuf.align_receive) || !tuf.markers_receive) {
      wrong(tuf.markers_receive ? "tuf.align" : "tuf.markers",
            "over sockets of the system, which show no segments, ULP framing has marker mode only: "
            "write tuf.align = false and tuf.markers = true for this device");
    }
    if (device_.impair.enabled) {
      wrong("impair.enabled", "a device on sockets sends no frames that could be damaged");
    }
  }

  void check_address() {
    const net::Config& net = device_.config.net;
    if (!set("address")) {
      wrong("address", "is missing: write the IP address and prefix length, as in \"10.0.0.1/24\"");
      return;
    }
    std::vector<net::Prefix> links{{net.address, net.prefix_length}};
    check_host("address", links.front());
    for (const net::Prefix& prefix : net.addresses) {
      check_host("addresses", prefix);
      links.push_back(prefix);
    }
    if (net.addresses.size() > net::Config::kMaxAddresses) {
      wrong("addresses", "has more than " + std::to_string(net::Config::kMaxAddresses));
    }
    if (net.routes.size() > net::Config::kMaxRoutes) {
      wrong("routes", "has more than " + std::to_string(net::Config::kMaxRoutes));
    }
    if (!net.gateway.is_unspecified()) check_gateway("gateway", net.gateway, true, links);
    if (!net.gateway6.is_unspecified()) check_gateway("gateway6", net.gateway6, false, links);
    for (const net::StaticRoute& route : net.routes) {
      check_gateway("routes", route.gateway, route.to.address.is_v4(), links);
    }
  }

  void check_host(const std::string& key, const net::Prefix& prefix) {
    const std::string shown =
        quoted(to_string(prefix.address) + "/" + std::to_string(prefix.length));
    const IpAddress loopback6{0, 1};
    if (prefix.length == 0) {
      wrong(key, shown + " has no good prefix length: write /1 or longer, as in \"10.0.0.1/24\"");
    } else if (!prefix.address.is_v4()) {
      if (!prefix.address.is_unicast() || prefix.address == loopback6) {
        wrong(key, shown + " is no address of a host: take one as in \"fd00::1/64\"");
      }
    } else {
      const uint32_t address = prefix.address.as_v4();
      const uint32_t hosts = prefix.length == 32 ? 0 : UINT32_MAX >> prefix.length;
      const uint32_t first = address >> 24;
      if (first == 0 || first == 127 || first >= 224) {
        wrong(key, shown +
                       " is no address of a host: take one from a private network, as in "
                       "\"10.0.0.1/24\"");
      } else if (hosts > 1 && ((address & hosts) == 0 || (address & hosts) == hosts)) {
        wrong(key, shown + " is the network itself or its broadcast address: take one between");
      }
    }
  }

  void check_gateway(const std::string& key, const IpAddress& gateway, bool v4,
                     const std::vector<net::Prefix>& links) {
    bool neighbour =
        gateway.is_unicast() && gateway.is_v4() == v4 && !v4 && gateway.is_link_local();
    for (const net::Prefix& link : links) {
      if (link.address == gateway) {
        neighbour = false;
        break;
      }
      neighbour |= gateway.is_unicast() && gateway.is_v4() == v4 && net::contains(link, gateway);
    }
    if (!neighbour) {
      wrong(key, quoted(to_string(gateway)) + " is not another host of the device's network " +
                     quoted(to_string(links.front().address) + "/" +
                            std::to_string(links.front().length)) +
                     (links.size() > 1 ? " or its others" : ""));
    }
  }

  void check_mtu() {
    const net::Config& net = device_.config.net;
    const bool ipv6 = (set("address") && !net.address.is_v4()) ||
                      std::any_of(net.addresses.begin(), net.addresses.end(),
                                  [](const net::Prefix& p) { return !p.address.is_v4(); });
    if (ipv6 && device_.mtu < 1280) {
      wrong("mtu", std::to_string(device_.mtu) + " is too small for IPv6, which needs 1280");
    }
    const WireSettings* wire = wire_of(settings_, device_);
    if (wire != nullptr && device_.mtu > wire->mtu) {
      wrong("mtu", std::to_string(device_.mtu) + " is above the wire's mtu " +
                       std::to_string(wire->mtu) + ": raise wire." + wire->name + ".mtu");
    }
  }

  void check_tcp() {
    const tcp::Config& tcp = device_.config.tcp;
    if (tcp.rto_min > tcp.rto_max) {
      wrong_pair("tcp.rto_min", "tcp.rto_max",
                 "rto_min (" + duration_text(tcp.rto_min) + ") is above rto_max (" +
                     duration_text(tcp.rto_max) + ")");
    }
    if (tcp.rto_initial > tcp.rto_max) {
      wrong_pair("tcp.rto_initial", "tcp.rto_max",
                 "rto_initial (" + duration_text(tcp.rto_initial) + ") is above rto_max (" +
                     duration_text(tcp.rto_max) + ")");
    }
    not_above("tcp.max_half_open", tcp.max_half_open, "limits.max_connections",
              device_.config.limits.max_connections);
    not_above("tcp.max_records_per_connection", tcp.max_records_per_connection, "tcp.max_records",
              tcp.max_records);
  }

  void check_mpa() {
    const mpa::Config& mpa = device_.config.mpa;
    if (mpa.revision != 2 || mpa.rtr_send || mpa.rtr_write || mpa.rtr_read) return;
    wrong_pair("mpa.rtr_send", set("mpa.rtr_write") ? "mpa.rtr_write" : "mpa.rtr_read",
               "rtr_send, rtr_write and rtr_read are all off: a peer-to-peer start-up needs one of "
               "them (RFC 6581 section 9.2)");
  }

  void check_limits() {
    const device::Limits& limits = device_.config.limits;
    not_above("limits.max_pending_requests", limits.max_pending_requests, "limits.max_connections",
              limits.max_connections);
    not_above("framing.hold_limit", device_.framing.hold_limit, "limits.hold_octets",
              limits.hold_octets);
    if (!device_.config.tuf.align_receive && !device_.config.tuf.markers_receive) {
      wrong_pair("tuf.align", "tuf.markers",
                 "tuf.align and tuf.markers are both off: a receiver needs one of them");
    }
    not_above("limits.stream_buffer", limits.stream_buffer, "limits.stream_octets",
              limits.stream_octets);
  }

  void not_above(const std::string& key, uint64_t value, const std::string& other, uint64_t most) {
    if (value <= most) return;
    wrong_pair(key, other,
               key + " (" + std::to_string(value) + ") is above " + other + " (" +
                   std::to_string(most) + "): raise " + other + " or lower " + key);
  }

  void check_impair() {
    const impair::Config& config = device_.impair.config;
    if (config.reorder_min > config.reorder_max) {
      wrong_pair("impair.reorder_min", "impair.reorder_max",
                 "reorder_min (" + std::to_string(config.reorder_min) + ") is above reorder_max (" +
                     std::to_string(config.reorder_max) + ")");
    } else if (auto status = impair::check(config); !status) {
      wrong("impair", status.error().message);
    }
  }

  void check_faults() {
    if (device_.fault_lines.size() > kMostFaults) {
      wrong("fault", "has " + std::to_string(device_.fault_lines.size()) + " faults: at most " +
                         std::to_string(kMostFaults));
    }
    for (const std::string& line : device_.fault_lines) {
      const auto fault = parse_planned_fault(line);
      if (!fault) {
        wrong("fault", fault.error().message);
      } else if (device_.on_socket() && needs_frames(*fault)) {
        wrong("fault", quoted(line) +
                           " is done to frames, and a device on sockets sends none: give it a "
                           "port that does, as port = \"local:/tmp/wire\" (rnic-run: --wire "
                           "FOLDER)");
      }
    }
  }

  static constexpr size_t kMostFaults = 16;

  const Settings& settings_;
  const DeviceSettings& device_;
  std::string id_;
  const Places& places_;
  Findings& findings_;
};

/// Reports the second and later devices that use something only one device may have.
class Owners {
 public:
  Owners(const Settings& settings, const Places& places, Findings& findings)
      : settings_(settings), places_(places), findings_(findings) {}

  void claim(const std::string& key, const std::string& what, size_t index) {
    const auto [owner, first] = owners_.emplace(key + " " + what, index);
    if (first) return;
    // If two devices have the same name it cannot tell them apart.
    const std::string& mine = settings_.devices[index].config.name;
    const std::string& name = settings_.devices[owner->second].config.name;
    const std::string other = name == mine ? "another device" : "device " + name;
    findings_.add(places_.of(table(index), key), "device." + mine + "." + key,
                  what + " is taken by " + other + ": every device needs its own");
  }

 private:
  const Settings& settings_;
  const Places& places_;
  Findings& findings_;
  std::map<std::string, size_t> owners_;
};

void check_wires(const Settings& settings, const Places& places, Findings& findings) {
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < settings.wires.size(); ++i) {
    const std::string& name = settings.wires[i].name;
    const Place& place = places.of("wire#" + std::to_string(i), "name");
    if (!good_name(name)) {
      findings.add(place, "wire.name",
                   (name.empty() ? "is missing or empty" : quoted(name) + " is no good name") +
                       std::string(": 1 to 31 letters, digits, _ and -"));
    } else if (!names.emplace(name, i).second) {
      findings.add(place, "wire.name", quoted(name) + " is taken by another wire");
    }
  }
}

void check_worker(const Settings& settings, const Places& places, Findings& findings) {
  const WorkerSettings& worker = settings.worker;
  if (worker.mode != WorkerSettings::Threaded) return;
  const size_t devices = settings.devices.size();
  if (worker.count > devices) {
    findings.add(places.of("worker", "count"), "worker.count",
                 "asks for " + std::to_string(worker.count) + " threads for " +
                     std::to_string(devices) + " devices: at most one each");
  } else if (!worker.cores.empty() && worker.cores.size() != worker.threads(devices)) {
    findings.add(places.of("worker", "cores"), "worker.cores",
                 "names " + std::to_string(worker.cores.size()) + " cores for " +
                     std::to_string(worker.threads(devices)) +
                     " threads: name one each, or none at all");
  }
}

/// Copies values that stand once in the file to all parts that use them.
void copy_shared(DeviceSettings& device) {
  device.config.tcp.max_connections = device.config.limits.max_connections;
  device.framing.receive_window = device.config.tcp.receive_window;
  static_cast<framing::Config&>(device.config.mpa) = device.framing;
  static_cast<framing::Config&>(device.config.tuf) = device.framing;
}

/// Fills in what a device on sockets takes from other keys.
void complete_socket(DeviceSettings& device, bool silent_drop_given) {
  socket::Config& socket = device.socket;
  const tcp::Config& tcp = device.config.tcp;
  socket.mtu = device.mtu;
  socket.max_connections = tcp.max_connections;
  socket.max_listeners = tcp.max_listeners;
  socket.pack_records = tcp.pack_records;
  socket.nagle = tcp.nagle;
  socket.keep_alive = tcp.keep_alive;
  socket.keep_alive_idle = tcp.keep_alive_idle;
  socket.keep_alive_interval = tcp.keep_alive_interval;
  socket.keep_alive_count = tcp.keep_alive_count;
  socket.user_timeout = tcp.user_timeout;
  socket.connect_timeout = tcp.connect_timeout;
  socket.close_timeout = tcp.close_timeout;
  if (!device.config.net.address.is_unspecified()) {
    socket.addresses.push_back(device.config.net.address);
  }
  for (const net::Prefix& prefix : device.config.net.addresses) {
    socket.addresses.push_back(prefix.address);
  }
  if (!silent_drop_given) device.config.mpa.silent_drop = false;
}

/// Fills in the faults that the lines say. check() refuses lines that say none.
void plan_faults(DeviceSettings& device) {
  for (const std::string& line : device.fault_lines) {
    if (const auto fault = parse_planned_fault(line)) device.config.faults.push_back(*fault);
  }
}

/// On a wire checksums are left open. An impaired end completes its own and checks those that it
/// receives, so the other end has to do the same.
void decorate_other_ends(Settings& settings) {
  for (const DeviceSettings& device : settings.devices) {
    const bool decorated = device.impair.enabled || device.has_frame_faults();
    if (!decorated || !on_wire(device)) continue;
    std::string other_end = device.port;
    other_end.back() = other_end.back() == '0' ? '1' : '0';
    for (DeviceSettings& other : settings.devices) {
      if (other.port != other_end || other.impair.enabled) continue;
      other.impair.enabled = true;
      other.impair.config = {};
    }
  }
}

}  // namespace

void complete(Settings& settings, const Places& places) {
  for (size_t i = 0; i < settings.devices.size(); ++i) {
    DeviceSettings& device = settings.devices[i];
    const std::string id = table(i);
    if (device.mtu == 0) {
      const WireSettings* wire = wire_of(settings, device);
      device.mtu = wire != nullptr ? wire->mtu : 1500;
    }
    device.config.net.mtu = device.mtu;
    derive(device, id, places);
    copy_shared(device);
    plan_faults(device);
    device.mac_given = places.given(id + ".mac");
    if (!device.mac_given && on_wire(device)) {
      const size_t number = i + 1;
      device.mac = {0x02, 0, 0, 0, static_cast<uint8_t>(number >> 8), static_cast<uint8_t>(number)};
    }
    if (!device.mac_given && device.on_local()) device.mac = mac_of(device.config.net.address);
    if (!places.given(id + ".seed")) device.config.seed = 1 + i;
    if (!places.given(id + ".impair.enabled")) {
      device.impair.enabled = places.any_below(id + ".impair");
    }
    // The peers on a wire are softrnic's devices, whose receiver is never late.
    const bool delay_given =
        places.given(id + ".mpa.first_fpdu_delay") || places.given("mpa.first_fpdu_delay");
    if ((on_wire(device) || device.on_local()) && !delay_given) {
      device.config.mpa.first_fpdu_delay = base::Duration{};
    }
    device.impair.seed_given = places.given(id + ".impair.seed");
    if (!device.impair.seed_given && !device.random_secret) {
      device.impair.seed = device.config.seed;
      device.impair.seed_given = true;
    }
    if (device.on_socket()) {
      complete_socket(device,
                      places.given(id + ".mpa.silent_drop") || places.given("mpa.silent_drop"));
    }
  }
  decorate_other_ends(settings);
}

void check(const Settings& settings, const Places& places, Findings& findings) {
  if (settings.devices.empty()) {
    findings.add(places.of("", ""), "",
                 "there is no [[device]]: add at least one with port and address; "
                 "config/loopback.toml shows two");
  }
  check_wires(settings, places, findings);
  Owners owners(settings, places, findings);
  for (size_t i = 0; i < settings.devices.size(); ++i) {
    const DeviceSettings& device = settings.devices[i];
    DeviceChecks(settings, i, places, findings).run();
    owners.claim("name", quoted(device.config.name), i);
    if (device.on_socket()) continue;  // devices may share the system's addresses
    if (!device.port.empty() && !device.on_local()) owners.claim("port", quoted(device.port), i);
    if (places.given(table(i) + ".address")) {
      owners.claim("address", distinct(device.config.net.address), i);
    }
    for (const net::Prefix& prefix : device.config.net.addresses) {
      owners.claim("address", distinct(prefix.address), i);
    }
    if (device.mac != Mac{}) owners.claim("mac", quoted(mac_text(device.mac)), i);
  }
  check_worker(settings, places, findings);
}

}  // namespace rnic::settings
