#include "wakeup/descriptor.hpp"

#include <cerrno>
#include <system_error>

namespace rnic::wakeup {

Descriptor::~Descriptor() {
  if (is_open()) process::descriptors().close(number_);
}

tl::unexpected<Error> no_descriptor(const char* what) {
  return base::fail(ErrorCode::ResourceExhausted,
                    std::string(what) + ": " + std::generic_category().message(errno) +
                        "; raise the limits of descriptors (ulimit -n) and of epoll's watches "
                        "(fs.epoll.max_user_watches)");
}

}  // namespace rnic::wakeup
