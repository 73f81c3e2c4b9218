/// \file
/// ShownNumbers: the queue pairs of the RoCE face as completions name them.
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "rnic-run/of_process.hpp"
#include "rnic-run/receipts.hpp"

namespace rnic::run {

/// A queue pair of the RoCE face as a poll sees it.
struct ShownPair {
  explicit ShownPair(uint32_t qpn) : number(qpn) {}

  const uint32_t number;  ///< the one that the program and its peer know
  /// The program knows that the queue pair is in error: it has said so, or a request has failed.
  std::atomic<bool> failed{false};
  std::unique_ptr<Receipts> receipts;  ///< nullptr: the device's completions say as much
};

/// The device gives a queue pair another number for each attempt at a connection; the program and
/// its peer know it by one. All calls may be made by any thread.
class ShownNumbers {
 public:
  static ShownNumbers& all() { return OfProcess<ShownNumbers>::get(); }

  /// \param device_number stands for the pair until remove()
  void add(uint32_t device_number, std::shared_ptr<ShownPair> pair) {
    const std::unique_lock lock(mutex_);
    pairs_.insert_or_assign(device_number, std::move(pair));
  }
  void remove(uint32_t device_number) {
    const std::unique_lock lock(mutex_);
    pairs_.erase(device_number);
  }
  /// \return nullptr: it is none of them, or is gone
  [[nodiscard]] std::shared_ptr<ShownPair> find(uint32_t device_number) const {
    const std::shared_lock lock(mutex_);
    const auto found = pairs_.find(device_number);
    return found == pairs_.end() ? nullptr : found->second;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint32_t, std::shared_ptr<ShownPair>> pairs_;  // guarded by mutex_
};

}  // namespace rnic::run
