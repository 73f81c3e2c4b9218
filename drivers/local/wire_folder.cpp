#include "local/wire_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "process/descriptor_table.hpp"

namespace rnic::local {

namespace {

using wakeup::Descriptor;

constexpr size_t kNameDigits = 12;

std::string system_text(int error) { return std::generic_category().message(error); }

/// The file's name: the address in hexadecimal digits.
std::string name_of(const port::MacAddress& mac) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint8_t octet : mac) {
    out += kDigits[octet >> 4];
    out += kDigits[octet & 15];
  }
  return out;
}

std::optional<port::MacAddress> address_in(std::string_view name) {
  if (name.size() != kNameDigits) return std::nullopt;
  port::MacAddress mac{};
  for (size_t i = 0; i < mac.size(); ++i) {
    const char* digits = name.data() + 2 * i;
    const auto [end, error] = std::from_chars(digits, digits + 2, mac[i], 16);
    if (error != std::errc{} || end != digits + 2) return std::nullopt;
  }
  return mac;
}

Descriptor datagram_socket() {
  return Descriptor::open(
      [] { return socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0); });
}

/// Nobody else makes or takes away a socket's file while this lives.
class Locked {
 public:
  enum class Wait : uint8_t { Yes, No };

  explicit Locked(const std::string& folder, Wait wait = Wait::Yes)
      : file_(Descriptor::open([&] {
          return open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
        })) {
    if (!file_.is_open()) return;
    const int how = wait == Wait::Yes ? LOCK_EX : LOCK_EX | LOCK_NB;
    int status = -1;
    do {
      status = flock(file_.get(), how);
    } while (status != 0 && errno == EINTR);
    has_it_ = status == 0;
  }
  [[nodiscard]] bool has_it() const { return has_it_; }

 private:
  bool has_it_ = false;
  Descriptor file_;
};

}  // namespace

Result<WireFolder> WireFolder::open(std::string path) {
  if (path.empty() || path.size() > kMostPath) {
    return base::fail(ErrorCode::InvalidArgument,
                      "a local wire: the path \"" + path + "\" has " + std::to_string(path.size()) +
                          " octets: name a folder, by 1 to " + std::to_string(kMostPath));
  }
  if (mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    return base::fail(ErrorCode::Environment, "a local wire: the folder " + path +
                                                  " cannot be made: " + system_text(errno));
  }
  if (!Locked(path).has_it()) {
    return base::fail(ErrorCode::Environment, "a local wire: " + path +
                                                  " is no folder that can be written: " +
                                                  system_text(errno));
  }
  return WireFolder(std::move(path));
}

std::string WireFolder::file_of(const port::MacAddress& mac) const {
  return path_ + "/" + name_of(mac);
}

SocketAddress WireFolder::address_of(const port::MacAddress& mac) const {
  SocketAddress out;
  out.name.sun_family = AF_UNIX;
  const std::string file = file_of(mac);
  static_assert(kMostPath + sizeof('/') + kNameDigits < sizeof(out.name.sun_path));
  std::memcpy(out.name.sun_path, file.c_str(), file.size() + 1);
  return out;
}

bool WireFolder::is_dead(const port::MacAddress& mac) const {
  const Descriptor probe = datagram_socket();
  const SocketAddress address = address_of(mac);
  return probe.is_open() && connect(probe.get(), address.get(), address.size()) != 0 &&
         errno == ECONNREFUSED;
}

Result<Descriptor> WireFolder::claim(const port::MacAddress& mac) {
  Descriptor made = datagram_socket();
  if (!made.is_open()) return wakeup::no_descriptor("a socket of a local wire");
  const SocketAddress address = address_of(mac);
  const Locked lock(path_);
  const auto bind_it = [&] {
    return bind(made.get(), address.get(), address.size()) == 0 ? 0 : errno;
  };
  int error = bind_it();
  if (error == EADDRINUSE && is_dead(mac)) {
    unlink(address.name.sun_path);
    error = bind_it();
  }
  if (error == 0) return made;
  if (error == EADDRINUSE) {
    return base::fail(ErrorCode::AlreadyExists,
                      "a local wire: another port on " + path_ + " has the Ethernet address " +
                          name_of(mac) + ": give each device an address of its own");
  }
  return base::fail(ErrorCode::Environment,
                    std::string("a local wire: ") + address.name.sun_path + ": " +
                        system_text(error));
}

void WireFolder::leave(const port::MacAddress& mac) {
  const Locked lock(path_);
  unlink(file_of(mac).c_str());
}

void WireFolder::bury(const port::MacAddress& mac) {
  // Frames do not wait for a process that was stopped with the lock; the next one tries again.
  const Locked lock(path_, Locked::Wait::No);
  if (lock.has_it() && is_dead(mac)) unlink(file_of(mac).c_str());
}

std::vector<port::MacAddress> WireFolder::members() const {
  std::vector<port::MacAddress> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path_.c_str()), closedir);
  if (folder == nullptr) return out;
  while (const dirent* entry = readdir(folder.get())) {
    if (out.size() == kMostMembers) break;
    if (const auto mac = address_in(entry->d_name)) out.push_back(*mac);
  }
  return out;
}

}  // namespace rnic::local
