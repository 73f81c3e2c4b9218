#include "rdmap/terminate.hpp"

#include <algorithm>
#include <cstdio>

#include "base/starved.hpp"

namespace rnic::rdmap {

namespace {

using BitOrder = wire::TerminateBitOrder;
using wire::Terminate;

constexpr uint8_t kLlp = static_cast<uint8_t>(FaultLayer::Llp);

bool possible(const Terminate& t) {
  return code_name({static_cast<FaultLayer>(t.layer), t.type, t.code}) != nullptr;
}

/// RFC 5040 figure 10: every error has headers, except local catastrophic ones and those of the
/// LLP. \return whether `t` has the headers that it should have
bool has_due_headers(const Terminate& t) {
  const bool due = t.layer != kLlp && t.type != 0;
  return due == (t.ddp_header_size != 0);
}

/// A rank of how well a reading fits; 0: it is impossible.
int fit(const std::optional<Terminate>& t) {
  if (!t || !possible(*t)) return 0;
  return 1 + (t->exact ? 2 : 0) + (has_due_headers(*t) ? 1 : 0);
}

std::string reading(uint8_t layer, uint8_t type, uint8_t code) {
  return "layer " + std::to_string(layer) + ", type " + std::to_string(type) + ", code " +
         std::to_string(code);
}

Fault fault_of(const Terminate& t) {
  return {static_cast<FaultLayer>(std::min<uint8_t>(t.layer, kLlp)), t.type, t.code,
          "RDMAP-5.4-02"};
}

}  // namespace

std::string hex(base::ByteView octets) {
  std::string text;
  text.reserve(octets.size() * 3);
  for (const uint8_t octet : octets) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", octet);
    if (!text.empty()) text += ' ';
    text += two;
  }
  return text;
}

Terminate terminate_for(const Fault& fault, const ddp::SegmentReport& segment,
                        base::ByteView rdma_header) {
  Terminate t;
  t.layer = static_cast<uint8_t>(fault.layer);
  t.type = fault.type;
  t.code = fault.code;
  // RFC 5040 figure 10 and s.4.8: local catastrophic and LLP errors carry no headers.
  const bool bare = fault.layer == FaultLayer::Llp || fault.type == 0;
  if (bare || segment.header_size == 0) return t;
  t.length_valid = true;
  t.segment_length = static_cast<uint16_t>(std::min<uint32_t>(segment.length, UINT16_MAX));
  t.ddp_header_size = segment.header_size;
  t.ddp_header = segment.header;
  // RDMAP-4.8-07: R only for protection errors of Read Requests.
  if (fault.layer == FaultLayer::Rdmap && fault.type == 1 &&
      rdma_header.size() == t.rdma_header.size()) {
    t.has_rdma_header = true;
    std::ranges::copy(rdma_header, t.rdma_header.begin());
  }
  return t;
}

/// The reading in words. \param siw_fits the other reading is possible, too
std::string wording(const Fault& fault, base::ByteView octets, bool as_siw, bool siw_fits) {
  std::string text = "Terminate received: " + describe(fault);
  const uint8_t high = octets[0] >> 4;
  const uint8_t low = octets[0] & 0x0f;
  if (as_siw) {
    text += " (read in siw's order of bits; in RFC 5040's order: " + reading(high, low, octets[1]) +
            ")";
  } else if (siw_fits && high != low) {
    text += " (in siw's order of bits: " + reading(low, high, octets[1]) + ")";
  }
  return text + "; header " + hex(octets);
}

std::optional<ReceivedTerminate> read_terminate(base::ByteView octets) {
  const auto rfc = wire::parse_terminate(octets, BitOrder::Rfc);
  const auto siw = wire::parse_terminate(octets, BitOrder::Siw);
  if (fit(rfc) == 0 && fit(siw) == 0) return std::nullopt;
  const bool take_siw = fit(siw) > fit(rfc);
  ReceivedTerminate received;
  received.order = take_siw ? BitOrder::Siw : BitOrder::Rfc;
  received.header = take_siw ? *siw : *rfc;
  received.fault = fault_of(received.header);
  received.detail =
      base::worded([&] { return wording(received.fault, octets, take_siw, fit(siw) != 0); });
  return received;
}

}  // namespace rnic::rdmap
