// The stream of a connection in full operation, in pieces of any order. The start-up is good and
// CRC is off, so that every octet reaches MPA, DDP and RDMAP. Input: an octet whose low bit asks
// for markers, then pieces: two octets of length, one octet of how far ahead of the order the piece
// arrives, and the octets.

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "base/endian.hpp"
#include "mpa/mpa.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/requests.hpp"
#include "support/mpa_fakes.hpp"

namespace {

namespace base = rnic::base;
namespace llp = rnic::llp;
namespace mem = rnic::mem;
namespace framing = rnic::framing;
namespace mpa = rnic::mpa;
namespace rdmap = rnic::rdmap;

constexpr size_t kGuard = 4096;
constexpr size_t kRegion = 4096;
constexpr uint8_t kGuardOctet = 0xa5;
constexpr uint32_t kAheadUnit = 64;

class Owner final : public rdmap::EndpointOwner {
 public:
  void send_completed(const rnic::Completion&) override {}
  void receive_completed(const rnic::Completion&) override {}
  void rtr_sent(base::Now) override {}
  void event(rnic::Event, base::Now) override {}
};

class Starter final : public framing::StartEvents {
 public:
  void request_received(const framing::StartOffer&, base::ByteView, base::Now) override {
    requested = true;
  }
  void started(const framing::Negotiated&, base::ByteView, base::Now) override {}
  void start_failed(framing::StartFailure, base::ByteView, base::Now) override {}
  bool requested = false;
};

/// A responder's half of a connection over a stream that the fuzzer writes.
class Half {
 public:
  explicit Half(bool markers)
      : memory_(kGuard + kRegion + kGuard, kGuardOctet),
        table_(16, {1, 2}),
        hold_(framing::make_hold_store(256u << 10)),
        session_(config(markers), framing::Role::Responder, *hold_, mpa_counters_, starter_, {}),
        endpoint_(endpoint_config(), table_, rdmap_counters_, owner_,
                  {sends_, receives_, requests_}) {
    std::memset(memory_.data() + kGuard, 0, kRegion);
    mem::RegionSpec spec;
    spec.address = memory_.data() + kGuard;
    spec.length = kRegion;
    spec.pd = 1;
    spec.rights = rnic::Access::LocalWrite | rnic::Access::RemoteWrite | rnic::Access::RemoteRead |
                  rnic::Access::RemoteInvalidate;
    spec.offset = 0;
    spec.stream = 0;  // the endpoint's
    const auto stag = table_.add(spec);
    rnic::ReceiveRequest receive;
    receive.sges = {{0, 1024, stag->value}};
    for (int i = 0; i < 8; ++i) receives_.post(receive);
    endpoint_.serve();
    start();
  }

  ~Half() { session_.ended(rnic::StreamEnd::PeerReset, now_); }

  void arrive(uint64_t ahead, base::ByteView octets) {
    const base::Range range{ordered_ + ahead, ordered_ + ahead + octets.size()};
    now_ += base::Duration(1000);
    if (octets.empty() || overlaps(range)) return;
    if (session_.inspect(range, octets, now_) != llp::InspectVerdict::Accept) return;
    session_.place(range, octets, range.begin == ordered_, now_);
    committed_.push_back(range);
    advance();
    answer();
    check_guards();
  }

 private:
  static mpa::Config config(bool markers) {
    mpa::Config config;
    config.crc = false;
    config.markers_receive = markers;
    config.hold_limit = 64u << 10;
    config.early_limit = 64;
    return config;
  }
  static rdmap::EndpointConfig endpoint_config() {
    rdmap::EndpointConfig config;
    config.qp = 1;
    config.pd = 1;
    config.ird = config.ord = 4;
    return config;
  }

  void start() {
    session_.attach(stream_);
    session_.bind(endpoint_.framing_user());
    session_.established(1460, now_);
    constexpr char kRequest[] = "MPA ID Req Frame\x00\x01\x00\x00";
    arrive(0, {reinterpret_cast<const uint8_t*>(kRequest), 20});
    endpoint_.bind(session_);
    if (starter_.requested) session_.accept({}, now_);
    answer();
  }

  bool overlaps(base::Range range) const {
    return std::any_of(committed_.begin(), committed_.end(), [&](const base::Range& have) {
      return have.begin < range.end && range.begin < have.end;
    });
  }

  void advance() {
    const uint64_t before = ordered_;
    for (bool moved = true; moved;) {
      moved = false;
      for (const base::Range& range : committed_) {
        if (range.begin == ordered_) ordered_ = range.end, moved = true;
      }
    }
    if (ordered_ != before) session_.ordered(ordered_, now_);
  }

  /// Takes what the half wants to send, and acknowledges it.
  void answer() {
    std::vector<uint8_t> frame(1460);
    for (int i = 0; i < 64; ++i) {
      llp::Frame out(frame.data(), 1460);
      const llp::Pulled pulled = session_.pull(1460, sent_, out, {});
      if (pulled.length == 0) return;
      sent_ += pulled.length;
      session_.released(pulled.tag, sent_);
    }
  }

  void check_guards() const {
    const auto whole = [](const uint8_t* at) {
      return std::all_of(at, at + kGuard, [](uint8_t octet) { return octet == kGuardOctet; });
    };
    if (!whole(memory_.data()) || !whole(memory_.data() + kGuard + kRegion)) __builtin_trap();
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  std::vector<uint8_t> memory_;
  mem::StagTable table_;
  framing::HoldStorePtr hold_;
  mpa::Counters mpa_counters_;
  rdmap::Counters rdmap_counters_;
  Starter starter_;
  Owner owner_;
  rnic::test::FakeStream stream_;
  mpa::Session session_;
  rdmap::SendQueue sends_{16};
  rdmap::ReceiveQueue receives_{16};
  rdmap::RequestStore requests_;
  rdmap::Endpoint endpoint_;
  std::vector<base::Range> committed_;
  uint64_t ordered_ = 0;
  uint64_t sent_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  Half half((data[0] & 1) != 0);
  ++data, --size;
  while (size >= 3) {
    const size_t length = std::min<size_t>(base::load_be16(data) % 2048, size - 3);
    half.arrive(uint64_t{data[2]} * kAheadUnit, {data + 3, length});
    data += 3 + length;
    size -= 3 + length;
  }
  return 0;
}
