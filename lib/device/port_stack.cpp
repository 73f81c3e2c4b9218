#include "device/port_stack.hpp"

#include <string>

#include "base/fail.hpp"

namespace rnic::device {

using base::fail;

Result<Endpoint> PortStack::local_towards(const Endpoint& remote,
                                          const Endpoint& source) const {
  if (interface.is_ours(remote.address)) {
    return fail(ErrorCode::InvalidArgument,
                "connect: " + to_string(remote.address) +
                    " is this device's own address, which it does not reach over its port: give "
                    "the peer's, or this device another one (device." +
                    name + ".address)");
  }
  const IpAddress address = interface.source_for(remote.address);
  if (address.is_unspecified()) {
    return fail(ErrorCode::Unreachable, "connect: no route to " + to_string(remote) +
                                            "; configure a gateway, or an address of its family");
  }
  if (source.address.is_unspecified()) return Endpoint{address, source.port};
  if (interface.is_ours(source.address)) return source;
  return fail(ErrorCode::InvalidArgument,
              "connect: " + to_string(source.address) +
                  " is no address of this device: use one of Device::addresses()");
}

Status PortStack::check_listen(const char* call, const Endpoint& local) const {
  if (local.address.is_unspecified() || interface.is_ours(local.address)) return {};
  return fail(ErrorCode::InvalidArgument,
              std::string(call) + ": " + to_string(local.address) +
                  " is no address of this device: use one of Device::addresses(), or none for all");
}

}  // namespace rnic::device
