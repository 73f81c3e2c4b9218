// Terminate messages of any content, at every moment of a connection with work of every kind
// outstanding: their reading, what they blame, and their words for the log. Input: octets of which
// work is posted and how much of it has left, ended by 0xff; then pieces of the Terminate: one
// octet of length, the octets.

#include <array>
#include <string>
#include <vector>

#include "fuzz/input.hpp"
#include "rdmap/terminate.hpp"
#include "unit/rdmap/two_nodes.hpp"

namespace {

namespace base = rnic::base;
namespace fuzz = rnic::fuzz;
namespace llp = rnic::llp;
namespace rdmap = rnic::rdmap;
namespace wire = rnic::wire;

constexpr size_t kMostWork = 32;
constexpr uint32_t kMulpdu = 256;

/// An endpoint with work on its way, whose peer is the input.
class Blamed {
 public:
  Blamed() {
    end_.attach(node_.endpoint.framing_user());
    end_.check_rebuild = false;
    node_.endpoint.bind(end_);
    for (uint32_t i = 0; i < 4; ++i) node_.post_receive(i, i * 64, 64);
  }
  ~Blamed() {
    end_.release_all();
    node_.endpoint.framing_user().ended(rnic::StreamEnd::PeerReset, {});
    fuzz::demand(node_.guarded());
    fuzz::demand(node_.endpoint.idle());
  }

  void post(uint8_t what) {
    const auto opcode = static_cast<rnic::Opcode>(what % 10);
    if (opcode == rnic::Opcode::Receive || !node_.sends.has_room()) return;
    const uint32_t length = rnic::is_atomic(opcode) ? 8u : (what >> 4) * 100u;
    const bool none = opcode == rnic::Opcode::Immediate || opcode == rnic::Opcode::LocalInvalidate;
    rnic::SendRequest work = node_.work(++posted_, opcode, 0, none ? 0 : length);
    work.remote.stag = work.invalidate_stag = node_.all;
    node_.send(work);
  }
  void pull() { static_cast<void>(end_.pull()); }
  void release() { end_.release_up_to(++released_); }

  void terminate(base::ByteView octets, bool last, uint32_t mo) {
    std::vector<uint8_t> segment(wire::kDdpUntaggedSize);
    wire::DdpUntaggedHeader header;
    header.last = last;
    header.rsvd_ulp = 0x40 | static_cast<uint8_t>(wire::RdmapOpcode::Terminate);
    header.qn = wire::kRdmapTerminateQn;
    header.msn = 1;
    header.mo = mo;
    wire::write_ddp(segment.data(), header);
    segment.insert(segment.end(), octets.begin(), octets.end());
    const rnic::test::CutView cut{base::ByteView(segment), 7};
    auto& user = node_.endpoint.framing_user();
    if (end_.discarding) return;
    static_cast<void>(user.place_ulpdu(cut.view(), true, {}));
    const size_t head = std::min<size_t>(segment.size(), llp::kUlpduHeaderMax);
    user.deliver_ulpdu(base::ByteView(segment).first(head), static_cast<uint32_t>(segment.size()),
                       {});
  }

 private:
  rnic::test::FramingEnd end_{kMulpdu};
  rdmap::Node node_{{.qp = 9, .pd = 4}, 1};
  uint64_t posted_ = 0;
  size_t released_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, std::min<size_t>(size, 1024));
  Blamed blamed;
  for (size_t i = 0; i < kMostWork && !input.empty(); ++i) {
    const uint8_t what = input.octet();
    if (what == 0xff) break;
    if (what % 10 == static_cast<uint8_t>(rnic::Opcode::Receive)) {
      (what & 0x10) != 0 ? blamed.release() : blamed.pull();
    } else {
      blamed.post(what);
    }
  }
  for (uint32_t mo = 0; !input.empty();) {
    const base::ByteView octets = input.octets(input.octet());
    static_cast<void>(rdmap::read_terminate(octets));
    blamed.terminate(octets, input.empty(), mo);
    mo += static_cast<uint32_t>(octets.size());
  }
  return 0;
}
