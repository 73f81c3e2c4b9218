#include "pcap/writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "base/endian.hpp"
#include "base/log.hpp"
#include "process/descriptor_table.hpp"

namespace rnic::pcap {
namespace {

// Block types and option codes (draft-ietf-opsawg-pcapng s.4). Blocks are in the writer's octet
// order.
constexpr uint32_t kSectionHeader = 0x0a0d0d0a;
constexpr uint32_t kInterfaceDescription = 1;
constexpr uint32_t kEnhancedPacket = 6;
constexpr uint32_t kByteOrderMagic = 0x1a2b3c4d;
constexpr uint16_t kOptComment = 1;
constexpr uint16_t kOptUserApplication = 4;
constexpr uint16_t kOptInterfaceName = 2;
constexpr uint16_t kOptTimestampResolution = 9;
constexpr uint16_t kOptPacketFlags = 2;
constexpr uint16_t kLinkTypeEthernet = 1;
constexpr uint32_t kPacketBlockFixed =
    32 + 8 + 4;  // header and length twice, flags, end of options
constexpr size_t kBuffer = size_t{1} << 18;
constexpr size_t kLargestBlock = size_t{1} << 17;

/// A block built in memory.
class Block {
 public:
  explicit Block(uint32_t type) {
    u32(type);
    u32(0);
  }
  void u16(uint16_t v) {
    octets_.push_back(static_cast<uint8_t>(v));
    octets_.push_back(static_cast<uint8_t>(v >> 8));
  }
  void u32(uint32_t v) {
    u16(static_cast<uint16_t>(v));
    u16(static_cast<uint16_t>(v >> 16));
  }
  void option(uint16_t code, std::string_view value) {
    u16(code);
    u16(static_cast<uint16_t>(value.size()));
    octets_.insert(octets_.end(), value.begin(), value.end());
    while (octets_.size() % 4 != 0) octets_.push_back(0);
  }
  base::ByteView finish() {
    u32(0);  // opt_endofopt
    const auto total = static_cast<uint32_t>(octets_.size() + 4);
    u32(total);
    base::store_le32(octets_.data() + 4, total);
    return octets_;
  }

 private:
  std::vector<uint8_t> octets_;
};

/// Keeps others from writing the file, and empties it. \return false: see errno
bool make_own(int descriptor) {
  struct stat facts {};
  if (fstat(descriptor, &facts) != 0) return false;
  if (!S_ISREG(facts.st_mode)) {
    // A pipe is waited for from here on: its reader may be slower than we are.
    return fcntl(descriptor, F_SETFL, 0) == 0;
  }
  // Where the file system has no locks it has to do without.
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  return ftruncate(descriptor, 0) == 0;
}

/// Opens the file, which is empty then. \return nullptr: see errno
FILE* open_file(const char* path) {
  constexpr mode_t kAsUsual = S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;
  // Nobody reads a pipe, perhaps: then it is refused (ENXIO), and not waited for.
  const int descriptor = process::descriptors().open(
      [&] { return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, kAsUsual); });
  if (descriptor < 0) return nullptr;
  FILE* const file = make_own(descriptor) ? fdopen(descriptor, "wb") : nullptr;
  if (file != nullptr) return file;
  const int reason = errno;
  process::descriptors().close(descriptor);
  errno = reason;
  return nullptr;
}

std::string text_of(int reason) {
  if (reason == EWOULDBLOCK) {
    return "another device or program writes it: give each a file of its own";
  }
  if (reason == ENXIO) return "it is a pipe that nobody reads";
  return std::generic_category().message(reason);
}

}  // namespace

Result<std::unique_ptr<Writer>> Writer::open(const std::string& path,
                                             const WriterOptions& options) {
  FILE* const file = open_file(path.c_str());
  if (file == nullptr) {
    const int reason = errno;
    return base::fail(
        reason == EACCES || reason == EPERM ? ErrorCode::PermissionDenied : ErrorCode::Environment,
        "the capture file " + path + " cannot be written: " + text_of(reason));
  }
  std::unique_ptr<Writer> writer(new Writer(path, file, options));
  if (!writer->write_headers()) {
    const std::string why = std::generic_category().message(errno);
    return base::fail(ErrorCode::Environment, "the capture file " + path + " cannot be written: " +
                                                  why + "; free space or give another path");
  }
  return writer;
}

