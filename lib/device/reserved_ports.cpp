#include "device/reserved_ports.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "base/fail.hpp"

namespace rnic::device {

using base::fail;

Result<Endpoint> ReservedPorts::reserve(const Endpoint& local, uint32_t consumer) {
  auto status = own_ != nullptr ? own_->check_listen("reserve", local) : Status{};
  if (status) status = consumers_.check("reserve", consumer);
  if (!status) return tl::unexpected(status.error());
  TakenShare share(consumers_, consumer, "reserve", {.listeners = 1});
  if (!share.status()) return tl::unexpected(share.status().error());
  // The place in the table is made before the transport reserves, because it needs memory.
  std::map<Endpoint, uint32_t> one{{Endpoint{}, consumer}};
  auto node = one.extract(one.begin());
  auto reserved = transport_->reserve(listened_on(local));
  if (!reserved) return tl::unexpected(named(std::move(reserved.error()), listened_on(local)));
  node.key() = *reserved;
  const bool added = all_.insert(std::move(node)).inserted;
  RNIC_CHECK(added);
  share.keep();
  return reserved;
}

Status ReservedPorts::release(const Endpoint& reserved) {
  const auto found = all_.find(listened_on(reserved));
  if (found == all_.end()) {
    return fail(ErrorCode::NotFound, "destroy: nobody has reserved " + to_string(reserved) +
                                         ": use what reserve() returned");
  }
  auto status = transport_->unreserve(found->first);
  if (status) used(reserved, llp::PortClaim::Reserved);
  return status;
}

Status ReservedPorts::check(const char* call, const Endpoint& reserved, uint32_t consumer,
                            llp::PortClaim claim) const {
  if (claim == llp::PortClaim::None) return {};
  const auto found = all_.find(listened_on(reserved));
  if (found == all_.end()) {
    return fail(ErrorCode::NotFound, std::string(call) + ": nobody has reserved " +
                                         to_string(reserved) + ": use what reserve() returned");
  }
  if (found->second == consumer) return {};
  return fail(ErrorCode::PermissionDenied, std::string(call) + ": another consumer has reserved " +
                                               to_string(reserved) +
                                               ": only that one may use it, so reserve another");
}

void ReservedPorts::used(const Endpoint& reserved, llp::PortClaim claim) {
  if (claim == llp::PortClaim::None) return;
  const auto found = all_.find(listened_on(reserved));
  RNIC_CHECK(found != all_.end());
  consumers_.give_back(found->second, {.listeners = 1});
  all_.erase(found);
}

Error ReservedPorts::named(Error error, const Endpoint& local) const {
  if (error.code != ErrorCode::AlreadyExists) return error;
  const auto overlaps = [&](const auto& entry) { return llp::overlap(entry.first, local); };
  const auto reserved = std::find_if(all_.begin(), all_.end(), overlaps);
  const Listeners::Listener* const listener = listeners_->overlapping(local);
  if (reserved == all_.end() && listener == nullptr) return error;
  const uint32_t consumer = reserved != all_.end() ? reserved->second : listener->consumer;
  const auto known = consumers_.info(consumer);
  error.message += consumer == 0 || !known ? " (this device's application has it)"
                                           : " (consumer \"" + known->name + "\" has it)";
  return error;
}

}  // namespace rnic::device
