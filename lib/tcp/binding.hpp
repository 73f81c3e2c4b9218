/// \file
/// The endpoints and the user that a connection joins, and its options.
#pragma once

#include "base/trace.hpp"
#include "llp/stream.hpp"
#include "rnic/address.hpp"
#include "tcp/connection_options.hpp"

namespace rnic::tcp {

/// All parts of a connection read the binding; only the connection can write it (see
/// ConnectionCore).
struct Binding {
  Endpoint local;
  Endpoint remote;
  llp::StreamUser* user = nullptr;  ///< nullptr while the connection is half open and after ended()
  base::TraceSink* trace = nullptr;
  ConnectionOptions options;
  llp::WorkingSet used;  ///< what the user works with, as far as it has told

  /// The connection uses DCTCP, so each mark is echoed by itself (RFC 8257).
  [[nodiscard]] bool dctcp() const {
    return options.congestion_control == CongestionControl::Dctcp;
  }
};

}  // namespace rnic::tcp
