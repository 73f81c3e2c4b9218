/// \file
/// Driver `pcap`: writes the frames that cross a port as a pcapng file (draft-ietf-opsawg-pcapng),
/// for Wireshark.
///
/// - `writer.hpp`: the file.
/// - `capture_port.hpp`: a decorator around any port that writes every frame in both directions.
///
/// A capture never disturbs the port: frames that cannot be written are counted.
#pragma once

#include "pcap/capture_port.hpp"
#include "pcap/writer.hpp"
