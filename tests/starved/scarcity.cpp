// Both names of each function are defined here: the headers must not make one of the two.
#undef _FILE_OFFSET_BITS

#include "scarcity.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// glibc's own, behind the names that are defined below.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);
}

namespace rnic::starved {

namespace {

struct State {
  std::atomic<bool> on{false};
  std::atomic<int> judging{0};  // threads that are about to refuse a request, or not to
  std::atomic<uint64_t> asked{0};
  std::atomic<uint64_t> refused{0};
  std::atomic<int64_t> live{0};
  std::atomic<bool> in_dpdk{false};
  Refusals refusals;
  std::array<void*, 48> frames{};
  int frame_count = 0;
};

State& state() {
  static constinit State the_state;
  return the_state;
}

thread_local bool looking_around = false;

bool is_dpdk(const Dl_info& info) {
  return info.dli_fname != nullptr && std::strstr(info.dli_fname, "librte_") != nullptr;
}

/// Counts the request, and decides whether it is refused.
bool judge(State& s, Scarce what) {
  if (!s.on || s.refusals.what != what) return false;
  const uint64_t number = s.asked.fetch_add(1) + 1;
  const bool struck = s.refusals.onwards ? number >= s.refusals.first : number == s.refusals.first;
  if (!struck) return false;
  looking_around = true;
  std::array<void*, 48> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  if (s.refused.fetch_add(1) == 0) {
    s.frames = frames;
    s.frame_count = count;
  }
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (dladdr(frames[i], &info) != 0 && is_dpdk(info)) s.in_dpdk = true;
  }
  looking_around = false;
  return true;
}

/// This request is to be refused.
bool refuse(Scarce what) {
  State& s = state();
  if (!s.on.load(std::memory_order_relaxed) || looking_around) return false;
  ++s.judging;
  const bool struck = judge(s, what);
  --s.judging;
  return struck;
}

void* given(void* block) {
  if (block != nullptr) state().live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void* no_memory() {
  errno = ENOMEM;
  return nullptr;
}

template <typename F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

std::string readable(const char* symbol) {
  int status = 0;
  char* plain = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string out = status == 0 ? plain : symbol;
  std::free(plain);
  return out;
}

/// backtrace() loads a library when it is called first.
[[gnu::constructor]] void prepare() {
  std::array<void*, 4> frames;
  backtrace(frames.data(), static_cast<int>(frames.size()));
}

}  // namespace

const char* to_string(Scarce what) {
  switch (what) {
    case Scarce::Memory: return "memory";
    case Scarce::Mapping: return "mmap";
    case Scarce::Thread: return "thread";
    case Scarce::Socket: return "socket";
    case Scarce::Eventfd: return "eventfd";
    case Scarce::Epoll: return "epoll";
    case Scarce::Open: return "open";
    case Scarce::Write: return "write";
  }
  return "unknown";
}

void begin(const Refusals& refusals) {
  State& s = state();
  s.refusals = refusals;
  s.asked = 0;
  s.refused = 0;
  s.frame_count = 0;
  s.in_dpdk = false;
  s.on.store(true, std::memory_order_release);
}

uint64_t end() {
  State& s = state();
  s.on = false;
  // What another thread is refusing is counted before the caller looks. A thread that has died of
  // its own look at the stack does not wait for itself.
  while (s.judging != 0 && !looking_around) sched_yield();
  return s.asked;
}

uint64_t refused() { return state().refused; }

int64_t live_blocks() { return state().live; }

namespace {

Place place_of(void* const* frames, int count) {
  Place place;
  for (int i = 0; i < count; ++i) {
    Dl_info info{};
    if (dladdr(frames[i], &info) == 0) continue;
    const std::string name = info.dli_sname == nullptr ? "?" : readable(info.dli_sname);
    place.text += "\n    " + name;
    if (is_dpdk(info) && place.dpdk.empty()) place.dpdk = name;
  }
  return place;
}

}  // namespace

Place where_refused() {
  const State& s = state();
  Place place = place_of(s.frames.data(), s.frame_count);
  place.dpdk_lacked = s.in_dpdk;
  return place;
}

Place where_now() {
  std::array<void*, 48> frames{};
  return place_of(frames.data(), backtrace(frames.data(), static_cast<int>(frames.size())));
}

}  // namespace rnic::starved

