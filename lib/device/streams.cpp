// Device: streaming sockets and framed streams.

#include "device/device.hpp"

namespace rnic::device {

namespace {

tl::unexpected<Error> no_streams() {
  return base::fail(ErrorCode::Unsupported,
                    "a device on sockets of the system has no streams of plain octets: open a "
                    "socket of the system itself, or give the device a port of its own");
}

tl::unexpected<Error> no_framed_streams() {
  return base::fail(ErrorCode::Unsupported,
                    "a device on sockets of the system has no framed streams: give the device a "
                    "port of its own, or send messages by a queue pair (framing = \"tuf\" puts "
                    "ULP framing in marker mode below it)");
}

}  // namespace

Result<StreamListener*> Device::listen_stream(const Endpoint& local, uint32_t backlog,
                                              const tcp::ConnectionOptions& options) {
  if (!own_) return no_streams();
  return own_->streams.listen(local, backlog, options);
}

Result<StreamSocket*> Device::connect_stream(const Endpoint& remote,
                                             const tcp::ConnectionOptions& options, base::Now now) {
  if (!own_) return no_streams();
  const auto local = local_towards(remote);
  if (!local) return tl::unexpected(local.error());
  return own_->streams.connect(*local, remote, options, now);
}

Result<FramedListener*> Device::listen_framed(const Endpoint& local, uint32_t backlog,
                                              const tcp::ConnectionOptions& options,
                                              const FramedSetup& setup) {
  if (!own_) return no_framed_streams();
  return own_->framed.listen(local, backlog, options, setup);
}

Result<FramedSocket*> Device::connect_framed(const Endpoint& remote,
                                             const tcp::ConnectionOptions& options,
                                             const FramedSetup& setup, base::Now now) {
  if (!own_) return no_framed_streams();
  const auto local = local_towards(remote);
  if (!local) return tl::unexpected(local.error());
  return own_->framed.connect(*local, remote, options, setup, now);
}

}  // namespace rnic::device
