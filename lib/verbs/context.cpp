#include <chrono>
#include <climits>
#include <thread>

#include "base/fail.hpp"
#include "rnic/verbs.hpp"
#include "verbs/boundary.hpp"
#include "verbs/machine_check.hpp"
#include "verbs/runtime.hpp"
#include "verbs/streams.hpp"

namespace rnic {

using verbs::guarded;
using verbs::guarded_or;

Config Config::loopback() {
  Config config({}, {});
  config.starved_ = !base::attempt([&] {
    config.text_ = settings::loopback_toml();
    config.name_ = "loopback.toml";
  });
  return config;
}

Result<Config> Config::from_file(const std::string& path) {
  return guarded("Config::from_file", [&]() -> Result<Config> {
    auto text = settings::read_file(path);
    if (!text) return tl::unexpected(text.error());
    return Config(std::move(*text), path);
  });
}

Config Config::from_text(std::string text, std::string name) {
  return Config(std::move(text), std::move(name));
}

Config& Config::set(std::string assignment) {
  if (!base::attempt([&] { overrides_.push_back(std::move(assignment)); })) starved_ = true;
  return *this;
}

namespace {

/// The error of a configuration that could not keep a setting for want of memory.
Status incomplete() {
  return tl::unexpected(
      Error{ErrorCode::ResourceExhausted, base::worded([] {
              return std::string(
                  "the configuration: out of memory: there was none to keep all that was given; "
                  "make it anew");
            })});
}

}  // namespace

Status Config::check() const {
  if (starved_) return incomplete();
  return guarded("Config::check", [&]() -> Status {
    auto settings = settings::parse_settings(text_, name_, overrides_);
    if (!settings) return tl::unexpected(settings.error());
    return {};
  });
}

Result<bool> Config::needs_dpdk() const {
  if (starved_) return tl::unexpected(incomplete().error());
  return guarded("Config::needs_dpdk", [&]() -> Result<bool> {
    auto settings = settings::parse_settings(text_, name_, overrides_);
    if (!settings) return tl::unexpected(settings.error());
    return verbs::needs_eal(*settings);
  });
}

Context::Context(std::shared_ptr<verbs::Runtime> runtime) : runtime_(std::move(runtime)) {}
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;
Context::~Context() = default;

Result<Context> Context::open(const Config& config) {
  if (config.starved_) return tl::unexpected(incomplete().error());
  return guarded("Context::open", [&]() -> Result<Context> {
    auto settings = settings::parse_settings(config.text(), config.name(), config.overrides());
    if (!settings) return tl::unexpected(settings.error());
    auto runtime = verbs::Runtime::open(*settings);
    if (!runtime) return tl::unexpected(runtime.error());
    return Context(std::move(*runtime));
  });
}

std::vector<std::string> Context::device_names() const {
  return guarded_or(std::vector<std::string>{}, [&] {
    std::vector<std::string> names;
    if (runtime_ == nullptr) return names;
    for (const auto& device : runtime_->devices()) names.push_back(device->name);
    return names;
  });
}

namespace {

Error empty_context() {
  return {ErrorCode::WrongState,
          base::worded([] { return "the context is empty: it was moved from; use another one"; })};
}

}  // namespace

Result<Device> Context::device(const std::string& name) {
  if (runtime_ == nullptr) return tl::unexpected(empty_context());
  if (runtime_->is_abandoned()) return verbs::abandoned();
  for (const auto& device : runtime_->devices()) {
    if (device->name == name) {
      // The pointer keeps the whole runtime alive.
      return Device(std::shared_ptr<verbs::DeviceRuntime>(runtime_, device.get()));
    }
  }
  return tl::unexpected(Error{ErrorCode::NotFound, base::worded([&] {
                                std::string known;
                                for (const auto& device : runtime_->devices()) {
                                  known += (known.empty() ? "" : ", ") + device->name;
                                }
                                return "no device \"" + name +
                                       "\": use one that the configuration has, " + known;
                              })});
}

bool Context::threaded() const { return runtime_ != nullptr && runtime_->threaded(); }
uint32_t Context::poll() { return runtime_ == nullptr ? 0 : runtime_->poll(); }

bool Context::wait_for(const std::function<bool()>& done, std::chrono::nanoseconds timeout) {
  if (!done) return false;
  if (runtime_ == nullptr) return done();
  // `done` may end the last handle of the context, this one, too: the devices live until the call
  // has returned.
  const std::shared_ptr<verbs::Runtime> runtime = runtime_;
  return runtime->wait_until(done, base::after(runtime->now(), timeout));
}

Result<int> Context::fd() {
  if (runtime_ == nullptr) return tl::unexpected(empty_context());
  return guarded("Context::fd", [&] { return runtime_->fd(); });
}

bool Context::arm() { return runtime_ == nullptr || runtime_->arm(); }

std::optional<std::chrono::nanoseconds> Context::next_deadline() const {
  if (runtime_ == nullptr) return std::nullopt;
  const base::Now next = runtime_->next_deadline();
  if (next == base::kNever) return std::nullopt;
  return std::max(std::chrono::nanoseconds(0), next - runtime_->now());
}

std::chrono::nanoseconds Context::now() const {
  return std::chrono::nanoseconds(runtime_ == nullptr ? 0 : base::nanos(runtime_->now()));
}

std::string Context::environment() const {
  return guarded_or(std::string{},
                    [&] { return runtime_ == nullptr ? std::string{} : runtime_->environment(); });
}

}  // namespace rnic
