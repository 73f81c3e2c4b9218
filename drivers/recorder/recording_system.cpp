#include "recorder/recording_system.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/starved.hpp"
#include "socket/system.hpp"

namespace rnic::recorder {

using pcap::Way;

namespace {

constexpr const char* kComment =
    "The frames are made up: they carry the octets of streams over the system's TCP, as this end "
    "has sent and received them. Addresses and ports are real; MAC addresses, sequence numbers, "
    "handshakes and the cut into segments are not.";

/// While it lives the caller's errno is kept.
class ErrnoKept {
 public:
  ErrnoKept() = default;
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;
  ~ErrnoKept() { errno = kept_; }

 private:
  const int kept_ = errno;
};

}  // namespace

Result<std::unique_ptr<RecordingSystem>> RecordingSystem::open(socket::System& inner,
                                                               const std::string& path, Clock clock,
                                                               const pcap::WriterOptions& options) {
  pcap::WriterOptions commented = options;
  commented.comment = std::string(kComment) + " " + pcap::kOfWireshark;
  auto writer = pcap::Writer::open(path, commented);
  if (!writer) return tl::unexpected(writer.error());
  return std::make_unique<RecordingSystem>(inner, std::move(*writer), std::move(clock));
}

RecordingSystem::Recorded* RecordingSystem::find(int descriptor) {
  const auto found = recorded_.find(descriptor);
  return found == recorded_.end() ? nullptr : &found->second;
}

RecordingSystem::Recorded* RecordingSystem::begin(int descriptor, const Endpoint& remote) {
  socket::SystemAddress local;
  Recorded* made = nullptr;
  const bool has_address = inner_.getsockname(descriptor, local.get(), &local.size) == 0;
  static_cast<void>(has_address && base::attempt([&] {
    recorded_.erase(descriptor);
    made = &recorded_
                .emplace(descriptor, Recorded{StreamFrames(*writer_, local.endpoint(), remote)})
                .first->second;
  }));
  ++(made != nullptr ? counters_.connections : counters_.unrecorded);
  return made;
}

template <typename F>
void RecordingSystem::record(int descriptor, F&& step) {
  Recorded* const recorded = find(descriptor);
  if (recorded == nullptr) return;
  const ErrnoKept kept;
  if (base::attempt([&] { step(*recorded, clock_()); })) return;
  recorded_.erase(descriptor);
  ++counters_.unrecorded;
}

int RecordingSystem::connect(int descriptor, const sockaddr* address, socklen_t size) {
  const int result = inner_.connect(descriptor, address, size);
  if (result != 0 && errno != EINPROGRESS) return result;
  const ErrnoKept kept;
  socket::SystemAddress remote;
  remote.size = std::min<socklen_t>(size, sizeof remote.storage);
  std::memcpy(remote.get(), address, remote.size);
  if (begin(descriptor, remote.endpoint()) != nullptr) {
    record(descriptor, [](Recorded& it, base::Now now) { it.frames.ask(now); });
  }
  return result;
}

int RecordingSystem::accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) {
  socket::SystemAddress remote;
  const int made = inner_.accept4(descriptor, remote.get(), &remote.size, flags);
  if (made < 0) return made;
  if (address != nullptr && size != nullptr) {
    std::memcpy(address, remote.get(), std::min(*size, remote.size));
    *size = remote.size;
  }
  if (begin(made, remote.endpoint()) != nullptr) {
    record(made, [](Recorded& it, base::Now now) { it.frames.establish(now); });
  }
  return made;
}

int RecordingSystem::getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) {
  const int result = inner_.getsockopt(descriptor, level, name, value, size);
  // The driver asks so when a connection that it has asked for is made, or is not.
  if (result == 0 && level == SOL_SOCKET && name == SO_ERROR && *size == sizeof(int)) {
    int error = 0;
    std::memcpy(&error, value, sizeof error);
    record(descriptor, [error](Recorded& it, base::Now now) {
      if (error == 0) {
        it.frames.establish(now);
      } else if (error == ECONNREFUSED || error == ECONNRESET) {
        it.frames.reset(Way::Inbound, now);
      }
    });
  }
  return result;
}

int RecordingSystem::setsockopt(int descriptor, int level, int name, const void* value,
                                socklen_t size) {
  const int result = inner_.setsockopt(descriptor, level, name, value, size);
  if (result == 0 && level == SOL_SOCKET && name == SO_LINGER && size == sizeof(linger)) {
    linger how{};
    std::memcpy(&how, value, sizeof how);
    if (Recorded* const it = find(descriptor)) it->resets = how.l_onoff != 0 && how.l_linger == 0;
  }
  return result;
}

ssize_t RecordingSystem::recv(int descriptor, void* buffer, size_t size, int flags) {
  const ssize_t got = inner_.recv(descriptor, buffer, size, flags);
  const bool was_reset = got < 0 && errno == ECONNRESET;
  if ((flags & MSG_PEEK) != 0 && got > 0) return got;  // it comes again
  record(descriptor, [&](Recorded& it, base::Now now) {
    if (got > 0) {
      it.frames.octets(Way::Inbound,
                       {static_cast<const uint8_t*>(buffer), static_cast<size_t>(got)}, now);
    } else if (got == 0 && size != 0) {
      it.frames.finish(Way::Inbound, now);
    } else if (was_reset) {
      it.frames.reset(Way::Inbound, now);
    }
  });
  return got;
}

int RecordingSystem::sendmmsg(int descriptor, mmsghdr* messages, uint32_t count, int flags) {
  const int sent = inner_.sendmmsg(descriptor, messages, count, flags);
  record(descriptor, [&](Recorded& it, base::Now now) {
    for (int i = 0; i < sent; ++i) {
      size_t left = messages[i].msg_len;
      const msghdr& header = messages[i].msg_hdr;
      for (size_t piece = 0; piece < header.msg_iovlen && left != 0; ++piece) {
        const size_t length = std::min(left, header.msg_iov[piece].iov_len);
        it.frames.octets(Way::Outbound,
                         {static_cast<const uint8_t*>(header.msg_iov[piece].iov_base), length},
                         now);
        left -= length;
      }
    }
  });
  return sent;
}

int RecordingSystem::shutdown(int descriptor, int how) {
  const int result = inner_.shutdown(descriptor, how);
  if (result == 0 && how != SHUT_RD) {
    record(descriptor, [](Recorded& it, base::Now now) { it.frames.finish(Way::Outbound, now); });
  }
  return result;
}

int RecordingSystem::close(int descriptor) {
  record(descriptor, [](Recorded& it, base::Now now) {
    it.resets ? it.frames.reset(Way::Outbound, now) : it.frames.finish(Way::Outbound, now);
  });
  recorded_.erase(descriptor);
  return inner_.close(descriptor);
}

/// Before each sleep what was recorded is in the file: the driver sleeps here, or on a descriptor
/// behind a turn without events.
int RecordingSystem::epoll_wait(int poller, epoll_event* events, int count, int timeout) {
  if (timeout != 0) flush();
  const int result = inner_.epoll_wait(poller, events, count, timeout);
  if (result == 0) {
    const ErrnoKept kept;
    flush();
  }
  return result;
}

}  // namespace rnic::recorder
