// A table of keys and values of which a client looks values up by RDMA Read, without the server's
// processor: only changes are messages. A slot bears a checksum, by which a client that reads while
// the server writes notices that, and reads again.
//
//   kv-store [CONFIG]     CONFIG has devices rnic0 and rnic1; without: two in memory

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "rnic/blocking.hpp"

namespace {

using rnic::blocking::Adapter;
using rnic::blocking::Connection;

constexpr uint16_t kPort = 7471;
constexpr uint64_t kSlots = 1024;
constexpr int kKeys = 500;
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

struct Entry {
  std::array<char, 24> key{};  // empty: the slot is free
  std::array<char, 96> value{};
};
struct Slot {
  Entry entry;
  uint64_t checksum = 0;
};
uint64_t hash(const void* octets, size_t count) {  // FNV-1a
  uint64_t sum = 0xcbf29ce484222325;
  for (size_t i = 0; i < count; ++i) {
    sum = (sum ^ static_cast<const unsigned char*>(octets)[i]) * 0x100000001b3;
  }
  return sum;
}
uint64_t first_slot(const std::array<char, 24>& key) {
  return hash(key.data(), key.size()) % kSlots;
}

template <size_t N>
std::array<char, N> padded(const std::string& text) {
  std::array<char, N> out{};
  std::memcpy(out.data(), text.data(), std::min(text.size(), N - 1));
  return out;
}

/// Takes changes of one client; the answer to each is empty.
void serve(rnic::blocking::Listener& listener, std::vector<Slot>& table,
           const std::array<uint64_t, 2>& where) {
  rnic::blocking::ConnectionOptions options;
  options.private_data = {reinterpret_cast<const uint8_t*>(where.data()), sizeof where};
  Connection client = must(listener.accept(rnic::blocking::kTimeLimit, options));
  Entry put;
  while (client.receive(std::as_writable_bytes(std::span(&put, 1)))) {
    uint64_t at = first_slot(put.key);
    while (table[at].entry.key[0] != 0 && table[at].entry.key != put.key) at = (at + 1) % kSlots;
    table[at].entry = put;
    table[at].checksum = hash(&put, sizeof put);
    must(client.send(std::span<const std::byte>{}));
  }
  if (!client.peer_closed()) fail("the client has gone without a word");
}

class Client {
 public:
  Client(Adapter& adapter, const rnic::Endpoint& server)
      : sink_(must(adapter.register_memory(std::as_writable_bytes(std::span(&slot_, 1)),
                                           rnic::Access::LocalWrite))),
        server_(must(adapter.connect(server))) {
    if (server_.peer_data().size() != sizeof table_) fail("the server does not say where");
    std::memcpy(table_.data(), server_.peer_data().data(), sizeof table_);
  }
  void put(const std::string& key, const std::string& value) {
    const Entry entry{padded<24>(key), padded<96>(value)};
    must(server_.send(std::as_bytes(std::span(&entry, 1))));
    must(server_.receive({}));
  }
  std::optional<std::string> get(const std::string& key) {
    const auto wanted = padded<24>(key);
    for (uint64_t at = first_slot(wanted);; at = (at + 1) % kSlots) {
      do {
        const rnic::RemoteAddress there{static_cast<uint32_t>(table_[0]),
                                        table_[1] + at * sizeof(Slot)};
        must(server_.read({sink_.sge(0, sizeof(Slot))}, there));
      } while (slot_.entry.key[0] != 0 && slot_.checksum != hash(&slot_.entry, sizeof(Entry)));
      if (slot_.entry.key[0] == 0) return std::nullopt;
      if (slot_.entry.key == wanted) return slot_.entry.value.data();
    }
  }
  void close() { must(server_.close()); }

 private:
  Slot slot_;
  rnic::MemoryRegion sink_;
  Connection server_;
  std::array<uint64_t, 2> table_{};  // STag and offset, as the server has told them
};

}  // namespace

int main(int argc, char** argv) {
  auto context = open(argc > 1 ? argv[1] : nullptr);
  auto near = must(Adapter::open(context, "rnic0"));
  auto far = must(Adapter::open(context, "rnic1"));
  std::vector<Slot> table(kSlots);
  auto region =
      must(far.register_memory(std::as_writable_bytes(std::span(table)), rnic::Access::RemoteRead));
  const std::array<uint64_t, 2> where{region.stag(), region.address()};
  auto listener = must(far.listen({far.device().address(), kPort}));
  std::thread server([&] { serve(listener, table, where); });
  Client client(near, {far.device().address(), kPort});
  const auto key = [](int i) { return "key" + std::to_string(i); };
  const auto value = [](int i) { return "value " + std::to_string(i * i); };
  for (int i = 0; i < kKeys; ++i) client.put(key(i), "old");
  for (int i = 0; i < kKeys; ++i) client.put(key(i), value(i));
  for (int i = 0; i < kKeys; ++i) {
    if (client.get(key(i)) != value(i)) fail("another value of " + key(i));
  }
  if (client.get("nobody's key")) fail("a key that was never put has a value");
  client.close();
  server.join();
  std::printf("%d values were read as they were put\n", kKeys);
}
