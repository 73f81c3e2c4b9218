/// \file
/// The interface by which a queue towards the application tells that it has grown.
#pragma once

namespace rnic::device {

/// Called by the worker, behind the push.
class QueueListener {
 public:
  virtual ~QueueListener() = default;
  /// \param urgent a completion that was solicited or tells of an error; every event
  virtual void added(bool urgent) = 0;
  /// Whether somebody waits for what added() would tell, who has not been told yet. One who begins
  /// to wait later looks at the queue behind that.
  [[nodiscard]] virtual bool awaits(bool urgent) const = 0;
};

}  // namespace rnic::device
