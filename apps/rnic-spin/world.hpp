/// \file
/// The objects that rnic-spin has made, each with what the caller knows of it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "rnic-spin/conversation.hpp"
#include "rnic-spin/dice.hpp"
#include "rnic-spin/field.hpp"
#include "rnic-spin/framed_talk.hpp"
#include "rnic-spin/judge.hpp"
#include "rnic-spin/life.hpp"
#include "rnic-spin/share.hpp"
#include "rnic/consumer.hpp"
#include "rnic/framed_stream.hpp"
#include "rnic/verbs.hpp"

namespace rnic::spin {

inline constexpr uint16_t kPort = 7474;       ///< what both devices listen on, all the time
inline constexpr uint16_t kNobody = kPort + 1;  ///< a port that nobody ever listens on

/// One to whom the device gives resources: a consumer, or the application for none.
struct Owner {
  Consumer handle;  ///< empty: the application, or a consumer that nobody can name any more
  Share share;
  bool is_application = false;
  bool has_listened = false;  ///< requests of peers may have come for it
};

// Objects of which others are made stay until the last of these goes: `ended` says that their
// handle is gone. A call has taken them from the owner's share already when they are made here.

struct Domain {
  ProtectionDomain handle;
  std::shared_ptr<Owner> owner;
  uint32_t users = 0;  ///< regions, windows, queue pairs and shared receive queues of it
  bool ended = false;

  void end();
  /// Something of the domain is gone. \param amounts what its owner had for it
  void drop_user(const ResourceCounts& amounts);
};

struct Queue {
  CompletionQueue handle;
  std::shared_ptr<Owner> owner;
  uint32_t depth = 0;
  uint32_t users = 0;   ///< send and receive queues that complete there
  uint64_t demand = 0;  ///< completions that they may have at once
  bool ended = false;

  void end();
  void drop_user();
  /// What the owner has for a queue of `depth`.
  [[nodiscard]] static ResourceCounts share_of(uint32_t depth);
};

struct SharedQueue {
  SharedReceiveQueue handle;
  std::shared_ptr<Domain> domain;
  uint32_t depth = 0;
  uint32_t users = 0;
  bool ended = false;
  std::map<uint64_t, Posted> posted;  ///< by id; its receives complete in no order

  void end();
  void drop_user();
};

/// What memory a region is over.
enum class Place : uint8_t { Store, Target, Inbox, Words };

struct Region {
  MemoryRegion handle;
  std::shared_ptr<Domain> domain;
  Place place = Place::Store;
  size_t from = 0;  ///< octets of the part before it
  AccessSet access;
  uint32_t only = 0;          ///< number of the queue pair whose alone it is; 0: of its domain
  uint32_t windows = 0;       ///< bound to it by calls
  bool may_be_bound = false;  ///< a request was posted that binds a window to it
  bool may_be_gone = false;   ///< a request was posted, here or there, that invalidates it
  bool is_cut = false;        ///< its octets are several pieces, that follow each other
  uint64_t pieces = 0;        ///< of those that the device keeps

  [[nodiscard]] bool covers(Place of, size_t begin, size_t length) const {
    return place == of && begin >= from && begin + length <= from + handle.length();
  }
};

/// An STag that was allocated, under which requests register a part of a region.
struct Grant {
  /// A state says whether it gives access. Coming, Going: a request says so that has not completed.
  /// Doubtful: such a request has not come to a known end.
  enum class State : uint8_t { Free, Coming, Valid, Going, Doubtful };

  MemoryRegion handle;
  std::shared_ptr<Domain> domain;
  State state = State::Free;
  uint32_t stag = 0;           ///< of the latest registration
  uint32_t gone = 0;           ///< Free: the STag that it had; 0: none
  std::shared_ptr<Life> by;    ///< Coming, Going: whose request it is, or who receives it
  std::shared_ptr<Region> over;
  size_t from = 0;             ///< octets of the store or target before it
  size_t length = 0;
  uint64_t offset = 0;         ///< tagged, of its first octet
  AccessSet access;
  uint32_t only = 0;           ///< as Region

  [[nodiscard]] bool serves(const Life& life) const { return only == 0 || only == life.number; }
  [[nodiscard]] bool covers(Place place, const Stretch& what) const {
    return state == State::Valid && over->place == place && what.from >= from &&
           what.from + what.length <= from + length;
  }
};

struct Window {
  MemoryWindow handle;
  std::shared_ptr<Domain> domain;
  WindowType type = WindowType::Domain;
  std::shared_ptr<Region> bound;  ///< of type 1: to what; whole
  AccessSet access;
};

/// How far a connection has come, as the events tell.
enum class Phase : uint8_t { None, Starting, Running, Ending, Over };

/// How long a message waits for a receive: not at all, so briefly that it may be in vain, or longer
/// than anybody lets it wait.
enum class Wait : uint8_t { Never, Briefly, Long };

struct Pair {
  QueuePair handle;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<Queue> send_queue;
  std::shared_ptr<Queue> receive_queue;
  std::shared_ptr<SharedQueue> shared;
  std::shared_ptr<Life> life;
  uint32_t depth = 0;  ///< of either queue
  uint32_t ird = 0;    ///< as asked for
  uint32_t ord = 0;
  Wait wait = Wait::Never;
  Phase phase = Phase::None;
  uint32_t peer = 0;  ///< the other end's number, once it is known
  bool traced = false;  ///< a trace was begun and not taken
};

/// An endpoint that a device listens on for RDMA connections.
struct Listening {
  Endpoint local;
  std::shared_ptr<Owner> owner;
  uint64_t number = 0;  ///< ListenOptions::context is it
};

struct Reserved {
  PortReservation handle;
  Endpoint local;
  std::shared_ptr<Owner> owner;
};

/// An endpoint that a device listens on for streams.
struct StreamPort {
  StreamListener handle;
  Endpoint local;
};

/// One end of a stream.
struct Speaking {
  Stream handle;
  std::shared_ptr<Conversation> talk;
  StreamRole role = StreamRole::Initiator;
  bool finished = false;  ///< as its own handle has it, also where the conversation is doubtful
  bool was_converted = false;  ///< which a stream can be once
};

/// An endpoint that a device listens on for framed streams.
struct FramedPort {
  FramedStreamListener handle;
  Endpoint local;
  FramingOptions peers;  ///< what who connects has to frame with
};

/// One end of a framed stream; as Speaking.
struct FramedEnd {
  FramedStream handle;
  std::shared_ptr<FramedTalk> talk;
  StreamRole role = StreamRole::Initiator;
  bool finished = false;
};

/// A request for a connection that nobody has answered yet.
struct Asked {
  RequestHandle request;
  uint32_t peer = 0;
  std::shared_ptr<Owner> owner;  ///< of its listener; nullptr: that was gone, so it is not known
};

/// One device, and everything that was made of it.
struct Side {
  explicit Side(Device of);

