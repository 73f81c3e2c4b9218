/// \file
/// The objects that rnic-spin has made, each with what the caller knows of it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "rnic-spin/dice.hpp"
#include "rnic-spin/field.hpp"
#include "rnic-spin/judge.hpp"
#include "rnic-spin/life.hpp"
#include "rnic/verbs.hpp"

namespace rnic::spin {

inline constexpr uint16_t kPort = 7474;  ///< what both devices listen on

struct Domain {
  ProtectionDomain handle;
  uint32_t users = 0;  ///< regions, queue pairs and shared receive queues of it
};

struct Queue {
  CompletionQueue handle;
  uint32_t depth = 0;
  uint32_t users = 0;   ///< send and receive queues that complete there
  uint64_t demand = 0;  ///< completions that they may have at once
};

struct SharedQueue {
  SharedReceiveQueue handle;
  std::shared_ptr<Domain> domain;
  uint32_t depth = 0;
  uint32_t users = 0;
  std::map<uint64_t, Posted> posted;  ///< by id; its receives complete in no order
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

  [[nodiscard]] bool covers(Place of, size_t begin, size_t length) const {
    return place == of && begin >= from && begin + length <= from + handle.length();
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

struct Pair {
  QueuePair handle;
  std::shared_ptr<Domain> domain;
  std::shared_ptr<Queue> send_queue;
  std::shared_ptr<Queue> receive_queue;
  std::shared_ptr<SharedQueue> shared;
  std::shared_ptr<Life> life;
  uint32_t depth = 0;  ///< of either queue
  Phase phase = Phase::None;
  uint32_t peer = 0;  ///< the other end's number, once it is known
};

/// A request for a connection that nobody has answered yet.
struct Asked {
  RequestHandle request;
  uint32_t peer = 0;
};

/// One device, and everything that was made of it.
struct Side {
  explicit Side(Device of);

  Device device;
  Field field;
  std::vector<std::shared_ptr<Domain>> domains;
  std::vector<std::shared_ptr<Queue>> queues;
  std::vector<std::shared_ptr<SharedQueue>> shared;
  std::vector<std::shared_ptr<Region>> regions;
  std::vector<std::shared_ptr<Window>> windows;
  std::vector<std::shared_ptr<Pair>> pairs;
  std::vector<Asked> asked;
  std::map<uint32_t, std::shared_ptr<Life>> lives;  ///< by number
  std::map<uint32_t, std::shared_ptr<SharedQueue>> shared_of;  ///< by number of the queue pair
  std::vector<size_t> free_slots;
  uint64_t disturbed = 0;  ///< memory of requests with smaller ids may have been deregistered
  std::array<uint64_t, Field::kWords> added{};  ///< posted to each word of it by the other side

  [[nodiscard]] std::shared_ptr<Pair> pair_of(uint32_t number) const;
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

  [[nodiscard]] Side& other(const Side& side) const {
    return *sides[&side == sides.front().get() ? 1 : 0];
  }
  /// The devices do something: one turn, or in a threaded context what their workers just do.
  void turn() const { context.poll(); }
  /// \return whether `done` came true within 10 s
  [[nodiscard]] bool await(const std::function<bool()>& done) const {
    return context.wait_until(done, std::chrono::seconds(10));
  }
};

}  // namespace rnic::spin
