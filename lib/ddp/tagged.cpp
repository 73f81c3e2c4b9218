#include "ddp/tagged.hpp"

namespace rnic::ddp {

[[gnu::noinline, gnu::cold]] Fault tagged_fault(mem::AccessFault fault) {
  switch (fault) {
    case mem::AccessFault::None: return kNoFault;
    case mem::AccessFault::InvalidStag: return kTaggedInvalidStag;
    case mem::AccessFault::NotAssociated: return kTaggedNotAssociated;
    case mem::AccessFault::Rights: return {FaultLayer::Rdmap, 0x1, 0x02, "DDP-7.2-02"};
    case mem::AccessFault::Wrap: return kTaggedWrap;
    case mem::AccessFault::Bounds: return kTaggedBounds;
  }
  return kCatastrophic;
}

}  // namespace rnic::ddp
