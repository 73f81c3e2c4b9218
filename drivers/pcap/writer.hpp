/// \file
/// A pcapng file.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/counters.hpp"
#include "base/fail.hpp"
#include "base/time.hpp"

#define RNIC_PCAP_COUNTERS(X)                                                      \
  X(frames, "frames", "written to the capture")                                    \
  X(octets, "octets", "of the file so far")                                        \
  X(write_errors, "frames", "not written: the file system refused; writing ended") \
  X(over_limit, "frames", "not written: the frame or size limit is reached")

namespace rnic::pcap {

RNIC_DEFINE_COUNTERS(PcapCounters, RNIC_PCAP_COUNTERS)

/// The direction of a frame as the captured port sees it.
enum class Way : uint8_t { Unknown, Inbound, Outbound };

/// What a reader has to know of Wireshark's defaults; for the comment of a file.
inline constexpr char kOfWireshark[] =
    "Wireshark guesses that Sends are RPC over RDMA and calls some of them malformed: disable its "
    "protocol rpcordma.";

struct WriterOptions {
  std::string interface_name = "rnic";  ///< shown by Wireshark
  std::string comment;                  ///< of the file; empty: none
  uint64_t frame_limit = 0;             ///< 0: none
  uint64_t size_limit = 0;              ///< octets of the file; 0: none
  int64_t epoch_nanos = 0;              ///< Unix time of base::Now's origin, for wall-clock stamps
};

/// Writes a section header, one Ethernet interface with nanosecond stamps, and enhanced packets. It
/// buffers; the file is complete after flush() or the destructor. If the file system takes no more,
/// the file ends after the last whole block, and one line in the log says so.
class Writer {
 public:
  /// Creates or empties the file. One that another Writer has, of any process, is refused, and so
  /// is a pipe that nobody reads.
  [[nodiscard]] static Result<std::unique_ptr<Writer>> open(const std::string& path,
                                                            const WriterOptions& options = {});
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  /// Appends one frame, from the Ethernet header on, without FCS.
  void append(base::Now now, base::ByteView frame, Way way = Way::Unknown);
  /// Writes the buffered blocks to the file. The counters are exact after it.
  void flush();

  [[nodiscard]] const PcapCounters& counters() const { return counters_; }

 private:
  struct FileCloser {
    void operator()(FILE* file) const;
  };

  Writer(std::string path, FILE* file, const WriterOptions& options);
  bool write_headers();
  void add(base::ByteView octets) {
    pending_.insert(pending_.end(), octets.begin(), octets.end());
    counters_.octets += octets.size();
  }
  void give_up(size_t taken, int reason);

  std::string path_;
  WriterOptions options_;
  std::vector<uint8_t> pending_;  // whole blocks that the file does not have yet
  uint64_t written_ = 0;          // octets of whole blocks that the file has
  std::unique_ptr<FILE, FileCloser> file_;
  PcapCounters counters_;
  bool failed_ = false;
};

}  // namespace rnic::pcap
