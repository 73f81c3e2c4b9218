/// \file
/// What plain and framed streams have in common.
#pragma once

#include <string>

#include "rnic/error.hpp"
#include "rnic/stream.hpp"
#include "tcp/connection_options.hpp"

namespace rnic::verbs {

/// Why a call on a stream that has ended fails.
[[nodiscard]] tl::unexpected<Error> stream_failure(StreamEnd end, const std::string& peer);
/// What is given, over what is there. InvalidArgument names a time out of its range.
[[nodiscard]] Result<tcp::ConnectionOptions> merged(tcp::ConnectionOptions out,
                                                    const StreamOptions& given);

}  // namespace rnic::verbs
