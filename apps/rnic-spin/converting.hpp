/// \file
/// Streams that become RDMA connections.
#pragma once

#include <memory>

#include "rnic-spin/streaming.hpp"
#include "rnic-spin/world.hpp"

namespace rnic::spin {

/// Has a stream become the connection of a queue pair, once both ends have heard each other. Its
/// request is answered as all others are; after a reject both ends speak on where they were.
class Converting {
 public:
  Converting(World& world, Streaming& streaming) : world_(world), streaming_(streaming) {}

  void convert(Side& side);
  /// Looks at a stream that was converted.
  void look(Side& side);
  /// Closes the handle of one.
  void close(Side& side);

 private:
  /// \return whether both ends have received what the other has sent
  bool hear(Speaking& one, Speaking& peer);
  /// Sends the last message of the stream, and tries what is refused behind it.
  /// \return whether it waits for RDMA
  bool await_rdma(Speaking& acceptor);
  void move_back(Side& side, const std::shared_ptr<Speaking>& one);

  World& world_;
  Streaming& streaming_;
};

}  // namespace rnic::spin
