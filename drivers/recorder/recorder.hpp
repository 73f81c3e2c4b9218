/// \file
/// Driver `recorder`: captures of devices on sockets, which show no frames (draft-ietf-opsawg-
/// pcapng).
///
/// - `stream_frames.hpp`: the octets of a stream as frames of a TCP connection.
/// - `recording_system.hpp`: a decorator around the socket driver's System that writes what goes
///   over it.
#pragma once

#include "recorder/recording_system.hpp"
#include "recorder/stream_frames.hpp"
