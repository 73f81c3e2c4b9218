// What a process chooses first that others must not guess: a connection's local port and three
// STags. usage: first_choices CONFIG [KEY=VALUE]...; the configuration has rnic0, which connects,
// and rnic1. Prints one line of JSON. Exit: 0, or 1 with one line on stderr.

#include <cstdint>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "rnic/verbs.hpp"

namespace {

constexpr uint16_t kPort = 7479;
constexpr auto kPatience = std::chrono::seconds(20);

struct Choices {
  std::string remote;
  std::vector<uint32_t> stags;
};

rnic::Result<Choices> choose(const rnic::Config& config) {
  Choices choices;
  auto context = rnic::Context::open(config);
  if (!context) return tl::unexpected(context.error());
  auto near = context->device("rnic0");
  if (!near) return tl::unexpected(near.error());
  auto far = context->device("rnic1");
  if (!far) return tl::unexpected(far.error());
  auto pd = near->alloc_pd();
  if (!pd) return tl::unexpected(pd.error());
  std::vector<uint8_t> memory(64);
  std::vector<rnic::MemoryRegion> regions;
  for (int i = 0; i < 3; ++i) {
    auto region =
        pd->register_memory(std::as_writable_bytes(std::span(memory)), rnic::Access::RemoteRead);
    if (!region) return tl::unexpected(region.error());
    choices.stags.push_back(region->stag());
    regions.push_back(std::move(*region));
  }
  auto cq = near->create_cq(4);
  if (!cq) return tl::unexpected(cq.error());
  auto qp = pd->create_qp(*cq, *cq);
  if (!qp) return tl::unexpected(qp.error());
  if (auto status = far->listen(kPort); !status) return tl::unexpected(status.error());
  if (auto status = qp->connect({far->address(), kPort}); !status) {
    return tl::unexpected(status.error());
  }
  std::optional<rnic::Event> event;
  if (!context->wait_until([&] { return (event = far->poll_event()).has_value(); }, kPatience)) {
    return tl::unexpected(rnic::Error{rnic::ErrorCode::TimedOut, "no request came"});
  }
  choices.remote = to_string(common(*event).remote);
  return choices;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "first_choices: give a configuration\n", 1;
  auto config = rnic::Config::from_file(argv[1]);
  if (!config) return std::cerr << "first_choices: " << config.error().message << "\n", 1;
  for (int i = 2; i < argc; ++i) config->set(argv[i]);
  const auto choices = choose(*config);
  if (!choices) return std::cerr << "first_choices: " << choices.error().message << "\n", 1;
  const nlohmann::json out{{"remote", choices->remote}, {"stags", choices->stags}};
  std::cout << out.dump() << std::endl;
  return std::cout ? 0 : 1;
}
