// What answers in DPDK's place where it is not linked: a build without it, and the plugin of
// rnic-run, which brings none of its libraries into a program.

#include "dpdk/eal.hpp"
#include "dpdk/ethdev.hpp"
#include "dpdk/reassembler.hpp"
#include "dpdk/tsc_clock.hpp"

namespace rnic::dpdk {

namespace {

tl::unexpected<Error> absent() {
  return base::fail(ErrorCode::Unsupported,
                    "there is no DPDK in this build, and the port needs it: take \"socket\" or a "
                    "local wire (\"local:/tmp/wire\"), or build with -Ddpdk=enabled");
}

}  // namespace

Status Eal::init(const EalConfig&) { return absent(); }
Status Eal::check_process() { return absent(); }
bool Eal::started() { return false; }
uint64_t Eal::ordinary_memory(const EalConfig&) { return 0; }
bool Eal::on_hugepages() { return false; }
const std::string& Eal::description() {
  static const std::string none = "no DPDK";
  return none;
}
void Eal::cleanup() {}
Status Eal::register_thread() noexcept { return {}; }
void Eal::unregister_thread() {}

uint64_t TscClock::hertz() { return 0; }
Result<TscClock> TscClock::create() { return absent(); }

Result<PortPair> open_ring_pair(std::string_view, std::string_view, const RingPairOptions&) {
  return absent();
}

Result<std::unique_ptr<port::Port>> open_port(std::string_view, const PortOptions&) {
  return absent();
}

Result<std::vector<std::unique_ptr<port::Port>>> open_queues(std::string_view, uint16_t,
                                                             const PortOptions&) {
  return absent();
}

Result<std::unique_ptr<net::Reassembler>> make_reassembler(const ReassemblerOptions&) {
  return absent();
}

}  // namespace rnic::dpdk
