#include "rnic-run/rdma_cm.hpp"

#include <endian.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <rdma/rdma_user_cm.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "rnic-run/caller_memory.hpp"
#include "rnic-run/face.hpp"
#include "rnic-run/queue_pairs.hpp"
#include "rnic-run/reach.hpp"
#include "rnic-run/stored_address.hpp"
#include "rnic-run/uncancelled.hpp"

namespace rnic::run {

namespace {

// Requests come from anybody, each with an id: those that the program does not read are limited.
constexpr size_t kMostUnread = 4096;
// Requests that wait for the program's answer.
constexpr uint32_t kFewestWaiting = 128;
constexpr uint32_t kMostWaiting = 1024;
constexpr uint32_t kNoIndex = UINT32_MAX;
constexpr uint8_t kAnyReads = 0xff;      // RDMA_MAX_RESP_RES: as many as the device has
constexpr int kRejectedByConsumer = 28;  // the code that programs of InfiniBand know

/// The number of Reads at once, where the program leaves it to the device.
std::optional<uint32_t> reads(uint8_t asked, uint32_t most) {
  if (asked == kAnyReads) return std::nullopt;
  return std::min<uint32_t>(asked, most);
}

uint8_t told_reads(const std::optional<uint32_t>& reads) {
  constexpr uint32_t kDefault = 16;
  const uint32_t count = reads.value_or(kDefault);
  return static_cast<uint8_t>(count >= kReadsByApplication ? kDefault : std::min(count, 255u));
}

std::span<const uint8_t> private_data(const rdma_ucm_conn_param& param) {
  return {param.private_data, param.private_data_len};
}

/// Takes the count of an eventfd, if there is one, and never waits: another thread of the program
/// may take it at this moment.
void take_count(int fd) {
  uint64_t count = 0;
  const iovec room{&count, sizeof(count)};
  if (preadv2(fd, &room, 1, -1, RWF_NOWAIT) >= 0 || errno == EAGAIN) return;
  // Linux before 5.8 does not know how.
  pollfd look{fd, POLLIN, 0};
  if (poll(&look, 1, 0) == 1 && (look.revents & POLLIN) != 0) eventfd_read(fd, &count);
}

/// The descriptor of a channel is readable for exactly the events that are queued.
void set_count(int fd, size_t events) {
  take_count(fd);
  if (events != 0) eventfd_write(fd, events);
}

int status_of(const event::Ending& ending) {
  switch (ending.end) {
    case StreamEnd::TimedOut: return -ETIMEDOUT;
    case StreamEnd::Unreachable: return -ENETUNREACH;
    default: return -ECONNREFUSED;
  }
}

}  // namespace

/// One write() of librdmacm: a header and the command behind it.
class RdmaCm::Command {
 public:
  Command(const void* octets, size_t size)
      : size_(std::min(size, octets_.size())),
        there_(copy_checked(octets_.data(), octets, size_)) {
    if (whole()) std::memcpy(&header_, octets_.data(), sizeof(header_));
  }

  [[nodiscard]] bool there() const { return there_; }
  [[nodiscard]] bool whole() const { return there_ && size_ >= sizeof(header_); }
  [[nodiscard]] uint32_t number() const { return header_.cmd; }
  /// What the command says; a library of an older version says less, and the rest is 0 then.
  template <typename Body>
  [[nodiscard]] Body body() const {
    static_assert(sizeof(header_) + sizeof(Body) <= kLongest);
    Body out{};
    std::memcpy(&out, octets_.data() + sizeof(header_),
                std::min(sizeof(out), size_ - sizeof(header_)));
    return out;
  }
  /// \return 0, or EFAULT
  template <typename Answer>
  [[nodiscard]] int answer(uint64_t where, const Answer& answer) const {
    const size_t size = std::min<size_t>(header_.out, sizeof(answer));
    return copy_checked(reinterpret_cast<void*>(where), &answer, size) ? 0 : EFAULT;
  }

 private:
  static constexpr size_t kLongest = 512;  // no command says more

