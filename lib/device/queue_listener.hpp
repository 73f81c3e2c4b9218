/// \file
/// Who is told that a queue towards the application has grown.
#pragma once

namespace rnic::device {

/// Called by the worker, behind the push.
class QueueListener {
 public:
  virtual ~QueueListener() = default;
  /// \param urgent a completion that was solicited or tells of an error; every event
  virtual void added(bool urgent) = 0;
};

}  // namespace rnic::device
