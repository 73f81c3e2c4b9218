// A libibverbs of one version, as far as its provider sees it while a device is opened: what tells
// the version, and the functions that the provider calls. The build says which version.

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "rnic-run/abi.hpp"

namespace abi = rnic::run::abi;

namespace {

const abi::DeviceOps* provider = nullptr;
size_t context_size = 0;
const abi::Slot* operations = nullptr;

}  // namespace

extern "C" {

void take_provider(const abi::DeviceOps*) __asm__(RNIC_REGISTER_DRIVER);
void for_programs() __asm__(RNIC_FOR_PROGRAMS);

void take_provider(const abi::DeviceOps* ops) { provider = ops; }
void for_programs() {}

void* _verbs_init_and_alloc_context(ibv_device*, int, size_t size, void*, uint32_t) {
  context_size = size;
  return calloc(1, size);
}
void verbs_set_ops(void*, const void* ops) { operations = static_cast<const abi::Slot*>(ops); }
void verbs_uninit_context(void*) {}

/// Opens the provider's device.
/// \return the octets that it asked for its verbs_context, 0: there is no provider, or no device
size_t stub_open() {
  if (provider == nullptr) return 0;
  ibv_device device{};
  return provider->alloc_context(&device, -1, nullptr) == nullptr ? 0 : context_size;
}

/// Precondition: the device was opened. \return whether the provider has an operation there
int stub_has(size_t slot) { return operations[slot] != nullptr ? 1 : 0; }
}