Writer::Writer(std::string path, FILE* file, const WriterOptions& options)
    : path_(std::move(path)), options_(options), file_(file) {
  // Whole blocks are buffered here; a second buffer would only tear them.
  std::setvbuf(file, nullptr, _IONBF, 0);
  pending_.reserve(kBuffer + kLargestBlock);
}

Writer::~Writer() { flush(); }

void Writer::FileCloser::operator()(FILE* file) const {
  const process::ForkPause pause;
  process::descriptors().leave(fileno(file));
  std::fclose(file);
}

bool Writer::write_headers() {
  Block section(kSectionHeader);
  section.u32(kByteOrderMagic);
  section.u16(1);  // version 1.0
  section.u16(0);
  section.u32(0xffffffff);  // section length: not given
  section.u32(0xffffffff);
  section.option(kOptUserApplication, "softrnic");
  if (!options_.comment.empty()) section.option(kOptComment, options_.comment.substr(0, 1000));
  Block interface(kInterfaceDescription);
  interface.u16(kLinkTypeEthernet);
  interface.u16(0);
  interface.u32(0);  // no snap length
  interface.option(kOptInterfaceName, options_.interface_name.substr(0, 255));
  interface.option(kOptTimestampResolution, "\x09");
  add(section.finish());
  add(interface.finish());
  // The header is written at once, so that a full or read-only file system shows.
  const bool taken =
      std::fwrite(pending_.data(), 1, pending_.size(), file_.get()) == pending_.size();
  written_ = taken ? pending_.size() : 0;
  pending_.clear();
  failed_ = !taken;
  return taken;
}

void Writer::append(base::Now now, base::ByteView frame, Way way) {
  const auto length = static_cast<uint32_t>(frame.size());
  const uint32_t pad = (4 - length % 4) % 4;
  const uint32_t total = kPacketBlockFixed + length + pad;
  if ((options_.frame_limit != 0 && counters_.frames >= options_.frame_limit) ||
      (options_.size_limit != 0 && counters_.octets + total > options_.size_limit)) {
    ++counters_.over_limit;
    return;
  }
  if (failed_) {  // behind a torn block nothing can be read
    ++counters_.write_errors;
    return;
  }
  const auto stamp = static_cast<uint64_t>(base::nanos(now) + options_.epoch_nanos);
  std::array<uint8_t, 28> head;
  const uint32_t words[] = {
      kEnhancedPacket, total, 0, static_cast<uint32_t>(stamp >> 32), static_cast<uint32_t>(stamp),
      length,          length};
  for (size_t i = 0; i < std::size(words); ++i) base::store_le32(head.data() + 4 * i, words[i]);
  std::array<uint8_t, 3 + 16> tail{};
  uint8_t* end = tail.data() + pad;
  base::store_le32(end, kOptPacketFlags | 4u << 16);
  base::store_le32(end + 4, static_cast<uint32_t>(way));
  base::store_le32(end + 8, 0);
  base::store_le32(end + 12, total);
  add(head);
  add(frame);
  add({tail.data(), pad + 16});
  ++counters_.frames;
  if (pending_.size() >= kBuffer) flush();
}

void Writer::flush() {
  if (pending_.empty()) return;
  errno = 0;
  const size_t taken = std::fwrite(pending_.data(), 1, pending_.size(), file_.get());
  if (taken == pending_.size()) {
    written_ += taken;
  } else {
    give_up(taken, errno);
  }
  pending_.clear();
}

/// Ends the file after the last block of which it has every octet.
void Writer::give_up(size_t taken, int reason) {
  failed_ = true;
  for (size_t at = 0; at < pending_.size();) {
    const uint32_t block = base::load_le32(&pending_[at + 4]);
    at += block;
    if (at <= taken) {
      written_ += block;
    } else {
      --counters_.frames;
      ++counters_.write_errors;
      counters_.octets -= block;
    }
  }
  // A pipe or a device has no end that could be moved, and says so.
  [[maybe_unused]] const int moved = ftruncate(fileno(file_.get()), static_cast<off_t>(written_));
  base::log(base::LogLevel::Error, "pcap", [&] {
    return "the capture file " + path_ +
           " takes no more: " + std::generic_category().message(reason) +
           "; it ends behind frame " + std::to_string(counters_.frames);
  });
}

}  // namespace rnic::pcap
