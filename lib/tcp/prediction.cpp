#include "tcp/prediction.hpp"

#include "base/bytes.hpp"

namespace rnic::tcp {

namespace flag = wire::tcp_flag;

void Prediction::begin(uint16_t from_port, uint16_t to_port, base::Seq32 sequence,
                       uint32_t header_octets, uint32_t window, uint8_t shift) {
  base::OctetPattern::Octets header{};
  base::store_be16(&header[wire::kTcpSourcePortAt], from_port);
  base::store_be16(&header[wire::kTcpDestinationPortAt], to_port);
  base::store_be32(&header[wire::kTcpSequenceAt], sequence.value);
  header[wire::kTcpDataOffsetAt] = static_cast<uint8_t>(header_octets << 2);
  header[wire::kTcpFlagsAt] = flag::kAck;
  header_.set(header);
  header_octets_ = header_octets;
  const uint32_t unscaled = window >> shift;
  const bool whole = unscaled << shift == window && unscaled <= 0xffff;
  window_field_ = whole ? __builtin_bswap16(static_cast<uint16_t>(unscaled)) : UINT32_MAX;
  on_ = true;
}

}  // namespace rnic::tcp
