/// \file
/// StreamSwitch: lets a stream change its user, as when a streaming connection becomes an RDMA
/// connection, or when MPA leaves a connection by a reject (RFC 5044 s.7.1.2 to s.7.1.5).
#pragma once

#include <array>
#include <cstdint>

#include "base/check.hpp"
#include "llp/stream.hpp"

namespace rnic::llp {

/// The user of a stream on behalf of several users, each of which has a part of the octets of
/// either direction. A record is pulled from, rebuilt by and released to the user in whose part its
/// octets are. Received octets go to the latest user. A user knows nothing of the others.
///
/// All calls are made in the thread of the stream. Users are called until the stream has ended.
class StreamSwitch final : public StreamUser {
 public:
  static constexpr uint32_t kMaxUsers = 3;  ///< streaming, MPA, and streaming again

  /// Takes the stream over from `first`, its user until now, which stays the first user. Must not
  /// be called within a call of the stream. \param pulled stream offset behind the octets that
  /// `first` has sent
  void begin(Stream& stream, StreamUser& first, uint64_t pulled);
  /// `next` sends from stream offset `sent_from` on and receives from `received_from` on; octets
  /// that the user before it still has to send go out first. A call of the stream to the user
  /// before it may be under way: the rest of the octets of that call then go to `next`.
  void push(StreamUser& next, uint64_t sent_from, uint64_t received_from, base::Now now);
  /// Passes the latest user octets of its part that were committed before it became the user. It
  /// inspects them like any others. The peer will not send them again, so the stream is aborted if
  /// the user does not accept them.
  void pass_on(base::Range range, base::ByteView octets, bool in_order, base::Now now);
  /// The number of users that there have been; 0 before begin(), and when the stream has ended.
  [[nodiscard]] uint32_t users() const { return count_; }
  /// Checks that the parts follow each other, in either direction.
  void validate() const {
    RNIC_CHECK(count_ <= kMaxUsers && (count_ == 0 || parts_[0].user != nullptr));
    for (uint32_t i = 1; i < count_; ++i) {
      RNIC_CHECK(parts_[i].user != nullptr);
      RNIC_CHECK(parts_[i - 1].sent_from <= parts_[i].sent_from);
      RNIC_CHECK(parts_[i - 1].received_from <= parts_[i].received_from);
    }
  }

  // StreamUser
  void established(uint32_t emss, base::Now now) override;
  Pulled pull(uint32_t n, uint64_t offset, Frame& out, base::Now now) override;
  bool rebuild(const RecordTag& tag, uint64_t offset, uint32_t length, Frame& out) override;
  void released(const RecordTag& tag, uint64_t end_offset) override;
  void clipped(base::Range range) override { current().clipped(range); }
  InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override;
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override;
  void ordered(uint64_t offset, base::Now now) override;
  void emss_changed(uint32_t emss) override { current().emss_changed(emss); }
  [[nodiscard]] uint32_t receive_room() const override { return current().receive_room(); }
  [[nodiscard]] uint32_t sure_room() const override { return current().sure_room(); }
  [[nodiscard]] uint32_t takes(base::Range range, base::ByteView octets) override {
    return current().takes(range, octets);
  }
  [[nodiscard]] uint32_t pending() const override { return current().pending(); }
  [[nodiscard]] bool all_fits(uint32_t octets) const override;
  [[nodiscard]] bool fills_segment(uint32_t octets) const override {
    return current().fills_segment(octets);
  }
  [[nodiscard]] uint32_t unread() const override { return current().unread(); }
  void urgent(uint64_t end, base::Now now) override { current().urgent(end, now); }
  void peer_finished(base::Now now) override;
  void ended(StreamEnd how, base::Now now) override;

 private:
  struct Part {
    StreamUser* user = nullptr;
    uint64_t sent_from = 0;
    uint64_t received_from = 0;
  };

  [[nodiscard]] StreamUser& current() const {
    RNIC_DCHECK(count_ != 0);
    return *parts_[count_ - 1].user;
  }
  /// The user who sent the record whose first octet is at `offset`.
  [[nodiscard]] StreamUser& sender(uint64_t offset) const;

  Stream* stream_ = nullptr;
  std::array<Part, kMaxUsers> parts_{};  // sent_from and received_from never fall
  uint32_t count_ = 0;
  uint64_t pulled_ = 0;  // stream offset behind the last record pulled
  bool finished_ = false;
};

}  // namespace rnic::llp
