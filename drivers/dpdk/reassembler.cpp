#include "dpdk/reassembler.hpp"

#include <rte_ip.h>
#include <rte_ip_frag.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>
#include <vector>

#include "dpdk/eal.hpp"
#include "dpdk/mbuf_pool.hpp"

namespace rnic::dpdk {
namespace {

static_assert(net::Reassembler::kMaxFragments <= RTE_LIBRTE_IP_FRAG_MAX_FRAG);

constexpr uint32_t kBucketEntries = 16;
constexpr uint16_t kMoreFragments = RTE_IPV4_HDR_MF_FLAG;

struct TableDeleter {
  void operator()(rte_ip_frag_tbl* table) const { rte_ip_frag_table_destroy(table); }
};
using FragmentTable = std::unique_ptr<rte_ip_frag_tbl, TableDeleter>;

/// librte_ip_frag knows a datagram by addresses and identification. The caller has decided already
/// which fragments belong together, so the library is given a plain IPv4 header that carries the
/// datagram's number, for both IP versions. Its time is base::Now in nanoseconds instead of the
/// TSC.
class IpFragReassembler final : public net::Reassembler {
 public:
  IpFragReassembler(MbufPool pool, FragmentTable table)
      : pool_(std::move(pool)), table_(std::move(table)) {
    whole_.resize(kMaxOctets);
  }
  ~IpFragReassembler() override {
    table_.reset();  // its mbufs before their pool
    rte_ip_frag_free_death_row(&dead_, 0);
  }

  Result add(uint32_t datagram, uint32_t offset, bool more, base::ByteView octets,
             base::Now now) override {
    if (octets.size() > kMaxOctets || offset > kMaxOctets - octets.size()) {
      forget(datagram, now);
      return {};
    }
    rte_mbuf* mbuf = make(datagram, offset, more, octets);
    if (mbuf == nullptr) {
      forget(datagram, now);
      return {};
    }
    rte_mbuf* all = reassemble(mbuf, now);
    if (all == nullptr) return {Outcome::Kept, {}};
    const uint32_t length = all->pkt_len - sizeof(rte_ipv4_hdr);
    const auto* at = static_cast<const uint8_t*>(
        rte_pktmbuf_read(all, sizeof(rte_ipv4_hdr), length, whole_.data()));
    if (at != whole_.data()) std::copy_n(at, length, whole_.data());
    rte_pktmbuf_free(all);
    return {Outcome::Complete, {whole_.data(), length}};
  }

  // The library has no call to remove one datagram, but a last fragment that comes a second time is
  // an error that removes it.
  void forget(uint32_t datagram, base::Now now) override {
    constexpr uint8_t kOctets[8] = {};
    bool removed = false;
    for (int tries = 0; tries < 2 && !removed; ++tries) {
      rte_mbuf* mbuf = make(datagram, kFarOffset, false, kOctets);
      if (mbuf == nullptr) return;  // the table gives it up when its time is over
      if (rte_mbuf* all = reassemble(mbuf, now, &removed); all != nullptr) rte_pktmbuf_free(all);
    }
  }

 private:
  static constexpr uint32_t kFarOffset = kMaxOctets / 8 * 8 - 8;

  rte_mbuf* make(uint32_t datagram, uint32_t offset, bool more, base::ByteView octets) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_.get());
    if (mbuf == nullptr) return nullptr;
    const auto total = static_cast<uint32_t>(sizeof(rte_ipv4_hdr) + octets.size());
    if (rte_pktmbuf_tailroom(mbuf) < total) {
      rte_pktmbuf_free(mbuf);
      return nullptr;
    }
    auto* at = reinterpret_cast<uint8_t*>(rte_pktmbuf_append(mbuf, static_cast<uint16_t>(total)));
    mbuf->l2_len = 0;
    mbuf->l3_len = sizeof(rte_ipv4_hdr);
    rte_ipv4_hdr header{};
    header.version_ihl = RTE_IPV4_VHL_DEF;
    header.total_length = rte_cpu_to_be_16(static_cast<uint16_t>(total));
    header.packet_id = static_cast<uint16_t>(datagram);
    header.src_addr = datagram;
    header.dst_addr = 1;  // a key of zeros means an empty place
    header.fragment_offset =
        rte_cpu_to_be_16(static_cast<uint16_t>(offset / 8 | (more ? kMoreFragments : uint16_t{0})));
    rte_memcpy(at, &header, sizeof header);
    rte_memcpy(at + sizeof header, octets.data(), octets.size());
    return mbuf;
  }

  /// Adds a fragment. \param removed if not nullptr, gets whether a datagram was thrown out
  rte_mbuf* reassemble(rte_mbuf* mbuf, base::Now now, bool* removed = nullptr) {
    const auto time = static_cast<uint64_t>(now.time_since_epoch().count());
    auto* header = rte_pktmbuf_mtod(mbuf, rte_ipv4_hdr*);
    rte_mbuf* all = rte_ipv4_frag_reassemble_packet(table_.get(), &dead_, mbuf, time, header);
    if (removed != nullptr) *removed = dead_.cnt != 0;
    rte_ip_frag_free_death_row(&dead_, 0);
    return all;
  }

  MbufPool pool_;
  FragmentTable table_;
  rte_ip_frag_death_row dead_{};
  std::vector<uint8_t> whole_;
};

}  // namespace

Result<std::unique_ptr<net::Reassembler>> make_reassembler(const ReassemblerOptions& options) {
  if (!Eal::started()) {
    return base::fail(ErrorCode::WrongState, "DPDK is not started: call dpdk::Eal::init() first");
  }
  if (options.datagrams < 1 || options.datagrams > 1024) {
    return base::fail(ErrorCode::InvalidArgument,
                      std::to_string(options.datagrams) + " datagrams: 1 to 1024");
  }
  // The extra buffers are for fragments that are under way for a moment, also those of forget().
  const uint32_t buffers = options.datagrams * net::Reassembler::kMaxFragments + 8;
  auto pool = make_pool(buffers, options.mtu + static_cast<uint32_t>(sizeof(rte_ipv4_hdr)));
  if (!pool) return tl::unexpected(pool.error());
  // The caller gives up the oldest datagram in time. The table must not be full before that,
  // however its hash distributes the datagrams.
  const uint32_t entries = std::bit_ceil(options.datagrams + 1);
  const uint32_t buckets = std::max(entries / 4, 1u);
  FragmentTable table(rte_ip_frag_table_create(buckets, kBucketEntries, entries,
                                               static_cast<uint64_t>(options.timeout.count()),
                                               SOCKET_ID_ANY));
  if (table == nullptr) {
    return base::fail(ErrorCode::ResourceExhausted, "no memory for a table of " +
                                                        std::to_string(options.datagrams) +
                                                        " fragmented datagrams: " + memory_left());
  }
  return std::make_unique<IpFragReassembler>(std::move(*pool), std::move(table));
}

}  // namespace rnic::dpdk
