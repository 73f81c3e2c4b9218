#include "tcp/isn.hpp"

namespace rnic::tcp {

uint64_t keyed_hash(const Secret& secret, std::span<const uint64_t> words) {
  base::SipHash hash(secret);
  for (const uint64_t word : words) hash.add(word);
  return hash.finish();
}

uint64_t keyed_hash(const Secret& secret, const Endpoint& local, const Endpoint& remote) {
  const std::array<uint64_t, 5> words{local.address.high(), local.address.low(),
                                      remote.address.high(), remote.address.low(),
                                      uint64_t{local.port} << 16 | remote.port};
  return keyed_hash(secret, words);
}

}  // namespace rnic::tcp
