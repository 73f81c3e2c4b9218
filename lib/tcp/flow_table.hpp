/// \file
/// 4-tuple -> connection: hashed with a secret, bounded, chained through the connections' slots.
#pragma once

#include <bit>
#include <cstdint>

#include "base/bucket_heads.hpp"
#include "base/check.hpp"
#include "base/zero_array.hpp"
#include "rnic/address.hpp"
#include "tcp/isn.hpp"

namespace rnic::tcp {

/// Maps (local, remote) to a slot number below `capacity`. No allocation after construction. The
/// endpoints stand where the slots are, and nowhere else: who finds a slot is going to use what is
/// there, and waits for no other memory. So several calls are given `flow_of(slot)`, the Flow of a
/// slot that was inserted.
class FlowTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Flow {
    Endpoint local;
    Endpoint remote;
  };

  FlowTable(uint32_t capacity, const Secret& secret)
      : next_(capacity), buckets_(buckets_for(capacity)), secret_(secret) {}

  /// The memory that a table of this capacity takes.
  [[nodiscard]] static uint64_t octets_for(uint32_t capacity) {
    return base::ZeroArray<uint32_t>::octets_for(capacity) +
           base::ZeroArray<uint32_t>::octets_for(buckets_for(capacity));
  }

  /// Hashes a 4-tuple by a keyed multiply-fold. Without the key an attacker cannot choose endpoints
  /// that share a bucket.
  [[nodiscard]] static size_t hash(const Secret& secret, const Endpoint& local,
                                   const Endpoint& remote) {
    const uint64_t key = secret[0] ^ (secret[1] << 1 | 1);
    const uint64_t ports = uint64_t{local.port} << 16 | remote.port;
    const uint64_t folded =
        fold(remote.address.low() ^ key, (ports << 32) ^ local.address.low() ^ ~key) ^
        fold(remote.address.high() ^ std::rotl(key, 23), local.address.high() ^ ports ^ key);
    return folded ^ folded >> 29;
  }

  template <typename FlowOf>
  [[nodiscard]] uint32_t find(const Endpoint& local, const Endpoint& remote,
                              FlowOf&& flow_of) const {
    for (uint32_t i = buckets_[bucket(local, remote)]; i != 0; i = next_[i - 1]) {
      const Flow flow = flow_of(i - 1);
      if (flow.local == local && flow.remote == remote) return i - 1;
    }
    return kNone;
  }

  void insert(uint32_t slot, const Endpoint& local, const Endpoint& remote) {
    uint32_t& head = buckets_[bucket(local, remote)];
    next_[slot] = head;
    head = slot + 1;
  }

  /// \param local and `remote`: what the slot was inserted with
  void erase(uint32_t slot, const Endpoint& local, const Endpoint& remote) {
    uint32_t* link = &buckets_[bucket(local, remote)];
    while (*link != slot + 1) link = &next_[*link - 1];
    *link = next_[slot];
  }

  /// Checks that the chains hold `slots` entries, each in its bucket and under endpoints of its
  /// own.
  template <typename FlowOf>
  void validate(uint32_t slots, FlowOf&& flow_of) const {
    uint32_t found = 0;
    base::for_each_busy_bucket(buckets_, 0, [&](size_t b) {
      for (uint32_t i = buckets_[b]; i != 0; i = next_[i - 1]) {
        RNIC_CHECK(++found <= slots);
        const Flow flow = flow_of(i - 1);
        RNIC_CHECK(bucket(flow.local, flow.remote) == b);
        RNIC_CHECK(find(flow.local, flow.remote, flow_of) == i - 1);
      }
    });
    RNIC_CHECK(found == slots);
  }

 private:
  [[nodiscard]] static uint64_t fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }

  [[nodiscard]] static uint32_t buckets_for(uint32_t capacity) {
    return std::bit_ceil(capacity * 2 + 1);
  }

  [[nodiscard]] size_t bucket(const Endpoint& local, const Endpoint& remote) const {
    return hash(secret_, local, remote) & (buckets_.size() - 1);
  }

  // A link of a chain is a slot number plus 1; 0 ends the chain.
  base::ZeroArray<uint32_t> next_;
  base::ZeroArray<uint32_t> buckets_;
  Secret secret_;
};

}  // namespace rnic::tcp
