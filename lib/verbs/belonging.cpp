#include "verbs/belonging.hpp"

#include <algorithm>
#include <string>
#include <variant>

#include "base/starved.hpp"
#include "verbs/boundary.hpp"

namespace rnic::verbs {

namespace {

/// \param its nullptr: a device that this context does not have
Status of_another(const char* what, const DeviceRuntime& here, const DeviceRuntime* its) {
  return tl::unexpected(Error{ErrorCode::InvalidArgument, base::worded([&] {
                                std::string owner =
                                    its == nullptr ? "a device" : "device " + its->name;
                                if (its == nullptr || its->runtime != here.runtime)
                                  owner += " of another context";
                                return std::string(what) + " belongs to " + owner +
                                       ", and not to " + here.name + ": use one of this device";
                              })});
}

}  // namespace

Status check_device(const char* what, const DeviceRuntime& here, const DeviceRuntime& its) {
  if (here.is_abandoned()) return abandoned();
  return &here == &its ? Status{} : of_another(what, here, &its);
}

Status check_device(const char* what, const DeviceRuntime& here, uint32_t its) {
  if (here.is_abandoned()) return abandoned();
  if (its == here.number) return {};
  if (its == 0) {
    return tl::unexpected(Error{ErrorCode::NotFound, base::worded([&] {
                                  return std::string(what) +
                                         " is nobody's: use one that a device has named";
                                })});
  }
  const auto& devices = here.runtime->devices();
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [its](const auto& device) { return device->number == its; });
  return of_another(what, here, found == devices.end() ? nullptr : found->get());
}

void name_device(const DeviceRuntime& here, Event& event) {
  if (auto* asked = std::get_if<event::ConnectRequest>(&event)) {
    asked->request.device = here.number;
  } else if (auto* gone = std::get_if<event::RequestWithdrawn>(&event)) {
    gone->request.device = here.number;
  }
}

}  // namespace rnic::verbs
