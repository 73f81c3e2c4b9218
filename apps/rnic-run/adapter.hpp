/// \file
/// Adapter: the softrnic device that the program sees as rnic0.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "rnic-run/watch.hpp"
#include "rnic/verbs.hpp"

namespace rnic::run {

/// The number of the node, in the tree (main.cpp) and in what a query tells: librdmacm finds
/// the device by it. In host order.
inline constexpr uint64_t kNodeGuid = 0x020000fffe000001;
inline constexpr char kDeviceName[] = "rnic0";
/// What the tree says of the device under the RoCE face.
inline constexpr char kTypeOfRoce[] = "1: CA";

/// Opened at the first use; there is one in the process, until its end. A child that was forked
/// opens one of its own.
class Adapter final : private Watched {
 public:
  /// \return nullptr: it cannot be opened; one line on stderr has said why
  static Adapter* get();
  /// In a child that has just been forked.
  static void forget();
  /// For a call that has failed, perhaps because the program is ending: then its thread does not
  /// come back, as it would not if exit() had taken no time for farewells.
  static void stay_if_leaving();
  /// \return whether it is this process' own; false: its parent's, which must not be touched
  [[nodiscard]] bool is_own() const;

  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] Watch& watch() { return watch_; }
  /// \param take gets each event of the device, on the thread of the watch. Called before get().
  static void set_taker(void (*take)(const Event&)) { taker = take; }

 private:
  Adapter(Context context, Device device);
  static Adapter* open();
  void readable() override;
  /// \return whether connections have to be ended before the process ends
  [[nodiscard]] bool takes_leave() const;
  /// The program ends: resets what is in operation, lets what is being closed come to an end, and
  /// has what was recorded written to its file.
  /// \pre the process' exit() has been called; by several threads, or once more by one, perhaps
  void finish();
  void wait_for_finish();
  static void at_exit();
  /// The farewells themselves, which end when all connections have, or at `end`.
  void take_leave(std::chrono::steady_clock::time_point end);
  void keep_capture();

  Context context_;
  Device device_;
  Watch watch_;
  int events_fd_ = -1;
  bool has_capture_ = false;  // whoever configured it
  // When finish() waits no more, by the steady clock; 0: it has not begun.
  std::atomic<std::chrono::steady_clock::rep> finished_by_{0};
  std::atomic<bool> finished_{false};
  std::atomic<pthread_t> finisher_{};  // the thread that has begun it
  static inline void (*taker)(const Event&) = nullptr;
  static inline std::atomic<bool> leaving{false};
  static inline std::optional<Adapter*> one;  // guarded by `opening`; nothing: not tried yet
  static inline pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;
};

/// One line on stderr, which begins with the name of the product.
void complain(const std::string& what);
/// errno for an error of the device. With RNIC_EXPLAIN set its text goes to stderr, as errno has
/// none.
int as_errno(const Error& error);
/// What the call that gives an object back returns: EBUSY where the device does not let it go. A
/// child's objects of its parent go without a word to anybody.
int given_back(const Status& status);
/// As as_errno() for what the plugin refuses by itself.
/// \return `error`
int refused(int error, const char* why);

}  // namespace rnic::run
