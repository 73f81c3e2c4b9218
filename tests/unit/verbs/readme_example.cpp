#include <cstdio>
#include <vector>

#include "rnic/blocking.hpp"

int main() {
  using rnic::blocking::Adapter;
  auto context = rnic::Context::open(rnic::Config::loopback());  // rnic0 and rnic1, in memory
  if (!context) return std::puts(context.error().message.c_str()), 2;
  auto near = Adapter::open(*context, "rnic0"), far = Adapter::open(*context, "rnic1");
  if (!near || !far) return std::puts((near ? far : near).error().message.c_str()), 2;
  std::vector<std::byte> from(1 << 20, std::byte{42}), to(1 << 20);
  auto source = near->register_memory(from, rnic::Access::LocalRead);
  auto target = far->register_memory(to, rnic::Access::RemoteWrite);
  auto ends = near->connect_pair(*far, 7471);
  if (!source || !target || !ends) return 1;
  auto done = ends->first.write({source->sge(0, 1 << 20)}, {target->stag(), target->address()});
  return std::puts(done ? "1 MB arrived" : done.error().message.c_str()), to != from;
}
