/// \file
/// Rendezvous: where the queue pairs of the RoCE face find those of other processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <type_traits>
#include <vector>

#include "rnic-run/meeting.hpp"
#include "rnic-run/of_process.hpp"
#include "rnic-run/qp_numbers.hpp"
#include "rnic-run/watch.hpp"
#include "rnic/verbs.hpp"

namespace rnic::run {

/// All calls may be made by any thread. There is one in the process.
class Rendezvous final : public Watched {
 public:
  static Rendezvous& instance() { return OfProcess<Rendezvous>::get(); }
  Rendezvous() = default;
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;
  ~Rendezvous() override = default;  // never: the only one lives as long as the process

  /// \return a number for a new queue pair
  Result<uint32_t> take_number();
  void give_back(uint32_t qpn);
  /// \throw std::bad_alloc, and nothing has changed
  void add(Meeting& meeting);
  void remove(Meeting& meeting);
  /// Carries something out while nothing happens to a meeting, and sees to it that what is due
  /// then is done.
  template <typename Work>
  auto with_lock(Work work) {
    const std::lock_guard lock(mutex_);
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      set_timer();
    } else {
      auto result = work();
      set_timer();
      return result;
    }
  }
  /// A meeting has to be looked at at another time than before.
  void look_again() {
    with_lock([] {});
  }

  /// What happened on the device.
  void take(const Event& event);

 private:
  void readable() override;
  void set_timer();
  bool prepare();
  Meeting* of_number(uint32_t qpn);
  Meeting* of_event(const Event& event);
  void take(const event::ConnectRequest& request);

  std::mutex preparing_;
  std::atomic<int> timer_{-1};  // a timerfd; written under preparing_
  std::mutex mutex_;            // guards all that follows
  QpNumbers numbers_;
  std::vector<Meeting*> meetings_;
};

}  // namespace rnic::run
