/// \file
/// A sender that knows nothing of alignment: the FPDUs of a session go to TCP as plain octets, and
/// segments begin wherever they begin.
#pragma once

#include <deque>
#include <vector>

#include "mpa/mpa.hpp"

namespace rnic::experiment {

class Unaligned final : public llp::StreamUser {
 public:
  /// \param phase octets of the first segment with FPDUs in it, which sets where the others begin
  Unaligned(framing::StartSession& session, uint32_t phase) : session_(session), phase_(phase) {}

  // llp::StreamUser
  void established(uint32_t emss, base::Now now) override;
  llp::Pulled pull(uint32_t n, uint64_t offset, llp::Frame& out, base::Now now) override;
  bool rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
               llp::Frame& out) override;
  void released(const llp::RecordTag& tag, uint64_t end_offset) override;
  void clipped(base::Range range) override { session_.clipped(range); }
  llp::InspectVerdict inspect(base::Range range, base::ByteView octets, base::Now now) override {
    return session_.inspect(range, octets, now);
  }
  void place(base::Range range, base::ByteView octets, bool in_order, base::Now now) override {
    session_.place(range, octets, in_order, now);
  }
  void ordered(uint64_t offset, base::Now now) override { session_.ordered(offset, now); }
  void emss_changed(uint32_t emss) override { session_.emss_changed(emss); }
  [[nodiscard]] uint32_t receive_room() const override { return session_.receive_room(); }
  void peer_finished(base::Now now) override { session_.peer_finished(now); }
  void ended(StreamEnd how, base::Now now) override { session_.ended(how, now); }

 private:
  struct Record {
    llp::RecordTag tag;
    uint64_t end;
  };

  void fill(uint32_t octets, base::Now now);

  framing::StartSession& session_;
  uint32_t phase_;
  uint32_t emss_ = 0;
  std::deque<uint8_t> kept_;  // pulled from the session, not acknowledged
  uint64_t kept_begin_ = 0;   // stream offset of kept_[0]
  uint64_t sent_ = 0;         // stream offset behind what TCP has pulled
  std::deque<Record> records_;
  std::vector<uint8_t> room_;
};

}  // namespace rnic::experiment
