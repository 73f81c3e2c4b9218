#include "rnic-run/gid_table.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "rnic-run/adapter.hpp"
#include "rnic-run/peer_address.hpp"

namespace rnic::run {

namespace {

constexpr size_t kMostGids = 255;  // ibv_global_route names one by 8 bits

ibv_gid gid_of(const IpAddress& address) {
  ibv_gid out;
  for (int i = 0; i < 8; ++i) {
    out.raw[i] = static_cast<uint8_t>(address.high() >> (56 - 8 * i));
    out.raw[8 + i] = static_cast<uint8_t>(address.low() >> (56 - 8 * i));
  }
  return out;
}

/// The GID in the kernel's form: eight groups of 16 bits.
std::string groups(const IpAddress& address) {
  const ibv_gid gid = gid_of(address);
  std::string out;
  for (int i = 0; i < 16; i += 2) {
    std::array<char, 8> text;
    std::snprintf(text.data(), text.size(), "%s%02x%02x", i == 0 ? "" : ":", gid.raw[i],
                  gid.raw[i + 1]);
    out += text.data();
  }
  return out;
}

std::optional<IpAddress> from_groups(const std::string& text) {
  std::array<unsigned, 8> group;
  if (std::sscanf(text.c_str(), "%4x:%4x:%4x:%4x:%4x:%4x:%4x:%4x", &group[0], &group[1], &group[2],
                  &group[3], &group[4], &group[5], &group[6], &group[7]) != 8) {
    return std::nullopt;
  }
  uint64_t halves[2] = {0, 0};
  for (size_t i = 0; i < group.size(); ++i) halves[i / 4] = halves[i / 4] << 16 | group[i];
  return IpAddress{halves[0], halves[1]};
}

std::optional<IpAddress> stored_address(const sockaddr* stored) {
  if (stored == nullptr) return std::nullopt;
  if (stored->sa_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, stored, sizeof(in));
    return IpAddress::v4(ntohl(in.sin_addr.s_addr));
  }
  if (stored->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 in;
  std::memcpy(&in, stored, sizeof(in));
  ibv_gid gid;
  std::memcpy(gid.raw, &in.sin6_addr, sizeof(gid.raw));
  return address_of(gid);
}

}  // namespace

void GidTable::add(const IpAddress& address, const std::string& interface) {
  if (entries_.size() < kMostGids) entries_.push_back({address, interface});
}

GidTable GidTable::of_machine() {
  GidTable v4;
  GidTable v6;
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) all = nullptr;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    const auto address = stored_address(each->ifa_addr);
    const bool is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
    if (!address || !is_up || address->is_link_local()) continue;
    (address->is_v4() ? v4 : v6).add(*address, each->ifa_name);
  }
  freeifaddrs(all);
  for (const Entry& each : v6.entries_) v4.add(each.address, each.interface);
  if (v4.size() == 0) v4.add(IpAddress::v4(INADDR_LOOPBACK), "lo");
  return v4;
}

GidTable GidTable::of(const IpAddress& only, const std::string& interface) {
  GidTable out;
  out.add(only, interface);
  return out;
}

GidTable GidTable::of_tree(const std::filesystem::path& root) {
  GidTable out;
  const auto folder = root / "class/infiniband" / kDeviceName / "ports/1/gids";
  for (size_t i = 0; i < kMostGids; ++i) {
    std::string text;
    if (!std::getline(std::ifstream(folder / std::to_string(i)), text)) break;
    const auto address = from_groups(text);
    if (!address) break;
    out.add(*address, "");
  }
  return out;
}

const GidTable& GidTable::of_process() {
  static const GidTable table = [] {
    const char* const root = std::getenv("SYSFS_PATH");
    return of_tree(root != nullptr ? root : "");
  }();
  return table;
}

std::vector<std::pair<std::string, std::string>> GidTable::files() const {
  std::vector<std::pair<std::string, std::string>> out;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string index = std::to_string(i);
    out.emplace_back("gids/" + index, groups(entries_[i].address));
    out.emplace_back("gid_attrs/types/" + index, "RoCE v2");
    out.emplace_back("gid_attrs/ndevs/" + index, entries_[i].interface);
  }
  return out;
}

std::optional<IpAddress> GidTable::at(size_t index) const {
  if (index >= entries_.size()) return std::nullopt;
  return entries_[index].address;
}

}  // namespace rnic::run