  Device device;
  bool on_sockets;  ///< of the system: it has no streams, and shares its ports with others
  Field field;
  std::shared_ptr<Owner> application;
  std::vector<std::shared_ptr<Owner>> consumers;  ///< that calls can name
  std::vector<std::shared_ptr<Owner>> unnamed;  ///< without a handle, and they have something left
  std::vector<std::shared_ptr<Domain>> domains;
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::shared_ptr<SharedQueue>> shared;
  std::vector<std::shared_ptr<Region>> regions;
  std::vector<std::shared_ptr<Grant>> grants;
  std::vector<std::shared_ptr<Window>> windows;
  std::vector<std::shared_ptr<Pair>> pairs;
  std::vector<std::shared_ptr<Listening>> listening;
  std::vector<std::shared_ptr<Reserved>> reserved;
  std::vector<std::shared_ptr<StreamPort>> stream_ports;
  std::vector<std::shared_ptr<Speaking>> speaking;
  /// Ends of streams that carry, or are about to carry, RDMA.
  std::vector<std::shared_ptr<Speaking>> converted;
  std::vector<std::shared_ptr<FramedPort>> framed_ports;
  std::vector<std::shared_ptr<FramedEnd>> framed;
  std::vector<Asked> asked;
  std::map<uint32_t, std::shared_ptr<Life>> lives;  ///< by number
  std::map<uint32_t, std::shared_ptr<SharedQueue>> shared_of;  ///< by number of the queue pair
  std::vector<size_t> free_slots;
  uint64_t disturbed = 0;  ///< memory of requests with smaller ids may have been deregistered
  std::array<uint64_t, Field::kWords> added{};  ///< posted to each word of it by the other side

  [[nodiscard]] std::shared_ptr<Pair> pair_of(uint32_t number) const;
  /// The application, or a consumer.
  [[nodiscard]] std::shared_ptr<Owner> any_owner(Dice& dice) const;
  /// What the application and all consumers have together.
  [[nodiscard]] ResourceCounts given_out() const;
  /// \return whether an STag that is valid, for all that is known, stands on the region
  [[nodiscard]] bool is_granted(const Region& region) const;
  /// A queue pair whose connection is in use.
  [[nodiscard]] std::shared_ptr<Pair> any_running(Dice& dice) const;
};

/// Two devices, and what the caller knows of them.
struct World {
  World(Context& of, uint64_t seed) : context(of), dice(seed) {}

  Context& context;
  Dice dice;
  Judge judge;
  std::vector<std::unique_ptr<Side>> sides;  ///< two
  uint64_t next_id = 1;
  uint64_t next_number = 1;  ///< of consumers, listeners and streams
  /// The streams that there were, by the initiator's endpoint and the acceptor's.
  std::map<std::pair<Endpoint, Endpoint>, std::shared_ptr<Conversation>> talks;
  std::map<std::pair<Endpoint, Endpoint>, std::shared_ptr<FramedTalk>> framed_talks;
  /// Ends of streams whose conversation is in neither any more: a listener may still have them.
  std::set<std::pair<Endpoint, Endpoint>> forgotten_talks;

  [[nodiscard]] Side& other(const Side& side) const {
    return *sides[&side == sides.front().get() ? 1 : 0];
  }
  /// Nothing happens between two calls but what they do.
  [[nodiscard]] bool is_still() const { return !context.threaded(); }
  /// Judges a call that takes `more` of a share: it has to succeed, unless a quota refuses it.
  bool granted(const std::string& call, const Status& status, Share& share,
               const ResourceCounts& more);
  template <typename T>
  bool granted(const std::string& call, const Result<T>& result, Share& share,
               const ResourceCounts& more) {
    return granted(call, result ? Status{} : Status{tl::unexpected(result.error())}, share, more);
  }
  /// A quota has refused a call: its error has to say which one of whom.
  void refused(const std::string& call, const Status& status, Share& share,
               const std::string& quota);
  /// The devices do something: one turn, or in a threaded context what their workers just do.
  void turn() const { context.poll(); }
  /// \return whether `done` came true in time
  [[nodiscard]] bool await(const std::function<bool()>& done,
                           std::chrono::milliseconds patience = std::chrono::seconds(10)) const {
    return context.wait_until(done, patience);
  }
};

}  // namespace rnic::spin
