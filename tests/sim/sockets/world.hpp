/// \file
/// A world of two devices over sockets: drivers/socket and all above it, on two simulated systems,
/// in virtual time, from a seed. The checkers are those of a world over a link: every octet, the
/// order of completions, what comes over the wire, the invariants of the devices behind each of
/// their turns (Device::validate()), and that everything is returned at the end. A connection that
/// a fault has hit ends with a flush of all that was posted and with the error that its system
/// told; another one takes its place.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fingerprint.hpp"
#include "outcome.hpp"
#include "reference_receiver.hpp"
#include "socket/socket.hpp"
#include "sockets/kernel.hpp"
#include "sockets/plan.hpp"
#include "traffic.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

class SocketWorld {
 public:
  SocketWorld(const SocketPlan& plan, const Recording& recording);
  ~SocketWorld();

  Outcome run();

 private:
  /// Two queue pairs that are to be connected, for one attempt.
  struct Pipe {
    uint32_t number = 0;
    uint32_t initiator = 0;  // side
    std::array<End, 2> ends;
    std::array<std::unique_ptr<Flow>, 2> flows;  // by side of the sender
    std::vector<uint8_t> request_data;
    std::vector<uint8_t> reply_data;
    base::Now try_at{};       // the connect
    bool connecting = false;  // it was begun
    bool accepted = false;    // the responder has it
    uint16_t port = 0;        // of the connector
    bool closing = false;
    bool closed = false;
    bool released = false;
  };
  struct Host {
    std::unique_ptr<Kernel> kernel;
    std::unique_ptr<socket::Transport> transport;
    std::unique_ptr<device::Device> device;
    bool listening = false;
    std::map<uint32_t, std::pair<Pipe*, uint32_t>> by_qp;  // number -> pipe, side
  };
  using References = std::array<std::unique_ptr<ReferenceReceiver>, 2>;  // by receiving end

  void build_host(uint32_t side);
  void sleep(Host& host);
  void add_pipe();
  void make_end(Pipe& pipe, uint32_t side);
  void arrived(const TcpLink& link, uint32_t to, uint64_t offset, base::ByteView octets);
  void deliver(uint16_t port, uint32_t to_end, const WireMessage& message);

  bool step();
  bool try_setup();
  void try_connect(Pipe& pipe);
  bool drain(uint32_t side);
  void on_event(uint32_t side, const Event& event);
  void on_request(uint32_t side, const event::ConnectRequest& event);
  // What is expected of a connection changes its state; false: it was not expected.
  bool expects(Pipe& pipe, uint32_t side, const event::Established& event);
  bool expects(Pipe& pipe, uint32_t side, const event::PeerClosed& event);
  bool expects(Pipe& pipe, uint32_t side, const event::ConnectFailed& event);
  bool expects(Pipe& pipe, uint32_t side, const event::Disconnected& event);
  bool expects(Pipe& pipe, uint32_t side, const event::Ending& event);
  bool expects(Pipe&, uint32_t, const event::Common&) { return false; }
  void note_displaced(Pipe& pipe, uint32_t side);
  [[nodiscard]] uint64_t displaced(uint32_t side) const;
  bool on_disconnected(Pipe& pipe, uint32_t side, const event::Disconnected& event);
  void on_completion(uint32_t side, const Completion& completion);
  void manage(Pipe& pipe);
  void finish(Pipe& pipe);
  void release(Pipe& pipe);
  void advance(bool busy);
  void check_returned();
  void check_counters(uint32_t side);
  void check_systems();
  [[nodiscard]] uint64_t fingerprint();
  [[nodiscard]] bool all_closed() const;
  [[nodiscard]] bool is_broken(Pipe& pipe);
  [[nodiscard]] std::string describe() const;
  void resources(const Status& status);
  void unexpected(uint32_t side, const Event& event);
  void trace(const std::string& line);

  const SocketPlan plan_;
  base::Prng prng_;
  Verdict verdict_;
  Fingerprint fingerprint_;
  base::Now now_ = base::from_nanos(1'000'000);
  uint64_t steps_ = 0;
  uint64_t idle_steps_ = 0;
  Network network_;
  std::array<Host, 2> hosts_;
  std::vector<std::unique_ptr<Pipe>> pipes_;
  std::map<uint16_t, References> references_;  // by the connector's port
  std::map<uint16_t, base::Now> spoken_;       // likewise: when its peer's first FPDU came
  std::array<uint64_t, 2> displaced_known_{};  // start-ups that each device let go
  Totals totals_;
  FILE* trace_file_ = nullptr;
};

}  // namespace rnic::simulation
