// The door: preloaded into a program, it stands where libibverbs and librdmacm reach for the
// kernel. They open the character devices of the uverbs and of the rdma_cm here, and find nobody
// behind netlink, so that they read the tree of SYSFS_PATH. Paths of the device under /sys lead
// into that tree, too. Every other call goes on to libc after one look. The door allocates nothing,
// takes no lock, and needs libc alone.

#include "rnic-run/door.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "rnic-run/caller_memory.hpp"
#include "rnic-run/our_descriptors.hpp"

namespace rnic::run {
namespace {

constexpr char kFolder[] = "/dev/infiniband/";
constexpr char kRdmaCm[] = "/dev/infiniband/rdma_cm";

OurDescriptors ours;
std::atomic<const DoorOps*> plugin{nullptr};

// The devices as other programs look for them: the tree has a list of all below SYSFS_PATH, and
// ours.
constexpr char kSysfs[] = "/sys";
constexpr char kList[] = "/sys/class/infiniband";
constexpr char kOurs[] = "/rnic0";
constexpr size_t kLongestPath = 4096;
char tree[kLongestPath];  // written before main() begins

/// The path as the program gave it. libc's headers promise the compiler that there is one, and it
/// leaves out what looks whether that is true; the kernel answers a program that has none.
const char* as_given(const char* path) {
  asm volatile("" : "+r"(path));
  return path;
}

/// \return whether the tree has what stands at the path
bool is_shown(const char* path) {
  if (strncmp(path, kList, sizeof(kList) - 1) != 0) return false;
  const char* below = path + sizeof(kList) - 1;
  if (below[strspn(below, "/")] == '\0') return true;
  if (strncmp(below, kOurs, sizeof(kOurs) - 1) != 0) return false;
  const char next = below[sizeof(kOurs) - 1];
  return next == '\0' || next == '/';
}

/// `path`, or what it stands for in the tree, which is written into `buffer`.
const char* led(const char* given, char (&buffer)[kLongestPath]) {
  const char* path = as_given(given);
  if (path == nullptr || tree[0] == '\0' || !is_shown(path)) return path;
  const char* below = path + sizeof(kSysfs) - 1;
  const size_t root = strlen(tree);
  const size_t rest = strlen(below) + 1;
  if (root + rest > kLongestPath) return path;
  memcpy(buffer, tree, root);
  memcpy(buffer + root, below, rest);
  return buffer;
}

// libc's own functions, found when the library is loaded. Before that the system call does.
using Write = ssize_t(int, const void*, size_t);
using Close = int(int);
std::atomic<Write*> next_write{nullptr};
std::atomic<Close*> next_close{nullptr};
using Dup = int(int);
std::atomic<Dup*> next_dup{nullptr};
using Dup2 = int(int, int);
std::atomic<Dup2*> next_dup2{nullptr};
using Control = int(int, int, ...);
std::atomic<Control*> next_fcntl{nullptr};
std::atomic<Control*> next_fcntl64{nullptr};
using CloseFrom = void(int);
std::atomic<CloseFrom*> next_closefrom{nullptr};
using Socket = int(int, int, int);
std::atomic<Socket*> next_socket{nullptr};
using OpenFolder = DIR*(const char*);
std::atomic<OpenFolder*> next_opendir{nullptr};
using OpenStream = FILE*(const char*, const char*);
std::atomic<OpenStream*> next_fopen{nullptr};

/// libc's function, looked up at its first call: other libraries call it before this one is set up.
template <typename Call>
Call* found(std::atomic<Call*>& next, const char* name) {
  Call* libc = next.load();
  if (libc != nullptr) return libc;
  libc = reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
  next = libc;
  return libc;
}

__attribute__((constructor)) void find_next() {
  found(next_write, "write");
  found(next_close, "close");
  found(next_dup, "dup");
  found(next_dup2, "dup2");
  found(next_fcntl, "fcntl");
  found(next_fcntl64, "fcntl64");
  found(next_closefrom, "closefrom");
  found(next_socket, "socket");
  ours.own();
  pthread_atfork(nullptr, nullptr, [] { ours.own(); });
  const char* root = getenv("SYSFS_PATH");
  if (root != nullptr && strlen(root) < sizeof(tree)) strcpy(tree, root);
}

int system_open(int folder, const char* path, int flags, mode_t mode) {
  return static_cast<int>(syscall(SYS_openat, folder, path, flags, mode));
}

int keep(int fd, Kind what) {
  if (fd < 0) return fd;
  if (fd >= OurDescriptors::kMost) {
    syscall(SYS_close, fd);
    errno = EMFILE;
    return -1;
  }
  ours.add(fd, what);
  return fd;
}

bool is_uverbs(const char* path) {
  constexpr size_t kLength = sizeof(kFolder) - 1;
  return strncmp(path, kFolder, kLength) == 0 && strcmp(path + kLength, kUverbsName) == 0;
}

/// Opens a device of the kernel's that the plugin stands for. \return nothing to do with `path`: -2
int open_ours(const char* path) {
  constexpr int kNotOurs = -2;
  if (is_uverbs(path)) {
    // The tree says that the device's number is that of /dev/null, which answers each ioctl with
    // ENOTTY: libibverbs goes on to write().
    return keep(system_open(AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC, 0), Kind::Uverbs);
  }
  if (strcmp(path, kRdmaCm) != 0) return kNotOurs;
  const DoorOps* ops = plugin.load();
  if (ops == nullptr) return kNotOurs;
  const int fd = keep(eventfd(0, EFD_CLOEXEC), Kind::RdmaCm);
  if (fd < 0 || ops->cm_opened(fd) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

int open_at(int folder, const char* given, int flags, mode_t mode) {
  const char* path = as_given(given);
  if (path != nullptr && path[0] == '/') {
    if (const int fd = open_ours(path); fd != -2) return fd;
  }
  char buffer[kLongestPath];
  return system_open(folder, led(path, buffer), flags, mode);
}

ssize_t is_bad_address() {
  errno = EFAULT;
  return -1;
}

/// The commands of the uverbs that no plugin can take over: there is one.
ssize_t write_uverbs(const void* command, size_t size) {
  const DoorOps* ops = plugin.load();
  ib_uverbs_cmd_hdr header;
  ib_uverbs_create_comp_channel body;
  if (ops == nullptr || size < sizeof(header) + sizeof(body)) {
    errno = EINVAL;
    return -1;
  }
  if (!copy_checked(&header, command, sizeof(header))) return is_bad_address();
  if ((header.command & IB_USER_VERBS_CMD_COMMAND_MASK) != IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL) {
    errno = EOPNOTSUPP;
    return -1;
  }
  if (!copy_checked(&body, static_cast<const char*>(command) + sizeof(header), sizeof(body))) {
    return is_bad_address();
  }
  const int fd = keep(ops->make_channel(), Kind::Channel);
  if (fd < 0) return -1;
  ib_uverbs_create_comp_channel_resp answer{};
  answer.fd = static_cast<uint32_t>(fd);
  if (!copy_checked(reinterpret_cast<void*>(body.response), &answer, sizeof(answer))) {
    close(fd);
    return is_bad_address();
  }
  return static_cast<ssize_t>(size);
}

// On x86-64 both forms of the structure are one.
static_assert(sizeof(struct stat) == sizeof(struct stat64));

/// \param found a stat or a stat64
int stat_into(int fd, const char* path, int flags, void* found) {
  char buffer[kLongestPath];
  const int status =
      static_cast<int>(syscall(SYS_newfstatat, fd, led(path, buffer), found, flags));
  if (status == 0 && ours.at(fd).kind == Kind::RdmaCm) {
    auto* of_device = static_cast<struct stat*>(found);
    of_device->st_mode = (of_device->st_mode & ~static_cast<mode_t>(S_IFMT)) | S_IFCHR;
  }
  return status;
}

int stat_fd(int fd, void* found) { return stat_into(fd, "", AT_EMPTY_PATH, found); }

/// The path as given, or of the device that the tree says the uverbs have.
const char* or_device(const char* path) {
  const char* given = as_given(path);
  return given != nullptr && is_uverbs(given) ? "/dev/null" : given;
}

int stat_path(const char* path, void* found) {
  return stat_into(AT_FDCWD, or_device(path), 0, found);
}

/// The number is closed, or another file's.
void forget(int fd) {
  const OurDescriptors::Loss lost = ours.remove(fd);
  const DoorOps* ops = plugin.load();
  if (lost.kind == Kind::Other || ops == nullptr) return;
  if (lost.heir >= 0) return ops->cm_renamed(lost.name, lost.heir);
  if (lost.kind == Kind::RdmaCm) ops->cm_closed(lost.name);
  if (lost.kind == Kind::Channel) ops->channel_closed(lost.name);
}

void forget_all(unsigned first, unsigned last) {
  const int highest = ours.highest();
  for (unsigned fd = first; fd <= last && static_cast<int64_t>(fd) <= highest; ++fd) {
    forget(static_cast<int>(fd));
  }
}

int duplicated(int fd, int copy) {
  if (copy >= 0) ours.duplicated(fd, copy);
  return copy;
}

/// What was behind `copy` before has gone, whoever had it.
int replaced(int fd, int copy, int status) {
  if (status < 0 || fd == copy) return status;
  forget(copy);
  return duplicated(fd, copy);
}

int control(std::atomic<Control*>& libc, int fd, int command, void* argument) {
  const auto number = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  // A file that sends signals sends the one that the program expects, and bears no mark of ours.
  const bool signals = command == F_SETFL && (number & O_ASYNC) != 0;
  const bool changes = signals || command == F_SETSIG;
  const OurDescriptor known = changes ? ours.at(fd) : OurDescriptor{};
  if (signals && known.mark != 0 && syscall(SYS_fcntl, fd, F_SETSIG, 0) == 0) ours.remark(known, 0);
  Control* const next = libc.load();
  const int result = next != nullptr ? next(fd, command, argument)
                                     : static_cast<int>(syscall(SYS_fcntl, fd, command, argument));
  if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) return duplicated(fd, result);
  if (command == F_SETSIG && result == 0) ours.remark(known, static_cast<uint8_t>(number));
  return result;
}

/// Where the tree cannot be read libibverbs says no more than that there are no devices.
void tell_of_lost_tree(const char* given) {
  constexpr char kVerbs[] = "/class/infiniband_verbs";  // what it looks at first
  const char* path = as_given(given);
  const size_t root = strlen(tree);
  if (path == nullptr || root == 0 || strncmp(path, tree, root) != 0) return;
  if (strcmp(path + root, kVerbs) != 0) return;
  const int error = errno;
  dprintf(STDERR_FILENO, "softrnic: there is no device, since %s cannot be read: %s\n", tree,
          error == EACCES ? "this user may not (was it changed by the program?)" : strerror(error));
  errno = error;
}

FILE* open_stream(const char* path, const char* mode) {
  char buffer[kLongestPath];
  return found(next_fopen, "fopen")(led(path, buffer), mode);
}

mode_t mode_of(int flags, va_list arguments) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return creates ? static_cast<mode_t>(va_arg(arguments, int)) : 0;
}

}  // namespace
}  // namespace rnic::run

