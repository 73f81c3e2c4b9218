/// \file
/// The link of a network interface, as the kernel knows it; private to the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "port/port.hpp"
#include "wakeup/descriptor.hpp"

namespace rnic::dpdk {

/// Asks for the link of the interface with that index in the network namespace of `socket`, which
/// may be of any family. \return Up also for an interface of which the kernel cannot tell; Gone:
/// there is no such interface
[[nodiscard]] port::LinkState link_of_interface(int socket, int index);

/// Asks the kernel in the place of a driver that calls the link of its interface up at any time.
class KernelLink {
 public:
  /// \param index of the interface, in the network namespace of the calling thread
  /// \param tap descriptor of the queue by which net_tap has the interface, open for as long as the
  /// link is asked for; -1: the interface is no tap
  /// \return nullptr: the system has no descriptor left, so the driver's word has to do
  [[nodiscard]] static std::unique_ptr<KernelLink> open(uint32_t index, int tap = -1);

  [[nodiscard]] port::LinkState ask() const;

 private:
  KernelLink(wakeup::Descriptor socket, int index, int tap)
      : socket_(std::move(socket)), index_(index), tap_(tap) {}

  wakeup::Descriptor socket_;
  const int index_;
  const int tap_;
};

}  // namespace rnic::dpdk
