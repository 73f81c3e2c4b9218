#include "rdmap/quoted_work.hpp"

#include "wire/ddp.hpp"
#include "wire/rdmap.hpp"

namespace rnic::rdmap {

namespace {

/// The headers that a Terminate may have attached (RFC 5040 s.4.8).
struct Quote {
  std::optional<wire::DdpTaggedHeader> tagged;
  std::optional<wire::DdpUntaggedHeader> untagged;
  std::optional<wire::RdmapReadRequest> request;
};

Quote quote_of(const wire::Terminate& terminate) {
  const base::ByteView header{terminate.ddp_header.data(), terminate.ddp_header_size};
  return {.tagged = wire::parse_ddp_tagged(header),
          .untagged = wire::parse_ddp_untagged(header),
          .request = terminate.has_rdma_header
                         ? wire::parse_rdmap_read_request(terminate.rdma_header)
                         : std::nullopt};
}

/// RDMAP-4.8-08, RDMAP-4.8-09: a Terminate quotes what was left to do of a Read.
bool is_rest_of(const wire::RdmapReadRequest& left, const SendSlot& read) {
  if (read.work->sges().empty()) return false;
  const Sge sink = sink_of(read);
  const uint64_t offset = left.sink_to - sink.address;
  return left.sink_stag == sink.stag && offset <= sink.length && left.size == sink.length - offset;
}

/// \return whether the header is that of a segment of this Write
bool is_of_write(const Quote& quote, const PostedSend& work) {
  const uint64_t offset = quote.tagged ? quote.tagged->to - work.remote_offset : 0;
  return quote.tagged && quote.tagged->stag == work.remote_stag &&
         (offset < work.length || (offset == 0 && work.length == 0));
}

/// \return whether the header has the queue and the MSN of this message
bool is_of_message(const Quote& quote, const SendSlot& slot, const WorkRow& row) {
  return quote.untagged->qn == row.qn && quote.untagged->msn == slot.msn;
}

/// \return whether the header is that of a message of this request
bool is_of(const Quote& quote, const SendSlot& slot) {
  if (slot.row->tagged && quote.tagged) return is_of_write(quote, slot.posted());
  const WorkRow& row = slot.message_row(slot.part);
  return !row.tagged && quote.untagged && is_of_message(quote, slot, row);
}

/// The quoted request among those that have completed.
std::optional<uint32_t> completed_work(const SendQueue& sends, const Quote& quote) {
  std::optional<uint32_t> found;
  for (uint32_t seq = sends.oldest_known(); seq != sends.report(); ++seq) {
    const SendSlot& slot = sends.at(seq);
    if (!slot.started || !is_of(quote, slot)) continue;
    if (found) return std::nullopt;
    found = seq;
  }
  return found;
}

}  // namespace

std::optional<uint32_t> quoted_work(const SendQueue& sends, const wire::Terminate& terminate) {
  const Quote quote = quote_of(terminate);
  std::optional<uint32_t> likely;
  // The loop includes the message that is being pulled.
  for (uint32_t seq = sends.report(); seq != sends.end(); ++seq) {
    const SendSlot& slot = sends.at(seq);
    if (!slot.started) continue;
    bool quoted = is_of(quote, slot);
    if (quote.request && quote.untagged && slot.row->response == Response::Read) {
      // siw puts the size where the MSN belongs (RDMAP-4.8-10), but the Read Request identifies the
      // work, too.
      const bool rest = is_rest_of(*quote.request, slot);
      quoted = quoted && rest;
      if (rest && !likely) likely = seq;
    }
    if (quoted) return seq;
  }
  return likely ? likely : completed_work(sends, quote);
}

}  // namespace rnic::rdmap
