#include "rnic-run/early_posts.hpp"

#include <cerrno>

namespace rnic::run {

int EarlyPosts::add(const SendRequest& request) {
  if (request.sges.too_long()) return EINVAL;
  if (sends_.size() >= most_sends_) return ENOMEM;
  Send& kept = sends_.emplace_back();
  try {
    kept.octets.assign(request.inline_data.begin(), request.inline_data.end());
  } catch (...) {
    sends_.pop_back();
    throw;
  }
  kept.request = request;
  kept.request.inline_data = {};
  return 0;
}

int EarlyPosts::add(const ReceiveRequest& request) {
  if (request.sges.too_long()) return EINVAL;
  if (receives_.size() >= most_receives_) return ENOMEM;
  receives_.push_back(request);
  return 0;
}

void EarlyPosts::clear() {
  sends_.clear();
  receives_.clear();
}

}  // namespace rnic::run
