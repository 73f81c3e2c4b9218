// A program of rsockets that sleeps in rrecv() while its peer is killed, or exits without closing
// anything: rrecv() has to tell of the end. The peers are processes of this program. Prints what is
// wrong and returns 1, or prints "ok".

#include <arpa/inet.h>
#include <rdma/rsocket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "verbs_end.hpp"

namespace {

using rnic::programs::loopback;
using rnic::programs::need;

constexpr char kOctet = 'x';

/// Sends an octet, and goes when the other side writes to its standard input.
int be_peer(uint16_t port, bool killed) {
  const int peer = rsocket(AF_INET, SOCK_STREAM, 0);
  need(0, peer >= 0, "rsocket");
  const sockaddr_in to = loopback(port);
  need(rconnect(peer, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), "rconnect");
  need(0, rsend(peer, &kOctet, 1, 0) == 1, "rsend");
  char word = 0;
  need(0, read(STDIN_FILENO, &word, 1) == 1, "read");
  if (killed) raise(SIGKILL);
  return 0;
}

/// A peer in a process of its own.
class Peer {
 public:
  Peer(uint16_t port, bool killed) {
    int ends[2];
    need(pipe(ends), "pipe");
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[0], STDIN_FILENO);
      close(ends[1]);
      const std::string number = std::to_string(port);
      execl("/proc/self/exe", "peer", number.c_str(), killed ? "killed" : "exits", nullptr);
      _exit(1);
    }
    close(ends[0]);
    leave_ = ends[1];
  }
  ~Peer() {
    close(leave_);
    waitpid(process_, nullptr, 0);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  void leave() const { need(0, write(leave_, "!", 1) == 1, "write"); }

 private:
  pid_t process_ = 0;
  int leave_ = -1;
};

bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string number;
  std::string name;
  char state = 0;
  file >> number >> name >> state;
  return state == 'S';
}

void look(int listener, uint16_t port, bool killed) {
  const Peer peer(port, killed);
  const int end = raccept(listener, nullptr, nullptr);
  need(0, end >= 0, "raccept");
  char octet = 0;
  need(0, rrecv(end, &octet, 1, 0) == 1 && octet == kOctet, "the octet");
  std::atomic<pid_t> reader{0};
  std::thread reading([&] {
    reader = static_cast<pid_t>(syscall(SYS_gettid));
    need(0, rrecv(end, &octet, 1, 0) == 0, "the end, by rrecv");
  });
  while (reader == 0 || !sleeps(reader)) std::this_thread::yield();
  peer.leave();
  reading.join();
  need(rclose(end), "rclose");
}

}  // namespace

int main(int count, char** words) {
  if (count == 3) {
    return be_peer(static_cast<uint16_t>(std::stoi(words[1])), std::string(words[2]) == "killed");
  }
  const int listener = rsocket(AF_INET, SOCK_STREAM, 0);
  need(0, listener >= 0, "rsocket");
  sockaddr_in here = loopback(0);
  socklen_t size = sizeof(here);
  need(rbind(listener, reinterpret_cast<sockaddr*>(&here), size), "rbind");
  need(rlisten(listener, 1), "rlisten");
  need(rgetsockname(listener, reinterpret_cast<sockaddr*>(&here), &size), "rgetsockname");
  for (int round = 0; round < 2; ++round) {
    look(listener, here.sin_port, true);
    look(listener, here.sin_port, false);
  }
  need(rclose(listener), "rclose");
  std::puts("ok");
  return 0;
}