  std::array<char, kLongest> octets_{};
  size_t size_;
  bool there_;
  rdma_ucm_cmd_hdr header_{};
};

void RdmaCm::opened(int channel) {
  const std::lock_guard lock(mutex_);
  // The former one of this number was closed in a way that nobody has seen.
  if (channels_.contains(channel)) drop_channel(channel);
  channels_[channel];
}

void RdmaCm::closed(int channel) {
  const std::lock_guard lock(mutex_);
  drop_channel(channel);
}

void RdmaCm::renamed(int channel, int number) {
  const std::lock_guard lock(mutex_);
  auto moved = channels_.extract(channel);
  if (moved.empty()) return;
  moved.key() = number;
  channels_.insert(std::move(moved));
  for (auto& [handle, id] : ids_) {
    if (id->channel == channel) id->channel = number;
  }
}

void RdmaCm::drop_channel(int channel) {
  channels_.erase(channel);  // with the requests: their ids are of this channel, too
  for (auto each = ids_.begin(); each != ids_.end();) {
    CmId& id = *each->second;
    ++each;
    if (id.channel == channel) drop(id);
  }
}

ssize_t RdmaCm::write(int channel, const void* octets, size_t size) {
  const Command command(octets, size);
  if (!command.whole()) {
    errno = command.there() ? EINVAL : EFAULT;
    return -1;
  }
  // It waits without the lock, and the program may cancel the thread there.
  if (command.number() == RDMA_USER_CM_CMD_GET_EVENT) {
    return get_event(channel, command) < 0 ? -1 : static_cast<ssize_t>(size);
  }
  const Uncancelled whole;
  const int error = carry_out_or_starve(channel, command);
  if (error == 0) return static_cast<ssize_t>(size);
  errno = error;
  return -1;
}

int RdmaCm::carry_out_or_starve(int channel, const Command& command) {
  // C is above: nothing may be thrown there.
  try {
    const std::lock_guard lock(mutex_);
    return carry_out(channel, command);
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  }
}

int RdmaCm::carry_out(int channel, const Command& command) {
  switch (command.number()) {
    case RDMA_USER_CM_CMD_CREATE_ID: return create_id(channel, command);
    case RDMA_USER_CM_CMD_DESTROY_ID: return destroy_id(command);
    case RDMA_USER_CM_CMD_BIND_IP:
    case RDMA_USER_CM_CMD_BIND: return bind(command);
    case RDMA_USER_CM_CMD_RESOLVE_IP:
    case RDMA_USER_CM_CMD_RESOLVE_ADDR: return resolve(command);
    case RDMA_USER_CM_CMD_RESOLVE_ROUTE: return resolve_route(command);
    case RDMA_USER_CM_CMD_QUERY_ROUTE: return query_route(command);
    case RDMA_USER_CM_CMD_QUERY: return query(command);
    case RDMA_USER_CM_CMD_INIT_QP_ATTR: return init_qp_attr(command);
    case RDMA_USER_CM_CMD_LISTEN: return listen(command);
    case RDMA_USER_CM_CMD_CONNECT: return connect(command);
    case RDMA_USER_CM_CMD_ACCEPT: return accept(command);
    case RDMA_USER_CM_CMD_REJECT: return reject(command);
    case RDMA_USER_CM_CMD_DISCONNECT: return disconnect(command);
    case RDMA_USER_CM_CMD_MIGRATE_ID: return migrate(channel, command);
    case RDMA_USER_CM_CMD_SET_OPTION: return set_option(command);
    case RDMA_USER_CM_CMD_NOTIFY: return 0;
    default: return ENOSYS;
  }
}

CmId* RdmaCm::find(uint32_t handle) {
  const auto found = ids_.find(handle);
  return found == ids_.end() ? nullptr : found->second.get();
}

QueuePairs* RdmaCm::queue_pair(uint32_t number) {
  for (QueuePairs* qp : queue_pairs_) {
    if (qp->shown_number() == number) return qp;
  }
  return nullptr;
}

CmId* RdmaCm::of_queue_pair(uint32_t number) {
  for (auto& [handle, id] : ids_) {
    if (id->qp != nullptr && id->qp->pair().number() == number) return id.get();
  }
  return nullptr;
}

void RdmaCm::add(QueuePairs& qp) {
  ends_.prepare();
  wakes_.prepare();
  const std::lock_guard lock(mutex_);
  queue_pairs_.push_back(&qp);
}

void RdmaCm::remove(QueuePairs& qp) {
  const std::lock_guard lock(mutex_);
  std::erase(queue_pairs_, &qp);
  for (auto& [handle, id] : ids_) {
    if (id->qp != &qp) continue;
    id->qp = nullptr;
    // The device says nothing of a queue pair that is gone; the kernel tells of its connection, and
    // of its attempt to have one.
    const CmTold told = std::exchange(id->told, CmTold::End);
    if (told == CmTold::Established) {
      tell({.kind = CmEventKind::Disconnected, .id = handle});
    } else if (told == CmTold::Nothing) {
      tell({.kind = id->asks ? CmEventKind::Rejected : CmEventKind::ConnectError,
            .status = -ECONNRESET,
            .id = handle});
    }
  }
}

// ---- Events ----

size_t RdmaCm::unread(int channel) const {
  const auto found = channels_.find(channel);
  return found == channels_.end() ? 0 : found->second.size();
}

void RdmaCm::tell(CmEvent event) {
  const CmId* id = find(event.id);
  if (id == nullptr) return;
  const auto channel = channels_.find(id->channel);
  if (channel == channels_.end()) return;
  channel->second.push_back(std::move(event));
  eventfd_write(channel->first, 1);
}

std::list<CmEvent> RdmaCm::withdraw(const CmId& id) {
  std::list<CmEvent> out;
  const auto found = channels_.find(id.channel);
  if (found == channels_.end()) return out;
  auto& queue = found->second;
  for (auto next = queue.begin(); next != queue.end();) {
    const auto each = next++;
    if (each->id == id.handle) out.splice(out.end(), queue, each);
  }
  if (!out.empty()) set_count(id.channel, queue.size());
  return out;
}

ssize_t RdmaCm::get_event(int channel, const Command& command) {
  for (;;) {
    if (!knows(channel)) {
      errno = EBADF;  // a child has it of its parent, whose events it must not take
      return -1;
    }
    // It takes the count of all events; those that stay are counted anew.
    uint64_t count = 0;
    if (read(channel, &count, sizeof(count)) != sizeof(count)) {
      Adapter::stay_if_leaving();
      return -1;
    }
    const std::lock_guard lock(mutex_);
    const auto found = channels_.find(channel);
    // Another thread may have been quicker, or the event's id has gone meanwhile.
    if (found == channels_.end() || found->second.empty()) continue;
    auto& queue = found->second;
    const int fault = tell_program(queue.front(), command);
    if (fault == 0) queue.pop_front();
    set_count(channel, queue.size());
    if (fault == 0) return 0;
    errno = fault;
    return -1;
  }
}

bool RdmaCm::knows(int channel) {
  const std::lock_guard lock(mutex_);
  return channels_.contains(channel);
}

int RdmaCm::tell_program(const CmEvent& event, const Command& command) {
  CmId& id = *find(event.id);  // which takes its events along when it goes
  rdma_ucm_event_resp out{};
  out.uid = id.uid;
  out.id = event.child != 0 ? event.child : id.handle;
  out.event = static_cast<uint32_t>(event.kind);
  out.status = static_cast<uint32_t>(event.status);
  rdma_ucm_conn_param& param = out.param.conn;
  const size_t octets = std::min<size_t>(event.private_data.size(), UINT8_MAX);
  param.private_data_len = static_cast<uint8_t>(octets);
  std::copy_n(event.private_data.begin(), octets, param.private_data);
  param.responder_resources = event.responder_resources;
  param.initiator_depth = event.initiator_depth;
  const int fault = command.answer(command.body<rdma_ucm_get_event>().response, out);
  if (fault != 0) return fault;
  ++id.events_read;
  if (event.kind == CmEventKind::Disconnected && !id.parts) wakes_.end_was_read(id.handle);
  return 0;
}

void RdmaCm::take(const event::ConnectRequest& request) {
  const auto name = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(request.listener_context));
  const bool v6 = !request.remote.address.is_v4();
  const auto hears = [name, v6](const auto& each) {
    const CmPort* port = each.second->port.get();
    return port != nullptr && port->number() == name && port->heard_by(v6) == each.first;
  };
  const auto found = std::find_if(ids_.begin(), ids_.end(), hears);
  CmId* listener = found == ids_.end() ? nullptr : found->second.get();
  if (listener == nullptr || unread(listener->channel) >= kMostUnread) {
    // The device counts it (start_rejects).
    (void)Adapter::get()->device().reject(request.request);
    return;
  }
  auto made = std::make_unique<CmId>();
  made->handle = ++last_handle_;
  made->channel = listener->channel;
  made->local = request.local;
  made->remote = request.remote;
  made->v6 = v6;
  made->has_address = true;
  made->state = CmState::Connecting;
  made->request = request.request;
  CmEvent event{.kind = CmEventKind::ConnectRequest,
                .id = listener->handle,
                .child = made->handle,
                .private_data = request.private_data,
                .responder_resources = told_reads(request.facts.peer_ord),
                .initiator_depth = told_reads(request.facts.peer_ird)};
  ids_[made->handle] = std::move(made);
  tell(std::move(event));
}

