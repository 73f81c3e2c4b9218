#include "device/framed_socket.hpp"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/starved.hpp"

namespace rnic::device {

using base::fail;

namespace {

/// The application decides how long a half-closed stream lives.
tcp::ConnectionOptions open_until_closed(tcp::ConnectionOptions options) {
  options.half_close = true;
  return options;
}

Status check_format(const tuf::PduFormat& format) {
  if (format.length_octets > 4 || (format.length_octets == 0 && format.length_at != 0)) {
    return fail(ErrorCode::InvalidArgument,
                "the length field of a frame has 1 to 4 octets, or it has none and begins at 0");
  }
  return {};
}

Status check_interval(uint16_t octets) {
  if (octets >= tuf::kIntervalMin) return {};
  return fail(ErrorCode::InvalidArgument, "a marker interval is 16 to 65535 octets");
}

Status first_error(std::initializer_list<Status> checks) {
  for (const Status& status : checks) {
    if (!status) return status;
  }
  return {};
}

}  // namespace

Status check_key(wire::TufKey key) {
  // s.5: a key that data does not hold by chance, and that nobody guesses.
  if (key != 0 && key <= wire::kTufKeyMask) return {};
  return fail(ErrorCode::InvalidArgument,
              "alignment mode needs a key of 48 bits that is not 0: take new_framing_key(), and "
              "tell the peer");
}

Status check_pdu_max(uint32_t octets, const tuf::PduFormat& format) {
  if (octets >= std::max(format.head(), 1u) && octets <= wire::kTufPduMax) return {};
  return fail(ErrorCode::InvalidArgument,
              "the longest frame of marker mode is 65528 octets at most, and holds its length");
}

Status check_setup(const FramedSetup& setup) {
  if (setup.send > FramedSendMode::Markers || setup.receive > FramedReceiveMode::Markers) {
    return fail(ErrorCode::InvalidArgument,
                "a number without a name for send_mode or receive_mode");
  }
  const tuf::StreamConfig& stream = setup.stream;
  const bool marked =
      setup.send == FramedSendMode::Markers || setup.receive == FramedReceiveMode::Markers;
  if (marked && !stream.format.tells_length()) {
    return fail(ErrorCode::Unsupported,
                "marker mode needs frames that tell their length: give their format");
  }
  const Status fine;
  return first_error(
      {check_format(stream.format), check_interval(stream.send_interval),
       check_interval(stream.receive_interval), check_pdu_max(stream.max_pdu, stream.format),
       setup.send == FramedSendMode::Align ? check_key(setup.send_key) : fine,
       setup.receive == FramedReceiveMode::Align ? check_key(setup.receive_key) : fine});
}

// --- FramedSocket ---

FramedSocket::FramedSocket(FramedTable& table, FramedListener* listener,
                           const tuf::StreamConfig& config, tuf::StreamRings rings,
                           const Endpoint& local, const Endpoint& remote)
    : tuf::FramedStream(config, table.tuf_counters(), &notices, rings),
      table_(table),
      listener_(listener),
      config_(config),
      rings_(rings),
      local_(local),
      remote_(remote) {}

Status FramedSocket::begin(llp::Stream& stream, const FramedSetup& setup) {
  attach(stream);
  keeps_records_ = stream.traits().atomic_records;
  if (auto status = set_send_mode(setup.send, setup.send_key); !status) return status;
  return set_receive_mode(setup.receive, setup.receive_key);
}

void FramedSocket::obey(base::Now now) {
  const uint8_t wishes = wishes_.load(std::memory_order_acquire);
  if (stream() == nullptr) {
    if ((wishes & kRelease) != 0) table_.done_with(*this);
    return;
  }
  const bool unheard = (wishes & kRelease) != 0 && !is_established() && unacknowledged() == 0;
  if ((wishes & kAbort) != 0 || unheard) {
    abort();
    return;
  }
  serve();
  if ((wishes & kRelease) != 0) table_.let_go(*this, now);
  if ((wishes & (kFinish | kRelease)) != 0 && is_established()) close();
}

void FramedSocket::established(uint32_t emss, base::Now now) {
  tuf::FramedStream::established(emss, now);
  if (listener_ != nullptr) std::exchange(listener_, nullptr)->hand_over(*this);
  if (wishes_.load(std::memory_order_relaxed) != 0) obey(now);
}

void FramedSocket::ended(StreamEnd how, base::Now now) {
  const bool released = (wishes_.load(std::memory_order_acquire) & kRelease) != 0;
  tuf::FramedStream::ended(how, now);
  // A wish that comes after this look finds the stream gone, in obey().
  if (released) table_.done_with(*this);
}

// --- FramedListener ---

llp::StreamUser* FramedListener::accept(llp::Stream& stream, const Endpoint& local,
                                        const Endpoint& remote, base::Now) {
  FramedSocket* socket = waiting_.size() < waiting_.capacity()
                             ? table_.incoming(*this, setup_, stream, local, remote)
                             : nullptr;
  if (socket == nullptr) table_.refused();
  return socket;
}

uint32_t FramedListener::first_room(const Endpoint&) const { return table_.rings().block_octets(); }

void FramedListener::hand_over(FramedSocket& socket) {
  const bool fits = waiting_.push(&socket);
  RNIC_CHECK(fits);  // accept() looked, and established() follows at once
  table_.handed_over();
}

// --- FramedTable ---

FramedTable::FramedTable(const Limits& limits, tcp::Stack& stack, DeviceCounters& counters)
    : max_streams_(limits.max_framed_streams),
      stack_(stack),
      counters_(counters),
      rings_(limits.framed_buffer, 2 * limits.max_framed_streams),
      sockets_(limits.max_framed_streams),
      by_number_(limits.max_framed_streams),
      doorbells_(limits.max_framed_streams) {
  done_.reserve(2 * size_t{limits.max_framed_streams});
}

Result<FramedListener*> FramedTable::listen(const Endpoint& local, uint32_t backlog,
                                            const tcp::ConnectionOptions& options,
                                            const FramedSetup& setup) {
  if (backlog == 0 || backlog > max_streams_) {
    return fail(ErrorCode::InvalidArgument, "listen: backlog " + std::to_string(backlog) +
                                                ": give 1 to limits.max_framed_streams (" +
                                                std::to_string(max_streams_) + ")");
  }
  if (auto status = check_setup(setup); !status) return tl::unexpected(status.error());
  listeners_.reserve(listeners_.size() + 1);
  auto listener = std::make_unique<FramedListener>(*this, local, backlog, setup);
  if (auto status = stack_.listen(local, *listener, open_until_closed(options)); !status) {
    return tl::unexpected(status.error());
  }
  listeners_.push_back(std::move(listener));
  return listeners_.back().get();
}

void FramedTable::unlisten(FramedListener& listener, base::Now now) {
  static_cast<void>(stack_.unlisten(listener.local()));
  while (FramedSocket* socket = listener.next()) {
    socket->wish(FramedSocket::kAbort | FramedSocket::kRelease);
    socket->obey(now);
  }
  std::erase_if(listeners_, [&](const auto& mine) { return mine.get() == &listener; });
}

Result<FramedSocket*> FramedTable::connect(const Endpoint& local, const Endpoint& remote,
                                           const tcp::ConnectionOptions& options,
                                           const FramedSetup& setup, base::Now now) {
  if (auto status = check_setup(setup); !status) return tl::unexpected(status.error());
  FramedSocket* socket = add(nullptr, setup.stream, local, remote);
  if (socket == nullptr) {
    return fail(ErrorCode::ResourceExhausted,
                "no framed stream left: raise limits.max_framed_streams (now " +
                    std::to_string(max_streams_) + ")");
  }
  Result<llp::Stream*> stream;
  const auto dial = [&] {
    stream = stack_.connect(local, remote, *socket, open_until_closed(options), now);
  };
  if (!base::attempt(dial)) stream = fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
  if (!stream) {
    remove(*socket);
    return tl::unexpected(std::move(stream.error()));
  }
  socket->set_local((*stream)->local());
  Status status;
  const auto begin = [&] { status = socket->begin(**stream, setup); };
  if (!base::attempt(begin)) status = fail(ErrorCode::ResourceExhausted, base::kOutOfMemory);
  if (!status) {
    socket->wish(FramedSocket::kAbort | FramedSocket::kRelease);
    socket->obey(now);
    return tl::unexpected(status.error());
  }
  ++counters_.framed_opened;
  return socket;
}

uint32_t FramedTable::serve_doorbells(base::Now now) {
  uint32_t served = 0;
  doorbells_.answer([&](uint32_t number) {
    if (by_number_[number] == nullptr) return;
    by_number_[number]->obey(now);
    ++served;
  });
  return served;
}

void FramedTable::let_go(FramedSocket& socket, base::Now now) {
  tcp::ConnectionOptions options = stack_.options(*socket.stream());
  options.half_close = false;
  options.half_duplex_close = true;  // nobody will read what has come and what will come
  const Status done = stack_.set_options(*socket.stream(), options, now);
  RNIC_CHECK(done.has_value());  // they were good before
}

void FramedTable::reap() {
  for (const base::Handle handle : done_) {
    if (FramedSocket* socket = sockets_.get(handle); socket != nullptr) remove(*socket);
  }
  done_.clear();
}

void FramedTable::abort_all() {
  sockets_.for_each([](base::Handle, FramedSocket& socket) { socket.abort(); });
}

tuf::Counters FramedTable::with_own(tuf::Counters counters) const {
#define RNIC_TUF_ADD(name, unit, help) \
  counters.name += std::atomic_ref(tuf_counters_.name).load(std::memory_order_relaxed);
  RNIC_TUF_COUNTERS(RNIC_TUF_ADD)
#undef RNIC_TUF_ADD
  return counters;
}

FramedSocket* FramedTable::incoming(FramedListener& listener, const FramedSetup& setup,
                                    llp::Stream& stream, const Endpoint& local,
                                    const Endpoint& remote) {
  FramedSocket* socket = add(&listener, setup.stream, local, remote);
  if (socket == nullptr) return nullptr;
  bool begun = false;
  static_cast<void>(base::attempt([&] { begun = socket->begin(stream, setup).has_value(); }));
  if (begun) return socket;
  remove(*socket);
  return nullptr;
}

FramedSocket* FramedTable::add(FramedListener* listener, tuf::StreamConfig config,
                               const Endpoint& local, const Endpoint& remote) {
  if (sockets_.live() == sockets_.capacity()) return nullptr;
  config.ring_octets = rings_.block_octets();
  const tuf::StreamRings rings{rings_.take(), rings_.take()};
  const base::Handle handle = sockets_.emplace(*this, listener, config, rings, local, remote);
  FramedSocket* socket = sockets_.get(handle);
  RNIC_CHECK(socket != nullptr);
  socket->handle = handle;
  by_number_[handle.index] = socket;
  return socket;
}

void FramedTable::remove(FramedSocket& socket) {
  const tuf::StreamRings rings = socket.rings();
  by_number_[socket.number()] = nullptr;
  sockets_.erase(base::Handle(socket.handle));
  rings_.give(rings.send);
  rings_.give(rings.receive);
}

}  // namespace rnic::device
