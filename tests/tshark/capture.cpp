// Makes a capture of every operation for decode_test.py. argv[1]: the pcapng file of rnic0.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "../unit/verbs/verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint32_t kSize = 5000;  // several segments

void check(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

void one_connection(World& world) {
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  Memory from(a.pd, octets(kSize, 1), Access::LocalWrite);
  Memory to(b.pd, std::vector<uint8_t>(kSize), kEverything);
  Memory first(b.pd, std::vector<uint8_t>(10), kEverything | Access::RemoteInvalidate, &b.qp);
  Memory second(b.pd, std::vector<uint8_t>(10), kEverything | Access::RemoteInvalidate, &b.qp);
  const auto post = [&](SendRequest work) {
    must(a.qp.post_send(work));
    const auto done = world.await(a.send_cq);
    check(done && done->status == CompletionStatus::Success, "an operation failed");
  };
  for (uint64_t id = 0; id < 6; ++id) must(b.qp.post_receive(receive(to.all(), id)));
  for (const bool solicited : {false, true}) {
    SendRequest send = request(Opcode::Send, from.all());
    send.solicited = solicited;
    post(send);
    SendRequest invalidate = request(Opcode::SendInvalidate, from.region.sge(0, 61));
    invalidate.solicited = solicited;
    invalidate.invalidate_stag = (solicited ? second : first).region.stag();
    post(invalidate);
  }
  post(request(Opcode::Write, from.all(), to));
  post(request(Opcode::Read, from.all(), to));
  Memory counter(b.pd, std::vector<uint8_t>(8), Access::RemoteAtomic);
  const auto done = [&](const Status& posted) {
    must(posted);
    const auto completion = world.await(a.send_cq);
    check(completion && completion->status == CompletionStatus::Success, "an operation failed");
  };
  const RemoteAddress target{counter.region.stag(), counter.region.address()};
  done(a.qp.post_fetch_add(1, target, 0x1122334455667788, 0x8000000000000000));
  done(a.qp.post_compare_swap(2, target, 0x1122334455667788, 5, 0xffffffffffffff00, 0xff));
  for (const bool solicited : {false, true}) {
    done(a.qp.post_immediate(3, {1, 2, 3, 4, 5, 6, 7, 8}, solicited));
  }
  world.disconnect(a, b);
}

void reject(World& world) {
  Side a(world.left);
  must(world.right.listen(7471));
  ConnectOptions plain;
  plain.start.revision = 1;
  must(a.qp.connect({world.right.address(), 7471}, octets(20, 1), plain));
  const auto asked = world.await<event::ConnectRequest>(world.right);
  check(asked.has_value(), "no request came");
  must(world.right.reject(asked->request, octets(11, 2)));
  check(world.await<event::Rejected>(world.left).has_value(), "no reject came");
  must(world.right.unlisten(7471));
}

void offence(World& world, Opcode opcode) {
  Side a(world.left);
  Side b(world.right);
  world.connect(a, b);
  Memory from(a.pd, octets(64, 1), Access::LocalWrite);
  Memory closed(b.pd, std::vector<uint8_t>(64), Access::LocalWrite);
  must(a.qp.post_send(request(opcode, from.all(), closed)));
  check(world.await<event::TerminateReceived>(world.left).has_value(), "no Terminate came");
  check(world.await<event::Disconnected>(world.right, b.qp.number()).has_value(), "not gone");
}

void make_capture(const std::string& file) {
  Config config = loopback_config();
  config.set("device.rnic0.capture.file=" + file);
  World world(config);
  one_connection(world);
  reject(world);
  offence(world, Opcode::Write);
  offence(world, Opcode::Read);
  offence(world, Opcode::Send);
}

}  // namespace
}  // namespace rnic::test

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: capture FILE\n", stderr), 2;
  try {
    rnic::test::make_capture(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "capture: %s\n", error.what());
    return 1;
  }
  return 0;
}
