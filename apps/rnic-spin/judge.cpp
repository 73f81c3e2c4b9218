#include "rnic-spin/judge.hpp"

#include <algorithm>

namespace rnic::spin {

bool Judge::answered(const std::string& call, const Status& status, Expect expect, Codes codes) {
  if (status) {
    ++counts_[call];
    remember(call);
    require(expect != Expect::Failure, call + " succeeded");
    return true;
  }
  const Error& error = status.error();
  const std::string text = call + ": " + to_string(error.code) + ": " + error.message;
  ++counts_[call + ": " + to_string(error.code)];
  remember(text);
  require(expect != Expect::Success, text);
  require(std::ranges::find(codes, error.code) != codes.end(), "another error: " + text);
  require(!error.message.empty(), "an error without a text: " + text);
  return false;
}

void Judge::seen(const std::string& what) {
  ++counts_[what];
  remember(what);
}

void Judge::broken(const std::string& what) const { throw Violation(what); }

void Judge::remember(const std::string& what) {
  if (history_.size() == kRemembered) history_.pop_front();
  history_.push_back(what);
}

}  // namespace rnic::spin
