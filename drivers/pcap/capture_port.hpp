/// \file
/// A port that writes the frames that cross it to a capture file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fail.hpp"
#include "pcap/writer.hpp"
#include "port/port.hpp"

namespace rnic::pcap {

/// Decorates a port, which must outlive it. Checksums that are left open are completed in the
/// written copy only. Slower than the port: every frame is copied and sent on by itself.
class CapturePort final : public port::Port {
 public:
  /// A frame is in the file at most so much later: whoever ends the process loses no more.
  static constexpr base::Duration kDelay = std::chrono::milliseconds(20);

  [[nodiscard]] static Result<std::unique_ptr<CapturePort>> open(port::Port& inner,
                                                                 const std::string& path,
                                                                 const WriterOptions& options = {});

  /// Several ports may share a writer, in one thread.
  CapturePort(port::Port& inner, std::shared_ptr<Writer> writer);

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override;
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override {
    return base::earlier(inner_.next_deadline(), flush_at_);
  }
  std::optional<int> arm() override { return inner_.arm(); }
  std::optional<port::LinkState> link() override { return inner_.link(); }

  [[nodiscard]] const Writer& writer() const { return *writer_; }
  /// See Writer::flush().
  void flush() {
    writer_->flush();
    flush_at_ = base::kNever;
  }

 private:
  /// A copy as it looks on a wire, valid until the next call.
  base::ByteView wire_copy(const port::Packet& packet);
  void append(base::Now now, base::ByteView frame, Way way);

  port::Port& inner_;
  std::shared_ptr<Writer> writer_;
  std::vector<uint8_t> copy_;
  base::Now flush_at_ = base::kNever;  // kNever: the file has every frame
};

}  // namespace rnic::pcap
