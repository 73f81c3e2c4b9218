/// \file
/// Listeners: what a device listens on for RDMA connections, and how many requests of each wait for
/// the application's answer.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "llp/transport.hpp"
#include "rnic/address.hpp"
#include "rnic/connection.hpp"

namespace rnic::device {

/// Names a listener, even after its removal: its requests outlive it, and another listener may have
/// taken its endpoint meanwhile.
struct ListenerName {
  uint64_t number = 0;    ///< 0: none, for a stream that was converted
  Endpoint local;         ///< what was listened on
  uint32_t consumer = 0;  ///< the one that listens, or for none the application
};

/// Belongs to the worker. The transport bounds the table, because it limits its own listeners.
class Listeners {
 public:
  struct Listener {
    uint64_t number = 0;
    ListenOptions options;
    uint32_t consumer = 0;  ///< its number
    /// Requests without an answer. Invariant: <= the backlog if there is one.
    uint32_t waiting = 0;
  };
  /// A listener whose memory is allocated and that is not in the table yet.
  using Node = std::map<Endpoint, Listener>::node_type;

  [[nodiscard]] Node make(const ListenOptions& options, uint32_t consumer) {
    std::map<Endpoint, Listener> one;
    one.emplace(Endpoint{}, Listener{++made_, options, consumer});
    return one.extract(one.begin());
  }
  /// Puts a listener into the table; needs no memory. \param local has no listener yet
  void add(Node node, const Endpoint& local) {
    node.key() = local;
    const bool added = all_.insert(std::move(node)).inserted;
    RNIC_CHECK(added);
  }
  void remove(const Endpoint& local) { all_.erase(local); }

  /// The listener of a connection to `local`, found in the transport's order: a listener on exactly
  /// this address comes before one on all addresses. nullptr: it was removed meanwhile.
  [[nodiscard]] const Listener* find(const Endpoint& local, ListenerName& name) const {
    for (const Endpoint& own : {local, Endpoint{{}, local.port}}) {
      const auto found = all_.find(own);
      if (found == all_.end()) continue;
      name = {found->second.number, own, found->second.consumer};
      return &found->second;
    }
    return nullptr;
  }

  /// The listener on exactly `local`; nullptr: there is none.
  [[nodiscard]] const Listener* at(const Endpoint& local) const {
    const auto found = all_.find(local);
    return found == all_.end() ? nullptr : &found->second;
  }

  /// A listener that has the port of `local` at one of its addresses; nullptr: there is none.
  [[nodiscard]] const Listener* overlapping(const Endpoint& local) const {
    for (const auto& each : all_) {
      if (llp::overlap(each.first, local)) return &each.second;
    }
    return nullptr;
  }

  // enter() and leave() change nothing for a listener that was removed, or for the name of none.

  /// nullptr: the listener was removed meanwhile, or the name is that of none.
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
  /// A request was answered, or has gone.
  void leave(const ListenerName& name) {
    if (Listener* listener = own(name); listener != nullptr) --listener->waiting;
  }
  /// Calls `f(listener)` for each.
  template <typename F>
  void for_each(F&& f) const {
    for (const auto& each : all_) f(each.second);
  }
  /// Checks how many requests wait at each listener. \param count gives the number of requests of
  /// the listener with a given number
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
