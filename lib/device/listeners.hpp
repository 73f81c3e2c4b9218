/// \file
/// Listeners: what a device listens on for RDMA connections, and how many requests of each wait for
/// the application's answer.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "rnic/address.hpp"
#include "rnic/connection.hpp"

namespace rnic::device {

/// Names a listener for as long as something of it is left: it may be gone, and another one listen
/// in its place.
struct ListenerName {
  uint64_t number = 0;  ///< 0: none, for a stream that was converted
  Endpoint local;       ///< what was listened on
};

/// The worker's. Bounded by the transport, which has a limit for its listeners.
class Listeners {
 public:
  struct Listener {
    uint64_t number = 0;
    ListenOptions options;
    /// Requests without an answer. Invariant: <= the backlog, where there is one.
    uint32_t waiting = 0;
  };
  /// A listener that has its memory and not yet its place.
  using Node = std::map<Endpoint, Listener>::node_type;

  [[nodiscard]] Node make(const ListenOptions& options) {
    std::map<Endpoint, Listener> one;
    one.emplace(Endpoint{}, Listener{++made_, options});
    return one.extract(one.begin());
  }
  /// Needs no memory. \param local where nothing is listened on
  void add(Node node, const Endpoint& local) {
    node.key() = local;
    const bool added = all_.insert(std::move(node)).inserted;
    RNIC_CHECK(added);
  }
  void remove(const Endpoint& local) { all_.erase(local); }

  /// The listener that a connection to `local` comes to, in the order of the transport: that of
  /// this very address comes before one of all addresses. nullptr: it was removed meanwhile.
  [[nodiscard]] const Listener* find(const Endpoint& local, ListenerName& name) const {
    for (const Endpoint& own : {local, Endpoint{{}, local.port}}) {
      const auto found = all_.find(own);
      if (found == all_.end()) continue;
      name = {found->second.number, own};
      return &found->second;
    }
    return nullptr;
  }

  // What of these concerns a listener that is gone, or none, changes nothing.

  /// nullptr: it was removed meanwhile, or there was none.
  [[nodiscard]] const Listener* get(const ListenerName& name) const {
    const auto found = all_.find(name.local);
    const bool is_it = found != all_.end() && found->second.number == name.number;
    return is_it ? &found->second : nullptr;
  }
  /// One more request waits. False: its backlog is full, and nothing has changed.
  [[nodiscard]] bool enter(const ListenerName& name) {
    Listener* listener = own(name);
    if (listener == nullptr) return true;
    if (listener->waiting >= listener->options.backlog.value_or(UINT32_MAX)) return false;
    ++listener->waiting;
    return true;
  }
  /// The request was answered, or is gone.
  void leave(const ListenerName& name) {
    if (Listener* listener = own(name); listener != nullptr) --listener->waiting;
  }
  /// Checks what each has waiting. \param count gives the requests of a listener by its number
  template <typename F>
  void validate(F&& count) const {
    for (const auto& each : all_) {
      RNIC_CHECK(each.second.waiting == count(each.second.number));
    }
  }

 private:
  [[nodiscard]] Listener* own(const ListenerName& name) {
    return get(name) == nullptr ? nullptr : &all_.find(name.local)->second;
  }

  std::map<Endpoint, Listener> all_;
  uint64_t made_ = 0;
};

}  // namespace rnic::device