void RdmaCm::tell_of(const event::Common& event, CmEvent what) {
  CmId* id = of_queue_pair(event.qp);
  if (id == nullptr || id->told == CmTold::End) return;
  const bool starts =
      what.kind == CmEventKind::Established || what.kind == CmEventKind::ConnectResponse;
  id->told = starts ? CmTold::Established : CmTold::End;
  id->local = event.local;
  what.id = id->handle;
  tell(std::move(what));
}

/// The side that has asked gets the peer's answer, as over InfiniBand: librdmacm makes Established
/// of it where it has made the queue pair itself, and a program that has made it is asked for its
/// consent (rdma_establish()).
void RdmaCm::tell_of_start(const event::Established& event) {
  const CmId* id = of_queue_pair(event.qp);
  const bool asks = id != nullptr && id->asks;
  tell_of(event, {.kind = asks ? CmEventKind::ConnectResponse : CmEventKind::Established,
                  .private_data = event.private_data,
                  .responder_resources = told_reads(event.facts.peer_ord),
                  .initiator_depth = told_reads(event.facts.peer_ird)});
}

/// The program hears of the end behind what has completed before.
void RdmaCm::tell_of_end(const event::Disconnected& event) {
  CmId* id = of_queue_pair(event.qp);
  if (id == nullptr || id->told == CmTold::End) return;
  const Unread unread = id->qp->unread();
  if (!unread.any() || !ends_.hold(id->handle, unread)) {
    return tell_of(event, {.kind = CmEventKind::Disconnected});
  }
  id->told = CmTold::End;
  id->local = event.local;
}

