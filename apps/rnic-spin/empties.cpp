#include "rnic-spin/empties.hpp"

#include <array>
#include <string>

namespace rnic::spin {

namespace {

using enum ErrorCode;

/// Judges calls on empty handles.
class Emptiness {
 public:
  explicit Emptiness(Judge& judge) : judge_(judge) {}

  template <typename Answer>
  void refuses(const char* call, const Answer& answer) {
    judge_.answered(std::string(call) + " of an empty handle", answer, Expect::Failure,
                    {WrongState});
  }
  void does_nothing(const char* call, const Status& status) {
    judge_.answered(std::string(call) + " of an empty handle", status, Expect::Success, {});
  }

 private:
  Judge& judge_;
};

void use_queues(World& world, Emptiness& empty, const Side& side) {
  QueuePair pair;
  CompletionQueue queue;
  SharedReceiveQueue shared;
  Completion done;
  switch (world.dice.below(6)) {
    case 0: return empty.refuses("post_send", pair.post_send(SendRequest{}));
    case 1: return empty.refuses("connect", pair.connect({side.device.address(), 1}));
    case 2: return empty.refuses("modify", pair.modify({.state = QueuePairState::Error}));
    case 3: return empty.refuses("resize", queue.resize(1));
    case 4: return empty.refuses("SRQ post_receive", shared.post_receive(ReceiveRequest{}));
    default: world.judge.require(queue.poll({&done, 1}) == 0, "an empty queue has a completion");
  }
}

void use_memory(World& world, Emptiness& empty) {
  MemoryRegion region;
  MemoryWindow window;
  ProtectionDomain domain;
  switch (world.dice.below(3)) {
    case 0: return empty.does_nothing("deregister", region.deregister());
    case 1: return empty.refuses("unbind", window.unbind());
    default: return empty.refuses("create_srq", domain.create_srq());
  }
}

void use_consumer(World& world, Emptiness& empty) {
  Consumer consumer;
  switch (world.dice.below(6)) {
    case 0: return empty.refuses("Consumer::alloc_pd", consumer.alloc_pd());
    case 1: return empty.refuses("Consumer::create_cq", consumer.create_cq(1));
    case 2: return empty.refuses("Consumer::listen", consumer.listen(Endpoint{}));
    case 3: return empty.refuses("Consumer::reserve", consumer.reserve());
    case 4: return empty.refuses("Consumer::info", consumer.info());
    default: return empty.does_nothing("Consumer::destroy", consumer.destroy());
  }
}

void use_port(World& world, Emptiness& empty, const Side& side) {
  PortReservation port;
  Device device = side.device;
  switch (world.dice.below(3)) {
    case 0: return empty.refuses("listen on a port", device.listen(port));
    case 1: return empty.refuses("listen_stream on a port", device.listen_stream(port));
    default: return empty.does_nothing("PortReservation::destroy", port.destroy());
  }
}

void use_stream(World& world, Emptiness& empty) {
  Stream stream;
  StreamListener listener;
  std::array<uint8_t, 1> octet{};
  switch (world.dice.below(4)) {
    case 0: return empty.refuses("Stream::send", stream.send(octet));
    case 1: return empty.refuses("Stream::receive", stream.receive(octet));
    case 2: return empty.refuses("Stream::set_options", stream.set_options({}));
    default:
      world.judge.require(!listener.accept(), "an empty listener has accepted a stream");
      world.judge.require(stream.readable() == 0 && stream.writable() == 0 && stream.at_end(),
                          "an empty stream has octets");
  }
}

}  // namespace

void use_empty(World& world, const Side& side) {
  Emptiness empty(world.judge);
  switch (world.dice.below(5)) {
    case 0: return use_queues(world, empty, side);
    case 1: return use_memory(world, empty);
    case 2: return use_consumer(world, empty);
    case 3: return use_port(world, empty, side);
    default: return use_stream(world, empty);
  }
}

}  // namespace rnic::spin
