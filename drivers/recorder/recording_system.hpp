/// \file
/// RecordingSystem: the system's sockets, with a capture of what goes over them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/counters.hpp"
#include "base/fail.hpp"
#include "base/time.hpp"
#include "pcap/writer.hpp"
#include "recorder/stream_frames.hpp"
#include "socket/calls.hpp"

#define RNIC_RECORDER_COUNTERS(X)          \
  X(connections, "connections", "recorded") \
  X(unrecorded, "connections",              \
    "not recorded, or not to their end: there was no memory, or the system named no address")

namespace rnic::recorder {

RNIC_DEFINE_COUNTERS(RecorderCounters, RNIC_RECORDER_COUNTERS)

/// Decorates a System: passes each call on and writes the octets of each connection to a capture
/// file, in frames of its own (StreamFrames): sockets show none. A connection's frames hold what
/// the system has taken from us and what we have taken from the system.
///
/// A capture never disturbs what it records: octets that cannot be written are counted by the
/// writer, and a connection for which there is no memory goes on unrecorded, which is counted.
///
/// Used by one thread at a time.
class RecordingSystem final : public socket::System {
 public:
  using Clock = std::function<base::Now()>;

  /// \param inner outlives it \param clock tells the time of a frame
  static Result<std::unique_ptr<RecordingSystem>> open(socket::System& inner,
                                                       const std::string& path, Clock clock,
                                                       const pcap::WriterOptions& options = {});
  RecordingSystem(socket::System& inner, std::unique_ptr<pcap::Writer> writer, Clock clock)
      : inner_(inner), writer_(std::move(writer)), clock_(std::move(clock)) {}

  // socket::System
  int socket(int family, int type, int protocol) override {
    return inner_.socket(family, type, protocol);
  }
  int close(int descriptor) override;
  int bind(int descriptor, const sockaddr* address, socklen_t size) override {
    return inner_.bind(descriptor, address, size);
  }
  int listen(int descriptor, int backlog) override { return inner_.listen(descriptor, backlog); }
  int accept4(int descriptor, sockaddr* address, socklen_t* size, int flags) override;
  int connect(int descriptor, const sockaddr* address, socklen_t size) override;
  int shutdown(int descriptor, int how) override;
  int getsockname(int descriptor, sockaddr* address, socklen_t* size) override {
    return inner_.getsockname(descriptor, address, size);
  }
  int getsockopt(int descriptor, int level, int name, void* value, socklen_t* size) override;
  int setsockopt(int descriptor, int level, int name, const void* value, socklen_t size) override;
  int unacknowledged(int descriptor, int& octets) override {
    return inner_.unacknowledged(descriptor, octets);
  }
  ssize_t recv(int descriptor, void* buffer, size_t size, int flags) override;
  int sendmmsg(int descriptor, mmsghdr* messages, uint32_t count, int flags) override;
  int epoll_create1(int flags) override { return inner_.epoll_create1(flags); }
  int epoll_ctl(int poller, int operation, int descriptor, epoll_event* event) override {
    return inner_.epoll_ctl(poller, operation, descriptor, event);
  }
  int epoll_wait(int poller, epoll_event* events, int count, int timeout) override;

  [[nodiscard]] const RecorderCounters& counters() const { return counters_; }
  [[nodiscard]] const pcap::Writer& writer() const { return *writer_; }
  /// See pcap::Writer::flush().
  void flush() { writer_->flush(); }

 private:
  /// A connection that is recorded.
  struct Recorded {
    StreamFrames frames;
    bool resets = false;  // its close will reset it
  };

  /// Begins to record a connection. \return nullptr: it cannot be
  Recorded* begin(int descriptor, const Endpoint& remote);
  [[nodiscard]] Recorded* find(int descriptor);
  /// Carries `step(recorded, now)` out if the descriptor is recorded, and keeps errno. Without
  /// memory for it the connection's record ends.
  template <typename F>
  void record(int descriptor, F&& step);

  socket::System& inner_;
  std::unique_ptr<pcap::Writer> writer_;
  Clock clock_;
  RecorderCounters counters_;
  std::unordered_map<int, Recorded> recorded_;  // by descriptor
};

}  // namespace rnic::recorder
