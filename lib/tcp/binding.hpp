/// \file
/// What a connection joins, and how it was asked to behave.
#pragma once

#include "base/trace.hpp"
#include "llp/stream.hpp"
#include "rnic/address.hpp"
#include "tcp/connection_options.hpp"

namespace rnic::tcp {

/// The parts of a connection read it; the connection alone writes it.
struct Binding {
  Endpoint local;
  Endpoint remote;
  llp::StreamUser* user = nullptr;  ///< none while half open, nor behind ended()
  base::TraceSink* trace = nullptr;
  ConnectionOptions options;

  /// RFC 8257: marks are echoed one by one.
  [[nodiscard]] bool dctcp() const {
    return options.congestion_control == CongestionControl::Dctcp;
  }
};

}  // namespace rnic::tcp
