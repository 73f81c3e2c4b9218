/// \file
/// Between the values of the public API and those of the layers below.
#pragma once

#include "base/fail.hpp"
#include "base/trace.hpp"
#include "device/connect_options.hpp"
#include "device/event.hpp"
#include "rnic/error.hpp"
#include "rnic/stream.hpp"
#include "rnic/types.hpp"
#include "tcp/connection_options.hpp"

namespace rnic::verbs {

/// Where to listen; an empty address means all of the device's.
[[nodiscard]] Result<Endpoint> to_local(const std::string& address, uint16_t port);
[[nodiscard]] device::ConnectOptions to_options(const ConnectOptions& options);
/// Takes private data and detail out of it, but nothing when it throws.
[[nodiscard]] Event from_event(device::Event& event);
/// Why a call on a stream that has ended fails.
[[nodiscard]] tl::unexpected<Error> stream_failure(StreamEnd end, const std::string& peer);
/// What is given, over what is there.
[[nodiscard]] tcp::ConnectionOptions merged(tcp::ConnectionOptions out, const StreamOptions& given);

}  // namespace rnic::verbs
