/// \file
/// The table of the arguments of the public calls: each argument with values at its limit, beyond
/// it, empty, of somebody else, in the wrong state, and without a meaning, and what the call is to
/// answer to each.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "starved/world.hpp"

namespace rnic::arguments {

using starved::World;

/// What a cell stands on: if it fails, so does the cell.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error("before the call: " + result.error().message);
  return std::move(*result);
}
inline void must(const Status& status) {
  if (!status) throw std::runtime_error("before the call: " + status.error().message);
}
[[noreturn]] inline void broken(const std::string& what) { throw std::runtime_error(what); }

enum class Class : uint8_t {
  AtLimit,     ///< the last value that works
  Beyond,      ///< the first one that does not
  Empty,       ///< nothing: 0, an empty handle, no octets
  Foreign,     ///< of another device, domain or consumer
  WrongState,  ///< an object that cannot be used now
  Illegal,     ///< a number without a name, an address of nobody
};
[[nodiscard]] const char* to_string(Class of);

/// What a call is to answer.
struct Expected {
  bool works = true;
  ErrorCode code{};
  /// Parts of the error's text: the object and the limit.
  std::vector<std::string> words;
};
[[nodiscard]] inline Expected works() { return {}; }
[[nodiscard]] inline Expected refused(ErrorCode code, std::vector<std::string> words) {
  return {false, code, std::move(words)};
}
[[nodiscard]] inline Expected wrong(std::vector<std::string> words) {
  return refused(ErrorCode::InvalidArgument, std::move(words));
}

/// A value of an argument, made when the world is there.
template <typename T>
struct Value {
  Class of;
  std::string said;
  std::function<T(World&)> make;
  Expected expected;
};
template <typename T>
using Values = std::vector<Value<T>>;

struct Cell {
  std::string argument;  ///< "QueuePair::connect remote"
  Class of;
  std::string said;
  void (*prepare)(World&);
  /// Makes the value, and returns the call with it.
  std::function<std::function<Status()>(World&)> ready;
  Expected expected;
};

class Table {
 public:
  /// \param argument "Class::member name" \param call gets the world and the value
  template <typename T, typename Call>
  void row(const std::string& argument, void (*prepare)(World&), Call call,
           const Values<T>& values) {
    for (const Value<T>& value : values) {
      const auto ready = [call, make = value.make](World& w) {
        return [&w, call, given = make(w)]() -> Status { return call(w, given); };
      };
      cells_.push_back({argument, value.of, value.said, prepare, ready, value.expected});
    }
  }
  [[nodiscard]] const std::vector<Cell>& cells() const { return cells_; }

 private:
  std::vector<Cell> cells_;
};

template <typename T>
Value<T> value(Class of, std::string said, T constant, Expected expected = {}) {
  return {of, std::move(said), [constant](World&) { return constant; }, std::move(expected)};
}

/// A number of which each value works; the python test knows the words.
inline constexpr const char* kWholeType = "whole type";
template <typename T>
Values<T> whole() {
  return {value<T>(Class::AtLimit, kWholeType, std::numeric_limits<T>::max()),
          value<T>(Class::Empty, "0", 0)};
}
/// A number up to `most`. \param none what 0 is answered
template <typename T>
Values<T> up_to(T most, Expected beyond, Expected none = {}) {
  return {value<T>(Class::AtLimit, std::to_string(most), most),
          value<T>(Class::Beyond, std::to_string(most + 1), static_cast<T>(most + 1),
                   std::move(beyond)),
          value<T>(Class::Empty, "0", 0, std::move(none))};
}
[[nodiscard]] inline Values<bool> both() {
  return {value<bool>(Class::AtLimit, "true", true), value<bool>(Class::Empty, "false", false)};
}

template <typename T>
Status of(const Result<T>& result) {
  if (result) return {};
  return tl::unexpected(result.error());
}

// The rows, by header.
void add_queue_pair(Table& table);
void add_posting(Table& table);
void add_completion_queue(Table& table);
void add_shared_receive_queue(Table& table);
void add_memory(Table& table);
void add_device(Table& table);
void add_context(Table& table);
void add_consumer(Table& table);
void add_streams(Table& table);
void add_framed_streams(Table& table);
void add_blocking(Table& table);
void add_empty_handles(Table& table);
void add_texts(Table& table);

}  // namespace rnic::arguments
