/// \file
/// Memory that a program names in a command, and that need not be there.
#pragma once

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

namespace rnic::run {

/// memcpy() for addresses of the program, of which the kernel would say EFAULT. It is asked to
/// copy, so that a wrong address ends no process.
/// \return false: there is no such memory
inline bool copy_checked(void* to, const void* from, size_t size) {
  if (size == 0) return true;
  if (to == nullptr || from == nullptr) return false;
  const iovec here{to, size};
  const iovec there{const_cast<void*>(from), size};
  const int error = errno;
  const long copied =
      syscall(SYS_process_vm_readv, syscall(SYS_getpid), &here, 1UL, &there, 1UL, 0UL);
  const bool forbidden = copied < 0 && errno != EFAULT;
  errno = error;
  if (forbidden) memcpy(to, from, size);  // as some containers do
  return forbidden || copied == static_cast<long>(size);
}

}  // namespace rnic::run
