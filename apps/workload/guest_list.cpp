#include "workload/guest_list.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace rnic::workload {

std::string host_of(const std::string& endpoint) {
  std::string address = endpoint.substr(0, endpoint.rfind(':'));
  if (address.size() < 2 || address.front() != '[') return address;
  std::array<uint8_t, 16> octets{};
  const std::string bare = address.substr(1, address.size() - 2);
  if (inet_pton(AF_INET6, bare.c_str(), octets.data()) != 1) return address;
  std::fill(octets.begin() + 8, octets.end(), uint8_t{0});  // the host's own half
  std::array<char, INET6_ADDRSTRLEN> text{};
  inet_ntop(AF_INET6, octets.data(), text.data(), text.size());
  return std::string(text.data()) + "/64";
}

void GuestList::enter(uint32_t id, const std::string& endpoint, int64_t now_ns) {
  guests_.push_back({id, host_of(endpoint), false, now_ns});
}

void GuestList::leave(uint32_t id) {
  std::erase_if(guests_, [id](const Guest& guest) { return guest.id == id; });
}

void GuestList::heard(uint32_t id, int64_t now_ns) {
  const auto guest =
      std::find_if(guests_.begin(), guests_.end(), [id](const Guest& g) { return g.id == id; });
  if (guest == guests_.end()) return;
  guest->spoke = true;
  guest->heard_ns = now_ns;
}

std::optional<uint32_t> GuestList::gives_way(const std::string& newcomer, int64_t now_ns) const {
  for (const bool spoke : {false, true}) {
    const auto may_go = [&](const Guest& guest) {
      return guest.spoke == spoke && (!spoke || now_ns - guest.heard_ns > limits_.grace_ns);
    };
    std::map<std::string, uint32_t> held{{host_of(newcomer), 1}};
    for (const Guest& guest : guests_) {
      if (may_go(guest)) ++held[guest.host];
    }
    const Guest* first = nullptr;
    for (const Guest& guest : guests_) {
      if (!may_go(guest)) continue;
      if (first == nullptr || held[guest.host] > held[first->host] ||
          (held[guest.host] == held[first->host] && guest.heard_ns < first->heard_ns)) {
        first = &guest;
      }
    }
    if (first != nullptr) return first->id;
  }
  return std::nullopt;
}

std::optional<uint32_t> GuestList::too_silent(int64_t now_ns) const {
  if (limits_.silence_ns == 0) return std::nullopt;
  for (const Guest& guest : guests_) {
    if (now_ns - guest.heard_ns > limits_.silence_ns) return guest.id;
  }
  return std::nullopt;
}

}  // namespace rnic::workload
