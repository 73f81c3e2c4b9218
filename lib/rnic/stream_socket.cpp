#include "rnic/stream_socket.hpp"

#include <algorithm>
#include <utility>

namespace rnic::nic {

using base::Errc;
using base::fail;

namespace {

/// The application decides how long a half-closed stream lives.
tcp::ConnectionOptions half_closing(tcp::ConnectionOptions options) {
  options.half_close = true;
  return options;
}

}  // namespace

// --- StreamSocket ---

StreamSocket::StreamSocket(StreamTable& table, StreamListener* listener, const llp::Endpoint& local,
                           const llp::Endpoint& remote)
    : tcp::ByteStream(table.rings()),
      table_(table),
      listener_(listener),
      local_(local),
      remote_(remote) {}

void StreamSocket::obey(base::Now now) {
  const uint8_t wishes = wishes_.load(std::memory_order_acquire);
  if (stream() == nullptr) {
    if ((wishes & kRelease) != 0) table_.done_with(*this);
    return;
  }
  if ((wishes & kAbort) != 0) {
    abort();
    return;
  }
  serve();
  if ((wishes & kRelease) != 0 && !is_established() && unacknowledged() == 0) {
    abort();
    return;
  }
  if ((wishes & kRelease) != 0) table_.let_go(*this, now);
  // What was put before the connection was there is sent first.
  if ((wishes & (kFinish | kRelease)) != 0 && is_established()) close();
}

void StreamSocket::established(uint32_t emss, base::Now now) {
  ByteStream::established(emss, now);
  if (listener_ != nullptr) std::exchange(listener_, nullptr)->hand_over(*this);
  if (wishes_.load(std::memory_order_relaxed) != 0) obey(now);
}

llp::InspectVerdict StreamSocket::inspect(base::Range range, base::ByteView octets, base::Now now) {
  const llp::InspectVerdict verdict = ByteStream::inspect(range, octets, now);
  if (verdict == llp::InspectVerdict::Drop && table_.rings().empty()) table_.buffer_wait();
  return verdict;
}

void StreamSocket::ended(llp::StreamEnd how, base::Now now) {
  const bool released = is_released();
  ByteStream::ended(how, now);
  // A wish that comes after this look finds the stream gone, in obey().
  if (released) table_.done_with(*this);
}

// --- StreamListener ---

llp::StreamUser* StreamListener::accept(llp::Stream& stream, const llp::Endpoint& local,
                                        const llp::Endpoint& remote, base::Now) {
  StreamSocket* socket = waiting_.size() < waiting_.capacity()
                             ? table_.incoming(*this, stream, local, remote)
                             : nullptr;
  if (socket == nullptr) table_.refused();
  return socket;
}

void StreamListener::hand_over(StreamSocket& socket) {
  const bool fits = waiting_.push(&socket);
  RNIC_CHECK(fits);  // accept() looked, and established() follows at once
  table_.handed_over();
}

// --- StreamTable ---

StreamTable::StreamTable(const Limits& limits, tcp::Stack& stack, DeviceCounters& counters)
    : max_streams_(limits.max_streams),
      stack_(stack),
      counters_(counters),
      rings_(limits.stream_buffer,
             static_cast<uint32_t>(limits.stream_octets / std::max(limits.stream_buffer, 1u))),
      sockets_(limits.max_streams),
      by_number_(limits.max_streams),
      doorbells_(limits.max_streams) {
  done_.reserve(2 * size_t{limits.max_streams});
}

base::Result<StreamListener*> StreamTable::listen(const llp::Endpoint& local, uint32_t backlog,
                                                  const tcp::ConnectionOptions& options) {
  if (backlog == 0 || backlog > max_streams_) {
    return fail(Errc::InvalidArgument, "listen: backlog " + std::to_string(backlog) +
                                           ": give 1 to limits.max_streams (" +
                                           std::to_string(max_streams_) + ")");
  }
  auto listener = std::make_unique<StreamListener>(*this, local, backlog);
  if (auto status = stack_.listen(local, *listener, half_closing(options)); !status) {
    return tl::unexpected(status.error());
  }
  listeners_.push_back(std::move(listener));
  return listeners_.back().get();
}

void StreamTable::unlisten(StreamListener& listener, base::Now now) {
  static_cast<void>(stack_.unlisten(listener.local()));
  while (StreamSocket* socket = listener.next()) {
    socket->wish(StreamSocket::kAbort | StreamSocket::kRelease);
    socket->obey(now);
  }
  std::erase_if(listeners_, [&](const auto& mine) { return mine.get() == &listener; });
}

base::Result<StreamSocket*> StreamTable::connect(const llp::Endpoint& local,
                                                 const llp::Endpoint& remote,
                                                 const tcp::ConnectionOptions& options,
                                                 base::Now now) {
  StreamSocket* socket = add(nullptr, local, remote);
  if (socket == nullptr) {
    return fail(Errc::ResourceExhausted,
                "no streaming socket left: raise limits.max_streams (now " +
                    std::to_string(max_streams_) + ")");
  }
  auto stream = stack_.connect(local, remote, *socket, half_closing(options), now);
  if (!stream) {
    remove(*socket);
    return tl::unexpected(stream.error());
  }
  socket->attach(**stream);
  socket->set_local((*stream)->local());
  ++counters_.streams_opened;
  return socket;
}

base::Status StreamTable::set_options(StreamSocket& socket, const tcp::ConnectionOptions& options,
                                      base::Now now) {
  if (socket.stream() == nullptr) return fail(Errc::WrongState, "the stream has ended");
  return stack_.set_options(*socket.stream(), options, now);
}

base::Result<tcp::ConnectionOptions> StreamTable::options(StreamSocket& socket) const {
  if (socket.stream() == nullptr) return fail(Errc::WrongState, "the stream has ended");
  return stack_.options(*socket.stream());
}

base::Status StreamTable::reserve_send(StreamSocket& socket) {
  if (socket.reserve_send()) return {};
  buffer_wait();
  return fail(Errc::ResourceExhausted,
              "no buffer left for another streaming socket: raise limits.stream_octets, or close "
              "sockets");
}

uint32_t StreamTable::serve_doorbells(base::Now now) {
  uint32_t served = 0;
  doorbells_.answer([&](uint32_t number) {
    if (by_number_[number] == nullptr) return;
    by_number_[number]->obey(now);
    ++served;
  });
  return served;
}

void StreamTable::let_go(StreamSocket& socket, base::Now now) {
  tcp::ConnectionOptions options = stack_.options(*socket.stream());
  options.half_close = false;
  options.half_duplex_close = true;  // nobody will read what has come and what will come
  const base::Status done = stack_.set_options(*socket.stream(), options, now);
  RNIC_CHECK(done.has_value());  // they were good before
}

void StreamTable::reap() {
  for (const base::Handle handle : done_) {
    if (StreamSocket* socket = sockets_.get(handle); socket != nullptr) remove(*socket);
  }
  done_.clear();
}

void StreamTable::abort_all() {
  sockets_.for_each([](base::Handle, StreamSocket& socket) { socket.abort(); });
}

StreamSocket* StreamTable::incoming(StreamListener& listener, llp::Stream& stream,
                                    const llp::Endpoint& local, const llp::Endpoint& remote) {
  StreamSocket* socket = add(&listener, local, remote);
  if (socket != nullptr) socket->attach(stream);
  return socket;
}

StreamSocket* StreamTable::add(StreamListener* listener, const llp::Endpoint& local,
                               const llp::Endpoint& remote) {
  const base::Handle handle = sockets_.emplace(*this, listener, local, remote);
  StreamSocket* socket = sockets_.get(handle);
  if (socket == nullptr) return nullptr;
  socket->handle = handle;
  by_number_[handle.index] = socket;
  return socket;
}

void StreamTable::remove(StreamSocket& socket) {
  by_number_[socket.number()] = nullptr;
  sockets_.erase(base::Handle(socket.handle));
}

}  // namespace rnic::nic