/// On the thread of the watch.
void RdmaCm::look_at_held_ends() {
  const std::lock_guard lock(mutex_);
  ends_.release(
      [this](uint32_t handle, const Unread& unread) {
        const CmId* id = find(handle);
        return id == nullptr || id->qp == nullptr || id->qp->has_read(unread);
      },
      [this](uint32_t handle) { tell({.kind = CmEventKind::Disconnected, .id = handle}); });
}

/// On the thread of the watch.
void RdmaCm::wake_behind_ends() {
  const std::lock_guard lock(mutex_);
  wakes_.release([this](uint32_t handle) {
    const CmId* id = find(handle);
    if (id != nullptr && id->qp != nullptr) id->qp->wake();
  });
}

void RdmaCm::take(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (const auto* request = std::get_if<event::ConnectRequest>(&event)) {
    take(*request);
  } else if (const auto* up = std::get_if<event::Established>(&event)) {
    tell_of_start(*up);
  } else if (const auto* no = std::get_if<event::Rejected>(&event)) {
    tell_of(*no, {.kind = CmEventKind::Rejected,
                  .status = kRejectedByConsumer,
                  .private_data = no->private_data});
  } else if (const auto* failed = std::get_if<event::ConnectFailed>(&event)) {
    const int status = status_of(*failed);
    const bool unreachable = status != -ECONNREFUSED;
    tell_of(*failed, {.kind = unreachable ? CmEventKind::Unreachable : CmEventKind::Rejected,
                      .status = status});
  } else if (const auto* gone = std::get_if<event::RequestWithdrawn>(&event)) {
    tell_of(*gone, {.kind = CmEventKind::ConnectError, .status = -ECONNRESET});
  } else if (const auto* over = std::get_if<event::Disconnected>(&event)) {
    tell_of_end(*over);
  }
}

// ---- Commands, in the order of a connection's life ----

