// Memory that is gone the moment deregister() returns, while both ends use it: the peer writes into
// it or reads from it, and own Sends and Writes from it are not acknowledged yet. Half of the times
// its pages are unmapped, so that who touches them faults; half of the times other pages take their
// place at once, so that who reads them gives himself away, and who writes leaves a mark.
//
// UNMAPPED_ROUNDS: rounds in each place (200).

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "verbs_pair.hpp"

namespace rnic::test {
namespace {

constexpr uint32_t kOctets = 64u << 10;
constexpr uint8_t kOurs = 0x11;       // what stands in the memory that goes
constexpr uint8_t kTheirs = 0x22;     // what the peer has
constexpr uint8_t kNobodys = 0x33;    // what stands in the pages that take its place
constexpr uint8_t kUnwritten = 0x44;  // what stands where something is to arrive

uint32_t rounds() {
  const char* given = std::getenv("UNMAPPED_ROUNDS");
  return given == nullptr ? 200 : static_cast<uint32_t>(std::atoi(given));
}

/// Pages at a place of their own, which is kept when they are unmapped.
class Place {
 public:
  Place() : at_(map(PROT_READ | PROT_WRITE, 0)) {}
  ~Place() { munmap(at_, kOctets); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  [[nodiscard]] std::span<uint8_t> octets() const { return {static_cast<uint8_t*>(at_), kOctets}; }
  /// Fresh pages, all octets of which are `octet`.
  void renew(uint8_t octet) {
    map(PROT_READ | PROT_WRITE, MAP_FIXED);
    std::ranges::fill(octets(), octet);
  }
  /// Whoever touches them faults. The addresses stay ours, so that nothing else comes to be there.
  void unmap() { map(PROT_NONE, MAP_FIXED); }

 private:
  void* map(int protection, int flags) {
    void* const hint = flags == 0 ? nullptr : at_;
    void* const at =
        mmap(hint, kOctets, protection, MAP_ANONYMOUS | MAP_PRIVATE | flags, -1, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no pages");
    return at;
  }

  void* at_ = nullptr;
};

enum class Use : uint8_t { PeerWrites, PeerReads, OwnSends, OwnWrites };
constexpr uint32_t kUses = 4;
bool is_own(Use use) { return use == Use::OwnSends || use == Use::OwnWrites; }

struct Where {
  const char* name;
  bool sockets;
  bool threaded;
};

class Unmapped : public testing::TestWithParam<Where> {
 protected:
  /// Messages of which some are under way, some wait, and some are done when the memory goes.
  static constexpr uint64_t kMessages = 4;

  void begin(Use use, Side& ours, Side& theirs, const MemoryRegion& going, const Memory& far) {
    const Sge all = going.sge(0, kOctets);
    const RemoteAddress remote{going.stag(), going.address()};
    for (uint64_t id = 0; id < kMessages; ++id) {
      switch (use) {
        case Use::PeerWrites:
        case Use::PeerReads: {
          SendRequest work =
              request(use == Use::PeerWrites ? Opcode::Write : Opcode::Read, far.all(), id);
          work.remote = remote;
          must(theirs.qp.post_send(work));
          break;
        }
        case Use::OwnSends:
          must(theirs.qp.post_receive(receive(far.all(), id)));
          must(ours.qp.post_send(request(Opcode::Send, all, id)));
          break;
        case Use::OwnWrites: must(ours.qp.post_send(request(Opcode::Write, all, far, id))); break;
      }
    }
  }
  /// Every request completes, by success or otherwise.
  void await_all(CompletionQueue& cq) {
    for (uint64_t id = 0; id < kMessages; ++id) {
      const auto done = world_.await(cq);
      ASSERT_TRUE(done);
      EXPECT_EQ(done->id, id);
    }
  }
  static bool all_of_two(std::span<const uint8_t> octets, uint8_t one, uint8_t other) {
    return std::ranges::all_of(octets, [&](uint8_t o) { return o == one || o == other; });
  }

  World world_{GetParam().sockets ? socket_config(GetParam().threaded)
                                  : loopback_config(GetParam().threaded)};
};

TEST_P(Unmapped, WhenDeregisterReturnsNobodyTouchesTheMemory) {
  Place place;
  uint64_t turns = 1;  // how far the traffic has come is another one each time, and repeatable
  for (uint32_t round = 0; round < rounds(); ++round) {
    const auto use = static_cast<Use>(round % kUses);
    const bool replaced = round / kUses % 2 == 0;
    place.renew(kOurs);
    // The side whose requests they are connects: the other end may not send first (RFC 5044
    // s.7.1.2).
    Side sends(world_.left);
    Side answers(world_.right);
    Side& ours = is_own(use) ? sends : answers;
    Side& theirs = is_own(use) ? answers : sends;
    Memory far(theirs.pd,
               std::vector<uint8_t>(kOctets, use == Use::PeerWrites ? kTheirs : kUnwritten),
               kEverything);
    MemoryRegion going = must(
        ours.pd.register_memory(std::as_writable_bytes(place.octets()), kEverything));
    world_.connect(sends, answers);
    begin(use, ours, theirs, going, far);
    turns = turns * 6364136223846793005u + 1442695040888963407u;
    for (uint64_t turn = turns >> 60; turn != 0; --turn) world_.context.poll();

    must(going.deregister());
    EXPECT_TRUE(all_of_two(place.octets(), kOurs, kTheirs)) << round;
    if (replaced) {
      place.renew(kNobodys);
    } else {
      place.unmap();
    }
    await_all(sends.send_cq);
    must(ours.qp.destroy());
    must(theirs.qp.destroy());
    ASSERT_TRUE(world_.becomes_quiescent()) << round;
    if (replaced) {
      EXPECT_TRUE(all_of_two(place.octets(), kNobodys, kNobodys)) << round;
    }
    EXPECT_TRUE(use == Use::PeerWrites ? all_of_two(far.data, kTheirs, kTheirs)
                                       : all_of_two(far.data, kUnwritten, kOurs))
        << round;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Everywhere, Unmapped,
    testing::Values(Where{"WireInline", false, false}, Where{"WireThreaded", false, true},
                    Where{"SocketsInline", true, false}, Where{"SocketsThreaded", true, true}),
    [](const testing::TestParamInfo<Where>& where) { return std::string(where.param.name); });

}  // namespace
}  // namespace rnic::test
