// What a command asks for: conversations in one or the other role, and what became of them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conversation.hpp"
#include "plan.hpp"
#include "rping.hpp"

namespace rnic::siw {

/// A command is a JSON object; `do` is its verb: connect, serve, connections, reject. host_peer.py
/// sends them.
class Session {
 public:
  using Json = nlohmann::ordered_json;
  using Say = std::function<void(const Json&)>;

  Session(Context& context, Device device) : context_(context), device_(std::move(device)) {}

  /// Carries one command out. `say` prints what has to be known before the end.
  Json run(const Json& command, const Say& say);

 private:
  using Conversations = std::vector<std::unique_ptr<Conversation>>;

  Json connect(const Json& command, const Say& say);
  void announce(const Json& command, const Conversations& conversations, const Say& say);
  Json serve(const Json& command, const Say& say);
  Json connections(const Json& command);
  Json reject(const Json& command, const Say& say);
  Json counters_since(const std::map<std::string, uint64_t>& before) const;
  [[nodiscard]] std::map<std::string, uint64_t> counters() const;

  std::unique_ptr<Conversation> make_caller(const Json& command, uint32_t index);
  /// For a request that has come in; nothing when its private data say nothing.
  std::unique_ptr<Conversation> make_answerer(const Json& command,
                                              const event::ConnectRequest& request);
  void dispatch(Conversations& conversations, const Event& event);
  /// Drives them until all have finished.
  void drive(Conversations& conversations, const std::function<bool()>& more);
  Json result(const Conversations& conversations);

  Context& context_;
  Device device_;
  bool announced_ = false;
};

}  // namespace rnic::siw
