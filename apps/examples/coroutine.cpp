// Sixteen walkers on one thread, each a coroutine that follows a list in another machine's memory:
// where the next node is stands in the one that an RDMA Read has fetched. While one waits, the
// others walk.
//
//   coroutine [CONFIG]     CONFIG has devices rnic0 and rnic1; without: two in memory

#include "rnic/coroutine.hpp"

#include <algorithm>
#include <chrono>
#include <coroutine>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rnic/verbs.hpp"

namespace {

using rnic::coroutine::Dispatcher;
using rnic::coroutine::Operations;

constexpr uint16_t kPort = 7471;
constexpr uint64_t kWalkers = 16;
constexpr uint64_t kNodes = 200;  // of each list
constexpr std::chrono::seconds kLimit{20};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::exit(1);
}

template <typename T>
T must(rnic::Result<T> result) {
  if (!result) fail(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A coroutine that begins at once and cleans up behind itself.
struct Walk {
  struct promise_type {
    Walk get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

struct Node {
  uint64_t next = 0;  // offset; 0: the last one
  uint64_t value = 0;
};

/// Adds the values of a list, from the node at `offset`.
Walk walk(Operations operations, rnic::Sge sink, const Node& fetched, uint32_t stag,
          uint64_t offset, uint64_t& sum, uint64_t& arrived) {
  while (offset != 0) {
    const auto done = must(co_await operations.read(sink, {stag, offset}));
    if (done.status != rnic::CompletionStatus::Success) fail(rnic::describe(done));
    sum += fetched.value;
    offset = fetched.next;
  }
  ++arrived;
}

/// All lists, their nodes mixed: node i of list k is at 1 + i * kWalkers + k, at offset 0 is none.
std::vector<Node> make_lists() {
  std::vector<Node> nodes(1 + kWalkers * kNodes);
  for (uint64_t at = 1; at < nodes.size(); ++at) {
    const uint64_t next = at + kWalkers;
    nodes[at] = {next < nodes.size() ? next * sizeof(Node) : 0, at};
  }
  return nodes;
}

void connect(rnic::Context& context, rnic::QueuePair& near_qp, rnic::Device& far,
             rnic::QueuePair& far_qp) {
  must(far.listen({far.address(), kPort}));
  must(near_qp.connect({far.address(), kPort}));
  std::optional<rnic::Event> event;
  const rnic::event::ConnectRequest* request = nullptr;
  const auto asked = [&] {
    while (request == nullptr && (event = far.poll_event())) {
      request = std::get_if<rnic::event::ConnectRequest>(&*event);
    }
    return request != nullptr;
  };
  if (!context.wait_until(asked, kLimit)) fail("nobody asks for a connection");
  must(far_qp.accept(request->request));
  const auto runs = [&] { return near_qp.state() == rnic::QueuePairState::Rts; };
  if (!context.wait_until(runs, kLimit)) fail("the connection is not established");
}

}  // namespace

int main(int argc, char** argv) {
  auto config = argc > 1 ? must(rnic::Config::from_file(argv[1])) : rnic::Config::loopback();
  auto context = must(rnic::Context::open(config));
  auto near = must(context.device("rnic0")), far = must(context.device("rnic1"));
  auto near_pd = must(near.alloc_pd()), far_pd = must(far.alloc_pd());
  auto near_cq = must(near.create_cq(64)), far_cq = must(far.create_cq(64));
  auto near_qp = must(near_pd.create_qp(near_cq, near_cq, {.send_depth = kWalkers}));
  auto far_qp = must(far_pd.create_qp(far_cq, far_cq, {}));
  std::vector<Node> lists = make_lists();
  auto remote = must(
      far_pd.register_memory(std::as_writable_bytes(std::span(lists)),
                             rnic::RegionOptions{.access = rnic::Access::RemoteRead, .offset = 0}));
  std::vector<Node> fetched(kWalkers);
  auto sink = must(near_pd.register_memory(std::as_writable_bytes(std::span(fetched)),
                                           rnic::Access::LocalWrite));
  connect(context, near_qp, far, far_qp);

  Dispatcher dispatcher(near_cq);
  const Operations operations(near_qp, dispatcher, dispatcher);
  std::vector<uint64_t> sums(kWalkers);
  uint64_t arrived = 0;
  size_t most = 0;
  for (uint64_t k = 0; k < kWalkers; ++k) {
    walk(operations, sink.sge(k * sizeof(Node), sizeof(Node)), fetched[k], remote.stag(),
         (1 + k) * sizeof(Node), sums[k], arrived);
  }
  const auto all_arrived = [&] {
    most = std::max(most, dispatcher.waiting());
    dispatcher.dispatch();
    return arrived == kWalkers;
  };
  if (!context.wait_until(all_arrived, kLimit)) fail("a walker is lost");
  for (uint64_t k = 0; k < kWalkers; ++k) {
    const uint64_t right = kNodes * (1 + k) + kWalkers * kNodes * (kNodes - 1) / 2;
    if (sums[k] != right) fail("walker " + std::to_string(k) + " has another sum");
  }
  std::printf("%zu walkers, %zu of them at once, have added %zu nodes each\n", sums.size(), most,
              static_cast<size_t>(kNodes));
}
