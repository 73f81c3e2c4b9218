/// \file
/// Calls that wait (rnic/blocking.hpp).
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rnic-spin/dice.hpp"
#include "rnic-spin/field.hpp"
#include "rnic-spin/judge.hpp"
#include "rnic-spin/life.hpp"
#include "rnic/blocking.hpp"

namespace rnic::spin {

/// Makes calls that wait, one after the other, on the two devices of a context of its own: an
/// adapter takes the events of its device. What a call returns is known before: each has ended
/// before the next begins.
class Blocks {
 public:
  /// \param context has two devices; outlives it \param judge outlives it
  Blocks(Context& context, uint64_t seed, Judge& judge);
  ~Blocks();

  /// Finds the devices and registers memory. An error is the machine's or the configuration's.
  [[nodiscard]] Status start();
  /// One call, or a few that belong together.
  void step();
  /// Ends everything; nothing may be left.
  void finish();

 private:
  /// Memory of one device.
  struct End {
    std::unique_ptr<blocking::Adapter> adapter;
    Field field;
    MemoryRegion store;
    MemoryRegion target;
    MemoryRegion words;
    std::array<uint64_t, Field::kWords> held{};  ///< by the words
  };
  /// A connection: at [0] the end of ends_[0].
  struct Link {
    std::array<blocking::Connection, 2> handle;
    std::array<std::deque<Message>, 2> coming;  ///< messages that an end has not taken
  };

  void connect();
  void connect_to_nobody();
  void send(Link& link, size_t from);
  void send_immediate(Link& link, size_t from);
  void receive(Link& link, size_t at);
  /// Writes, and reads what was written.
  void write(Link& link, size_t from);
  void read(Link& link, size_t from);
  void add(Link& link, size_t from);
  void swap(Link& link, size_t from);
  /// Reads what it must not, which ends the connection.
  void trespass(const std::shared_ptr<Link>& link, size_t from);
  void close(const std::shared_ptr<Link>& link, size_t from);
  void check();

  [[nodiscard]] Stretch any_stretch(size_t most);
  /// Fetches octets of the peer into the own target, where they have to be the store's.
  void fetch(Link& link, size_t from, const MemoryRegion& source, const Stretch& what);
  /// \return whether the call has succeeded
  bool done(const std::string& call, const Result<Completion>& result, Expect expect,
            Judge::Codes codes = {});

  Context& context_;
  Dice dice_;
  Judge& judge_;
  std::array<End, 2> ends_;
  std::vector<std::shared_ptr<Link>> links_;
};

}  // namespace rnic::spin
