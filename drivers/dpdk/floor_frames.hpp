/// \file
/// The frames of the floors: what the least that a sender and a receiver do for each octet and each
/// packet is made of; private to the driver.
#pragma once

#include <rte_mbuf.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "base/endian.hpp"
#include "crc/crc.hpp"

namespace rnic::dpdk {

/// Memory of source or target, on huge pages where the system has them, as registered memory of an
/// application is.
class FloorRegion {
 public:
  explicit FloorRegion(size_t octets);

  [[nodiscard]] explicit operator bool() const { return memory_ != nullptr; }
  [[nodiscard]] std::span<uint8_t> octets() const { return {memory_.get(), octets_}; }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };

  size_t octets_;
  std::unique_ptr<uint8_t, Free> memory_;
};

/// Makes frames of a source, and places them in a target. Whoever makes and whoever places touch
/// disjoint members, so they may be two threads, or each of them a process with frames of its own:
/// every source of one length has the same octets.
class FloorFrames {
 public:
  static constexpr uint32_t kLowerHeaders = 14 + 20 + 32;  // Ethernet, IPv4, TCP with timestamps
  static constexpr uint32_t kFpduHeader = 2 + 14;          // MPA length, DDP/RDMAP tagged header

  /// Chooses the kernels by a short measurement.
  /// \param mtu octets of an IP packet \param region octets of source and of target
  FloorFrames(uint32_t mtu, uint64_t region);

  [[nodiscard]] bool has_memory() const { return source_ && target_; }
  /// Octets that one frame carries.
  [[nodiscard]] uint32_t payload() const { return payload_; }
  /// Octets of a frame.
  [[nodiscard]] uint32_t octets() const { return kLowerHeaders + kFpduHeader + payload_ + 4; }

  /// Writes the next frame into an empty mbuf.
  void make(rte_mbuf* frame) {
    auto* start = rte_pktmbuf_mtod(frame, uint8_t*);
    std::memset(start, 0x11, kLowerHeaders + kFpduHeader);
    uint8_t* fpdu = start + kLowerHeaders;
    base::store_be64(fpdu + 8, send_offset_);
    uint32_t crc = update_->update(crc::kInit, fpdu, kFpduHeader);
    crc = copy_->copy(crc, fpdu + kFpduHeader, source_.octets().subspan(send_offset_).data(),
                      payload_);
    base::store_le32(fpdu + kFpduHeader + payload_, crc::finish(crc));
    send_offset_ = next(send_offset_);
    frame->data_len = static_cast<uint16_t>(octets());
    frame->pkt_len = frame->data_len;
  }

  /// Checks a frame and places what it carries.
  void place(const rte_mbuf* frame) {
    const uint8_t* fpdu = rte_pktmbuf_mtod(frame, uint8_t*) + kLowerHeaders;
    if (!is_whole(frame, fpdu)) {
      ++bad_;
      return;
    }
    std::memcpy(target_.octets().data() + base::load_be64(fpdu + 8), fpdu + kFpduHeader, payload_);
    placed_ += payload_;
  }

  /// \return whether every frame that was placed had a good CRC, and the target equals the source
  [[nodiscard]] bool verified() const;
  /// "update avx2, copy avx2"
  [[nodiscard]] std::string kernels() const;

 private:
  [[nodiscard]] uint64_t next(uint64_t offset) const {
    offset += payload_;
    return offset + payload_ > region_ ? 0 : offset;
  }
  [[nodiscard]] bool is_whole(const rte_mbuf* frame, const uint8_t* fpdu) const {
    if (frame->data_len != octets()) return false;
    const uint32_t crc = crc::finish(update_->update(crc::kInit, fpdu, kFpduHeader + payload_));
    return crc == base::load_le32(fpdu + kFpduHeader + payload_) &&
           base::load_be64(fpdu + 8) <= region_ - payload_;
  }
  void choose_kernels();

  uint32_t payload_;
  uint64_t region_;
  const crc::Kernel* update_ = nullptr;
  const crc::Kernel* copy_ = nullptr;
  FloorRegion source_;
  FloorRegion target_;
  alignas(64) uint64_t send_offset_ = 0;  // of whoever makes
  alignas(64) uint64_t bad_ = 0;          // of whoever places
  uint64_t placed_ = 0;                   // octets, the same
};

}  // namespace rnic::dpdk
