/// \file
/// One seeded world: two devices, a bad wire between them, applications that move data, and the
/// checkers. Behind each turn of a device, and behind what its application did, the device counts
/// its invariants anew (Device::validate()): all of them, however long the world. Everything
/// happens in virtual time in one thread; the same plan gives the same world to the octet.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "drop_judge.hpp"
#include "fingerprint.hpp"
#include "impair/impair.hpp"
#include "outcome.hpp"
#include "pcap/pcap.hpp"
#include "profile.hpp"
#include "sim/sim.hpp"
#include "trace_check.hpp"
#include "traffic.hpp"
#include "verdict.hpp"
#include "violation.hpp"
#include "wire_monitor.hpp"

namespace rnic::simulation {

class World {
 public:
  World(const WorldPlan& plan, const Recording& recording);
  ~World();

  Outcome run();

 private:
  enum class PipeKind : uint8_t { Traffic, Violation, Rejected, Refused };

  /// Two queue pairs that are to be connected.
  struct Pipe {
    uint32_t number = 0;
    PipeKind kind = PipeKind::Traffic;
    uint32_t initiator = 0;  // side
    std::array<End, 2> ends;
    std::array<std::unique_ptr<Flow>, 2> flows;  // by side of the sender
    std::unique_ptr<ViolationCase> violation;
    std::vector<uint8_t> request_data;
    std::vector<uint8_t> reply_data;
    PortPair ports;
    bool closing = false;
    bool closed = false;                               // both ends are gone
    std::array<std::unique_ptr<DropJudge>, 2> judges;  // by receiving side; MPA's traffic only
    std::array<std::unique_ptr<TraceCheck>, 2> traces;
    bool lost = false;                     // dies of a damage that nothing could heal
    base::Now given_up_at = base::kNever;  // a lost one that still stands then
  };

  struct Host {
    std::unique_ptr<impair::ImpairedPort> weather;
    std::unique_ptr<CuttingPort> cutter;
    std::unique_ptr<SqueezingPort> squeezer;
    std::unique_ptr<TapPort> tap;
    std::unique_ptr<pcap::CapturePort> capture;
    std::unique_ptr<device::Device> device;
    base::Now asleep_until{};
    uint32_t shared_pd = 0;
    device::CompletionQueue* shared_cq = nullptr;
    std::map<uint32_t, std::pair<Pipe*, uint32_t>> by_qp;  // number -> pipe, side
    uint64_t crc_drops_seen = 0;
  };

  // world_setup.cpp
  void build_wire();
  void build_hosts(const Recording& recording);
  void build_pipes();
  void add_pipe(PipeKind kind, uint32_t initiator);
  void make_end(Pipe& pipe, uint32_t side);
  void connect(Pipe& pipe);
  void release_everything();
  void check_returned();
  void check_buffers();

  // world_events.cpp
  bool drain(uint32_t side);
  void on_event(uint32_t side, const Event& event);
  void on_request(uint32_t side, const event::ConnectRequest& event);
  // What is expected of a connection changes its state; false: it was not expected.
  bool expects(Pipe& pipe, uint32_t side, const event::Established& event);
  bool expects(Pipe& pipe, uint32_t side, const event::Rejected& event);
  bool expects(Pipe& pipe, uint32_t side, const event::ConnectFailed& event);
  bool expects(Pipe& pipe, uint32_t side, const event::PeerClosed& event);
  bool expects(Pipe& pipe, uint32_t side, const event::Disconnected& event);
  bool expects(Pipe& pipe, uint32_t side, const event::TerminateSent& event);
  bool expects(Pipe& pipe, uint32_t side, const event::TerminateReceived& event);
  bool expects(Pipe&, uint32_t, const event::Common&) { return false; }
  void on_established(Pipe& pipe, uint32_t side, const event::Established& event);
  void begin_trace(Pipe& pipe, uint32_t side);
  void on_completion(uint32_t side, const Completion& completion);
  void on_wire_message(const PortPair& ports, uint32_t to, const WireMessage& message);
  void on_arrival(const PortPair& ports, uint32_t to, base::Range range,
                  std::vector<uint64_t> damaged);
  bool on_lost(Pipe& pipe, uint32_t side, const Event& event);
  void lose(Pipe& pipe);
  void unexpected(const Pipe* pipe, uint32_t side, const Event& event);

  // world.cpp
  bool step();
  bool poll_hosts();
  bool post_traffic();
  void manage_pipes();
  void begin_close(Pipe& pipe);
  void sleep_maybe();
  void check_always();
  void advance(bool busy);
  void check_prompt(base::Now next);
  [[nodiscard]] base::Now next_event() const;
  [[nodiscard]] uint64_t refusals(uint32_t side) const;
  void begin_corruption(bool all_stand);
  [[nodiscard]] bool all_closed() const;
  [[nodiscard]] std::string describe() const;
  void count(Totals& totals) const;
  void resources(const Status& status);
  void trace(const std::string& line);

  const WorldPlan plan_;
  const Recording recording_;
  base::Prng prng_;
  Verdict verdict_;
  Fingerprint fingerprint_;
  base::Now now_ = base::from_nanos(1'000'000);
  uint64_t steps_ = 0;
  uint64_t idle_steps_ = 0;  // in a row, without anything happening
  base::Now next_nap_{};
  WireMonitor monitor_;
  std::unique_ptr<sim::Link> link_;
  std::array<Host, 2> hosts_;
  std::vector<std::unique_ptr<Pipe>> pipes_;
  bool corrupting_ = false;  // the wire's corruption is on
  FILE* trace_file_ = nullptr;
};

}  // namespace rnic::simulation
