/// \file
/// One seeded streaming world: TCP over a hostile path in virtual time, judged from outside. The
/// same plan gives the same world to the octet.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <vector>

#include "base/prng.hpp"
#include "fingerprint.hpp"
#include "outcome.hpp"
#include "pcap/pcap.hpp"
#include "stream/attacker.hpp"
#include "stream/host.hpp"
#include "stream/judge.hpp"
#include "stream/path.hpp"
#include "stream/plain_peer.hpp"
#include "stream/plan.hpp"

namespace rnic::simulation {

class StreamWorld {
 public:
  StreamWorld(const StreamPlan& plan, const Recording& recording);
  ~StreamWorld();

  Outcome run();

 private:
  struct Pipe {
    std::array<Endpoint, 2> ends;
    std::array<std::unique_ptr<Application>, 2> applications;  // a plain peer has none
    std::unique_ptr<Judge> judge;
    uint32_t active = 0;  // side that connects
  };

  [[nodiscard]] IpAddress address(uint32_t side) const;
  void build_hosts();
  void build_pipe(uint32_t number);
  void on_sent(uint32_t side, Datagram&& d, base::Now now);
  void on_arrival(uint32_t side, Datagram&& d, base::Now now);
  void on_arriving(uint32_t side, const Datagram& d);
  void step();
  void attack();
  void forge_message(const Pipe& pipe, uint32_t side, const Judge::Numbers& numbers);
  void flood(uint32_t side);
  void shrink_paths();
  void router_says(uint32_t side, const Datagram& d, uint32_t mtu, base::Now now);
  void deliver_news();
  [[nodiscard]] base::Now next_event() const;
  [[nodiscard]] bool over() const;
  [[nodiscard]] bool quiet() const;
  void finish();
  [[nodiscard]] std::string describe() const;
  void count(Totals& totals) const;
  [[nodiscard]] uint64_t fingerprint();
  void trace(uint32_t side, const char* what, const Datagram& d);

  const StreamPlan plan_;
  const Recording recording_;
  base::Prng prng_;
  Verdict verdict_;
  Fingerprint fingerprint_;
  base::Now now_ = base::from_nanos(1'000'000'000);
  base::Now started_ = now_;
  uint64_t steps_ = 0;
  std::array<std::unique_ptr<Path>, 2> paths_;
  std::array<std::unique_ptr<Host>, 2> hosts_;  // [1] is empty beside a plain peer
  std::unique_ptr<PlainPeer> peer_;
  std::vector<std::unique_ptr<Pipe>> pipes_;
  Attacker attacker_;
  base::Now next_attack_ = base::kNever;
  uint64_t attacks_ = 0;
  struct News {
    uint32_t side = 0;  // of the sender whose packet did not fit
    uint32_t mtu = 0;
    Datagram packet;
  };
  std::multimap<base::Now, News> news_;  // ICMP messages on their way
  std::array<bool, 2> shrunk_{};
  uint64_t messages_ = 0;
  uint64_t octets_ = 0;
  std::array<std::unique_ptr<pcap::Writer>, 2> captures_;
  FILE* trace_file_ = nullptr;
};

}  // namespace rnic::simulation
