// Sends a file: the client writes straight into the file that the server has mapped.
//
//   file-transfer SOURCE TARGET [CONFIG]     CONFIG has devices rnic0 and rnic1; without: two in
//                                            memory

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "rnic/blocking.hpp"

namespace {

using rnic::blocking::Adapter;
using rnic::blocking::Connection;
using rnic::blocking::Listener;

constexpr uint16_t kPort = 7471;
constexpr uint64_t kPiece = 256 << 10;  // octets of a Write

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::_Exit(1);  // other threads may be under way
}

template <typename T>
T must(rnic::Result<T> result) {
  if (!result) fail(result.error().message);
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// The worker threads move the devices, so that both ends may wait.
rnic::Context open(const char* file) {
  auto config = file == nullptr ? rnic::Config::loopback() : must(rnic::Config::from_file(file));
  config.set("worker.mode=threaded");
  return must(rnic::Context::open(config));
}

/// A file in memory.
class MappedFile {
 public:
  /// \param size octets that it is to have, and it is written; 0: it is read as it is
  MappedFile(const std::string& path, uint64_t size) {
    const int fd = ::open(path.c_str(), size == 0 ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct stat facts {};
    if (fd < 0 || (size != 0 && ftruncate(fd, static_cast<off_t>(size)) != 0) ||
        fstat(fd, &facts) != 0) {
      fail(path + ": " + std::strerror(errno));
    }
    size_ = static_cast<size_t>(facts.st_size);
    if (size_ == 0) fail(path + ": it is empty");
    start_ =
        mmap(nullptr, size_, size == 0 ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start_ == MAP_FAILED) fail(path + ": " + std::strerror(errno));
    close(fd);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() { munmap(start_, size_); }
  [[nodiscard]] std::span<std::byte> octets() const {
    return {static_cast<std::byte*>(start_), size_};
  }

 private:
  void* start_ = nullptr;
  size_t size_ = 0;
};

/// Takes one file: told its size, tells where it may be written, and waits for the end.
void take(Adapter& adapter, Listener& listener, const std::string& path) {
  Connection client = must(listener.accept());
  uint64_t size = 0;
  must(client.receive(std::as_writable_bytes(std::span(&size, 1))));
  if (size == 0) fail("the client sends an empty file");
  const MappedFile file(path, size);
  auto region = must(adapter.register_memory(file.octets(), rnic::Access::RemoteWrite));
  const std::array<uint64_t, 2> where{region.stag(), region.address()};
  must(client.send(std::as_bytes(std::span(where))));
  must(client.receive({}));  // behind the last Write: all of them are placed
  must(client.send(std::span<const std::byte>{}));
  must(client.close());
}

/// On the error output, which is not what one pipes.
void show(uint64_t sent, uint64_t size) {
  const auto full = static_cast<size_t>(sent * 40 / size);
  std::fprintf(stderr, "\r[%s%s] %3d %%", std::string(full, '#').c_str(),
               std::string(40 - full, ' ').c_str(), static_cast<int>(sent * 100 / size));
  if (sent == size) std::fputc('\n', stderr);
}

void give(Adapter& adapter, const rnic::Endpoint& server_at, std::span<std::byte> octets) {
  Connection server = must(adapter.connect(server_at));
  auto region = must(adapter.register_memory(octets, rnic::Access::LocalRead));
  const uint64_t size = octets.size();
  must(server.send(std::as_bytes(std::span(&size, 1))));
  std::array<uint64_t, 2> where{};  // STag and offset
  must(server.receive(std::as_writable_bytes(std::span(where))));
  for (uint64_t sent = 0; sent < size;) {
    const uint64_t piece = std::min(kPiece, size - sent);
    must(server.write({region.sge(sent, static_cast<uint32_t>(piece))},
                      {static_cast<uint32_t>(where[0]), where[1] + sent}));
    sent += piece;
    show(sent, size);
  }
  must(server.send(std::span<const std::byte>{}));
  must(server.receive({}));
  must(server.close());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) fail("usage: file-transfer SOURCE TARGET [CONFIG]");
  auto context = open(argc > 3 ? argv[3] : nullptr);
  auto near = must(Adapter::open(context, "rnic0"));
  auto far = must(Adapter::open(context, "rnic1"));
  auto listener = must(far.listen({far.device().address(), kPort}));
  const MappedFile source(argv[1], 0);
  std::thread server([&] { take(far, listener, argv[2]); });
  give(near, {far.device().address(), kPort}, source.octets());
  server.join();
  const MappedFile arrived(argv[2], 0);
  if (!std::ranges::equal(source.octets(), arrived.octets())) fail("the files differ");
  std::printf("%zu octets arrived unchanged\n", arrived.octets().size());
  return 0;
}