using rnic::starved::given;
using rnic::starved::next;
using rnic::starved::no_memory;
using rnic::starved::refuse;
using rnic::starved::Scarce;
using rnic::starved::state;

extern "C" {

void* malloc(size_t size) noexcept {
  return refuse(Scarce::Memory) ? no_memory() : given(__libc_malloc(size));
}

void* calloc(size_t count, size_t size) noexcept {
  return refuse(Scarce::Memory) ? no_memory() : given(__libc_calloc(count, size));
}

void* realloc(void* block, size_t size) noexcept {
  if (refuse(Scarce::Memory)) return no_memory();
  void* moved = __libc_realloc(block, size);
  return block == nullptr ? given(moved) : moved;
}

void free(void* block) noexcept {
  if (block == nullptr) return;
  state().live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(block);
}

void* memalign(size_t alignment, size_t size) noexcept {
  return refuse(Scarce::Memory) ? no_memory() : given(__libc_memalign(alignment, size));
}

void* aligned_alloc(size_t alignment, size_t size) noexcept { return memalign(alignment, size); }

int posix_memalign(void** out, size_t alignment, size_t size) noexcept {
  void* block = memalign(alignment, size);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

void* mmap(void* address, size_t length, int protection, int flags, int fd, off_t at) noexcept {
  if (refuse(Scarce::Mapping)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, fd, at));
}
void* mmap64(void* address, size_t length, int protection, int flags, int fd, off_t at) noexcept {
  return mmap(address, length, protection, flags, fd, at);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                   void* argument) noexcept {
  static const auto real =
      next<int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return refuse(Scarce::Thread) ? EAGAIN : real(thread, attributes, start, argument);
}

static int no_descriptor() {
  errno = EMFILE;
  return -1;
}

int socket(int family, int type, int protocol) noexcept {
  if (refuse(Scarce::Socket)) return no_descriptor();
  return static_cast<int>(syscall(SYS_socket, family, type, protocol));
}

int eventfd(unsigned int value, int flags) noexcept {
  if (refuse(Scarce::Eventfd)) return no_descriptor();
  return static_cast<int>(syscall(SYS_eventfd2, value, flags));
}

int epoll_create1(int flags) noexcept {
  if (refuse(Scarce::Epoll)) return no_descriptor();
  return static_cast<int>(syscall(SYS_epoll_create1, flags));
}

int openat(int folder, const char* path, int flags, ...) {
  if (refuse(Scarce::Open)) return no_descriptor();
  va_list arguments;
  va_start(arguments, flags);
  const int mode = va_arg(arguments, int);
  va_end(arguments);
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = va_arg(arguments, int);
  va_end(arguments);
  return openat(AT_FDCWD, path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const int mode = va_arg(arguments, int);
  va_end(arguments);
  return openat(AT_FDCWD, path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) {
  static const auto real = next<FILE* (*)(const char*, const char*)>("fopen");
  if (!refuse(Scarce::Open)) return real(path, mode);
  errno = EMFILE;
  return nullptr;
}
FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

/// DPDK without hugepages would take memory that a child shares with its parent and with the other
/// children.
int memfd_create(const char*, unsigned int) noexcept {
  errno = ENOSYS;
  return -1;
}

/// A file's. What an eventfd counts needs no room: its eventfd_write() goes past this.
ssize_t write(int fd, const void* octets, size_t size) {
  if (refuse(Scarce::Write)) {
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_write, fd, octets, size);
}

}  // extern "C"
