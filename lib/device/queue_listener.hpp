/// \file
/// QueueListener: learns that a queue towards the application has grown.
#pragma once

namespace rnic::device {

/// The worker calls it after each push.
class QueueListener {
 public:
  virtual ~QueueListener() = default;
  /// \param urgent the entry is an event, or a completion that was solicited or tells of an error
  virtual void added(bool urgent) = 0;
  /// \return whether a thread waits for such an entry and has not been told yet. A thread that
  /// begins to wait later looks at the queue after it has begun.
  [[nodiscard]] virtual bool awaits(bool urgent) const = 0;
};

}  // namespace rnic::device
