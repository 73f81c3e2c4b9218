#include "ddp/tagged.hpp"

namespace rnic::ddp {

Fault tagged_fault(mem::AccessFault fault) {
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

Fault check_tagged(const mem::StagTable& memory, const Identity& who,
                   const wire::DdpTaggedHeader& header, uint32_t payload,
                   const TaggedTarget& target, Pieces& out) {
  out.clear();
  if (payload == 0) return kNoFault;
  if (!target.sges.empty()) {
    return tagged_fault(
        locate(memory, who, target.sges, target.offset, payload, target.rights, out));
  }
  return tagged_fault(add_access(memory,
                                 {.stag = mem::Stag{header.stag},
                                  .to = header.to,
                                  .length = payload,
                                  .rights = target.rights,
                                  .pd = who.pd,
                                  .stream = who.stream},
                                 out));
}

}  // namespace rnic::ddp
