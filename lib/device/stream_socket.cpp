#include "device/stream_socket.hpp"

#include <algorithm>
#include <utility>

#include "base/starved.hpp"

namespace rnic::device {

using base::fail;

namespace {

/// The application decides how long a half-closed stream lives.
tcp::ConnectionOptions half_closing(tcp::ConnectionOptions options) {
  options.half_close = true;
  return options;
}

}  // namespace

// --- StreamSocket ---

StreamSocket::StreamSocket(StreamTable& table, StreamListener* listener, const Endpoint& local,
                           const Endpoint& remote)
    : tcp::ByteStream(table.rings()),
      table_(table),
      listener_(listener),
      local_(local),
      remote_(remote) {}

Status StreamSocket::can_be_lent() const {
  const char* reason = nullptr;
  if (!is_established() || how_ended()) {
    reason = "the stream is not open";
  } else if (session_ != nullptr) {
    reason = "the stream was converted to RDMA before";
  } else if ((wishes_.load(std::memory_order_acquire) & (kFinish | kAbort | kRelease)) != 0) {
    reason = "the stream was closed by this side";
  } else if (peer_has_finished()) {
    reason = "the peer has finished the stream";
  } else if (readable() != 0 || has_islands()) {
    // RFC 5044 s.7.1.5: octets of the streaming protocol would be taken for MPA's.
    reason = "octets of the peer are unread: receive() them first";
  }
  return reason == nullptr ? Status{} : fail(ErrorCode::WrongState, reason);
}

void StreamSocket::lend(mpa::Session& session, base::ByteView last_message, base::Now now) {
  session.take_over(stream()->emss(), received(), last_message, now);
  session_ = &session;
  lent_at_ = written();
  lent_.store(true, std::memory_order_release);
}

void StreamSocket::take_back(base::Now now) {
  const bool possible = resume(session_->received(), session_->sent());
  if (!possible) {
    table_.buffer_wait();
    return abort();
  }
  session_->hand_over(behind_, now);
  lent_.store(false, std::memory_order_release);
  if (wishes_.load(std::memory_order_acquire) != 0) obey(now);
}

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
  if (is_lent()) return;  // the queue pair decides when it ends
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

llp::Pulled StreamSocket::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  if (session_ == nullptr || offset < lent_at_) return ByteStream::pull(n, offset, out);
  return session_->pull(n, offset, out);
}

bool StreamSocket::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                           llp::Frame& out) {
  if (session_ == nullptr || offset < lent_at_) {
    return ByteStream::rebuild(tag, offset, length, out);
  }
  return session_->rebuild(tag, offset, length, out);
}

void StreamSocket::released(const llp::RecordTag& tag, uint64_t end_offset) {
  if (session_ == nullptr || end_offset <= lent_at_) return ByteStream::released(tag, end_offset);
  session_->released(tag, end_offset);
}

llp::InspectVerdict StreamSocket::inspect(base::Range range, base::ByteView octets, base::Now now) {
  if (session_ != nullptr) return session_->inspect(range, octets, now);
  const llp::InspectVerdict verdict = ByteStream::inspect(range, octets, now);
  if (verdict == llp::InspectVerdict::Drop && table_.rings().empty()) table_.buffer_wait();
  return verdict;
}

void StreamSocket::place(base::Range range, base::ByteView octets, bool in_order, base::Now now) {
  if (session_ != nullptr) return session_->place(range, octets, in_order, now);
  ByteStream::place(range, octets, in_order, now);
}

void StreamSocket::ordered(uint64_t offset, base::Now now) {
  session_ != nullptr ? session_->ordered(offset, now) : ByteStream::ordered(offset, now);
}

void StreamSocket::emss_changed(uint32_t emss) {
  if (session_ != nullptr) session_->emss_changed(emss);
}

uint32_t StreamSocket::receive_room() const {
  return session_ != nullptr ? session_->receive_room() : ByteStream::receive_room();
}

uint32_t StreamSocket::pending() const {
  // One that is lent has nothing of its own to send, whatever its rings hold.
  // NOLINTNEXTLINE(bugprone-parent-virtual-call)
  return is_lent() ? StreamUser::pending() : ByteStream::pending();
}

bool StreamSocket::all_fits(uint32_t octets) const {
  if (session_ == nullptr) return ByteStream::all_fits(octets);
  // What was written before the stream was lent goes ahead of the session's octets.
  const uint32_t before = is_lent() ? ByteStream::pending() : 0;
  return before <= octets && session_->all_fits(octets - before);
}

uint32_t StreamSocket::unread() const { return is_lent() ? 0 : ByteStream::unread(); }

void StreamSocket::peer_finished(base::Now now) {
  session_ != nullptr ? session_->peer_finished(now) : ByteStream::peer_finished(now);
}

