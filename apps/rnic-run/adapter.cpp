#include "rnic-run/adapter.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "rnic-run/face.hpp"
#include "rnic-run/gid_table.hpp"
#include "rnic-run/quiet_thread.hpp"
#include "rnic-run/wire_company.hpp"
#include "rnic-run/wishes.hpp"

namespace rnic::run {

namespace {

constexpr int kMostAddresses = 250;
constexpr std::chrono::seconds kFarewell{1};
// Where it takes longer, the device is held by a call that the program's end has interrupted, or
// the machine gives it no processor for so long.
constexpr std::chrono::seconds kCaptureKept{5};
constexpr int kExitsAtOnce = 4;  // by several threads, or by handlers of signals within one
// The first of several threads that exit shall end the process, as its status counts. Another one
// that comes meanwhile goes on after this, as the first may wait for it.
constexpr std::chrono::seconds kExitOfTheFirst{1};

/// Joins the wire at the first address that nobody has.
Result<Context> open_on_wire(const Config& config) {
  for (int number = 1;; ++number) {
    const std::string host = std::to_string(number);
    Config with_address = config;
    with_address.set("device.rnic0.address=10.77.0." + host + "/16")
        .set("device.rnic0.addresses=[\"fd77::" + host + "/64\"]");
    auto context = Context::open(with_address);
    const bool taken = !context && context.error().code == ErrorCode::AlreadyExists;
    if (!taken || number == kMostAddresses) return context;
  }
}

Result<Context> open_context(const Wishes& wishes) {
  auto config = wishes.configuration();
  if (!config) return tl::unexpected(config.error());
  const bool looks_for_address = !wishes.wire.empty() && wishes.address.empty();
  return looks_for_address ? open_on_wire(*config) : Context::open(*config);
}

/// What was said of the face when the tree was made holds for all programs that have it.
/// \return how the wishes differ from that, for the user; empty: they do not
std::string difference_from_tree(const Wishes& wishes) {
  const char* const root = std::getenv("SYSFS_PATH");
  const std::filesystem::path tree(root != nullptr ? root : "");
  std::string type;
  std::getline(std::ifstream(tree / "class/infiniband" / kDeviceName / "node_type"), type);
  const bool is_shown = type == kTypeOfRoce;
  if (type.empty() || (is_shown == is_roce() && !is_shown)) return {};
  const std::string remedy = ": give rnic-run the same, for --print-environment, too";
  if (is_shown != is_roce()) {
    return std::string("RNIC_ROCE is ") + (is_roce() ? "1" : "not 1") +
           ", and the device of SYSFS_PATH is one of " + (is_shown ? "RoCE" : "iWARP") + remedy;
  }
  const auto chosen = parse_ip(wishes.address.substr(0, wishes.address.find('/')));
  if (!chosen || GidTable::of_process().at(0) == *chosen) return {};
  return "RNIC_ADDRESS is " + wishes.address + ", and SYSFS_PATH has the GID of another" + remedy;
}

/// Tells which addresses a peer has to be given, and whether both sides do the same damage.
void tell_of_wire(const Wishes& wishes, const Device& device) {
  std::string addresses;
  for (const IpAddress& each : device.addresses()) {
    addresses += (addresses.empty() ? "" : ", ") + to_string(each);
  }
  const std::string damage = wishes.impair.empty() ? "" : "; its frames suffer " + wishes.impair;
  complain("on the local wire " + wishes.wire + " as " + addresses + damage);
  // Its locks are held until the process ends.
  const std::string remark = WireCompany(wishes.wire, wishes.impair).remark();
  if (!remark.empty()) complain(remark);
}

/// \return whether each refusal is told
bool explains() {
  static const bool asked = [] {
    const char* const value = std::getenv("RNIC_EXPLAIN");
    return value != nullptr && value[0] != '\0' && std::strcmp(value, "0") != 0;
  }();
  return asked;
}

}  // namespace

void complain(const std::string& what) { std::fprintf(stderr, "softrnic: %s\n", what.c_str()); }

int refused(int error, const char* why) {
  if (explains()) complain(why);
  return error;
}

int as_errno(const Error& error) {
  // No errno says what is wrong with the machine (there is no /proc, for one): that is told, once.
  static std::atomic<bool> told{false};
  const bool is_news = error.code == ErrorCode::Environment && !told.exchange(true);
  if (explains() || is_news) complain(error.message);
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

int given_back(const Status& status) {
  return status || status.error().code == ErrorCode::Abandoned ? 0 : EBUSY;
}

Adapter* Adapter::get() {
  // Never destroyed: the program may end with its objects in use, on any thread.
  pthread_mutex_lock(&opening);
  if (!one) one = open();
  Adapter* const adapter = *one;
  pthread_mutex_unlock(&opening);
  return adapter;
}

void Adapter::forget() {
  pthread_mutex_init(&opening, nullptr);  // a thread that the child does not have may hold it
  one.reset();
}

void Adapter::stay_if_leaving() {
  while (leaving) pause();
}

bool Adapter::is_own() const {
  pthread_mutex_lock(&opening);
  const bool own = one == this;
  pthread_mutex_unlock(&opening);
  return own;
}

Adapter* Adapter::open() {
  const Wishes wishes = Wishes::of_environment();
  if (const std::string difference = difference_from_tree(wishes); !difference.empty()) {
    complain(difference);
    return nullptr;
  }
  auto context = open_context(wishes);
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
  if (!wishes.wire.empty()) tell_of_wire(wishes, adapter->device_);
  adapter->has_capture_ = adapter->device_.counter("capture", "frames").has_value();
  if (adapter->takes_leave() || adapter->has_capture_) {
    for (int spare = 0; spare < kExitsAtOnce; ++spare) std::atexit(at_exit);
  }
  return adapter;
}

/// A second thread may call exit() while one is in it (rping's does), and so may the handler of a
/// signal. The library then goes on with what is registered behind, and ends the process with the
/// second one's status. So this is registered several times: each call finds one of them.
void Adapter::at_exit() {
  if (one && *one != nullptr) (*one)->finish();
}

/// The system finishes its own connections; nobody else would finish these.
bool Adapter::takes_leave() const { return device_.port() != "socket"; }

/// A program may end within a call of the device: the handler of a signal, which calls exit(), has
/// interrupted the thread that drives it. Nobody gets the device then. So another thread does the
/// rest, and this one waits only for as long as that may take.
void Adapter::finish() {
  using std::chrono::steady_clock;
  const bool on_wire = takes_leave();
  const auto end = steady_clock::now() + (on_wire ? kFarewell : std::chrono::seconds(0));
  const auto latest = has_capture_ ? end + kCaptureKept : end;
  steady_clock::rep known = 0;
  if (!finished_by_.compare_exchange_strong(known, latest.time_since_epoch().count())) {
    const bool again = pthread_equal(pthread_self(), finisher_) != 0;
    wait_for_finish();
    if (!again) std::this_thread::sleep_for(kExitOfTheFirst);
    return;
  }
  finisher_ = pthread_self();
  leaving = on_wire;
  const bool begun = start_quiet_thread([this, on_wire, end] {
    if (on_wire) take_leave(end);
    if (has_capture_) keep_capture();
    finished_ = true;
  });
  if (!begun) finished_ = true;
  wait_for_finish();
}

void Adapter::wait_for_finish() {
  using std::chrono::steady_clock;
  const steady_clock::time_point latest{steady_clock::duration(finished_by_)};
  while (!finished_ && steady_clock::now() < latest) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  finished_ = true;  // or it is given up, by whoever comes next, too
}

/// Whoever reads the counters of a capture finds in the file what they count. The last frames leave
/// at the end of a turn, and the second call comes behind it.
void Adapter::keep_capture() {
  for (int call = 0; call < 2; ++call) (void)device_.counter("capture", "frames");
}

void Adapter::take_leave(std::chrono::steady_clock::time_point end) {
  for (bool first = true; std::chrono::steady_clock::now() < end; first = false) {
    const auto left = device_.connections();
    if (!left || left->empty()) return;
    for (const ConnectionSummary& each : *left) {
      if (first && each.running) (void)device_.abort(each.id);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
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