int RdmaCm::create_id(int channel, const Command& command) {
  const auto asked = command.body<rdma_ucm_create_id>();
  // librdmacm asks so whether there is AF_IB, once and before all else.
  const bool first = !std::exchange(has_been_asked_, true);
  if (first && asked.ps == RDMA_PS_IB) return EPROTONOSUPPORT;
  if (is_roce()) {
    complain("rdma_create_id: under the RoCE face there is no connection manager (rdma_cm): run "
             "the program without --roce");
    return ENODEV;
  }
  if (asked.ps != RDMA_PS_TCP) {
    complain("rdma_create_id: iWARP has the port space of TCP alone (RDMA_PS_TCP)");
    return EPROTONOSUPPORT;
  }
  auto made = std::make_unique<CmId>();
  made->handle = ++last_handle_;
  made->uid = asked.uid;
  made->channel = channel;
  const int fault = command.answer(asked.response, rdma_ucm_create_id_resp{made->handle});
  if (fault != 0) return fault;
  ids_[made->handle] = std::move(made);
  return 0;
}

namespace {

/// The kernel breaks the connection of an id that goes, and leaves it no more than a close in order
/// that has begun.
void break_off(const CmId& id) {
  if (id.qp == nullptr || id.told == CmTold::End) return;
  QueuePair& pair = id.qp->pair();
  const QueuePairState state = pair.state();
  const bool is_closing = state != QueuePairState::Idle && state != QueuePairState::Rts;
  if (!is_closing) (void)pair.modify({.state = QueuePairState::Error});
}

}  // namespace

void RdmaCm::drop(CmId& id) {
  // Peers whose requests the program has not read will get no answer from it.
  for (const CmEvent& unread : withdraw(id)) {
    if (CmId* child = find(unread.child)) drop(*child);
  }
  if (id.port != nullptr) id.port->leave(id.handle);
  if (id.request) (void)Adapter::get()->device().reject(*id.request);
  break_off(id);
  ids_.erase(id.handle);
}

int RdmaCm::destroy_id(const Command& command) {
  const auto asked = command.body<rdma_ucm_destroy_id>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  const uint32_t read = id->events_read;
  drop(*id);
  return command.answer(asked.response, rdma_ucm_destroy_id_resp{read});
}

int RdmaCm::bind(const Command& command) {
  sockaddr_storage address;
  CmId* id;
  if (command.number() == RDMA_USER_CM_CMD_BIND_IP) {
    const auto asked = command.body<rdma_ucm_bind_ip>();
    address = widened(asked.addr, sizeof(asked.addr));
    id = find(asked.id);
  } else {
    const auto asked = command.body<rdma_ucm_bind>();
    address = widened(asked.addr, asked.addr_size);
    id = find(asked.id);
  }
  return id == nullptr ? ENOENT : bind_to(*id, address);
}

int RdmaCm::bind_to(CmId& id, const sockaddr_storage& address) {
  const auto local = endpoint_of(address);
  if (!local) return EAFNOSUPPORT;
  if (id.state != CmState::Idle) return EINVAL;
  Adapter* adapter = Adapter::get();
  if (adapter == nullptr) return ENODEV;
  if (lacks_its_link(local->address, "rdma_bind_addr")) return EADDRNOTAVAIL;
  id.local = *local;
  id.v6 = address.ss_family == AF_INET6;
  id.port = port_of_other_family(id);
  if (id.port == nullptr) {
    auto port = adapter->device().reserve(*local);
    if (!port) {
      id.local = {};
      const int why = as_errno(port.error());
      if (why != EINVAL) return why;
      // A device on a wire has no such address, and rdma_cm takes it for all others.
      const auto all = all_for_loopback(address);
      return all ? bind_to(id, *all) : EADDRNOTAVAIL;
    }
    id.port = std::make_shared<CmPort>(++last_port_, std::move(*port));
  }
  id.local.port = id.port->local().port;
  id.has_address = !local->address.is_unspecified();
  id.state = CmState::Bound;
  return 0;
}

CmPort::Versions versions_of(const CmId& id) {
  const bool every = id.local.address.is_unspecified();
  return {.v4 = !id.v6 || (every && !id.one_family), .v6 = id.v6};
}

