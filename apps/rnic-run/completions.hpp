/// \file
/// Completion queues of the program, and the channels that tell of completions.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "rnic-run/abi.hpp"
#include "rnic-run/adapter.hpp"
#include "rnic-run/event_pipe.hpp"
#include "rnic-run/of_process.hpp"
#include "rnic-run/shown_numbers.hpp"

namespace rnic::run {

/// The channels, by what the program reads from.
class Channels {
 public:
  static Channels& all() { return OfProcess<Channels>::get(); }

  int make();              ///< \return what the program reads from, or -1
  void closed(int reads);  ///< the program has closed it
  /// Puts the queue into the channel. \return false: nobody reads there any more
  bool tell(int reads, const ibv_cq* queue);
  /// Takes out what the channel has of a queue that goes.
  void withdraw(int reads, const ibv_cq* queue);

 private:
  std::mutex mutex_;
  std::unordered_map<int, EventPipe<uint64_t>> pipes_;  // guarded by mutex_
};

/// A completion queue: what libibverbs knows of it stands first, so that nothing may be virtual.
class Completions {
 public:
  static ibv_cq* create(ibv_context*, int depth, ibv_comp_channel*, int vector);
  /// A queue whose completions are read one by one, and field by field.
  static ibv_cq_ex* create_extended(ibv_context*, ibv_cq_init_attr_ex*);
  static int resize(ibv_cq*, int depth);
  static int destroy(ibv_cq*);
  static int poll(ibv_cq*, int count, ibv_wc* out);
  static void event_taken(ibv_cq* queue) { ++of(queue).taken_; }
  static int request_notify(ibv_cq*, int solicited_only);

  /// Adds a completion that is not the device's. \param done of a queue pair of the program
  /// \return false: there is no memory for it
  bool add(const ibv_wc& done);

  static Completions& of(ibv_cq* queue) { return *reinterpret_cast<Completions*>(queue); }
  /// A queue pair is gone, and completes nothing from here on: nothing is told of what has
  /// completed on it before. Programs free what they know it by.
  /// \param numbers those that it has had on the device \param shown the one of the program's
  /// \throw std::bad_alloc, and nothing has changed
  void forget(std::span<const uint32_t> numbers, uint32_t shown);
  /// Wakes who waits, once.
  void tell();
  [[nodiscard]] CompletionQueue& queue() { return queue_; }
  /// emptied(), where there are completions that the program has not polled. A poll that is under
  /// way, and has found the queue empty before they came, perhaps, is waited for and counted.
  [[nodiscard]] std::optional<uint32_t> emptied_if_unread();
  /// How often a poll has found the queue empty, or has emptied it; wraps.
  [[nodiscard]] uint32_t emptied() const { return emptied_; }

 private:
  [[nodiscard]] bool is_gone(uint32_t number) const;

  class Bell final : public Watched {
   public:
    explicit Bell(Completions& queue) : queue_(queue) {}
    void readable() override { queue_.tell(); }

   private:
    Completions& queue_;
  };

  /// A flushed receive of a queue pair whose peer has gone, of which the program does not know yet.
  struct Withheld {
    ibv_wc done;
    std::shared_ptr<const ShownPair> pair;
  };

  Completions() = default;
  bool show(const Completion& completion, ibv_wc& out);
  /// The next poll is to find nothing: `asked` were asked for, and `out` has what was found.
  [[nodiscard]] bool is_to_pause(int asked, std::span<const ibv_wc> out) const;
  /// There are completions that the program has not polled. Precondition: the caller has turn_.
  [[nodiscard]] bool is_waiting() const;
  void release_withheld();

  static Completions& of_extended(ibv_cq_ex* queue) {
    return *reinterpret_cast<Completions*>(queue);
  }
  static int start_poll(ibv_cq_ex*, ibv_poll_cq_attr*);
  static int next_poll(ibv_cq_ex*);
  static void end_poll(ibv_cq_ex*);
  static void fill_readers(ibv_cq_ex&);

  abi::CompletionQueue shown_{};
  Adapter* adapter_ = nullptr;
  // The program may use the queue on several threads. The device's own lock for that would tell, at
  // each arm(), of completions that are there already: some programs count an event a completion.
  std::mutex turn_;
  CompletionQueue queue_;     // guarded by turn_
  std::vector<uint32_t> gone_;  // whose completions may be in queue_ still; guarded by turn_
  std::deque<ibv_wc> added_;  // guarded by turn_
  std::vector<Withheld> withheld_;  // at most as many as the queue has room for; guarded by turn_
  uint32_t empty_polls_ = 0;  // in a row; guarded by turn_
  bool spins_ = false;   // the program polls instead of sleeping; guarded by turn_
  bool pauses_ = false;  // the next poll finds nothing; guarded by turn_
  bool paused_ = false;  // the last poll has found nothing for that reason; guarded by turn_
  std::atomic<uint32_t> emptied_{0};  // written under turn_
  std::mutex reading_;  // from start_poll() to end_poll()
  ibv_wc read_{};       // the completion whose fields are read; guarded by reading_
  Bell bell_{*this};
  int channel_ = -1;  // what the program reads from; -1: none
  int fd_ = -1;       // the queue's own; -1: no channel
  std::atomic<bool> armed_{false};
  std::atomic<uint32_t> taken_{0};  // events that the program has read from the channel
};

}  // namespace rnic::run
