// What a peer says before the first FPDU, to an initiator and to a responder, of MPA in each
// revision and of ULP framing. Input: two octets of choices, then pieces: one octet of what the
// owner does or how long the piece is, then the octets. All of it arrives in order, as TCP gives
// it.

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "fuzz/guarded_memory.hpp"
#include "fuzz/input.hpp"
#include "mpa/mpa.hpp"
#include "rdmap/rdmap.hpp"
#include "rdmap/requests.hpp"
#include "support/mpa_fakes.hpp"
#include "tuf/tuf.hpp"

namespace {

using rnic::fuzz::GuardedMemory;
using rnic::fuzz::Input;
namespace base = rnic::base;
namespace fuzz = rnic::fuzz;
namespace llp = rnic::llp;
namespace mem = rnic::mem;
namespace framing = rnic::framing;
namespace mpa = rnic::mpa;
namespace rdmap = rnic::rdmap;
namespace tuf = rnic::tuf;

constexpr uint32_t kRegion = 4096;

class Owner final : public rdmap::EndpointOwner {
 public:
  void send_completed(const rnic::Completion&) override {}
  void receive_completed(const rnic::Completion&) override {}
  void rtr_sent(base::Now) override {}
  void event(rnic::Event, base::Now) override {}
};

/// Counts the outcomes: there is one, or a start behind which the RTR was missing.
class Starter final : public framing::StartEvents {
 public:
  void request_received(const framing::StartOffer&, base::ByteView, base::Now) override {
    fuzz::demand(!requested && outcomes == 0);
    requested = true;
  }
  void started(const framing::Negotiated&, base::ByteView, base::Now) override {
    fuzz::demand(++outcomes == 1);
  }
  void start_failed(framing::StartFailure why, base::ByteView, base::Now) override {
    const bool behind_a_start =
        (why == framing::StartFailure::RtrMissing || why == framing::StartFailure::RtrBroken) &&
        outcomes == 1;
    fuzz::demand(outcomes == 0 || behind_a_start);
    ++outcomes;
  }
  bool requested = false;
  int outcomes = 0;
};

/// What the input chose, beside the octets of the peer.
struct Choices {
  explicit Choices(uint16_t bits)
      : ulp_framing((bits & 1) != 0),
        role((bits & 2) != 0 ? framing::Role::Initiator : framing::Role::Responder) {
    config.revision = static_cast<uint8_t>((bits >> 2) % 3);
    config.permissive = (bits & 0x10) != 0;
    config.crc = (bits & 0x20) != 0;
    config.markers_receive = (bits & 0x40) != 0;
    config.markers_send_allowed = (bits & 0x80) != 0;
    config.reject_closes = (bits & 0x100) != 0;
    config.rtr_send = (bits & 0x200) != 0;
    config.rtr_write = (bits & 0x400) != 0;
    config.hold_limit = 64u << 10;
    start_options.exchange_reads = (bits & 0x800) != 0;
    start_options.peer_to_peer = (bits & 0x1000) != 0;
    start_options.ird = start_options.ord = (bits & 0x2000) != 0 ? 4 : 0;
    accepts = (bits & 0x4000) == 0;
    private_data = (bits & 0x8000) != 0 ? 12 : 0;
  }

  bool ulp_framing;
  framing::Role role;
  mpa::Config config;
  framing::StartOptions start_options;
  bool accepts = true;
  size_t private_data = 0;
};

class Half {
 public:
  explicit Half(const Choices& choices)
      : choices_(choices),
        session_(make_session()),
        endpoint_(settings(), table_, counts_, owner_, {sends_, receives_, requests_}) {
    mem::RegionSpec spec;
    spec.address = memory_.begin();
    spec.length = kRegion;
    spec.pd = 1;
    spec.rights = rnic::Access::LocalWrite | rnic::Access::RemoteWrite | rnic::Access::RemoteRead;
    spec.offset = 0;
    static_cast<void>(table_.add(spec));
    session_->attach(stream_);
    session_->bind(endpoint_.framing_user());
    session_->established(1460, now_);
    endpoint_.bind(*session_);
    answer();
  }
  ~Half() {
    if (!finished_) session_->peer_finished(now_);
    session_->ended(rnic::StreamEnd::PeerReset, now_);
    fuzz::demand(starter_.outcomes >= 1);
    memory_.check();
  }

