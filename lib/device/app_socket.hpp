/// \file
/// AppSocket: the part of one TCP connection that an application thread and the worker share,
/// whatever the connection carries. It has no lock: the application writes a word of commands and
/// rings the doorbell.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/slab.hpp"
#include "llp/stream.hpp"
#include "llp/transport.hpp"
#include "rnic/address.hpp"
#include "rnic/transport.hpp"

namespace rnic::device {

class AppSocket;

/// The services that a socket needs from the table that it stands in.
class SocketOwner {
 public:
  /// The application and TCP are both done with the socket: it may be taken away.
  virtual void done_with(AppSocket& socket) = 0;
  /// Nobody will read what the peer sends, so the stream has to end soon after our own close.
  virtual void no_reader(llp::Stream& stream, base::Now now) = 0;

 protected:
  ~SocketOwner() = default;
};

/// A socket lives until the application has released it *and* TCP is done with it.
class AppSocket {
 public:
  /// Bits of the word by which the application asks the worker for something.
  enum Command : uint8_t {
    kFinish = 1,   ///< half close behind the octets that were put
    kAbort = 2,    ///< RST
    kRelease = 4,  ///< the application does not touch the socket any more
  };

  AppSocket(SocketOwner& owner, const Endpoint& local, const Endpoint& remote)
      : owner_(owner), local_(local), remote_(remote) {}
  virtual ~AppSocket() = default;
  AppSocket(const AppSocket&) = delete;
  AppSocket& operator=(const AppSocket&) = delete;

  // --- Application side ---

  /// The socket's number for Device::ring_doorbell().
  [[nodiscard]] uint32_t doorbell() const { return doorbell_; }
  [[nodiscard]] const Endpoint& local() const { return local_; }
  [[nodiscard]] const Endpoint& remote() const { return remote_; }
  /// Adds `commands` to those not yet carried out. The caller rings the doorbell afterwards; after
  /// kRelease it uses a doorbell number that it read before, since the socket may be gone.
  void request(uint8_t commands) { commands_.fetch_or(commands, std::memory_order_release); }
  [[nodiscard]] virtual bool is_open() const = 0;  ///< it is or was established
  [[nodiscard]] virtual std::optional<StreamEnd> end() const = 0;
  /// Octets sent that the peer's TCP has not acknowledged.
  [[nodiscard]] virtual uint64_t unacknowledged_octets() const = 0;
  /// The peer has finished sending, and everything was received.
  [[nodiscard]] virtual bool is_drained() const = 0;

  // --- Worker's side ---

  /// Carries out what the application has asked for.
  virtual void execute(base::Now now) = 0;
  [[nodiscard]] bool is_released() const { return (commands() & kRelease) != 0; }
  [[nodiscard]] base::Handle handle() const { return handle_; }
  /// Called once, by the table.
  void set_place(base::Handle handle, uint32_t doorbell) {
    handle_ = handle;
    doorbell_ = doorbell;
  }
  void set_local(const Endpoint& local) { local_ = local; }

 protected:
  [[nodiscard]] uint8_t commands() const { return commands_.load(std::memory_order_acquire); }
  [[nodiscard]] SocketOwner& owner() { return owner_; }

 private:
  SocketOwner& owner_;
  base::Handle handle_;  // its own place in the table
  uint32_t doorbell_ = 0;
  Endpoint local_;
  Endpoint remote_;
  std::atomic<uint8_t> commands_{0};
};

/// A listener; accepted connections of its kind wait in it for the application.
class AppListener : public llp::Acceptor {
 public:
  /// What is listened on, with its port. Set before the application has the listener.
  [[nodiscard]] const Endpoint& local() const { return local_; }
  /// Worker: the transport listens on `local`.
  void listening_on(const Endpoint& local) { local_ = local; }
  /// Worker: aborts the connections that the application has not taken; the others go on. The
  /// listener is gone afterwards.
  virtual void stop(base::Now now) = 0;

 private:
  Endpoint local_;
};

}  // namespace rnic::device
