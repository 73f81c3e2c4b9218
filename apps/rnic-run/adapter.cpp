#include "rnic-run/adapter.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace rnic::run {

namespace {

Result<Config> configuration() {
  const char* file = std::getenv("RNIC_CONFIG");
  if (file != nullptr && file[0] != '\0') return Config::from_file(file);
  // libfabric asks for completion queues that are deep beyond the need.
  return Config::from_text(
      "[[device]]\nname = \"rnic0\"\nport = \"socket\"\n[limits]\nmax_cq_depth = 1048576\n",
      "rnic-run");
}

/// \return whether each refusal is told
bool explains() {
  static const bool asked = std::getenv("RNIC_EXPLAIN") != nullptr;
  return asked;
}

}  // namespace

void complain(const std::string& what) { std::fprintf(stderr, "softrnic: %s\n", what.c_str()); }

int refused(int error, const char* why) {
  if (explains()) complain(why);
  return error;
}

int as_errno(const Error& error) {
  if (explains()) complain(error.message);
  switch (error.code) {
    case ErrorCode::InvalidArgument:
    case ErrorCode::WrongState: return EINVAL;
    case ErrorCode::NotFound: return ENOENT;
    case ErrorCode::AlreadyExists: return EADDRINUSE;
    case ErrorCode::ResourceExhausted: return ENOMEM;
    case ErrorCode::PermissionDenied: return EACCES;
    case ErrorCode::Unreachable: return ENETUNREACH;
    case ErrorCode::TimedOut: return ETIMEDOUT;
    case ErrorCode::Rejected: return ECONNREFUSED;
    case ErrorCode::Reset: return ECONNRESET;
    case ErrorCode::Protocol: return EPROTO;
    case ErrorCode::Unsupported: return EOPNOTSUPP;
    case ErrorCode::Environment: return ENODEV;
    case ErrorCode::MessageSize: return EMSGSIZE;
    case ErrorCode::Abandoned: return EBADF;
  }
  return EINVAL;
}

Adapter* Adapter::get() {
  // Never destroyed: the program may end with its objects in use, on any thread.
  static Adapter* const adapter = open();
  return adapter;
}

Adapter* Adapter::open() {
  auto config = configuration();
  if (!config) {
    complain(config.error().message);
    return nullptr;
  }
  config->set("worker.mode=threaded").set("worker.idle=sleep");
  auto context = Context::open(*config);
  if (!context) {
    complain(context.error().message);
    return nullptr;
  }
  const auto names = context->device_names();
  auto device = context->device(names.front());
  if (!device) {
    complain(device.error().message);
    return nullptr;
  }
  auto* adapter = new Adapter(std::move(*context), std::move(*device));
  auto fd = adapter->device_.event_fd();
  adapter->events_fd_ = fd.value_or(-1);
  if (!fd || !adapter->watch_.ok() || !adapter->watch_.add(*fd, adapter)) {
    complain("the system gives no descriptor or no thread to wait for events with");
    return nullptr;
  }
  return adapter;
}

Adapter::Adapter(Context context, Device device)
    : context_(std::move(context)), device_(std::move(device)) {}

void Adapter::readable() {
  while (auto event = device_.poll_event()) {
    taker(*event);
  }
  watch_.look_again(events_fd_, this);
}

}  // namespace rnic::run