/// A server of both versions of IP binds one id to every address of each.
/// \return the port that an id of the other version has; nullptr: there is none
std::shared_ptr<CmPort> RdmaCm::port_of_other_family(const CmId& id) const {
  if (!id.local.address.is_unspecified() || id.local.port == 0) return nullptr;
  const auto is_other = [&id](const auto& each) {
    const CmId& other = *each.second;
    return other.port != nullptr && other.local.port == id.local.port &&
           other.local.address.is_unspecified() && !versions_of(other).meet(versions_of(id)) &&
           other.port.use_count() == 1;
  };
  const auto found = std::find_if(ids_.begin(), ids_.end(), is_other);
  return found == ids_.end() ? nullptr : found->second->port;
}

int RdmaCm::resolve(const Command& command) {
  if (command.number() == RDMA_USER_CM_CMD_RESOLVE_IP) {
    const auto asked = command.body<rdma_ucm_resolve_ip>();
    CmId* id = find(asked.id);
    if (id == nullptr) return ENOENT;
    return resolve_to(*id, widened(asked.src_addr, sizeof(asked.src_addr)),
                      widened(asked.dst_addr, sizeof(asked.dst_addr)));
  }
  const auto asked = command.body<rdma_ucm_resolve_addr>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  return resolve_to(*id, widened(asked.src_addr, asked.src_size),
                    widened(asked.dst_addr, asked.dst_size));
}

int RdmaCm::resolve_to(CmId& id, const sockaddr_storage& source, const sockaddr_storage& target) {
  const auto remote = endpoint_of(target);
  if (!remote) return EAFNOSUPPORT;
  if (id.state != CmState::Idle && id.state != CmState::Bound) return EINVAL;
  const bool v6 = target.ss_family == AF_INET6;
  if (id.state == CmState::Bound && id.v6 != v6) return EINVAL;
  if (Adapter::get() == nullptr) return ENODEV;
  const bool is_nobody = remote->address.is_unspecified();
  if (!is_nobody && !remote->address.is_unicast()) {
    return refused(EINVAL, "rdma_resolve_addr: a group has no queue pair to connect to");
  }
  if (lacks_its_link(remote->address, "rdma_resolve_addr")) return EADDRNOTAVAIL;
  if (is_out_of_reach(remote->address)) return ENETUNREACH;
  if (endpoint_of(source) && id.state == CmState::Idle) {
    if (const int refused = bind_to(id, source)) return refused;
  }
  if (is_nobody) {
    const auto here = itself(target, id.local);
    return here ? resolve_to(id, {}, *here) : errno;
  }
  if (id.local.address.is_unspecified()) {
    const auto address = source_towards(target);
    if (!address) return errno;
    id.local.address = *address;
  }
  if (id.port == nullptr) choose_port(id);
  id.remote = *remote;
  id.v6 = v6;
  id.has_address = true;
  id.state = CmState::AddressResolved;
  tell({.kind = CmEventKind::AddressResolved, .id = id.handle});
  return 0;
}

/// From now on a program may ask for the port from which it will connect. Where none is left to
/// keep (tcp.max_listeners) it learns of it when it is connected.
void RdmaCm::choose_port(CmId& id) {
  auto port = Adapter::get()->device().reserve({id.local.address, 0});
  if (!port) return;
  id.port = std::make_shared<CmPort>(++last_port_, std::move(*port));
  id.local.port = id.port->local().port;
  id.port_was_chosen = true;
}

int RdmaCm::resolve_route(const Command& command) {
  const auto asked = command.body<rdma_ucm_resolve_route>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (id->state != CmState::AddressResolved) return EINVAL;
  id->state = CmState::RouteResolved;
  tell({.kind = CmEventKind::RouteResolved, .id = id->handle});
  return 0;
}

int RdmaCm::query_route(const Command& command) {
  const auto asked = command.body<rdma_ucm_query>();
  const CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  rdma_ucm_query_route_resp out{};
  out.node_guid = id->has_address ? htobe64(kNodeGuid) : 0;
  const sockaddr_storage local = stored(id->local, id->v6);
  const sockaddr_storage remote = stored(id->remote, id->v6);
  std::memcpy(&out.src_addr, &local, sizeof(out.src_addr));
  std::memcpy(&out.dst_addr, &remote, sizeof(out.dst_addr));
  out.port_num = 1;
  out.ibdev_index = kNoIndex;
  return command.answer(asked.response, out);
}

