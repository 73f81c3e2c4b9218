/// \file
/// Driver `pcap`: what crosses a port, as a pcapng file (draft-ietf-opsawg-pcapng) for Wireshark.
///
/// - `writer.hpp`: the file.
/// - `capture_port.hpp`: a decorator around any port that writes every frame in both directions.
///
/// A capture never disturbs the port: what cannot be written is counted.
#pragma once

#include "pcap/capture_port.hpp"
#include "pcap/writer.hpp"
