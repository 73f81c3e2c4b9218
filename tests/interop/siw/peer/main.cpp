// siw_peer: the host's program opposite a guest with Linux siw. Reads commands from stdin, one JSON
// object a line, and answers each with one; see session.hpp and host_peer.py.

#include <CLI/CLI.hpp>
#include <iostream>

#include "session.hpp"
#include "workload/command_line.hpp"

namespace rnic::siw {

namespace {

constexpr int kUsage = 2;

int complain(const std::string& message) {
  std::cerr << "siw_peer: " << message << "\n";
  return kUsage;
}

int run(int argc, char** argv) {
  std::string file;
  std::vector<std::string> overrides;
  CLI::App app{"Speaks trials and rping's protocol with Linux siw; ./scripts/siw drives it."};
  app.add_option("--config", file, "TOML file, see docs/settings.md")->required();
  app.add_option("--set", overrides, "override one key")->allow_extra_args(false);
  if (auto status = workload::parse_command_line(app, "siw_peer", argc, argv)) return *status;
  auto config = Config::from_file(file);
  if (!config) return complain(config.error().message);
  for (const std::string& assignment : overrides) config->set(assignment);
  auto context = Context::open(*config);
  if (!context) return complain(context.error().message);
  auto device = context->device(context->device_names().front());
  if (!device) return complain(device.error().message);
  Session session(*context, *device);
  const auto say = [](const Session::Json& told) { std::cout << told.dump() << std::endl; };
  std::string line;
  while (!workload::interrupted() && std::getline(std::cin, line)) {
    try {
      say(session.run(Session::Json::parse(line), say));
    } catch (const std::exception& error) {
      return complain(error.what());
    }
  }
  return 0;
}

}  // namespace
}  // namespace rnic::siw

int main(int argc, char** argv) { return rnic::siw::run(argc, argv); }
