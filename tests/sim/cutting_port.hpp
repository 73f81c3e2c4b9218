/// \file
/// A port decorator behind which senders cut FPDUs: Linux siw, and a machine on the path that joins
/// segments and cuts them anew (GRO and TSO).
#pragma once

#include <cstdint>
#include <vector>

#include "offload/offload.hpp"
#include "port/port.hpp"

namespace rnic::simulation {

enum class Cutter : uint8_t {
  None,
  Siw,  ///< Read Responses: header, payload by pages of memory, CRC, a segment each
  Gro,  ///< what is sent together is joined, and cut where a segment is full
};

class CuttingPort final : public port::Port {
 public:
  CuttingPort(port::Port& inner, Cutter cutter) : inner_(inner), cutter_(cutter) {}

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override {
    return base::earlier(inner_.next_deadline(), joined_.empty() ? base::kNever : flush_at_);
  }
  /// Segments that were sent in another shape than they came.
  [[nodiscard]] uint64_t cuts() const { return cuts_; }

 private:
  void cut_as_siw(const port::Packet& packet, const offload::TcpLayout& at, base::Now now);
  void join(const port::Packet& packet, const offload::TcpLayout& at, base::Now now);
  [[nodiscard]] bool continues(const port::Packet& packet, const offload::TcpLayout& at) const;
  void flush(base::Now now);
  void send(base::ByteView header, const offload::TcpLayout& at, uint32_t sequence,
            base::ByteView payload, bool last, base::Now now);

  port::Port& inner_;
  Cutter cutter_;
  // What is joined: payload of one connection, and the headers of its last segment.
  std::vector<uint8_t> joined_;
  std::vector<uint8_t> header_;
  offload::TcpLayout layout_;
  uint32_t sequence_ = 0;  // of joined_'s first octet
  base::Now flush_at_{};
  uint64_t cuts_ = 0;
};

}  // namespace rnic::simulation
