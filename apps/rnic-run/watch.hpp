/// \file
/// Watch: the thread that sleeps until one of the device's descriptors is readable.
#pragma once

#include <condition_variable>
#include <mutex>
#include <set>

namespace rnic::run {

/// An object that is told when its descriptor is readable.
class Watched {
 public:
  virtual ~Watched() = default;
  virtual void readable() = 0;  ///< on the thread of the Watch
};

/// Each descriptor is looked at once, until look_again(). The thread has no lock while it tells an
/// object: so that may take locks with which others add an object.
class Watch {
 public:
  Watch();  ///< ok() says whether the system gave a descriptor and a thread
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() = default;  // never: the only one lives as long as the process

  [[nodiscard]] bool ok() const { return epoll_ >= 0; }
  /// \param who stays until remove(); it may be told before the call returns
  bool add(int fd, Watched* who);
  void look_again(int fd, Watched* who);
  /// When the call returns `who` is not told any more. The caller has no lock that `who` may wait
  /// for when it is told.
  void remove(int fd, Watched* who);

 private:
  void run();
  void tell(Watched* who);

  int epoll_;
  std::mutex mutex_;  // guards all that follows
  std::set<Watched*> known_;
  Watched* told_ = nullptr;  // which is told now
  std::condition_variable has_told_;
};

}  // namespace rnic::run
