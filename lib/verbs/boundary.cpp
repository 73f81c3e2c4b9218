#include "verbs/boundary.hpp"

#include <string>
#include <system_error>

namespace rnic::verbs {

namespace {

Error out_of_memory(const char* call) {
  return {ErrorCode::ResourceExhausted, base::worded([&] {
            return std::string(call) +
                   ": out of memory: the machine gives no more; close what is not needed, lower "
                   "the limits of the configuration, or raise those of the process (ulimit -v)";
          })};
}

}  // namespace

Error error_of_thrown(const char* call) noexcept {
  try {
    throw;
  } catch (const AbandonedRuntime&) {
    return abandoned().value();
  } catch (const std::bad_alloc&) {
    return out_of_memory(call);
  } catch (const std::length_error&) {
    return out_of_memory(call);
  } catch (const std::system_error& error) {  // a thread, a lock, a file
    return {ErrorCode::ResourceExhausted,
            base::worded([&] { return std::string(call) + ": " + error.what(); })};
  } catch (const std::exception& error) {
    return {ErrorCode::Environment,
            base::worded([&] { return std::string(call) + ": " + error.what(); })};
  }
}

tl::unexpected<Error> empty_handle() {
  return tl::unexpected(Error{ErrorCode::WrongState, base::worded([] {
                                return "the handle is empty: it was never filled, or what it stood "
                                       "for was moved from it or destroyed; use another one";
                              })});
}

tl::unexpected<Error> abandoned() {
  return tl::unexpected(
      Error{ErrorCode::Abandoned, base::worded([] {
              return "the handle is the parent process's: this one was forked since, and has none "
                     "of its devices, queues and connections; open a context of its own";
            })});
}

}  // namespace rnic::verbs
