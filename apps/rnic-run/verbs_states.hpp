/// \file
/// VerbsStates: the state of a queue pair of InfiniBand, and the attributes that it was given.
#pragma once

#include <infiniband/verbs.h>

namespace rnic::run {

/// As the kernel keeps it for a reliable connection: which state may follow which, and what has to
/// be said for that. What the device has no use for is told by a query all the same.
///
/// One thread at a time, as the program modifies and queries a queue pair.
class VerbsStates {
 public:
  [[nodiscard]] ibv_qp_state state() const { return state_; }
  /// Has to come before a state is read: a program may have written any number there.
  /// \return 0, or EINVAL: what is said to be a state is none
  [[nodiscard]] static int check_names(const ibv_qp_attr& attr, int mask);
  /// \return 0, or EINVAL: the device has no such port or partition key
  [[nodiscard]] static int check_place(const ibv_qp_attr& attr, int mask);
  /// \return 0, or EINVAL: the state may not follow, or something is missing;
  /// EOPNOTSUPP: it is one that the device has not
  [[nodiscard]] int check(const ibv_qp_attr& attr, int mask) const;
  /// Precondition: check() was content.
  void set(const ibv_qp_attr& attr, int mask);
  /// The queue pair is in error by itself.
  void fail() { state_ = IBV_QPS_ERR; }
  [[nodiscard]] const ibv_qp_attr& attributes() const { return attributes_; }

 private:
  ibv_qp_state state_ = IBV_QPS_RESET;
  ibv_qp_attr attributes_{};
};

}  // namespace rnic::run
