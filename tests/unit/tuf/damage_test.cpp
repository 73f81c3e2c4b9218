// validate() of the parts of ULP framing: each check fails when what it is about is damaged.

#include "support/damage.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "framing/arrivals.hpp"
#include "support/mpa_fakes.hpp"
#include "tuf/framed_stream.hpp"
#include "tuf/marker_grid.hpp"
#include "tuf/offered_emss.hpp"
#include "tuf/pdu_locator.hpp"
#include "tuf/start_frames.hpp"
#include "tuf/submission_ring.hpp"

namespace rnic::tuf {
namespace {

using test::expect_noticed;
using test::notices;

RNIC_OPEN(FramedReceiver, ordered_)
RNIC_OPEN(FramedReceiver, told_)
RNIC_OPEN(FramedSender, cursor_)
RNIC_OPEN(FramedSender, open_done_)
RNIC_OPEN(FramedSender, released_)
RNIC_OPEN(FramedStream, end_)
RNIC_OPEN(FramedStream, stream_)
RNIC_OPEN(MarkerGrid, change_)
RNIC_OPEN(MarkerGrid, later_)
RNIC_OPEN(OfferedEmss, before_growth_)
RNIC_OPEN(OfferedEmss, offered_)
RNIC_OPEN(OfferedEmss, visible_)
RNIC_OPEN(StartFrameReader, octets_)
RNIC_OPEN(StartFrameReader, received_)
RNIC_OPEN(SubmissionRing, freed_)
RNIC_OPEN(SubmissionRing, written_)

TEST(Damage, OfAFramedStream) {
  Counters counters;
  const StreamConfig config;
  std::vector<uint8_t> ring(config.ring_octets);
  FramedReceiver receiver(config, ring.data(), counters);
  notices(receiver, "tuf/framed_receiver.cpp: read <= ordered", [&] { told_(receiver) = 1; });
  notices(receiver, "tuf/framed_receiver.cpp: ordered - read <=", [&] {
    ordered_(receiver) = config.ring_octets + 1;
  });
  FramedSender sender(config, ring.data(), counters);
  notices(sender, "tuf/framed_sender.cpp: released_ <= pulled_", [&] { released_(sender) = 1; });
  notices(sender, "tuf/framed_sender.cpp: ring_.freed() <= cursor_", [&] { cursor_(sender) = 1; });
  notices(sender, "tuf/framed_sender.cpp: open_done_ < open_.size",
          [&] { open_done_(sender) = 1; });
  test::FakeStream under;
  FramedStream stream(config, counters);
  notices(stream, "tuf/framed_stream.hpp: !how_ended()", [&] {
    stream_(stream) = &under;
    end_(stream).set(StreamEnd::Closed);
  });
}

TEST(Damage, OfTheWayToSend) {
  MarkerGrid grid(0, 512);
  notices(grid, "tuf/marker_grid.hpp: later_ != 0", [&] { later_(grid) = 0; });
  notices(grid, "tuf/marker_grid.hpp: (change_ - start_) %", [&] { change_(grid) = 1; });
  OfferedEmss emss;
  emss.establish(1000);
  notices(emss, "tuf/offered_emss.hpp: offered_ > emss_", [&] { offered_(emss) = 1; });
  notices(emss, "tuf/offered_emss.hpp: before_growth_ < emss_",
          [&] { before_growth_(emss) = 1000; });
  notices(emss, "tuf/offered_emss.hpp: visible() ==", [&] { visible_(emss) = 999; });
  std::vector<uint8_t> memory(64);
  SubmissionRing ring(memory.data(), 64);
  ring.submit(FramedSendMode::Plain, std::vector<uint8_t>(10));
  notices(ring, "tuf/submission_ring.cpp: freed() <= end", [&] { freed_(ring) = 15; });
  notices(ring, "tuf/submission_ring.cpp: position == end", [&] { ++written_(ring); });
}

TEST(Damage, OfWhatArrives) {
  struct Arrived : framing::Arrivals {
    explicit Arrived(framing::HoldStore& store) : Arrivals(store, 1000, 4) {}
    using Arrivals::place_next_;
  };
  framing::HoldStore store(64 * 2048);
  Arrived arrivals(store);
  Counters counters;
  const Config config;
  PduLocator locator(config, store, counters, nullptr);
  expect_noticed(
      "tuf/pdu_locator.hpp: frame_end_ >=", [&] { locator.validate(arrivals); },
      [&] { arrivals.place_next_ = 1; });
  StartFrameReader reader;
  notices(reader, "tuf/start_frames.hpp: octets_.size() <= received_",
          [&] { octets_(reader).resize(1); });
  notices(reader, "tuf/start_frames.hpp: wire::kTufPrivateDataMax", [&] {
    octets_(reader).resize(1u << 20);
    received_(reader) = 1u << 20;
  });
}

}  // namespace
}  // namespace rnic::tuf
