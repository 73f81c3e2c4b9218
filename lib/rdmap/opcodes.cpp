#include "rdmap/opcodes.hpp"

#include "mem/stag_table.hpp"

namespace rnic::rdmap {

namespace {

using wire::kRdmapAtomicResponseQn;
using wire::kRdmapReadRequestQn;
using wire::kRdmapSendQn;
using wire::kRdmapTerminateQn;

using D = Deliveries;

}  // namespace

constexpr std::array<OpcodeRow, kOpcodes> kOpcodeRows{{
    {.name = "Write",
     .tagged = true,
     .rights = Access::RemoteWrite,
     .deliver_segment = &D::deliver_write},
    {.name = "Read Request",
     .qn = kRdmapReadRequestQn,
     .size = wire::kRdmapReadRequestSize,
     .attached = true,
     .deliver_message = &D::deliver_read_request},
    // A Response goes to the sink of our own Read: the user has granted local write with it, and
    // the peer needs no right of its own.
    {.name = "Read Response",
     .tagged = true,
     .rights = Access::LocalWrite,
     .asked = true,
     .deliver_segment = &D::deliver_read_response},
    {.name = "Send", .qn = kRdmapSendQn, .deliver_message = &D::deliver_send},
    {.name = "Send with Invalidate",
     .qn = kRdmapSendQn,
     .invalidates = true,
     .deliver_message = &D::deliver_send},
    {.name = "Send with Solicited Event",
     .qn = kRdmapSendQn,
     .solicited = true,
     .deliver_message = &D::deliver_send},
    {.name = "Send with Solicited Event and Invalidate",
     .qn = kRdmapSendQn,
     .solicited = true,
     .invalidates = true,
     .deliver_message = &D::deliver_send},
    {.name = "Terminate", .qn = kRdmapTerminateQn, .deliver_message = &D::deliver_terminate},
    {.name = "Immediate Data",
     .qn = kRdmapSendQn,
     .size = wire::kRdmapImmediateSize,
     .extension = true,
     .deliver_message = &D::deliver_immediate},
    {.name = "Immediate Data with Solicited Event",
     .qn = kRdmapSendQn,
     .size = wire::kRdmapImmediateSize,
     .solicited = true,
     .extension = true,
     .deliver_message = &D::deliver_immediate},
    {.name = "Atomic Request",
     .qn = kRdmapReadRequestQn,
     .size = wire::kRdmapAtomicRequestSize,
     .extension = true,
     .deliver_message = &D::deliver_atomic_request},
    {.name = "Atomic Response",
     .qn = kRdmapAtomicResponseQn,
     .size = wire::kRdmapAtomicResponseSize,
     .extension = true,
     .deliver_message = &D::deliver_atomic_response},
}};

}  // namespace rnic::rdmap
