// A program outside of the tree: it has the installed headers and the archive, no more.

#include <cstdio>
#include <rnic/verbs.hpp>

int main() {
  rnic::Config config = rnic::Config::loopback();
  config.set("eal.hugepages=off");
  auto context = rnic::Context::open(config);
  if (!context) return std::puts(context.error().message.c_str()), 2;
  for (const std::string& name : context->device_names()) std::puts(name.c_str());
  return 0;
}
