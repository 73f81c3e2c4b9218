#include "workload/port_choice.hpp"

#include <charconv>

#include "workload/command_line.hpp"
#include "workload/remote.hpp"

namespace rnic::workload {

namespace {

constexpr const char* kSocket = "socket";

bool parse_number(const std::string& text, uint16_t& out) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, out);
  return parsed.ec == std::errc{} && parsed.ptr == end && out != 0;
}

}  // namespace

void add_port_option(CLI::App& app, PortChoice& choice) {
  app.add_option_function<std::vector<std::string>>(
         "--port",
         [&choice](const std::vector<std::string>& given) {
           for (const std::string& text : given) {
             if (text == kSocket) {
               choice.device = text;
             } else if (!parse_number(text, choice.tcp)) {
               throw CLI::ValidationError("--port", text +
                                                        ": give a TCP port, 1 to 65535, or "
                                                        "\"socket\"");
             }
           }
         },
         "TCP port; \"socket\": over the system's own TCP, without DPDK, which server and client "
         "do without --config, too. Both: --port socket --port 7472")
      ->allow_extra_args(false)
      ->default_str(std::to_string(choice.tcp));
}

Config default_configuration(const PortChoice& choice, bool both_ends) {
  if (both_ends && choice.device.empty()) return Config::loopback();
  const std::string port = choice.device.empty() ? kSocket : choice.device;
  std::string text = "[[device]]\nport = \"" + port + "\"\n";
  if (!both_ends) return Config::from_text(text, "--port " + port);
  text += "address = \"127.0.0.1/8\"\n";
  text += "[[device]]\nport = \"" + port + "\"\naddress = \"127.0.0.2/8\"\n";
  return Config::from_text(text, "--port " + port);
}

void apply(const PortChoice& choice, Config& config) {
  if (!choice.device.empty()) config.set("device.*.port=" + choice.device);
}

void add_address_option(CLI::App& app, std::string& address) {
  app.add_option("--address", address,
                 "the device's own address, instead of the configuration's: 192.168.1.3/24")
      ->check(not_empty());
}

void apply_address(const std::string& address, const std::string& device, Config& config) {
  if (address.empty()) return;
  config.set("device." + (device.empty() ? "*" : device) + ".address=" + address);
}

Result<Device> choose_reachable_device(Context& context, const std::string& name) {
  auto device = choose_device(context, name);
  if (!device || !device->port().starts_with("wire:")) return device;
  return tl::unexpected(
      Error{ErrorCode::InvalidArgument,
            device->name() + " stands on " + device->port() +
                ", a wire in the memory of this process that no other one reaches: leave --config "
                "out for sockets of the system, or configure a port (docs/run-on-a-nic.md)"});
}

}  // namespace rnic::workload