int RdmaCm::query(const Command& command) {
  const auto asked = command.body<rdma_ucm_query>();
  const CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (asked.option != RDMA_USER_CM_QUERY_ADDR) return ENOSYS;
  rdma_ucm_query_addr_resp out{};
  out.node_guid = id->has_address ? htobe64(kNodeGuid) : 0;
  out.port_num = 1;
  const sockaddr_storage local = stored(id->local, id->v6);
  const sockaddr_storage remote = stored(id->remote, id->v6);
  out.src_size = id->v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  out.dst_size = out.src_size;
  std::memcpy(&out.src_addr, &local, sizeof(out.src_addr));
  std::memcpy(&out.dst_addr, &remote, sizeof(out.dst_addr));
  out.ibdev_index = kNoIndex;
  return command.answer(asked.response, out);
}

int RdmaCm::init_qp_attr(const Command& command) {
  const auto asked = command.body<rdma_ucm_init_qp_attr>();
  const CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  ib_uverbs_qp_attr out{};
  out.qp_state = asked.qp_state;
  // On the side that has connected librdmacm asks when the connection is there.
  const bool connected = id->qp != nullptr && id->qp->pair().state() != QueuePairState::Idle;
  if (asked.qp_state == IBV_QPS_INIT && !connected) {
    out.qp_attr_mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS;
  }
  out.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
  return command.answer(asked.response, out);
}

int RdmaCm::listen(const Command& command) {
  const auto asked = command.body<rdma_ucm_listen>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (id->state != CmState::Idle && id->state != CmState::Bound) return EINVAL;
  if (id->state == CmState::Idle) {
    sockaddr_storage any{};
    any.ss_family = AF_INET;
    if (const int refused = bind_to(*id, any)) return refused;
  }
  // Programs ask for a few: over InfiniBand whoever finds no room asks again. Those that ask for
  // none leave it to the system, as they do with the kernel.
  const uint32_t backlog =
      asked.backlog == 0 ? kMostWaiting
                         : std::clamp<uint32_t>(asked.backlog, kFewestWaiting, kMostWaiting);
  const Status listening = id->port->listen(id->handle, versions_of(*id), backlog);
  if (!listening) return as_errno(listening.error());
  id->state = CmState::Listening;
  return 0;
}

/// Has the queue pair connect from the id's port.
Status RdmaCm::begin(CmId& id, QueuePairs& qp, std::span<const uint8_t> data,
                     const ConnectOptions& options) {
  // An earlier attempt may have used the reservation up.
  const bool reserved = id.port != nullptr && id.port->reservation().local().port != 0;
  Status status = reserved ? qp.pair().connect(id.port->reservation(), id.remote, data, options)
                           : qp.pair().connect(id.remote, data, options);
  const bool taken = !status && status.error().code == ErrorCode::AlreadyExists;
  if (!taken || !id.port_was_chosen) return status;
  // A former connection from this port to that peer has not ended: any other port will do.
  id.port.reset();
  return qp.pair().connect(id.remote, data, options);
}

int RdmaCm::connect(const Command& command) {
  const auto asked = command.body<rdma_ucm_connect>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (id->state != CmState::RouteResolved) return EINVAL;
  QueuePairs* qp = queue_pair(asked.conn_param.qp_num);
  if (qp == nullptr) return EINVAL;
  const auto attributes = qp->pair().query();
  if (!attributes) return as_errno(attributes.error());
  ConnectOptions options;
  // Either side may send first, as over InfiniBand.
  options.start.revision = 2;
  options.start.fall_back = true;
  options.peer_to_peer = true;
  options.tcp.dscp = id->dscp;
  options.ird = reads(asked.conn_param.responder_resources, attributes->ird);
  options.ord = reads(asked.conn_param.initiator_depth, attributes->ord);
  const Status status = begin(*id, *qp, private_data(asked.conn_param), options);
  const bool has_no_way = !status && status.error().code == ErrorCode::Unreachable;
  if (!status && !has_no_way) return as_errno(status.error());
  id->state = CmState::Connecting;
  id->asks = true;
  if (has_no_way) {
    // The address was resolved, and programs look for news of the way in events.
    id->told = CmTold::End;
    tell({.kind = CmEventKind::Unreachable, .status = -as_errno(status.error()), .id = id->handle});
    return 0;
  }
  id->qp = qp;
  if (id->ack_timeout) qp->set_ack_timeout(*id->ack_timeout);
  take_over(*id);
  return 0;
}

