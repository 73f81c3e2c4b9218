#include "device/consumer.hpp"

#include "base/fail.hpp"

namespace rnic::device {

ConsumerInfo Consumer::info() const {
  ConsumerInfo info{name_, ledger_.limits(), used(), refused_};
  info.used.held_octets = hold_share_->used();
  return info;
}

bool Consumer::admit(const ResourceCounts& more) noexcept {
  if (ledger_.lacking(more) != nullptr) {
    ++refused_;
    return false;
  }
  ledger_.take(more);
  return true;
}

Status Consumer::take(const char* call, const ResourceCounts& more) {
  if (admit(more)) return {};
  const ResourceKind& kind = *ledger_.lacking(more);
  return base::fail(ErrorCode::ResourceExhausted,
                    std::string(call) + ": consumer \"" + name_ + "\" may have " +
                        std::to_string(ledger_.limits().*kind.amount) + " " + kind.words +
                        ", has " + std::to_string(ledger_.used().*kind.amount) +
                        " and asks for " + std::to_string(more.*kind.amount) +
                        " more: give some back, or raise " + kind.quota + " or its own quota");
}

}  // namespace rnic::device
