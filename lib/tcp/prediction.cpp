#include "tcp/prediction.hpp"

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

namespace {

base::OctetPattern::Octets first_octets(uint16_t from_port, uint16_t to_port, base::Seq32 sequence,
                                        uint32_t header_octets) {
  base::OctetPattern::Octets header{};
  base::store_be16(&header[wire::kTcpSourcePortAt], from_port);
  base::store_be16(&header[wire::kTcpDestinationPortAt], to_port);
  base::store_be32(&header[wire::kTcpSequenceAt], sequence.value);
  header[wire::kTcpDataOffsetAt] = static_cast<uint8_t>(header_octets << 2);
  header[wire::kTcpFlagsAt] = flag::kAck;
  return header;
}

}  // namespace

void Prediction::begin(uint16_t from_port, uint16_t to_port, base::Seq32 sequence,
                       uint32_t header_octets, uint32_t window, uint8_t shift) {
  header_.set(first_octets(from_port, to_port, sequence, header_octets));
  header_octets_ = header_octets;
  const uint32_t unscaled = window >> shift;
  const bool whole = unscaled << shift == window && unscaled <= 0xffff;
  window_field_ = whole ? __builtin_bswap16(static_cast<uint16_t>(unscaled)) : UINT32_MAX;
  on_ = beside_ = true;
}

void Prediction::validate(uint16_t from_port, uint16_t to_port, base::Seq32 sequence,
                          uint32_t header_octets, uint32_t window, uint8_t shift) const {
  const auto header = first_octets(from_port, to_port, sequence, header_octets);
  RNIC_CHECK(base::OctetPattern::all(compare(header.data())) == on_);
  RNIC_CHECK(beside_ || !on_);
  if (!beside_) return;
  RNIC_CHECK(header_octets_ == header_octets);
  const bool known = window_field_ <= UINT16_MAX;
  const uint32_t unscaled = __builtin_bswap16(static_cast<uint16_t>(window_field_));
  RNIC_CHECK(!known || unscaled << shift == window);
}

}  // namespace rnic::tcp
