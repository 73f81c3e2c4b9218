/// \file
/// Protection domains, regions and memory windows of the program.
#pragma once

#include "rnic-run/abi.hpp"
#include "rnic-run/adapter.hpp"

namespace rnic::run {

/// The rights of ibv_access_flags.
AccessSet rights(unsigned access);
/// The rights that a window gives, to peers alone: this side has those of the region anyway, and
/// IBV_ACCESS_LOCAL_WRITE says nothing there.
AccessSet rights_of_window(unsigned access);

/// A protection domain: what libibverbs knows of it stands first.
struct Domain {
  ibv_pd shown{};
  ProtectionDomain domain;

  static Domain& of(ibv_pd* pd) { return *reinterpret_cast<Domain*>(pd); }
  static ibv_pd* alloc(ibv_context*);
  static int dealloc(ibv_pd*);
};

/// A region: what libibverbs knows of it stands first.
struct Region {
  abi::Region shown{};
  MemoryRegion region;

  static Region& of(ibv_mr* mr) { return *reinterpret_cast<Region*>(mr); }
  static ibv_mr* make(ibv_pd*, void* memory, size_t length, uint64_t offset, int access);
  static int change(abi::Region*, int flags, ibv_pd*, void* memory, size_t length, int access);
  static int deregister(abi::Region*);
};

/// A memory window of either type: what libibverbs knows of it stands first.
struct Window {
  ibv_mw shown{};
  MemoryWindow window;

  static Window& of(ibv_mw* mw) { return *reinterpret_cast<Window*>(mw); }
  static ibv_mw* alloc(ibv_pd*, ibv_mw_type);
  static int dealloc(ibv_mw*);
  /// Binds a window of type 1 at once, before what is posted already. The completion that the
  /// program may wait for comes behind those that are there.
  static int bind(ibv_qp*, ibv_mw*, ibv_mw_bind*);
};

}  // namespace rnic::run
