#include "workload/port_choice.hpp"

#include <charconv>

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
         "TCP port; \"socket\": over the system's own TCP, without DPDK. Both: --port socket "
         "--port "
         "7472")
      ->allow_extra_args(false)
      ->default_str(std::to_string(choice.tcp));
}

Config default_configuration(const PortChoice& choice, bool both_ends) {
  if (choice.device.empty()) return Config::loopback();
  std::string text = "[[device]]\nport = \"" + choice.device + "\"\n";
  if (!both_ends) return Config::from_text(text, "--port " + choice.device);
  text += "address = \"127.0.0.1/8\"\n";
  text += "[[device]]\nport = \"" + choice.device + "\"\naddress = \"127.0.0.2/8\"\n";
  return Config::from_text(text, "--port " + choice.device);
}

void apply(const PortChoice& choice, Config& config) {
  if (!choice.device.empty()) config.set("device.*.port=" + choice.device);
}

}  // namespace rnic::workload
