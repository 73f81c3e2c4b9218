#include "tuf/pack_store.hpp"

#include "tuf/tuf.hpp"

namespace rnic::tuf {

PackStorePtr make_pack_store(uint32_t ulpdus) { return PackStorePtr(new PackStore(ulpdus)); }
uint64_t pack_store_octets(uint32_t ulpdus) { return PackStore::octets_for(ulpdus); }
void PackStoreDeleter::operator()(PackStore* store) const { delete store; }
uint32_t packed_ulpdus(const PackStore& store) { return store.used(); }
void validate(const PackStore& store) { store.validate(); }

}  // namespace rnic::tuf