int RdmaCm::accept(const Command& command) {
  const auto asked = command.body<rdma_ucm_accept>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  // The consent. The connection may have come to its end since the program was told of it.
  if (id->asks) return id->told == CmTold::Nothing ? EINVAL : 0;
  QueuePairs* qp = queue_pair(asked.conn_param.qp_num);
  if (qp == nullptr || !id->request) return EINVAL;
  const auto attributes = qp->pair().query();
  if (!attributes) return as_errno(attributes.error());
  ConnectOptions options;
  options.ird = reads(asked.conn_param.responder_resources, attributes->ird);
  options.ord = reads(asked.conn_param.initiator_depth, attributes->ord);
  options.tcp.dscp = id->dscp;
  const Status status = qp->pair().accept(*id->request, private_data(asked.conn_param), options);
  if (!status) {
    return status.error().code == ErrorCode::NotFound ? ECONNRESET : as_errno(status.error());
  }
  id->uid = asked.uid;
  id->qp = qp;
  if (id->ack_timeout) qp->set_ack_timeout(*id->ack_timeout);
  id->request.reset();
  take_over(*id);
  return 0;
}

void RdmaCm::take_over(const CmId& id) {
  for (auto& [handle, other] : ids_) {
    if (other.get() != &id && other->qp == id.qp) other->qp = nullptr;
  }
}

int RdmaCm::reject(const Command& command) {
  const auto asked = command.body<rdma_ucm_reject>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (!id->request) return EINVAL;
  const auto status =
      Adapter::get()->device().reject(*id->request, {asked.private_data, asked.private_data_len});
  id->request.reset();
  return status ? 0 : as_errno(status.error());
}

int RdmaCm::disconnect(const Command& command) {
  const auto asked = command.body<rdma_ucm_disconnect>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (id->qp == nullptr) return EINVAL;
  id->parts = true;
  const auto status = id->qp->pair().disconnect();
  return status ? 0 : as_errno(status.error());
}

/// The type of service goes to TCP. The time-out of acknowledgements is InfiniBand's: a query tells
/// it, and TCP has its own. An address may be used again at once anyway.
int RdmaCm::set_option(const Command& command) {
  const auto asked = command.body<rdma_ucm_set_option>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  if (asked.level == RDMA_OPTION_ID && asked.optname == RDMA_OPTION_ID_AFONLY) {
    int value = 0;
    if (asked.optlen != sizeof(value) || asked.optval == 0 || id->port != nullptr) return EINVAL;
    if (!copy_checked(&value, reinterpret_cast<const void*>(asked.optval), sizeof(value))) {
      return EFAULT;
    }
    id->one_family = value != 0;
    return 0;
  }
  const bool takes_octet = asked.optname == RDMA_OPTION_ID_TOS ||
                           asked.optname == RDMA_OPTION_ID_ACK_TIMEOUT;
  if (asked.level != RDMA_OPTION_ID || !takes_octet) return 0;
  if (asked.optlen != sizeof(uint8_t) || asked.optval == 0) return EINVAL;
  uint8_t value = 0;
  if (!copy_checked(&value, reinterpret_cast<const void*>(asked.optval), sizeof(value))) {
    return EFAULT;
  }
  if (asked.optname == RDMA_OPTION_ID_TOS) {
    id->dscp = static_cast<uint8_t>(value >> 2);  // behind it are the two bits of ECN
  } else {
    id->ack_timeout = value;
  }
  return 0;
}

int RdmaCm::migrate(int channel, const Command& command) {
  const auto asked = command.body<rdma_ucm_migrate_id>();
  CmId* id = find(asked.id);
  if (id == nullptr) return ENOENT;
  // The events that nobody has read go along, and with a listener those who ask it.
  auto unread = withdraw(*id);
  id->channel = channel;
  for (CmEvent& event : unread) {
    if (CmId* child = find(event.child)) child->channel = channel;
    tell(std::move(event));
  }
  return command.answer(asked.response, rdma_ucm_migrate_resp{id->events_read});
}

}  // namespace rnic::run
