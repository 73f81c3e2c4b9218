/// \file
/// Strangers on the wire: many addresses behind one port, each a TCP of a few lines that does its
/// worst and answers nothing more.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.hpp"
#include "base/seq32.hpp"
#include "port/port.hpp"
#include "rnic/address.hpp"
#include "wire/ether.hpp"
#include "wire/tcp.hpp"

namespace rnic::siege {

/// What a stranger does.
enum class Attack : uint8_t {
  SynOnly,           ///< half open: never answers the SYN-ACK
  BlindData,         ///< ACK and octets of a connection that never was
  Silent,            ///< TCP stands, and nothing comes
  PartOfRequest,     ///< 1 to 19 octets of a Request, and no more
  OctetASecond,      ///< a Request, slowly
  Garbage,           ///< random octets
  GarbageBehindKey,  ///< the Request's key, then random octets
  ResetAtOnce,       ///< connects and resets
  RequestThenReset,  ///< a whole Request, and gone
  RequestThenFin,    ///< a whole Request, and its half closed
  Started,           ///< the whole start-up, and then nothing
  StartedHalfClosed,
  StartedGarbage,  ///< the whole start-up, then octets that are no FPDU
};
inline constexpr uint32_t kAttacks = 13;
[[nodiscard]] const char* to_string(Attack attack);

/// Where the strangers say that they are. An IPv6 host has a /64 to choose its addresses from, so
/// there each stranger has an address of its own in what is one address here.
enum class Origin : uint8_t {
  OneOther,    ///< all at one address (in one /64), which is not the client's
  EachOwn,     ///< each at an address (in a /64) of its own
  TheClients,  ///< all at the client's address (in its /64)
};
[[nodiscard]] const char* to_string(Origin origin);

struct CrowdPlan {
  Origin origin = Origin::EachOwn;
  std::vector<Attack> attacks;  ///< in turn
  uint32_t strangers = 10'000;
  base::Duration interval{};  ///< from one stranger to the next
  IpAddress client;
  IpAddress server;  ///< of the same family
  uint16_t port = 0;
  uint64_t seed = 1;
};

/// Stands between a device and its port, and sends and receives beside it. The wire is trusted:
/// checksums are left open.
class Crowd final : public port::Port {
 public:
  Crowd(port::Port& inner, const CrowdPlan& plan, base::Now begin);

  /// What is due by now goes out.
  void step(base::Now now);
  [[nodiscard]] uint32_t arrived() const { return arrived_; }
  /// Strangers that got as far as an MPA Reply.
  [[nodiscard]] uint32_t started() const { return started_; }

  [[nodiscard]] const port::PortInfo& info() const override { return inner_.info(); }
  [[nodiscard]] const port::PortCounters& counters() const override { return inner_.counters(); }
  uint32_t rx_burst(std::span<port::Packet> out, base::Now now) override;
  bool alloc(std::span<port::Packet> out) override { return inner_.alloc(out); }
  uint32_t tx_burst(std::span<port::Packet> packets, base::Now now) override {
    return inner_.tx_burst(packets, now);
  }
  void free(std::span<const port::Packet> packets) override { inner_.free(packets); }
  [[nodiscard]] base::Now next_deadline() const override;

 private:
  struct Stranger {
    Attack attack = Attack::Silent;
    IpAddress address;
    uint16_t port = 0;
    base::Seq32 next;      // of ours
    base::Seq32 expected;  // of the server's
    uint32_t said = 0;     // octets of the Request
    bool open = false;
  };
  using Key = std::pair<IpAddress, uint16_t>;
  /// A TCP segment for one of us or for the client.
  struct Heard {
    IpAddress destination;
    wire::TcpView tcp;
  };

  void arrive(base::Now now);
  [[nodiscard]] IpAddress address_of(uint32_t number) const;
  /// \return the frame was a stranger's
  bool hear(const port::Packet& frame, base::Now now);
  [[nodiscard]] static std::optional<Heard> parse(base::ByteView frame);
  void hear(Stranger& stranger, const wire::TcpView& tcp, base::Now now);
  /// Answers a solicitation for the address of a stranger (RFC 4861). \return a stranger was asked
  /// for
  bool answer_solicitation(base::ByteView frame, base::Now now);
  void opened(Stranger& stranger, base::Now now);
  void replied(Stranger& stranger, base::Now now);
  void say(Stranger& stranger, uint8_t flags, base::ByteView octets, base::Now now);
  void say_slowly(Stranger& stranger, base::Now now);
  /// The headers below TCP. \return octets that they take
  uint32_t write_ip(uint8_t* frame, const IpAddress& source, uint8_t protocol,
                    uint32_t length) const;
  void send(port::Packet& frame, uint32_t length, base::Now now);
  [[nodiscard]] std::vector<uint8_t> random_octets(size_t n);

  port::Port& inner_;
  CrowdPlan plan_;
  base::Prng random_;
  base::Now next_arrival_;
  uint32_t arrived_ = 0;
  uint32_t started_ = 0;
  std::map<Key, Stranger> strangers_;   // by address first
  std::multimap<base::Now, Key> slow_;  // when the next octet is due
};

}  // namespace rnic::siege
