#include "local/local_port.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "local/last_word.hpp"
#include "offload/offload.hpp"

namespace rnic::local {

namespace {

constexpr uint32_t kLengthField = 2;  // in front of each frame, in network order
constexpr uint32_t kShortest = offload::kEthernetHeader;
constexpr uint8_t kGroupBit = 1;

std::array<uint8_t, kLengthField> length_field(uint32_t length) {
  return {static_cast<uint8_t>(length >> 8), static_cast<uint8_t>(length)};
}

port::MacAddress destination(const port::Packet& frame) {
  port::MacAddress out;
  std::memcpy(out.data(), frame.data, out.size());
  return out;
}

uint32_t frame_octets(uint32_t mtu) { return (mtu + port::kLinkHeader + 63) / 64 * 64; }

}  // namespace

Result<std::unique_ptr<LocalPort>> LocalPort::open(const Options& options) {
  auto folder = WireFolder::open(options.folder);
  if (!folder) return tl::unexpected(folder.error());
  auto socket = folder->claim(options.mac);
  if (!socket) return tl::unexpected(socket.error());
  return std::unique_ptr<LocalPort>(
      new LocalPort(options, std::move(*folder), std::move(*socket)));
}

uint64_t LocalPort::memory_use(const Options& options) {
  return uint64_t{frame_octets(options.mtu)} * options.buffers + kMostOctets;
}

LocalPort::LocalPort(const Options& options, WireFolder folder, wakeup::Descriptor socket)
    : info_{std::string(kPrefix) + options.folder, options.mac, options.mtu,
            port::ChecksumMode::Software},
      folder_(std::move(folder)),
      socket_(std::move(socket)),
      pool_(options.buffers, frame_octets(options.mtu)),
      datagram_(kMostOctets) {}

LocalPort::~LocalPort() { folder_.leave(info_.mac); }

bool LocalPort::alloc(std::span<port::Packet> out) {
  if (pool_.take(out)) return true;
  ++counters_.alloc_failed;
  return false;
}

base::Now LocalPort::next_deadline() const {
  return unread_.empty() && last_words_.empty() ? retry_at_ : base::Now{};
}

// ---- Sending ----

/// The frames at the beginning that fit one datagram together.
std::span<port::Packet> LocalPort::for_one_receiver(std::span<port::Packet> packets) {
  const port::MacAddress to = destination(packets.front());
  uint32_t octets = 0;
  size_t count = 0;
  while (count < packets.size() && count < kMostFrames && destination(packets[count]) == to) {
    octets += kLengthField + packets[count].length;
    if (octets > kMostOctets && count > 0) break;
    ++count;
  }
  return packets.first(count);
}

LocalPort::Fate LocalPort::send(const port::MacAddress& to, std::span<const port::Packet> frames) {
  std::array<std::array<uint8_t, kLengthField>, kMostFrames> lengths;
  std::array<iovec, 2 * kMostFrames> pieces;
  size_t count = 0;
  for (size_t i = 0; i < frames.size(); ++i) {
    lengths[i] = length_field(frames[i].length);
    pieces[count++] = {lengths[i].data(), kLengthField};
    pieces[count++] = {frames[i].data, frames[i].length};
  }
  SocketAddress address = folder_.address_of(to);
  msghdr message{};
  message.msg_name = &address.name;
  message.msg_namelen = address.size();
  message.msg_iov = pieces.data();
  message.msg_iovlen = count;
  if (sendmsg(socket_.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) return Fate::Sent;
  switch (errno) {
    case EAGAIN:
    case ENOBUFS:
    case ENOMEM:
    case EINTR: return Fate::Full;
    case ECONNREFUSED: folder_.bury(to); return Fate::Gone;
    case ENOENT: return Fate::Gone;
    default: return Fate::Refused;
  }
}

/// \return false: the receiver's queue is full, and it is worth waiting for
bool LocalPort::carry_to_one(const port::MacAddress& to, std::span<const port::Packet> frames,
                             base::Now now) {
  const Fate fate = send(to, frames);
  // Some may have left while they were full, and nobody has sent to them since.
  if (full_since_.size() == WireFolder::kMostMembers) full_since_.clear();
  if (fate != Fate::Full) {
    full_since_.erase(to);
  } else if (now - full_since_.try_emplace(to, now).first->second < kPatience) {
    return false;
  }
  if (fate != Fate::Sent) counters_.tx_discarded += frames.size();
  if (fate == Fate::Gone) answer_for_the_dead(frames);
  return true;
}

void LocalPort::answer_for_the_dead(std::span<const port::Packet> frames) {
  for (const port::Packet& frame : frames) {
    port::Packet answer;
    if (last_words_.size() == kMostFrames || !pool_.take({&answer, 1})) return;
    if (reset_for(frame.view(), answer)) {
      last_words_.push_back(answer);
    } else {
      pool_.give_back({&answer, 1});
    }
  }
}

/// A receiver whose queue is full does without: who sends to a group repeats what matters.
void LocalPort::carry_to_all(std::span<const port::Packet> frames) {
  for (const port::MacAddress& each : folder_.members()) {
    if (each != info_.mac) send(each, frames);
  }
}

bool LocalPort::carry(std::span<const port::Packet> frames, base::Now now) {
  const port::MacAddress to = destination(frames.front());
  if ((to[0] & kGroupBit) == 0) return carry_to_one(to, frames, now);
  carry_to_all(frames);
  return true;
}

uint32_t LocalPort::tx_burst(std::span<port::Packet> packets, base::Now now) {
  uint32_t taken = 0;
  retry_at_ = base::kNever;
  for (port::Packet& packet : packets) offload::complete_checksums(packet);
  while (taken < packets.size()) {
    const std::span<port::Packet> run = for_one_receiver(packets.subspan(taken));
    if (!carry(run, now)) {
      retry_at_ = now + kRetry;
      break;
    }
    counters_.tx_frames += run.size();
    for (const port::Packet& frame : run) counters_.tx_octets += frame.length;
    pool_.give_back(run);
    taken += static_cast<uint32_t>(run.size());
  }
  counters_.tx_refused += packets.size() - taken;
  return taken;
}

// ---- Receiving ----

/// \return whether there was a datagram, good or not
bool LocalPort::receive() {
  const ssize_t got =
      recv(socket_.get(), datagram_.data(), datagram_.size(), MSG_DONTWAIT | MSG_TRUNC);
  if (got < 0) return false;
  if (got == 0 || static_cast<size_t>(got) > datagram_.size()) {
    ++counters_.rx_dropped;
  } else {
    unread_ = base::ByteView(datagram_.data(), static_cast<size_t>(got));
  }
  return true;
}

/// What stands there cannot be a frame, and where the next one begins is not known.
void LocalPort::drop_rest() {
  unread_ = {};
  ++counters_.rx_dropped;
}

/// \return whether `out` has the next frame
bool LocalPort::hand_up(port::Packet& out) {
  if (unread_.size() < kLengthField) {
    drop_rest();
    return false;
  }
  const uint32_t length = uint32_t{unread_[0]} << 8 | unread_[1];
  const base::ByteView behind = unread_.subspan(kLengthField);
  if (length > behind.size() || length < kShortest || length > info_.mtu + port::kLinkHeader) {
    drop_rest();
    return false;
  }
  if (!pool_.take({&out, 1})) {
    ++counters_.alloc_failed;
    drop_rest();
    return false;
  }
  std::memcpy(out.data, behind.data(), length);
  out.length = length;
  unread_ = behind.subspan(length);
  ++counters_.rx_frames;
  counters_.rx_octets += length;
  return true;
}

uint32_t LocalPort::rx_burst(std::span<port::Packet> out, base::Now) {
  uint32_t count = 0;
  for (; count < out.size() && !last_words_.empty(); ++count) {
    out[count] = last_words_.front();
    last_words_.pop_front();
  }
  // Datagrams without a good frame count, too: whoever sends them takes no more of a turn.
  for (size_t bad = 0; count + bad < out.size();) {
    if (unread_.empty() && !receive()) break;
    if (!unread_.empty() && hand_up(out[count])) {
      ++count;
    } else {
      ++bad;
    }
  }
  return count;
}

}  // namespace rnic::local