void StreamSocket::ended(StreamEnd how, base::Now now) {
  if (mpa::Session* session = std::exchange(session_, nullptr)) session->ended(how, now);
  const bool released = is_released();
  ByteStream::ended(how, now);
  // A wish that comes after this look finds the stream gone, in obey().
  if (released) table_.done_with(*this);
}

// --- StreamSocket::Behind ---

llp::Pulled StreamSocket::Behind::pull(uint32_t n, uint64_t offset, llp::Frame& out) {
  return socket_.ByteStream::pull(n, offset, out);
}

bool StreamSocket::Behind::all_fits(uint32_t octets) const {
  return socket_.ByteStream::all_fits(octets);
}

bool StreamSocket::Behind::rebuild(const llp::RecordTag& tag, uint64_t offset, uint32_t length,
                                   llp::Frame& out) {
  return socket_.ByteStream::rebuild(tag, offset, length, out);
}

void StreamSocket::Behind::released(const llp::RecordTag& tag, uint64_t end_offset) {
  socket_.ByteStream::released(tag, end_offset);
}

llp::InspectVerdict StreamSocket::Behind::inspect(base::Range range, base::ByteView octets,
                                                  base::Now now) {
  return socket_.ByteStream::inspect(range, octets, now);
}

void StreamSocket::Behind::place(base::Range range, base::ByteView octets, bool in_order,
                                 base::Now now) {
  // Committed while the session's larger window was offered: it cannot be asked for again.
  if (!socket_.fits(range)) return socket_.abort();
  socket_.ByteStream::place(range, octets, in_order, now);
}

void StreamSocket::Behind::ordered(uint64_t offset, base::Now now) {
  socket_.ByteStream::ordered(offset, now);
}

uint32_t StreamSocket::Behind::receive_room() const { return socket_.ByteStream::receive_room(); }

void StreamSocket::Behind::peer_finished(base::Now now) { socket_.ByteStream::peer_finished(now); }

// --- StreamListener ---

llp::StreamUser* StreamListener::accept(llp::Stream& stream, const Endpoint& local,
                                        const Endpoint& remote, base::Now) {
  StreamSocket* socket = nullptr;
  if (waiting_.size() < waiting_.capacity()) {
    socket = table_.incoming(*this, stream, local, remote);
  }
  if (socket == nullptr) table_.refused();
  return socket;
}

uint32_t StreamListener::first_room(const Endpoint&) const { return table_.rings().block_octets(); }

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

Result<StreamListener*> StreamTable::listen(const Endpoint& local, uint32_t backlog,
                                            const tcp::ConnectionOptions& options) {
  if (backlog == 0 || backlog > max_streams_) {
    return fail(ErrorCode::InvalidArgument, "listen: backlog " + std::to_string(backlog) +
                                                ": give 1 to limits.max_streams (" +
                                                std::to_string(max_streams_) + ")");
  }
  listeners_.reserve(listeners_.size() + 1);
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

Result<StreamSocket*> StreamTable::connect(const Endpoint& local, const Endpoint& remote,
                                           const tcp::ConnectionOptions& options, base::Now now) {
  StreamSocket* socket = add(nullptr, local, remote);
  if (socket == nullptr) {
    return fail(ErrorCode::ResourceExhausted,
                "no streaming socket left: raise limits.max_streams (now " +
                    std::to_string(max_streams_) + ")");
  }
  Result<llp::Stream*> stream;
  const auto dial = [&] {
    stream = stack_.connect(local, remote, *socket, half_closing(options), now);
  };
  if (!base::attempt(dial)) stream = fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
  if (!stream) {
    remove(*socket);
    return tl::unexpected(std::move(stream.error()));
  }
  socket->attach(**stream);
  socket->set_local((*stream)->local());
  ++counters_.streams_opened;
  return socket;
}

Status StreamTable::set_options(StreamSocket& socket, const tcp::ConnectionOptions& options,
                                base::Now now) {
  if (socket.stream() == nullptr) return fail(ErrorCode::WrongState, "the stream has ended");
  return stack_.set_options(*socket.stream(), options, now);
}

Result<tcp::ConnectionOptions> StreamTable::options(StreamSocket& socket) const {
  if (socket.stream() == nullptr) return fail(ErrorCode::WrongState, "the stream has ended");
  return stack_.options(*socket.stream());
}

Status StreamTable::reserve_send(StreamSocket& socket) {
  if (socket.reserve_send()) return {};
  buffer_wait();
  return fail(ErrorCode::ResourceExhausted,
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
  const Status done = stack_.set_options(*socket.stream(), options, now);
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
                                    const Endpoint& local, const Endpoint& remote) {
  StreamSocket* socket = add(&listener, local, remote);
  if (socket != nullptr) socket->attach(stream);
  return socket;
}

StreamSocket* StreamTable::add(StreamListener* listener, const Endpoint& local,
                               const Endpoint& remote) {
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

}  // namespace rnic::device
