/// \file
/// A server of many clients: one loop over events and sessions, and nobody in it waits for anybody.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "rnic/verbs.hpp"
#include "workload/guest_list.hpp"
#include "workload/line_limit.hpp"

namespace rnic::workload {

/// What a server does with one client.
class Session {
 public:
  virtual ~Session() = default;
  /// QueuePair::number()
  [[nodiscard]] virtual uint32_t qp() = 0;
  /// Does what can be done now, and never waits. An error: the session is over, and why.
  virtual Status step() = 0;
  /// Grows whenever the client has asked for something.
  [[nodiscard]] virtual uint64_t heard() const = 0;
  /// Nothing more comes from the client, or nothing more is wanted from it: ends gracefully.
  virtual void finish() = 0;
};

struct ServerOptions {
  uint32_t clients = 200;  ///< at once
  double silence_s = 60;   ///< a client that says nothing for so long is let go; 0: never
};
/// --clients, --silence
void add_server_options(CLI::App& app, ServerOptions& options);

class Server {
 public:
  /// Makes a session of a request and accepts it.
  using Welcome = std::function<Result<std::unique_ptr<Session>>(Device, const RequestHandle&)>;

  /// \param program in front of its lines on stderr
  Server(Context& context, Device device, std::string program, const ServerOptions& options,
         Welcome welcome);

  /// One turn, driven by whoever polls the context.
  void step();
  [[nodiscard]] size_t clients() const { return seats_.size(); }

 private:
  struct Seat {
    std::unique_ptr<Session> session;
    std::string remote;
    uint64_t heard = 0;
    bool finishing = false;
  };

  void on_event(const Event& event);
  void receive(const event::ConnectRequest& request);
  bool make_room(const event::ConnectRequest& request);
  void reject(const event::ConnectRequest& request, const std::string& why);
  void let_silent_go();
  void end(size_t index, const std::string& why);
  [[nodiscard]] size_t seat_of(uint32_t qp) const;
  void say(const std::string& line);

  Context& context_;
  Device device_;
  std::string program_;
  ServerOptions options_;
  Welcome welcome_;
  GuestList guests_;
  std::vector<Seat> seats_;
  LineLimit lines_;
};

}  // namespace rnic::workload
