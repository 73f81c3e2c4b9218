/// \file
/// ByteStream: plain octets over a Stream, with bounded rings either way. For tools, tests and
/// start-up.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "llp/stream.hpp"

namespace rnic::tcp {

/// A StreamUser whose records are whatever lies in the send ring. Received octets are put in place
/// in the receive ring, in or out of order; read() takes them in order. All memory is taken at
/// construction.
class ByteStream : public llp::StreamUser {
 public:
  ByteStream(uint32_t send_octets, uint32_t receive_octets);

  /// Names the stream; once, before anything is written (established() comes later).
  void attach(llp::Stream& stream) { stream_ = &stream; }

  /// Queues octets to send. \return how many fit.
  uint32_t write(base::ByteView octets);
  /// Takes received octets in order. \return how many.
  uint32_t read(base::ByteSpan out);
  [[nodiscard]] uint32_t readable() const { return static_cast<uint32_t>(ordered_ - read_); }
  [[nodiscard]] uint32_t writable() const {
    return static_cast<uint32_t>(send_.size() - (written_ - released_));
  }
  /// Half close behind what was written.
  void close() {
    if (stream_ != nullptr) stream_->close();
  }
  void abort() {
    if (stream_ != nullptr) stream_->abort();
  }

  [[nodiscard]] bool is_established() const { return established_; }
  [[nodiscard]] bool peer_has_finished() const { return peer_finished_; }
  [[nodiscard]] std::optional<llp::StreamEnd> how_ended() const { return ended_; }
  /// nullptr once ended.
  [[nodiscard]] llp::Stream* stream() { return stream_; }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override;
  void peer_finished(base::Now now) override;
  void ended(llp::StreamEnd how, base::Now now) override;

 private:
  std::vector<uint8_t> send_;     // ring; position = stream offset modulo size
  std::vector<uint8_t> receive_;  // ring likewise
  llp::Stream* stream_ = nullptr;
  uint64_t written_ = 0;  // end of what write() took
  uint64_t pulled_ = 0;   // end of what pull() gave; released_ <= pulled_ <= written_
  uint64_t released_ = 0;
  uint64_t ordered_ = 0;  // delivery point; read_ <= ordered_
  uint64_t read_ = 0;
  bool established_ = false;
  bool peer_finished_ = false;
  std::optional<llp::StreamEnd> ended_;
};

}  // namespace rnic::tcp
