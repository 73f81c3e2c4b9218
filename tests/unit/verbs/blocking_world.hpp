/// \file
/// The two adapters of one context, on wires, local wires and sockets, inline and threaded.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rnic/blocking.hpp"
#include "verbs_pair.hpp"

namespace rnic::test {

using blocking::Adapter;
using blocking::Connection;
using blocking::ConnectionOptions;
using blocking::Listener;

inline constexpr uint16_t kPort = 7471;
inline constexpr uint16_t kNobody = 7472;
/// Looks, and does not wait.
inline constexpr std::chrono::seconds kNow{0};

enum class On { Wire, Local, Sockets };

struct Setting {
  On on = On::Wire;
  bool threaded = false;
};

inline std::string name_of(On on) {
  return on == On::Wire ? "Wire" : on == On::Local ? "Local" : "Sockets";
}

/// An address of 127/8 that no other process has at the same time.
inline std::string own_address(int last) {
  const int pid = static_cast<int>(getpid());
  return "127." + std::to_string(64 + pid / 65536 % 64) + "." + std::to_string(pid / 256 % 256) +
         "." + std::to_string(pid % 64 * 4 + last);
}

/// The folder of a local wire that nobody else has.
inline std::string new_folder() {
  struct Made {
    std::string path = testing::TempDir() + "rnic-blocking-XXXXXX";
    Made() { EXPECT_NE(mkdtemp(path.data()), nullptr); }
    ~Made() { std::filesystem::remove_all(path); }
  };
  static const Made all;
  static int number = 0;
  return all.path + "/" + std::to_string(++number);
}

inline Config config_of(const Setting& setting) {
  if (setting.on == On::Wire) return loopback_config(setting.threaded);
  const bool local = setting.on == On::Local;
  const std::string port = local ? "local:" + new_folder() : "socket";
  std::string text;
  for (const int i : {0, 1}) {
    const std::string address =
        local ? "10.77.0." + std::to_string(i + 1) + "/24" : own_address(i + 1) + "/8";
    text += "[[device]]\nname = \"rnic" + std::to_string(i) + "\"\nport = \"" + port +
            "\"\naddress = \"" + address + "\"\n";
  }
  Config config = Config::from_text(text);
  if (setting.threaded) config.set("worker.mode=threaded");
  return config;
}

inline Config with(Config config, const std::vector<std::string>& overrides) {
  for (const std::string& one : overrides) config.set(one);
  return config;
}

struct Adapters {
  Context context;
  Adapter near;
  Adapter far;

  explicit Adapters(const Setting& setting, const std::vector<std::string>& overrides = {})
      : context(must(Context::open(with(config_of(setting), overrides)))),
        near(must(Adapter::open(context, "rnic0"))),
        far(must(Adapter::open(context, "rnic1"))) {}
  [[nodiscard]] std::pair<Connection, Connection> pair(const ConnectionOptions& options = {}) {
    return must(near.connect_pair(far, kPort, kPatience, options));
  }
  [[nodiscard]] Endpoint there(uint16_t port = kPort) const {
    return {far.device().address(), port};
  }
};

inline std::vector<std::byte> bytes(size_t size, uint64_t seed) {
  const std::vector<uint8_t> from = octets(size, seed);
  std::vector<std::byte> out(size);
  if (size != 0) std::memcpy(out.data(), from.data(), size);
  return out;
}

/// Sends a message and takes it at the other end.
inline void pass(Connection& from, Connection& to, size_t size, uint64_t seed) {
  const std::vector<std::byte> message = bytes(size, seed);
  std::vector<std::byte> got(4096);
  must(from.send(message, kPatience));
  const Completion done = must(to.receive(got, kPatience));
  ASSERT_EQ(done.length, size);
  got.resize(done.length);
  EXPECT_EQ(got, message);
}

template <typename T>
ErrorCode code_of(const Result<T>& result) {
  EXPECT_FALSE(result) << "it was to fail";
  if (result) throw std::runtime_error("no error");
  EXPECT_FALSE(result.error().message.empty());
  return result.error().code;
}


inline const auto kAllSettings =
    ::testing::Values(Setting{On::Wire, false}, Setting{On::Wire, true}, Setting{On::Local, false},
                      Setting{On::Local, true}, Setting{On::Sockets, false},
                      Setting{On::Sockets, true});
inline std::string setting_name(const ::testing::TestParamInfo<Setting>& made) {
  return name_of(made.param.on) + (made.param.threaded ? "Threaded" : "Inline");
}

}  // namespace rnic::test
