/// \file
/// ByteStream: plain octets over a Stream, with bounded rings either way. For streaming sockets,
/// tools and tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/octet_ring.hpp"
#include "llp/end_word.hpp"
#include "llp/peer_half.hpp"
#include "llp/stream.hpp"
#include "tcp/ring_pool.hpp"

namespace rnic::tcp {

/// A StreamUser whose records are whatever lies in the send ring. Received octets are put in place
/// in the receive ring, in or out of order; read() takes them in order.
///
/// Each ring has one producer and one consumer, so the application may be another thread than the
/// owner of the stream: the *application side* (one thread at a time) touches only atomics and its
/// own part of the rings, and tells the owner by a doorbell to call serve(). A program with a
/// single thread calls write() and read(), which do both sides' work.
///
/// The rings come from the pool: the receive ring with the first octet received, the send ring with
/// reserve_send() or the first write(). Both are given back when the ByteStream is destroyed.
class ByteStream : public llp::StreamUser {
 public:
  /// \param pool outlives the stream; each ring is one of its blocks. Called in the owner's thread
  /// only.
  explicit ByteStream(RingPool& pool);
  /// Makes a stream with two rings of its own, of `ring_octets` each.
  explicit ByteStream(uint32_t ring_octets);
  ~ByteStream() override;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Sets the stream. Called once, before anything is written (established() comes later).
  void attach(llp::Stream& stream) { stream_ = &stream; }

  // --- Application side ---

  /// Queues octets to send. \return how many fit: none without a send ring
  uint32_t put(base::ByteView octets);
  /// Copies received octets in order without taking them. \return their number
  [[nodiscard]] uint32_t peek(base::ByteSpan out) const;
  /// Takes received octets in order. \return their number
  uint32_t take(base::ByteSpan out);
  /// take() has freed enough room that the owner should be told of it, by serve().
  [[nodiscard]] bool room_is_news() const;
  [[nodiscard]] uint32_t readable() const {
    return static_cast<uint32_t>(ordered_.load(std::memory_order_acquire) -
                                 read_.load(std::memory_order_relaxed));
  }
  [[nodiscard]] uint32_t writable() const {
    const uint64_t used = unacknowledged();
    return send_ == nullptr || used >= ring_octets() ? 0
                                                     : ring_octets() - static_cast<uint32_t>(used);
  }
  [[nodiscard]] bool has_send_ring() const { return send_ != nullptr; }
  /// The size of a ring in octets.
  [[nodiscard]] uint32_t ring_octets() const { return pool_.block_octets(); }
  /// Octets that put() took and the peer has not acknowledged.
  [[nodiscard]] uint64_t unacknowledged() const {
    return written_.load(std::memory_order_relaxed) - released_.load(std::memory_order_acquire);
  }
  /// Unread octets up to the end of the urgent data (RFC 9293 s.3.8.5); 0 if there is none.
  [[nodiscard]] uint64_t urgent() const {
    const uint64_t end = urgent_end_.load(std::memory_order_acquire);
    const uint64_t read = read_.load(std::memory_order_relaxed);
    return end > read ? end - read : 0;
  }
  [[nodiscard]] bool is_established() const { return peer_half_.is_established(); }
  /// Nothing follows what is readable() after this was seen.
  [[nodiscard]] bool peer_has_finished() const { return peer_half_.has_finished(); }
  /// Nothing follows what is readable() after this was seen.
  [[nodiscard]] std::optional<StreamEnd> how_ended() const { return end_.get(); }

  // --- Owner's side ---

  /// Takes the send ring from the pool unless there is one. False: the pool is empty.
  bool reserve_send();
  /// Tells the stream what the application has written and read since the last call.
  void serve();
  /// Takes a send ring if there is none, and calls put() and serve(). \return how many octets fit;
  /// 0 when the pool is empty
  uint32_t write(base::ByteView octets);
  /// Calls take() and serve().
  uint32_t read(base::ByteSpan out);
  /// Closes our direction behind what was written.
  void close() {
    if (stream_ != nullptr) stream_->close();
  }
  void abort() {
    if (stream_ != nullptr) stream_->abort();
  }
  /// nullptr after ended().
  [[nodiscard]] llp::Stream* stream() { return stream_; }
  /// Received octets lie behind a hole.
  [[nodiscard]] bool has_islands() const {
    return placed_end_ > ordered_.load(std::memory_order_relaxed);
  }
  /// Stream offset of the next octet to be received in order.
  [[nodiscard]] uint64_t received() const { return ordered_.load(std::memory_order_relaxed); }
  /// Stream offset behind the last octet that put() took.
  [[nodiscard]] uint64_t written() const { return written_.load(std::memory_order_relaxed); }
  /// Takes over a stream from another user, which has received octets up to `received` and sent
  /// octets up to `sent`. All octets received before have been read, all octets written before have
  /// been pulled. False: the pool has no receive ring.
  bool resume(uint64_t received, uint64_t sent);
  /// Checks the order of the cursors and that what lies between them fits the rings. The
  /// application side may go on meanwhile.
  void validate() const;
  /// The receive ring has room for the range.
  [[nodiscard]] bool fits(base::Range range) const {
    return range.end - read_.load(std::memory_order_acquire) <= ring_octets();
  }

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t) override {}
  [[nodiscard]] uint32_t receive_room() const override;
  [[nodiscard]] uint32_t pending() const override {
    return static_cast<uint32_t>(written_.load(std::memory_order_acquire) - pulled_);
  }
  [[nodiscard]] uint32_t unread() const override {
    return static_cast<uint32_t>(ordered_.load(std::memory_order_relaxed) -
                                 read_.load(std::memory_order_acquire));
  }
  void urgent(uint64_t end, base::Now) override {
    urgent_end_.store(end, std::memory_order_release);
  }
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  [[nodiscard]] base::OctetRing ring(uint8_t* memory) const { return {memory, ring_octets()}; }

  std::unique_ptr<RingPool> own_pool_;
  RingPool& pool_;
  uint8_t* send_ = nullptr;     // ring; position = stream offset modulo size
  uint8_t* receive_ = nullptr;  // the same for received octets; set before ordered_ first moves
  llp::Stream* stream_ = nullptr;
  uint64_t pulled_ = 0;      // end of what pull() gave; released_ <= pulled_ <= written_
  uint64_t placed_end_ = 0;  // end of the octets received, in order or not

  // Written by the owner, read by the application.
  alignas(64) std::atomic<uint64_t> released_{0};
  std::atomic<uint64_t> ordered_{0};  // delivery point; read_ <= ordered_
  std::atomic<uint64_t> told_{0};     // read_ when serve() last told of the room
  llp::PeerHalfWord peer_half_;
  std::atomic<uint64_t> urgent_end_{0};
  llp::EndWord end_;

  // Written by the application, read by the owner.
  alignas(64) std::atomic<uint64_t> written_{0};  // end of what put() took
  std::atomic<uint64_t> read_{0};
};

}  // namespace rnic::tcp
