#include "rnic/resolve.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <system_error>

#include "base/endian.hpp"
#include "base/fail.hpp"
#include "verbs/boundary.hpp"

namespace rnic {

namespace {

using Answers = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// Characters of the longest name, with a dot behind it (RFC 1035 s.2.3.4).
constexpr size_t kLongestName = 254;

ErrorCode code_of(int error, int system) {
  switch (error) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY: return ErrorCode::NotFound;
    case EAI_AGAIN: return ErrorCode::TimedOut;
    case EAI_MEMORY: return ErrorCode::ResourceExhausted;
    case EAI_SYSTEM:
      return system == EMFILE || system == ENFILE || system == ENOMEM ? ErrorCode::ResourceExhausted
                                                                      : ErrorCode::Environment;
    default: return ErrorCode::Environment;
  }
}

std::optional<IpAddress> address_of(const addrinfo& answer) {
  if (answer.ai_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(answer.ai_addr);
    return IpAddress::v4(ntohl(v4.sin_addr.s_addr));
  }
  if (answer.ai_family != AF_INET6) return std::nullopt;
  const uint8_t* octets = reinterpret_cast<const sockaddr_in6*>(answer.ai_addr)->sin6_addr.s6_addr;
  return IpAddress(base::load_be64(octets), base::load_be64(octets + 8));
}

}  // namespace

Result<std::vector<Endpoint>> resolve(const std::string& host, uint16_t port) {
  return verbs::guarded("resolve", [&]() -> Result<std::vector<Endpoint>> {
    // getaddrinfo() would see only the octets before a zero, and take an empty name for this
    // machine.
    if (host.empty() || host.find('\0') != std::string::npos) {
      return base::fail(ErrorCode::InvalidArgument,
                        "resolve: give the name of a host, or an address");
    }
    if (host.size() > kLongestName) {
      return base::fail(ErrorCode::InvalidArgument,
                        "resolve: a host of " + std::to_string(host.size()) +
                            " characters: a name has at most " + std::to_string(kLongestName));
    }
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* first = nullptr;
    const int error = getaddrinfo(host.c_str(), nullptr, &hints, &first);
    const int system = errno;
    const Answers answers(first, &freeaddrinfo);
    if (error != 0) {
      const std::string why =
          error == EAI_SYSTEM ? std::generic_category().message(system) : gai_strerror(error);
      return base::fail(code_of(error, system), "resolve: \"" + host + "\": " + why);
    }
    std::vector<Endpoint> found;
    for (const addrinfo* answer = answers.get(); answer != nullptr; answer = answer->ai_next) {
      const auto address = address_of(*answer);
      if (!address) continue;
      const Endpoint end{*address, port};
      if (std::find(found.begin(), found.end(), end) == found.end()) found.push_back(end);
    }
    if (!found.empty()) return found;
    return base::fail(
        ErrorCode::NotFound,
        "resolve: \"" + host + "\" has no IP address: give another name, or an address");
  });
}

}  // namespace rnic
