/// \file
/// TransmitWatch: notices when a device takes no frames any more; private to the driver.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/log.hpp"
#include "base/time.hpp"
#include "port/port.hpp"

namespace rnic::dpdk {

/// It is told of every look at the device. It reads no clock: `now` comes with the burst.
class TransmitWatch {
 public:
  /// A device that has taken nothing for this long, though frames wait, is reported as stalled.
  static constexpr base::Duration kPatience = std::chrono::seconds(1);

  enum class News : uint8_t { None, Stalled, GoesOn };

  /// \param waiting frames that the device should have taken and has not
  /// \param took the device has taken some since the last look
  News look(bool waiting, bool took, base::Now now) {
    if (took || !waiting) {
      const bool was_stalled = stalled_;
      waiting_ = stalled_ = false;
      if (waiting) begin(now);
      return was_stalled ? News::GoesOn : News::None;
    }
    if (!waiting_) begin(now);
    if (stalled_ || now - since_ < kPatience) return News::None;
    stalled_ = true;
    return News::Stalled;
  }

  [[nodiscard]] bool stalled() const { return stalled_; }

 private:
  void begin(base::Now now) {
    waiting_ = true;
    since_ = now;
  }

  bool waiting_ = false;
  bool stalled_ = false;
  base::Now since_{};  // the frames wait since then
};

/// Counts and logs what a look has told. \param name of the port
inline void tell(TransmitWatch::News news, const std::string& name,
                 port::PortCounters& counters) {
  switch (news) {
    case TransmitWatch::News::None: break;
    case TransmitWatch::News::Stalled:
      ++counters.tx_stalled;
      base::log(base::LogLevel::Warning, "dpdk", [&] {
        return name + ": the device has taken no frame for a second; is its link up?";
      });
      break;
    case TransmitWatch::News::GoesOn:
      base::log(base::LogLevel::Warning, "dpdk",
                [&] { return name + ": frames are taken again"; });
      break;
  }
}

}  // namespace rnic::dpdk
