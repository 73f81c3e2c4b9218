// A thousand clients on one thread: a server whose receives are shared, which sleeps in
// epoll_wait() until completions or events have come. The clients are in the same process.
//
//   srq-server [CLIENTS [CONFIG]]     CONFIG has devices rnic0 and rnic1; without: two in memory

#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "rnic/blocking.hpp"

namespace {

namespace blocking = rnic::blocking;
constexpr uint16_t kPort = 7471;
constexpr uint32_t kReceives = 64;  // for all clients together, who may all speak at once
constexpr uint32_t kOctets = 64;    // of a message

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);  // other threads may be under way
}

template <typename T>
T must(rnic::Result<T> result) {
  if (!result) fail(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// Gives back what each of its clients sends.
class EchoServer {
 public:
  explicit EchoServer(rnic::Device device)
      : device_(std::move(device)),
        pd_(must(device_.alloc_pd())),
        cq_(must(device_.create_cq(4096))),
        srq_(must(pd_.create_srq({.depth = kReceives, .max_sges = 1}))),
        octets_(kReceives * kOctets),
        region_(must(pd_.register_memory(octets_, rnic::Access::LocalWrite))) {
    for (uint64_t slot = 0; slot < kReceives; ++slot) post(slot);
    must(device_.listen({device_.address(), kPort}));
  }
  void serve(uint64_t clients) {  // until that many have come and gone
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    for (const int fd : {must(cq_.fd()), must(device_.event_fd())}) {
      epoll_event wanted{.events = EPOLLIN, .data = {.fd = fd}};
      if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted) != 0) fail("no epoll");
    }
    while (gone_ < clients) {
      must(cq_.arm());  // before the last look, so that nothing is slept over
      if (take_completions() + take_events() != 0) continue;
      std::array<epoll_event, 2> ready{};
      if (epoll_wait(epoll, ready.data(), 2, 20'000) == 0) fail("nobody says anything any more");
    }
    close(epoll);
  }
  [[nodiscard]] rnic::Endpoint address() const { return {device_.address(), kPort}; }

 private:
  void post(uint64_t slot) {
    must(srq_.post_receive({.id = slot, .sges = {region_.sge(slot * kOctets, kOctets)}}));
  }
  uint32_t take_completions() {
    std::array<rnic::Completion, 64> done;
    const uint32_t count = cq_.poll(done);
    for (const rnic::Completion& one : std::span(done).first(count)) {
      if (one.opcode != rnic::Opcode::Receive) continue;  // an answer that did not leave
      const auto client = clients_.find(one.qp);
      if (one.status == rnic::CompletionStatus::Success && client != clients_.end()) {
        rnic::SendRequest answer{.signaled = false};
        answer.inline_data = std::span(octets_).subspan(one.id * kOctets, one.length);
        static_cast<void>(client->second.post_send(answer));  // one that has gone needs none
      }
      post(one.id);
    }
    return count;
  }
  uint32_t take_events() {
    uint32_t count = 0;
    for (; auto event = device_.poll_event(); ++count) {
      if (const auto* request = std::get_if<rnic::event::ConnectRequest>(&*event)) {
        const rnic::QueuePairOptions options{
            .send_depth = 4, .ird = 1, .srq = &srq_, .receive_wait = std::chrono::seconds(10)};
        auto qp = must(pd_.create_qp(cq_, cq_, options));
        if (!qp.accept(request->request)) continue;  // it has gone away
        clients_.emplace(qp.number(), std::move(qp));
      } else if (std::holds_alternative<rnic::event::Disconnected>(*event)) {
        gone_ += clients_.erase(rnic::event::common(*event).qp);
      }
    }
    return count;
  }
  rnic::Device device_;
  rnic::ProtectionDomain pd_;
  rnic::CompletionQueue cq_;
  rnic::SharedReceiveQueue srq_;
  std::vector<std::byte> octets_;
  rnic::MemoryRegion region_;
  std::unordered_map<uint32_t, rnic::QueuePair> clients_;
  uint64_t gone_ = 0;
};

void be_clients(blocking::Adapter& adapter, const rnic::Endpoint& server, uint64_t count) {
  // All of them are connected when the first speaks.
  std::vector<blocking::Connection> all;
  for (uint64_t i = 0; i < count; ++i) {
    all.push_back(must(adapter.connect(server, blocking::kTimeLimit,
                                       {.message_size = kOctets, .receives = 1, .reads = 1})));
  }
  using Words = std::array<uint64_t, 8>;
  for (Words words{}; words[0] < count; ++words[0]) {
    must(all[words[0]].send(std::as_bytes(std::span(words))));
  }
  for (uint64_t i = 0; i < count; ++i) {
    Words back{};
    must(all[i].receive(std::as_writable_bytes(std::span(back))));
    if (back != Words{i}) fail("client " + std::to_string(i) + " got another's answer");
  }
  for (auto& one : all) must(one.close());
}

}  // namespace

int main(int argc, char** argv) {
  const size_t clients = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  rlimit files{};  // over sockets each connection is a descriptor, at either end
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) fail("no more descriptors");
  auto config = argc > 2 ? must(rnic::Config::from_file(argv[2])) : rnic::Config::loopback();
  config.set("worker.mode=threaded").set("limits.max_cqs=" + std::to_string(2 * clients + 16));
  auto context = must(rnic::Context::open(config));
  EchoServer server(must(context.device("rnic1")));
  auto adapter = must(blocking::Adapter::open(context, "rnic0"));
  std::thread talk([&] { be_clients(adapter, server.address(), clients); });
  server.serve(clients);
  talk.join();
  std::printf("%s clients, one thread: each got its own answer\n", std::to_string(clients).c_str());
}
