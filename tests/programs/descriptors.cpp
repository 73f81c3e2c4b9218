// A program of libibverbs and librdmacm that treats descriptors of channels as it may those of the
// kernel: it duplicates them, gives their numbers to files in every way, and starts children that
// close what they have inherited. Prints what is wrong and returns 1, or prints "ok".

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "verbs_end.hpp"

namespace {

using rnic::programs::need;

void check(bool good, const char* what) {
  if (good) return;
  std::printf("%s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

rdma_event_channel* new_channel() {
  rdma_event_channel* const channel = rdma_create_event_channel();
  return need(channel, channel != nullptr, "rdma_create_event_channel");
}

/// A channel whose descriptor has gone: librdmacm is to give its own memory back alone.
void give_up(rdma_event_channel* channel) {
  channel->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  rdma_destroy_event_channel(channel);
}

rdma_cm_id* new_id(rdma_event_channel* channel) {
  rdma_cm_id* id = nullptr;
  need(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  return id;
}

/// The channel takes a command, and tells of an event.
void use(rdma_event_channel* channel, const char* what) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rdma_cm_id* const id = new_id(channel);
  check(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000) == 0, what);
  pollfd look{channel->fd, POLLIN, 0};
  check(poll(&look, 1, 0) == 1, what);
  rdma_cm_event* event = nullptr;
  check(rdma_get_cm_event(channel, &event) == 0, what);
  need(rdma_ack_cm_event(event), "rdma_ack_cm_event");
  need(rdma_destroy_id(id), "rdma_destroy_id");
}

int new_file() {
  char name[] = "descriptors.XXXXXX";
  const int fd = mkostemp(name, O_CLOEXEC);
  check(fd >= 0 && unlink(name) == 0, "mkostemp");
  return fd;
}

/// The descriptor is that of a file, and of nothing else.
void is_file(int fd, const char* what) {
  struct stat found {};
  check(write(fd, "line\n", 5) == 5 && fstat(fd, &found) == 0, what);
  check(S_ISREG(found.st_mode) && found.st_size % 5 == 0, what);
}

/// Each way to give the number of a channel to a file. `way` closes it, or puts `file` there.
template <typename Way>
void give_number_to_file(const char* what, Way way) {
  rdma_event_channel* const channel = new_channel();
  const int file = new_file();
  const int number = channel->fd;
  way(file, number);
  if (fcntl(number, F_GETFD) < 0) check(fcntl(file, F_DUPFD_CLOEXEC, number) == number, what);
  is_file(number, what);
  close(number);
  close(file);
  give_up(channel);
  rdma_event_channel* const next = new_channel();
  use(next, what);
  rdma_destroy_event_channel(next);
}

void numbers_of_channels() {
  give_number_to_file("dup2()", [](int file, int number) { dup2(file, number); });
  give_number_to_file("dup3()", [](int file, int number) { dup3(file, number, O_CLOEXEC); });
  give_number_to_file("close()", [](int, int number) { close(number); });
  give_number_to_file("close_range()", [](int, int number) {
    close_range(static_cast<unsigned>(number), static_cast<unsigned>(number), 0);
  });
  give_number_to_file("close() behind libc's back",
                      [](int, int number) { syscall(SYS_close, number); });
  give_number_to_file("dup2() behind libc's back",
                      [](int file, int number) { syscall(SYS_dup2, file, number); });
}

void duplicates() {
  rdma_event_channel* const channel = new_channel();
  const int first = channel->fd;
  const int copies[] = {dup(first), fcntl(first, F_DUPFD, 0), fcntl(first, F_DUPFD_CLOEXEC, 0),
                        dup2(first, 100), dup3(first, 101, O_CLOEXEC)};
  for (const int copy : copies) {
    channel->fd = copy;
    use(channel, "a duplicate");
  }
  // Any of them may go, and their number become another channel's.
  close(first);
  rdma_event_channel* const other = new_channel();
  check(other->fd == first, "the number is not given again");
  for (const int copy : copies) {
    channel->fd = copy;
    use(channel, "a duplicate of what was closed");
    use(other, "a channel beside duplicates");
    if (copy != 101) close(copy);
  }
  rdma_destroy_event_channel(channel);
  rdma_destroy_event_channel(other);
}

/// Signals of a descriptor are the program's.
void signals() {
  rdma_event_channel* const channel = new_channel();
  need(fcntl(channel->fd, F_SETSIG, SIGUSR1), "F_SETSIG");
  check(fcntl(channel->fd, F_GETSIG) == SIGUSR1, "F_GETSIG");
  use(channel, "a channel that sends a signal of the program's");
  rdma_destroy_event_channel(channel);
  rdma_event_channel* const other = new_channel();
  need(fcntl(other->fd, F_SETFL, O_ASYNC), "O_ASYNC");
  check(fcntl(other->fd, F_GETSIG) == 0, "a channel sends another signal than SIGIO");
  use(other, "a channel that sends signals");
  rdma_destroy_event_channel(other);
}

/// A command of rdma_user_cm.h: a header of two words, and what follows.
template <size_t kWords>
void refuse_address(int fd, const std::array<uint64_t, kWords>& command, const char* what) {
  errno = 0;
  check(write(fd, command.data(), sizeof(command)) == -1 && errno == EFAULT, what);
}

/// The kernel says EFAULT where there is no memory for its answer, and so do we.
void addresses_of_nothing() {
  rdma_event_channel* const channel = new_channel();
  constexpr uint64_t kCreateId = (uint64_t{32} << 48) | (uint64_t{24} << 32);
  constexpr uint64_t kGetEvent = (uint64_t{64} << 48) | (uint64_t{8} << 32) | 12;
  for (const uint64_t nowhere : {uint64_t{0}, uint64_t{8}}) {
    refuse_address(channel->fd, std::array<uint64_t, 4>{kCreateId, 0, nowhere, RDMA_PS_TCP},
                   "an id told to nowhere");
  }
  rdma_cm_id* const id = new_id(channel);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  need(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), "rdma_resolve_addr");
  refuse_address(channel->fd, std::array<uint64_t, 2>{kGetEvent, 8}, "an event told to nowhere");
  rdma_cm_event* event = nullptr;  // it is still there
  need(rdma_get_cm_event(channel, &event), "rdma_get_cm_event");
  need(rdma_ack_cm_event(event), "rdma_ack_cm_event");
  need(rdma_destroy_id(id), "rdma_destroy_id");
  const void* volatile nowhere = nullptr;
  for (const char* each : {"a command at NULL", "a command at 8"}) {
    errno = 0;
    check(write(channel->fd, const_cast<const void*>(nowhere), 24) == -1 && errno == EFAULT, each);
    nowhere = reinterpret_cast<const void*>(8);
  }
  rdma_destroy_event_channel(channel);
}

/// The child has its own copy of everything, and what it closes it may use for other things.
void forked_child() {
  rdma_event_channel* const channel = new_channel();
  const pid_t child = fork();
  if (child == 0) {
    closefrom(STDERR_FILENO + 1);
    for (int i = 0; i < 20; ++i) is_file(new_file(), "a file of a child");
    _exit(0);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the child has failed");
  use(channel, "a channel whose copy a child has closed");
  rdma_destroy_event_channel(channel);
}

/// The child has its parent's memory, and descriptors of its own.
void child_of_vfork() {
  rdma_event_channel* const channel = new_channel();
  rdma_cm_id* const id = new_id(channel);
  const pid_t child = vfork();
  if (child == 0) {
    for (int fd = STDERR_FILENO + 1; fd < 100; ++fd) close(fd);
    close_range(100, 200, 0);
    dup2(STDOUT_FILENO, channel->fd);
    execl("/bin/true", "true", nullptr);
    _exit(1);
  }
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "the child has failed");
  use(channel, "a channel whose copy a child of vfork() has closed");
  need(rdma_destroy_id(id), "rdma_destroy_id");
  rdma_destroy_event_channel(channel);
}

}  // namespace

int main() {
  numbers_of_channels();
  duplicates();
  signals();
  addresses_of_nothing();
  forked_child();
  child_of_vfork();
  std::puts("ok");
  return 0;
}
