/// \file
/// Layer `rnic`: the device. It glues a port, net, tcp, mpa, ddp and rdmap into one software RNIC
/// with queue pairs, completion queues and connection management, and runs them by one poll loop.
///
/// The namespace is `rnic::nic`: a nested `rnic::rnic` would hide the root (docs/decisions/0002).
///
/// A Device belongs to one worker: everything but what is marked *application side* is called
/// there. It sees only port::Port, llp::Transport and `now`; the same loop runs over a NIC and in
/// the simulator.
#pragma once

#include "rnic/config.hpp"
#include "rnic/device.hpp"
#include "rnic/event.hpp"