  void arrive(base::ByteView octets) {
    now_ += base::Duration(1000);
    const base::Range range{received_, received_ + octets.size()};
    if (octets.empty() || finished_) return;
    if (session_->inspect(range, octets, now_) != llp::InspectVerdict::Accept) return;
    session_->place(range, octets, true, now_);
    received_ = range.end;
    session_->ordered(received_, now_);
    decide();
    answer();
  }
  void finish() {
    if (std::exchange(finished_, true)) return;
    session_->peer_finished(now_);
    answer();
  }
  void wait() {
    const base::Now due = session_->next_deadline();
    if (due == base::kNever) return;
    now_ = std::max(now_, due);
    session_->on_timer(now_);
    answer();
  }

 private:
  std::unique_ptr<framing::StartSession> make_session() {
    const std::vector<uint8_t> data(choices_.private_data, 0x33);
    if (choices_.ulp_framing) {
      return std::make_unique<tuf::Session>(
          tuf::Config{}, choices_.role, rnic::wire::TufKey{0x0102'0304'0506}, *hold_, *pack_,
          tuf_counts_, starter_, data, nullptr, choices_.start_options);
    }
    return std::make_unique<mpa::Session>(choices_.config, choices_.role, *hold_, mpa_counts_,
                                          starter_, data, choices_.start_options);
  }
  static rdmap::EndpointConfig settings() {
    rdmap::EndpointConfig config;
    config.qp = 1;
    config.pd = 1;
    config.ird = config.ord = 4;
    return config;
  }
  void decide() {
    if (!starter_.requested || std::exchange(decided_, true)) return;
    const std::vector<uint8_t> data(std::min(choices_.private_data, session_->private_data_max()),
                                    0x44);
    if (choices_.accepts) {
      session_->accept(data, now_, choices_.start_options);
    } else {
      session_->reject(data, now_, choices_.start_options);
    }
  }
  /// Takes what the half wants to send, and acknowledges it.
  void answer() {
    std::vector<uint8_t> frame(1460);
    for (int i = 0; i < 64; ++i) {
      llp::Frame out(frame.data(), 1460);
      const llp::Pulled pulled = session_->pull(1460, sent_, out, now_);
      if (pulled.length == 0) return;
      sent_ += pulled.length;
      session_->released(pulled.tag, sent_);
    }
  }

  base::Now now_ = base::from_nanos(1'000'000'000);
  Choices choices_;
  GuardedMemory memory_{kRegion};
  mem::StagTable table_{16, {1, 2}};
  framing::HoldStorePtr hold_ = framing::make_hold_store(256u << 10);
  tuf::PackStorePtr pack_ = tuf::make_pack_store(64);
  mpa::Counters mpa_counts_;
  tuf::Counters tuf_counts_;
  rdmap::Counters counts_;
  Starter starter_;
  Owner owner_;
  rnic::test::FakeStream stream_;
  std::unique_ptr<framing::StartSession> session_;
  rdmap::SendQueue sends_{16};
  rdmap::ReceiveQueue receives_{16};
  rdmap::RequestStore requests_;
  rdmap::Endpoint endpoint_;
  uint64_t received_ = 0;
  uint64_t sent_ = 0;
  bool decided_ = false;
  bool finished_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Input input(data, std::min<size_t>(size, 8192));
  Half half{Choices(input.number())};
  while (!input.empty()) {
    const uint8_t what = input.octet();
    if (what == 0xff) {
      half.finish();
    } else if (what == 0xfe) {
      half.wait();
    } else {
      half.arrive(input.octets(1 + what % 0x80));
    }
  }
  return 0;
}
