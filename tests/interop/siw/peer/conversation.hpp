// One connection to the guest, driven by whoever polls the context.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rnic/verbs.hpp"
#include "workload/workload.hpp"

namespace rnic::siw {

/// Where the other end listens and how the connection is set up.
struct Target {
  Endpoint end;
  ConnectOptions options;
};

/// What all conversations share: a queue pair, the events of its connection, a time limit, and the
/// first thing that went wrong. `end()` comes first, so that regions are gone before what they
/// were made from.
class Conversation {
 public:
  Conversation(Context& context, Device device) : context_(context), device_(std::move(device)) {}
  virtual ~Conversation() = default;

  /// Makes the queue pair and its memory, then connects.
  Status connect(const Target& target);
  /// Makes the queue pair and its memory, then accepts.
  Status accept(const RequestHandle& request);

  [[nodiscard]] uint32_t qp() const { return end_ ? end_->qp.number() : 0; }
  void on_event(const Event& event);
  /// Takes completions and goes on; looks at the time.
  void step();
  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] bool failed() const { return !error_.empty(); }
  [[nodiscard]] bool disconnected() const { return disconnected_; }
  [[nodiscard]] virtual nlohmann::ordered_json report() const;
  /// The connection is given up. What its event would have told is lost.
  void abandon() { end_->qp = QueuePair(); }

 protected:
  /// Makes memory, posts the first receives.
  virtual Status prepare() = 0;
  virtual std::vector<uint8_t> request_data() { return {}; }
  virtual std::vector<uint8_t> reply_data() { return {}; }
  /// The Reply's private data, of an initiator.
  virtual Status check_reply(const std::vector<uint8_t>&) { return {}; }
  virtual void on_established() = 0;
  virtual void on_completion(const Completion& done) = 0;
  /// Called after all completions were taken.
  virtual void advance() {}
  /// A lost connection or a failed completion is no failure then.
  [[nodiscard]] virtual bool expects_end() const { return false; }

  /// The peer may close its direction now.
  [[nodiscard]] virtual bool may_close() const { return expects_end(); }

  /// Both ends are through: closes first, or answers the peer's close.
  void leave(bool first);
  void fail(const std::string& what);
  void set_patience(int64_t seconds) { patience_ns_ = seconds * 1'000'000'000; }
  /// Something has happened: the time limit begins anew.
  void touch() { deadline_ns_ = context_.now().count() + patience_ns_; }
  /// Fails where `status` did.
  bool good(const Status& status);

  workload::End& end() { return *end_; }
  [[nodiscard]] bool initiator() const { return initiator_; }
  Context& context_;

 private:
  Status open();
  void on(const event::Established& event);
  void on(const event::Rejected& event);
  void on(const event::PeerClosed& event);
  void on(const event::TerminateSent& event);
  void on(const event::TerminateReceived& event);
  void on_terminate(const Event& event, const Fault& fault);
  template <typename Kind>
  void on_lost(const Kind& event, const std::optional<Fault>& fault);
  void close();

  Device device_;
  std::unique_ptr<workload::End> end_;
  bool initiator_ = false;
  bool established_ = false;
  bool leaving_ = false;
  bool closed_ = false;  // our direction
  bool finished_ = false;
  bool disconnected_ = false;
  bool rejected_ = false;  // Disconnected follows
  int64_t patience_ns_ = 60'000'000'000;
  int64_t deadline_ns_ = 0;
  std::string error_;
  ConnectionFacts facts_;
  std::vector<std::string> events_;
  nlohmann::ordered_json faults_ = nlohmann::ordered_json::array();
};

}  // namespace rnic::siw
