#include "socket/connection.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/log.hpp"
#include "socket/emss.hpp"

namespace rnic::socket {

namespace {

constexpr uint32_t kPackRoomMin = 24;          // octets; no FPDU fits a shorter rest of a segment
constexpr uint32_t kReadsPerTurn = 4;          // after them other connections have their turn
constexpr uint32_t kWorthReading = 16u << 10;  // octets: so many are rather read than looked at
constexpr uint32_t kMaxSegment = 65'535;       // octets; no FPDU needs more
constexpr uint32_t kSmallestSegment = 48;      // IPv4's 68 octets less the headers, Linux' floor
constexpr std::chrono::milliseconds kMemoryAgain{1};  // until the system is asked once more

}  // namespace

Connection::Connection(ConnectionOwner& owner, System& system, const Config& config,
                       Counters& counters, Descriptor&& descriptor, const Endpoint& remote,
                       State state)
    : owner_(owner),
      system_(system),
      config_(config),
      counters_(counters),
      remote_(remote),
      state_(state),
      nagle_(config.nagle),
      unsent_(config.send_buffer),
      handshake_done_(state == State::Open) {
  timer_.owner = this;
  readiness_.set_output_watched(state == State::Connecting);
  // What the configuration says is no option of the application's, which would be told.
  static_cast<void>(apply(system_, descriptor.get(), options_of(config)));
  descriptor_ = std::move(descriptor);  // without memory above it stays the caller's
}

Status Connection::choose(const TcpOptions& options) {
  nagle_ = options.nagle.value_or(nagle_);
  Status all = apply(system_, descriptor(), options);
  if (!all) ++counters_.options_refused;
  return all;
}

void Connection::set_state(State next) {
  RNIC_CHECK(kConnectionTransitions.allows(state_, next));
  state_ = next;
}

void Connection::set_write_half(WriteHalf next) {
  RNIC_CHECK(kWriteHalfTransitions.allows(write_half_, next));
  write_half_ = next;
}

void Connection::set_read_half(ReadHalf next) {
  RNIC_CHECK(kReadHalfTransitions.allows(read_half_, next));
  read_half_ = next;
}

// --- llp::Stream ---

void Connection::ready() {
  readiness_.set_user_has(true);
  if (wants_sending()) owner_.list(*this);
}

void Connection::close() {
  if (is_over() || write_half_ != WriteHalf::Open) return;
  if (state_ == State::Connecting) return end_with(StreamEnd::Aborted);
  set_write_half(WriteHalf::Closing);
  owner_.list(*this);
}

void Connection::abort() { end_with(StreamEnd::Aborted); }

// A RST would take octets with it that the system still has to send, and whose requests have
// completed. Their FIN goes with the descriptor; what still comes the system answers by RST.
void Connection::leave() {
  const bool all_taken =
      write_half_ == WriteHalf::Closing && unsent_.empty() && !readiness_.user_has();
  end_with(all_taken || write_half_ == WriteHalf::Closed ? StreamEnd::Closed : StreamEnd::Aborted);
}

void Connection::room_grew() {
  if (is_over()) return;
  owner_.room_grew();
  if (readiness_.lack() == Readiness::Lack::None) return;
  readiness_.room_grew();
  owner_.list(*this);
}

void Connection::look_again() { readiness_.look_again(); }

bool Connection::expect_octets() {
  if (state_ != State::Open || read_half_ != ReadHalf::Open) return false;
  if (readiness_.is_output_watched() || !readiness_.would_read()) return false;
  readiness_.set_readable(true);
  owner_.list(*this);
  return true;
}

bool Connection::wants_sending() const {
  if (state_ != State::Open || !readiness_.takes() || write_error_ != 0) return false;
  if (!unsent_.empty() || write_half_ == WriteHalf::Closing) return true;
  return write_half_ == WriteHalf::Open && readiness_.user_has();
}

// --- the beginning ---

void Connection::learn_local() {
  SystemAddress address;
  if (system_.getsockname(descriptor(), address.get(), &address.size) == 0)
    local_ = address.endpoint();
}

/// \return what has ended the stream, of which the system tells once; 0: nothing has
int Connection::error_of_system() {
  int error = 0;
  socklen_t size = sizeof error;
  system_.getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

void Connection::on_epoll(uint32_t events, base::Now now) {
  if (is_over()) return;
  if (state_ == State::Connecting) {
    const int error = error_of_system();
    if (error == ECONNRESET) open(now);  // the handshake was over: ECONNREFUSED answers a SYN
    if (error != 0) return fail(error);
    if ((events & (EPOLLOUT | EPOLLIN)) == 0) return;
    open(now);
    if (is_over()) return;
  }
  const bool leaves = (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
  if (leaves || (events & EPOLLPRI) != 0) readiness_.short_reads_mean_nothing();
  const bool finished = read_half_ == ReadHalf::Finished;
  if (!finished && (leaves || (events & EPOLLIN) != 0)) {
    readiness_.set_readable(true);
    look_again();
    if (leaves) note_leaving();
  }
  // A broken connection reports its error to a read, so it is marked as readable.
  if (finished && (events & (EPOLLHUP | EPOLLERR)) != 0) readiness_.set_readable(true);
  if ((events & EPOLLOUT) != 0) {
    readiness_.set_writable(true);
    watch_output(false);
  }
  if (wants_reading() || wants_sending()) owner_.list(*this);
}

void Connection::open(base::Now now) {
  if (state_ == State::Connecting) set_state(State::Open);
  handshake_done_ = true;
  readiness_.set_writable(true);
  ++counters_.established;
  owner_.disarm(*this);
  learn_local();
  const SegmentFacts facts =
      ask_system(system_, descriptor(), remote_.address.is_v4(), config_.mtu);
  if (facts.send_mss == 0) ++counters_.emss_unknown;
  emss_.set(
      std::clamp(choose_emss(facts), kSmallestSegment, std::min(kMaxSegment, config_.send_buffer)));
  user_->established(emss_.value(), now);
  if (wants_sending()) owner_.list(*this);
}

// --- sending ---

void Connection::refresh_emss(base::Now now) {
  if (!emss_.ask(now)) return;
  const SegmentFacts facts =
      ask_system(system_, descriptor(), remote_.address.is_v4(), config_.mtu);
  const uint32_t emss =
      std::clamp(choose_emss(facts), kSmallestSegment, std::min(kMaxSegment, config_.send_buffer));
  if (emss == emss_.value()) return;
  emss_.set(emss);
  ++counters_.emss_changes;
  user_->emss_changed(emss);
}

void Connection::send(base::Now now) {
  if (!wants_sending()) return;
  if (unsent_.empty() && readiness_.user_has()) pull_records(now);
  if (!is_over() && !unsent_.empty()) write_out(now);
  release_taken(now);
  if (!is_over() && write_half_ == WriteHalf::Closing && unsent_.empty() && !readiness_.user_has())
    send_fin(now);
}

void Connection::pull_records(base::Now now) {
  refresh_emss(now);
  // The system ends a full segment by itself; after a shorter one the next segment has to be asked
  // for. With Nagle's algorithm short segments are meant to be joined.
  bool joined = false;
  while (readiness_.user_has() && !is_over() && unsent_.takes_records() && unsent_.takes_writes() &&
         unsent_.room() >= emss_.value()) {
    const uint32_t octets = pull_segment(emss_.value(), now);
    if (octets == 0) break;
    unsent_.add_octets(octets, joined || !config_.align);
    ++counters_.segments_out;
    joined = octets == emss_.value() || nagle_;
  }
}

uint32_t Connection::pull_segment(uint32_t emss, base::Now now) {
  uint32_t packed = 0;
  do {
    const uint32_t n = emss - packed;
    llp::Frame frame(unsent_.tail() + packed, n);
    if (packed == 0) readiness_.set_user_has(false);  // ready() during the call sets it again
    const llp::Pulled pulled = user_->pull(n, unsent_.pulled(), frame, now);
    if (is_over() || pulled.length == 0) break;
    RNIC_CHECK(pulled.length == frame.length());
    readiness_.set_user_has(true);
    packed += pulled.length;
    unsent_.add_record(pulled.tag, pulled.length);
    ++counters_.records_out;
  } while (config_.pack_records && emss - packed >= kPackRoomMin && unsent_.takes_records());
  return is_over() ? 0 : packed;
}

bool Connection::write_out(base::Now now) {
  while (!unsent_.empty()) {
    std::array<Unsent::Write, Unsent::kMaxWrites> writes;
    std::array<iovec, Unsent::kMaxWrites> pieces;
    std::array<mmsghdr, Unsent::kMaxWrites> messages;
    const uint32_t count = unsent_.writes(writes);
    for (uint32_t i = 0; i < count; ++i) {
      pieces[i] = {const_cast<uint8_t*>(unsent_.at(writes[i].begin)),
                   writes[i].end - writes[i].begin};
      messages[i] = {};
      messages[i].msg_hdr.msg_iov = &pieces[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
    const bool ends_segment = config_.align && !nagle_;
    const int flags = MSG_DONTWAIT | MSG_NOSIGNAL | (ends_segment ? MSG_EOR : 0);
    const int sent = system_.sendmmsg(descriptor(), messages.data(), count, flags);
    if (sent < 0) {
      if (errno == EINTR) continue;
      const bool memory = errno == ENOBUFS || errno == ENOMEM;
      if (memory || errno == EAGAIN || errno == EWOULDBLOCK) {
        await_output(memory, now);
        return false;
      }
      write_error_ = errno;
      readiness_.set_writable(false);
      readiness_.set_readable(true);
      readiness_.short_reads_mean_nothing();
      readiness_.room_grew();
      owner_.list(*this);
      return false;
    }
    ++counters_.writes;
    bool whole = true;
    for (int i = 0; i < sent; ++i) {
      whole = whole && messages[i].msg_len == pieces[i].iov_len;
      unsent_.taken(messages[i].msg_len);
      counters_.octets_out += messages[i].msg_len;
    }
    if (whole) continue;
    ++counters_.partial_writes;
    await_output(false, now);
    return false;
  }
  return true;
}

/// The system takes no more for now: epoll is to tell when it does, and tells at once if it takes
/// more already. It knows nothing of memory, and would call a socket ready that lacks only that.
void Connection::await_output(bool memory, base::Now now) {
  ++counters_.send_waits;
  readiness_.set_writable(false);
  if (!memory) watch_output(true);
  if (memory || !readiness_.is_output_watched()) owner_.arm(*this, now + kMemoryAgain);
}

void Connection::watch_output(bool yes) {
  if (readiness_.is_output_watched() == yes) return;
  if (owner_.watch_output(*this, yes)) readiness_.set_output_watched(yes);
}

void Connection::release_taken(base::Now now) {
  while (!is_over()) {
    const Unsent::Record* record = unsent_.release();
    if (record == nullptr) return;
    const Unsent::Record copy = *record;
    if (trace_ != nullptr) {
      trace_->record(TraceKind::Sent, {copy.end - copy.length, copy.end}, now);
    }
    user_->released(copy.tag, copy.end);
  }
}

void Connection::send_fin(base::Now now) {
  set_write_half(WriteHalf::Closed);
  system_.shutdown(descriptor(), SHUT_WR);
  if (read_half_ == ReadHalf::Finished) return end_with(StreamEnd::Closed);
  ++counters_.half_closes;
  owner_.arm(*this, now + config_.close_timeout);
}

// --- receiving ---

uint32_t Connection::receive(std::vector<uint8_t>& buffer, llp::BeforeHandUp& before,
                             base::Now now) {
  uint32_t work = 0;
  for (uint32_t turn = 0; turn < kReadsPerTurn && wants_reading(); ++turn) {
    uint32_t room = user_->receive_room();
    if (room == 0 && write_error_ == 0 && read_half_ == ReadHalf::Leaving) {
      room = room_behind_leaving(before);
      if (is_over()) break;
    }
    if (room == 0 && write_error_ == 0) {
      wait_for(Readiness::Lack::Window);
      break;
    }
    const uint32_t sure_room = room != 0 ? user_->sure_room() : 0;
    size_t most = std::min<size_t>(buffer.size(), std::max(room, 1u));
    // Less at once is better than to look at all of it first.
    if (sure_room >= kWorthReading) most = std::min<size_t>(most, sure_room);
    const bool sure = owed_ != 0 || sure_room >= most;
    ssize_t got = system_.recv(descriptor(), buffer.data(), owed_ != 0 ? owed_ : most,
                               MSG_DONTWAIT | (sure ? 0 : MSG_PEEK));
    if (got > 0 && sure) note_read(got);
    if (got > 0 && room == 0) {
      fail(write_error_);  // nothing of the peer's can come behind them
      break;
    }
    if (got > 0 && owed_ != 0) {
      owed_ -= static_cast<uint32_t>(got);
      continue;
    }
    bool all = got > 0 && static_cast<size_t>(got) < most;
    int error = 0;
    if (got > 0 && !sure) {
      const uint32_t taken = taken_of({buffer.data(), static_cast<size_t>(got)});
      if (taken == 0) break;
      error = take(buffer.data(), taken);
      all = all && taken == static_cast<uint32_t>(got) && owed_ == 0;
      got = taken;
    }
    if (got < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        fail(errno);
        break;
      }
      readiness_.set_readable(false);
      if (write_error_ != 0) fail(write_error_);
      break;
    }
    ++work;
    if (got == 0) {
      readiness_.set_readable(false);
      end_of_file(now);
      break;
    }
    before.before_hand_up();
    if (all) readiness_.came_short();
    if (!is_over()) hand_up({buffer.data(), static_cast<size_t>(got)}, now);
    if (error != 0) fail(error);
  }
  return work;
}

void Connection::note_read(ssize_t octets) {
  ++counters_.reads;
  counters_.octets_in += static_cast<uint64_t>(octets);
}

/// Takes octets out of the system's buffer that were only looked at before, and for which the user
/// has room as a whole, though maybe not for a part. Octets that the system does not give now are
/// owed: they are handed up all the same, because they were seen, and thrown away when they come.
/// \return an error that ends the connection, or 0
int Connection::take(uint8_t* to, uint32_t octets) {
  owed_ = octets;
  while (owed_ != 0) {
    const ssize_t got = system_.recv(descriptor(), to + (octets - owed_), owed_, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 || errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
    note_read(got);
    owed_ -= static_cast<uint32_t>(got);
  }
  return 0;
}

/// The system tells that the peer has gone. A user that takes nothing is asked once more.
void Connection::note_leaving() {
  if (read_half_ == ReadHalf::Open) set_read_half(ReadHalf::Leaving);
  if (readiness_.lack() == Readiness::Lack::Window) readiness_.room_grew();
}

/// The user takes nothing, and the peer has gone: an error of the stream, such as a reset, ends it
/// without the octets that are unread. Behind a FIN they stay until the user takes them.
/// \return what the user takes then
uint32_t Connection::room_behind_leaving(llp::BeforeHandUp& before) {
  if (const int error = error_of_system(); error != 0) {
    fail(error);
    return 0;
  }
  before.before_hand_up();
  return is_over() ? 0 : user_->receive_room();
}

void Connection::wait_for(Readiness::Lack what) {
  readiness_.wait_for(what);
  ++counters_.receive_waits;
  if (what == Readiness::Lack::Space) owner_.lacks_space(*this);
}

/// How many of the octets that were only looked at the user takes. 0: they stay in the system.
uint32_t Connection::taken_of(base::ByteView octets) {
  ++counters_.peeks;
  const uint32_t taken = user_->takes({received_, received_ + octets.size()}, octets);
  if (taken != 0) return taken;
  if (write_error_ != 0) {
    fail(write_error_);  // nothing of the peer's can come behind them
  } else {
    wait_for(Readiness::Lack::Space);
  }
  return 0;
}

void Connection::hand_up(base::ByteView octets, base::Now now) {
  const base::Range range{received_, received_ + octets.size()};
  received_ = range.end;
  // Octets taken from the system cannot be put back: a user that drops here has ignored the traits.
  const auto verdict = user_->inspect(range, octets, now);
  RNIC_CHECK(verdict == llp::InspectVerdict::Accept);
  user_->place(range, octets, true, now);
  if (is_over()) return;
  if (trace_ != nullptr) trace_->record(TraceKind::Delivered, {0, range.end}, now);
  user_->ordered(range.end, now);
  // The peer's half still lives (RFC 5044 s.7.2), so the time-out begins again when octets come.
  if (write_half_ == WriteHalf::Closed && !is_over())
    owner_.arm(*this, now + config_.close_timeout);
}

void Connection::end_of_file(base::Now now) {
  if (write_error_ != 0) return fail(write_error_);
  if (read_half_ == ReadHalf::Finished) return fail(ECONNRESET);
  set_read_half(ReadHalf::Finished);
  user_->peer_finished(now);
  if (!is_over() && write_half_ == WriteHalf::Closed) end_with(StreamEnd::Closed);
}

// --- the end ---

void Connection::timer_fired(base::Now now) {
  if (is_over()) return;
  if (state_ == State::Open && write_half_ != WriteHalf::Closed) {
    readiness_.set_writable(true);
    if (wants_sending()) owner_.list(*this);
    return;
  }
  int unacknowledged = 0;
  const bool opening = state_ == State::Connecting;
  // Octets before the FIN are still on their way, for which user_timeout is the limit.
  if (!opening && system_.unacknowledged(descriptor(), unacknowledged) == 0 && unacknowledged > 1) {
    owner_.arm(*this, now + config_.close_timeout);
    return;
  }
  end_with(StreamEnd::TimedOut);
}

void Connection::fail(int error) {
  if (is_over()) return;
  if (!is_known(error)) {
    ++counters_.errors;
    base::log(base::LogLevel::Warning, "socket", [&] {
      return "connection to " + to_string(remote_) + ": " + std::generic_category().message(error);
    });
  }
  end_with(end_of(error, state_ == State::Connecting));
}

void Connection::end_with(StreamEnd how) {
  if (is_over()) return;
  set_state(State::Ended);
  how_ended_ = how;
  owner_.reap_later(*this);
}

void Connection::count_end() {
  switch (how_ended_) {
    case StreamEnd::Closed: ++counters_.closed; break;
    case StreamEnd::PeerReset: ++counters_.resets_in; break;
    case StreamEnd::TimedOut: ++counters_.timed_out; break;
    case StreamEnd::Refused: ++counters_.refused; break;
    case StreamEnd::Aborted: ++counters_.aborted; break;
    case StreamEnd::Unreachable: ++counters_.unreachable; break;
  }
}

void Connection::finish(base::Now now) {
  owner_.disarm(*this);
  const bool gracefully = how_ended_ == StreamEnd::Closed;
  if (handshake_done_ && !gracefully) reset_on_close(system_, descriptor());
  descriptor_.reset();
  if (user_ == nullptr) return;  // the device did not want it
  count_end();
  std::exchange(user_, nullptr)->ended(how_ended_, now);
}

}  // namespace rnic::socket
