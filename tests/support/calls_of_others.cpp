#include "calls_of_others.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <utility>

// The C library's own, below the names that programs may replace.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

// Thread-local storage of the program itself asks for no memory when it is first used.
__attribute__((tls_model("initial-exec"))) thread_local bool counts = true;
std::atomic<uint64_t> memory{0};
std::atomic<uint64_t> locks{0};
std::atomic<const char*> last{nullptr};

void count(std::atomic<uint64_t>& calls, const char* name) {
  if (!counts) return;
  ++calls;
  last = name;
}

template <typename F>
F next(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

// Looked up before any thread runs: dlsym() takes locks itself.
using OnMutex = int (*)(pthread_mutex_t*);
using OnShared = int (*)(pthread_rwlock_t*);
const OnMutex lock_mutex = next<OnMutex>("pthread_mutex_lock");
const OnMutex try_mutex = next<OnMutex>("pthread_mutex_trylock");
const OnShared read_lock = next<OnShared>("pthread_rwlock_rdlock");
const OnShared write_lock = next<OnShared>("pthread_rwlock_wrlock");

// What is asked for before the constructors of this file have run is asked by one thread.
template <typename F, typename T>
int locked(F found, const char* name, T* lock) {
  count(locks, name);
  return (found != nullptr ? found : next<F>(name))(lock);
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  count(memory, "malloc");
  return __libc_malloc(size);
}
void* calloc(size_t many, size_t size) {
  count(memory, "calloc");
  return __libc_calloc(many, size);
}
void* realloc(void* block, size_t size) {
  count(memory, "realloc");
  return __libc_realloc(block, size);
}
void* memalign(size_t alignment, size_t size) {
  count(memory, "memalign");
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  count(memory, "aligned_alloc");
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** block, size_t alignment, size_t size) {
  count(memory, "posix_memalign");
  *block = __libc_memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  return locked(lock_mutex, "pthread_mutex_lock", mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  return locked(try_mutex, "pthread_mutex_trylock", mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  return locked(read_lock, "pthread_rwlock_rdlock", lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  return locked(write_lock, "pthread_rwlock_wrlock", lock);
}

}  // extern "C"

namespace rnic::test {

void calls_of_this_thread_do_not_count() { counts = false; }

CallsOfOthers calls_of_others() {
  const char* name = last.exchange(nullptr);
  return {.memory = memory.exchange(0),
          .locks = locks.exchange(0),
          .last = name == nullptr ? "" : name};
}

}  // namespace rnic::test
