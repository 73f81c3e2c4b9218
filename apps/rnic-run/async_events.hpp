/// \file
/// AsyncEvents: what ibv_get_async_event() reads.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <map>
#include <mutex>

#include "rnic-run/event_pipe.hpp"
#include "rnic-run/of_process.hpp"
#include "rnic/verbs.hpp"

namespace rnic::run {

/// One record of an open device's pipe, as the kernel's uverbs write it.
struct AsyncRecord {
  uint64_t element = 0;  ///< the object's address; of an event of the port its number
  uint32_t type = 0;     ///< ibv_event_type
  uint32_t reserved = 0;
};

/// The open devices and the objects that events may name. All calls may be made by any thread.
class AsyncEvents {
 public:
  enum class Kind { QueuePair, CompletionQueue, SharedReceiveQueue };

  static AsyncEvents& all() { return OfProcess<AsyncEvents>::get(); }

  /// \return what the program reads from, or -1
  int open(const ibv_context* context);
  void close(const ibv_context* context);

  /// \param number the device's of the object
  void add(Kind kind, uint32_t number, const void* element, const ibv_context* context);
  /// The object has another number from now on.
  void renumber(const void* element, uint32_t number);
  /// From now on no event names the object, and those that nobody has read are gone.
  /// \return how many the program has read: it has to acknowledge as many
  uint32_t remove(const void* element);

  /// What happened on the device.
  void take(const Event& event);

 private:
  struct Named {
    Kind kind = Kind::QueuePair;
    uint32_t number = 0;
    const ibv_context* context = nullptr;
    uint32_t told = 0;  // events in the pipe, and those that the program has read from it
  };

  void tell(Kind kind, uint32_t number, ibv_event_type type);
  void tell_all(ibv_event_type type);
  bool put(EventPipe<AsyncRecord>& pipe, const AsyncRecord& record);

  std::mutex mutex_;  // guards all that follows
  std::map<const ibv_context*, EventPipe<AsyncRecord>> pipes_;
  std::map<const void*, Named> objects_;
  bool has_lost_ = false;  // and has said so
};

/// Waits until the program has acknowledged `read` events of its queue pair or shared receive
/// queue.
template <typename Object>
void await_acknowledgements(Object& object, uint32_t read) {
  pthread_mutex_lock(&object.mutex);
  while (object.events_completed < read) pthread_cond_wait(&object.cond, &object.mutex);
  pthread_mutex_unlock(&object.mutex);
}

}  // namespace rnic::run
