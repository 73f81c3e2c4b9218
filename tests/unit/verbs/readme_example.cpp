#include <cstdio>
#include <span>
#include <vector>

#include "rnic/verbs.hpp"

int main() {
  using std::chrono::seconds;
  auto context = rnic::Context::open(rnic::Config::loopback());  // rnic0 and rnic1, in memory
  if (!context) return std::puts(context.error().message.c_str()), 2;
  auto near = *context->device("rnic0"), far = *context->device("rnic1");
  auto near_pd = *near.alloc_pd(), far_pd = *far.alloc_pd();
  auto near_cq = *near.create_cq(16), far_cq = *far.create_cq(16);
  auto near_qp = *near_pd.create_qp(near_cq, near_cq), far_qp = *far_pd.create_qp(far_cq, far_cq);

  std::vector<uint8_t> from(1 << 20, 42), to(1 << 20);
  auto source =
      *near_pd.register_memory(std::as_writable_bytes(std::span(from)), rnic::Access::LocalRead);
  auto target =
      *far_pd.register_memory(std::as_writable_bytes(std::span(to)), rnic::Access::RemoteWrite);

  if (!far.listen(7471) || !near_qp.connect({far.address(), 7471})) return 1;
  std::optional<rnic::Event> event;  // first the request, which is accepted, then "established"
  context->wait_until([&] { return (event = far.poll_event()).has_value(); }, seconds(1));
  const auto* request = event ? std::get_if<rnic::event::ConnectRequest>(&*event) : nullptr;
  if (request == nullptr || !far_qp.accept(request->request)) return 1;
  context->wait_until([&] { return near.poll_event().has_value(); }, seconds(1));

  rnic::SendRequest write{.id = 1, .opcode = rnic::Opcode::Write};
  write.sges = {source.sge(0, 1 << 20)};
  write.remote = {target.stag(), target.address()};
  rnic::Completion done{.status = rnic::CompletionStatus::Flushed};
  if (!near_qp.post_send(write)) return 1;
  context->wait_until([&] { return near_cq.poll({&done, 1}) == 1; }, seconds(1));
  return std::puts(to == from ? "1 MB arrived" : rnic::to_string(done.status)), to != from;
}
