/// \file
/// RdmaCm: answers the commands of librdmacm (rdma_user_cm.h) by the device's
/// connections.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "rnic-run/adapter.hpp"
#include "rnic-run/cm_port.hpp"
#include "rnic-run/held_ends.hpp"
#include "rnic-run/late_wakes.hpp"
#include "rnic-run/of_process.hpp"

namespace rnic::run {

class QueuePairs;

/// What the program was told of an id's connection.
enum class CmTold { Nothing, Established, End };

/// How far an id has come, as in the kernel: a call that does not fit is EINVAL, and changes
/// nothing.
enum class CmState {
  Idle,
  Bound,
  AddressResolved,
  RouteResolved,
  Listening,
  Connecting,  // for good: it has asked for a connection, or was asked; CmTold says what came of it
};

/// What rdma_create_id() makes: a listener, or one end of a connection.
struct CmId {
  uint32_t handle = 0;
  uint64_t uid = 0;  // the program's own; 0 until it accepts a request
  int channel = -1;  // where its events are read
  CmState state = CmState::Idle;
  Endpoint local;
  Endpoint remote;
  bool v6 = false;           // the family of its addresses
  bool one_family = false;   // bound to every address of IPv6, it leaves those of IPv4 to others
  bool has_address = false;  // it was bound, or its address is resolved
  uint32_t events_read = 0;
  std::shared_ptr<CmPort> port;  // nullptr: not bound
  bool port_was_chosen = false;  // and not asked for, so that it may connect from another one
  std::optional<RequestHandle> request;  // of a peer, not answered yet
  QueuePairs* qp = nullptr;
  CmTold told = CmTold::Nothing;
  std::optional<uint8_t> dscp;
  std::optional<uint8_t> ack_timeout;
  bool asks = false;  // the program has asked for the connection, and not the peer
  bool parts = false;  // the program has asked for the end of the connection
};

/// The kinds of events, by librdmacm's numbers: its header and the kernel's exclude each other.
enum class CmEventKind : uint32_t {
  AddressResolved = 0,
  RouteResolved = 2,
  ConnectRequest = 4,
  ConnectResponse = 5,
  ConnectError = 6,
  Unreachable = 7,
  Rejected = 8,
  Established = 9,
  Disconnected = 10,
};

/// \return the versions of IP that a bound id uses: every address of IPv6 stands for those of IPv4,
/// too, unless it says otherwise
[[nodiscard]] CmPort::Versions versions_of(const CmId& id);

/// An event that the program has not read yet.
struct CmEvent {
  CmEventKind kind = CmEventKind::AddressResolved;
  int status = 0;
  uint32_t id = 0;     // whose event it is: for a request the listener
  uint32_t child = 0;  // a request's new id; 0: no request
  std::vector<uint8_t> private_data;
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
};

/// All calls may be made by any thread. There is one in the process.
class RdmaCm {
 public:
  static RdmaCm& instance() { return OfProcess<RdmaCm>::get(); }

  // The door's calls.
  void opened(int channel);
  void closed(int channel);
  /// The channel has another number from now on.
  void renamed(int channel, int number);
  ssize_t write(int channel, const void* command, size_t size);

  // The queue pairs that a connection may be given.
  void add(QueuePairs& qp);
  void remove(QueuePairs& qp);

  /// What happened on the device.
  void take(const Event& event);

 private:
  class Command;

  int carry_out_or_starve(int channel, const Command& command);
  int carry_out(int channel, const Command& command);
  ssize_t get_event(int channel, const Command& command);
  bool knows(int channel);
  int tell_program(const CmEvent& event, const Command& command);
  /// Takes the id's events out of its channel, for which nobody is woken any more.
  std::list<CmEvent> withdraw(const CmId& id);

  int create_id(int channel, const Command& command);
  int destroy_id(const Command& command);
  int bind(const Command& command);
  int resolve(const Command& command);
  int resolve_route(const Command& command);
  int query_route(const Command& command);
  int query(const Command& command);
  int init_qp_attr(const Command& command);
  int listen(const Command& command);
  int connect(const Command& command);
  int accept(const Command& command);
  int reject(const Command& command);
  int disconnect(const Command& command);
  int set_option(const Command& command);
  int migrate(int channel, const Command& command);

  int bind_to(CmId& id, const sockaddr_storage& address);
  [[nodiscard]] std::shared_ptr<CmPort> port_of_other_family(const CmId& id) const;
  int resolve_to(CmId& id, const sockaddr_storage& source, const sockaddr_storage& target);
  void choose_port(CmId& id);
  Status begin(CmId& id, QueuePairs& qp, std::span<const uint8_t> data,
               const ConnectOptions& options);
  void drop(CmId& id);
  void drop_channel(int channel);

  void take(const event::ConnectRequest& request);
  void tell_of_start(const event::Established& event);
  void tell_of_end(const event::Disconnected& event);
  void look_at_held_ends();
  void wake_behind_ends();
  /// \param what of the id whose queue pair the event of the device is about
  void tell_of(const event::Common& event, CmEvent what);

  [[nodiscard]] size_t unread(int channel) const;
  void tell(CmEvent event);
  CmId* find(uint32_t handle);
  CmId* of_queue_pair(uint32_t number);
  QueuePairs* queue_pair(uint32_t number);
  /// The queue pair begins a connection of this id: what comes of it is not told to the id of its
  /// former connection, which the program may keep.
  void take_over(const CmId& id);

  std::mutex mutex_;  // guards all that follows
  bool has_been_asked_ = false;  // for an id
  uint32_t last_handle_ = 0;
  std::map<uint32_t, std::unique_ptr<CmId>> ids_;
  uint32_t last_port_ = 0;
  std::map<int, std::list<CmEvent>> channels_;  // in the order in which they are read
  std::vector<QueuePairs*> queue_pairs_;
  HeldEnds ends_{[this] { look_at_held_ends(); }};
  LateWakes wakes_{[this] { wake_behind_ends(); }};
};

}  // namespace rnic::run