using namespace rnic::run;  // NOLINT(google-build-using-namespace): C's names stand outside

#define RNIC_DOOR extern "C" __attribute__((visibility("default")))

RNIC_DOOR void rnic_door_attach(const DoorOps* ops) { plugin = ops; }

RNIC_DOOR int open(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

RNIC_DOOR int open64(const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(AT_FDCWD, path, flags, mode);
}

RNIC_DOOR int openat(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}

RNIC_DOOR int openat64(int folder, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return open_at(folder, path, flags, mode);
}

// Each name is answered here and by no other name: what a program preloads may stand before both.

RNIC_DOOR int fstat(int fd, struct stat* found) noexcept { return stat_fd(fd, found); }

RNIC_DOOR int stat(const char* path, struct stat* found) noexcept { return stat_path(path, found); }

RNIC_DOOR int lstat(const char* path, struct stat* found) noexcept {
  return stat_into(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, found);
}

RNIC_DOOR int fstatat(int folder, const char* path, struct stat* found, int flags) noexcept {
  return stat_into(folder, path, flags, found);
}

RNIC_DOOR int fstat64(int fd, struct stat64* found) noexcept { return stat_fd(fd, found); }

RNIC_DOOR int stat64(const char* path, struct stat64* found) noexcept {
  return stat_path(path, found);
}

RNIC_DOOR int lstat64(const char* path, struct stat64* found) noexcept {
  return stat_into(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, found);
}

RNIC_DOOR int fstatat64(int folder, const char* path, struct stat64* found, int flags) noexcept {
  return stat_into(folder, path, flags, found);
}

// What these were before glibc 2.33: programs that were linked with an older one call them, and the
// runtime of ThreadSanitizer does. The version of the structure is one on x86-64.

RNIC_DOOR int __fxstat(int /*version*/, int fd, struct stat* found) noexcept {
  return stat_fd(fd, found);
}

RNIC_DOOR int __xstat(int /*version*/, const char* path, struct stat* found) noexcept {
  return stat_path(path, found);
}

RNIC_DOOR int __lxstat(int /*version*/, const char* path, struct stat* found) noexcept {
  return stat_into(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, found);
}

RNIC_DOOR int __fxstatat(int /*version*/, int folder, const char* path, struct stat* found,
                         int flags) noexcept {
  return stat_into(folder, path, flags, found);
}

RNIC_DOOR int __fxstat64(int /*version*/, int fd, struct stat64* found) noexcept {
  return stat_fd(fd, found);
}

RNIC_DOOR int __xstat64(int /*version*/, const char* path, struct stat64* found) noexcept {
  return stat_path(path, found);
}

RNIC_DOOR int __lxstat64(int /*version*/, const char* path, struct stat64* found) noexcept {
  return stat_into(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, found);
}

RNIC_DOOR int __fxstatat64(int /*version*/, int folder, const char* path, struct stat64* found,
                           int flags) noexcept {
  return stat_into(folder, path, flags, found);
}

RNIC_DOOR int statx(int folder, const char* path, int flags, unsigned mask,
                    struct statx* found) noexcept {
  char buffer[kLongestPath];
  return static_cast<int>(syscall(SYS_statx, folder, led(path, buffer), flags, mask, found));
}

RNIC_DOOR int access(const char* path, int how) noexcept {
  char buffer[kLongestPath];
  return static_cast<int>(syscall(SYS_access, led(or_device(path), buffer), how));
}

RNIC_DOOR DIR* opendir(const char* path) {
  char buffer[kLongestPath];
  DIR* const folder = found(next_opendir, "opendir")(led(path, buffer));
  if (folder == nullptr) tell_of_lost_tree(path);
  return folder;
}

RNIC_DOOR FILE* fopen(const char* path, const char* mode) { return open_stream(path, mode); }

RNIC_DOOR FILE* fopen64(const char* path, const char* mode) { return open_stream(path, mode); }

RNIC_DOOR ssize_t write(int fd, const void* data, size_t size) {
  const OurDescriptor what = ours.at(fd);
  if (what.kind == Kind::RdmaCm) {
    if (const DoorOps* ops = plugin.load()) return ops->cm_write(what.name, data, size);
  }
  if (what.kind == Kind::Uverbs) return write_uverbs(data, size);
  if (Write* libc = next_write.load()) return libc(fd, data, size);
  return syscall(SYS_write, fd, data, size);
}

RNIC_DOOR int close(int fd) {
  forget(fd);
  if (Close* libc = next_close.load()) return libc(fd);
  return static_cast<int>(syscall(SYS_close, fd));
}

RNIC_DOOR int close_range(unsigned first, unsigned last, int flags) noexcept {
  constexpr int kOnlyAtExec = 1 << 2;  // CLOSE_RANGE_CLOEXEC
  if ((flags & kOnlyAtExec) == 0) forget_all(first, last);
  return static_cast<int>(syscall(SYS_close_range, first, last, flags));
}

RNIC_DOOR void closefrom(int first) noexcept {
  forget_all(first > 0 ? static_cast<unsigned>(first) : 0, UINT32_MAX);
  if (CloseFrom* libc = next_closefrom.load()) libc(first);
}

RNIC_DOOR int dup(int fd) noexcept {
  Dup* const libc = next_dup.load();
  return duplicated(fd, libc != nullptr ? libc(fd) : static_cast<int>(syscall(SYS_dup, fd)));
}

RNIC_DOOR int dup2(int fd, int copy) noexcept {
  Dup2* const libc = next_dup2.load();
  return replaced(fd, copy,
                  libc != nullptr ? libc(fd, copy) : static_cast<int>(syscall(SYS_dup2, fd, copy)));
}

RNIC_DOOR int dup3(int fd, int copy, int flags) noexcept {
  return replaced(fd, copy, static_cast<int>(syscall(SYS_dup3, fd, copy, flags)));
}

RNIC_DOOR int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(next_fcntl, fd, command, argument);
}

RNIC_DOOR int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return control(next_fcntl64, fd, command, argument);
}

RNIC_DOOR int socket(int domain, int type, int protocol) noexcept {
  // With RDMA in the kernel libibverbs would take its devices from there, and look at no tree.
  if (domain == AF_NETLINK && protocol == NETLINK_RDMA) {
    errno = EPROTONOSUPPORT;
    return -1;
  }
  if (Socket* libc = next_socket.load()) return libc(domain, type, protocol);
  return static_cast<int>(syscall(SYS_socket, domain, type, protocol));
}
