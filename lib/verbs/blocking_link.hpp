/// \file
/// BlockingLink: the implementation of a blocking::Connection, a queue pair with queues and
/// receives of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rnic/blocking.hpp"
#include "verbs/event_desk.hpp"

namespace rnic::verbs {

/// \return the octets of the buffers of one link
[[nodiscard]] constexpr uint64_t buffer_octets(const blocking::ConnectionOptions& options) {
  return (uint64_t{options.receives} + 1) * options.message_size;
}

class BlockingLink {
 public:
  /// Makes a link that is not connected; all its receives are posted.
  static Result<std::unique_ptr<BlockingLink>> make(std::shared_ptr<EventDesk> desk,
                                                    const blocking::ConnectionOptions& options);
  explicit BlockingLink(std::shared_ptr<EventDesk> desk);
  BlockingLink(const BlockingLink&) = delete;
  BlockingLink& operator=(const BlockingLink&) = delete;
  ~BlockingLink();

  [[nodiscard]] const EventDesk& desk() const { return *desk_; }
  [[nodiscard]] uint32_t number() const { return qp_.number(); }
  [[nodiscard]] uint64_t buffered() const { return buffers_.size(); }  ///< octets of its buffers
  /// \return whether this side's end of the connection, which may be under way, is `end`
  [[nodiscard]] bool is_at(const Endpoint& end) const;

  /// Starts a connection; await_established() tells how it went.
  Status connect(const Endpoint& remote, const blocking::ConnectionOptions& options);
  /// Checks whether accept() would take the options, whoever asks.
  Status check_answer(const blocking::ConnectionOptions& options);
  /// Accepts a request. NotFound: the request is gone.
  Status accept(const RequestHandle& request, const blocking::ConnectionOptions& options);
  /// Waits until the connection is established. \param who the peer, for the message of a TimedOut
  Status await_established(const WaitEnd& end, const std::string& who);
  /// \return whether the connection is established or has failed
  [[nodiscard]] bool is_decided() const;
  /// Which of both: success, or why it was not established. Called once is_decided().
  Status outcome();

  Result<Completion> send(std::span<const std::byte> message, const WaitEnd& end);
  Result<Completion> receive(std::span<std::byte> into, const WaitEnd& end);
  Result<Completion> carry_out(SendRequest request, const WaitEnd& end);
  Status close(const WaitEnd& end);
  [[nodiscard]] bool peer_closed() const { return peer_closed_; }

  void set_peer_data(std::vector<uint8_t>&& data) { peer_data_ = std::move(data); }
  [[nodiscard]] std::span<const uint8_t> peer_data() const { return peer_data_; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const Endpoint& remote() const { return remote_; }

 private:
  Status set_up(const blocking::ConnectionOptions& options);
  Status post_receive(uint64_t slot);
  /// Flushes the queue pair: when the call returns everything posted has completed.
  void flush();
  [[nodiscard]] std::byte* buffer(uint64_t slot) { return buffers_.data() + slot * message_size_; }

  // The members are destroyed from the last one up: the queue pair first, the memory after its
  // region.
  std::shared_ptr<EventDesk> desk_;
  std::vector<std::byte> buffers_;  // one for each receive; behind them one for send()
  MemoryRegion region_;
  CompletionQueue send_cq_;
  CompletionQueue receive_cq_;
  QueuePair qp_;
  uint64_t message_size_ = 0;  // octets
  uint32_t receives_ = 0;
  uint32_t enrolled_ = 0;  // the number at the desk; 0: none
  uint64_t last_id_ = 0;
  std::optional<Completion> waiting_;  // a message that receive() has not given yet
  std::optional<Error> no_more_;       // why no message follows
  bool peer_closed_ = false;
  std::vector<uint8_t> peer_data_;
  Endpoint local_;
  Endpoint remote_;
};

}  // namespace rnic::verbs
