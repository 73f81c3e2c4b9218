/// \file
/// Reads recorded traffic (classic pcap, Ethernet, IPv4, TCP): connections, their octets in both
/// directions, the MPA start frames and the FPDUs behind them. Plain code of its own, so that a
/// test can compare the library with it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace rnic::test {

/// One direction of a connection.
struct CapturedStream {
  std::string sender;  ///< "10.77.0.3:45335"
  uint32_t first = 0;  ///< sequence number of the first octet
  std::vector<uint8_t> octets;
  std::vector<std::pair<uint64_t, uint32_t>> segments;  ///< offset and length, in order of capture

  /// Octets of the MPA start frame at the beginning; 0 when there is none.
  [[nodiscard]] size_t start_frame() const {
    if (octets.size() < 20 || std::memcmp(octets.data(), "MPA ID ", 7) != 0) return 0;
    return 20 + (size_t{octets[18]} << 8 | octets[19]);
  }
  /// The ULPDUs behind the start frame (no markers; the CRC is not looked at).
  [[nodiscard]] std::vector<std::vector<uint8_t>> ulpdus() const {
    std::vector<std::vector<uint8_t>> all;
    size_t at = start_frame();
    while (at != 0 && at + 2 <= octets.size()) {
      const size_t length = size_t{octets[at]} << 8 | octets[at + 1];
      if (at + 2 + length > octets.size()) break;
      const auto begin = octets.begin() + static_cast<ptrdiff_t>(at + 2);
      all.emplace_back(begin, begin + static_cast<ptrdiff_t>(length));
      at += ((2 + length + 3) & ~size_t{3}) + 4;
    }
    return all;
  }
};

/// `from` sent the SYN.
struct CapturedConnection {
  CapturedStream from;
  CapturedStream to;
};

namespace capture_detail {

inline uint32_t be16(const uint8_t* p) { return uint32_t{p[0]} << 8 | p[1]; }
inline uint32_t be32(const uint8_t* p) { return be16(p) << 16 | be16(p + 2); }
inline uint32_t le32(const uint8_t* p) {
  return uint32_t{p[3]} << 24 | uint32_t{p[2]} << 16 | uint32_t{p[1]} << 8 | p[0];
}

inline std::string end_point(const uint8_t* address, uint32_t port) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += (i != 0 ? "." : "") + std::to_string(address[i]);
  return text + ":" + std::to_string(port);
}

struct Frame {
  std::string source, destination;
  uint32_t sequence = 0;
  bool syn = false, ack = false;
  base::ByteView payload;
};

/// False when it is no TCP segment over IPv4.
inline bool parse(base::ByteView frame, Frame& out) {
  if (frame.size() < 54 || be16(&frame[12]) != 0x0800 || frame[23] != 6) return false;
  const size_t ip = 14;
  const size_t tcp = ip + size_t{frame[ip] & 0x0fu} * 4;
  const size_t end = std::min<size_t>(frame.size(), ip + be16(&frame[ip + 2]));
  if (tcp + 20 > end) return false;
  const size_t data = tcp + size_t{frame[tcp + 12]} / 16 * 4;
  if (data > end) return false;
  out.source = end_point(&frame[ip + 12], be16(&frame[tcp]));
  out.destination = end_point(&frame[ip + 16], be16(&frame[tcp + 2]));
  out.sequence = be32(&frame[tcp + 4]);
  out.syn = (frame[tcp + 13] & 0x02) != 0;
  out.ack = (frame[tcp + 13] & 0x10) != 0;
  out.payload = frame.subspan(data, end - data);
  return true;
}

inline void add(CapturedStream& stream, const Frame& frame) {
  if (frame.payload.empty()) return;
  const uint64_t offset = frame.sequence - stream.first;
  const uint64_t end = offset + frame.payload.size();
  stream.segments.emplace_back(offset, static_cast<uint32_t>(frame.payload.size()));
  if (stream.octets.size() < end) stream.octets.resize(end);
  std::copy(frame.payload.begin(), frame.payload.end(),
            stream.octets.begin() + static_cast<ptrdiff_t>(offset));
}

}  // namespace capture_detail

/// The connections of a file, in the order of their SYNs. Throws when the file is not as expected.
inline std::vector<CapturedConnection> read_capture(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> all{std::istreambuf_iterator<char>(file), {}};
  if (all.size() < 24 || capture_detail::le32(all.data()) != 0xa1b2c3d4 ||
      capture_detail::le32(&all[20]) != 1) {
    throw std::runtime_error(path + " is not a pcap file of Ethernet frames");
  }
  std::vector<CapturedConnection> connections;
  std::map<std::pair<std::string, std::string>, std::pair<size_t, bool>> streams;
  for (size_t at = 24; at + 16 <= all.size();) {
    const size_t length = capture_detail::le32(&all[at + 8]);
    at += 16;
    if (at + length > all.size()) throw std::runtime_error(path + " ends inside a frame");
    capture_detail::Frame frame;
    const bool tcp = capture_detail::parse(base::ByteView(all).subspan(at, length), frame);
    at += length;
    if (!tcp) continue;
    const std::pair key{frame.source, frame.destination};
    if (frame.syn && streams.find(key) == streams.end()) {
      if (!frame.ack) {
        streams[key] = {connections.size(), true};
        streams[{frame.destination, frame.source}] = {connections.size(), false};
        connections.emplace_back();
      }
    }
    const auto found = streams.find(key);
    if (found == streams.end()) continue;
    CapturedConnection& connection = connections[found->second.first];
    CapturedStream& stream = found->second.second ? connection.from : connection.to;
    if (frame.syn) {
      stream.sender = frame.source;
      stream.first = frame.sequence + 1;
    }
    capture_detail::add(stream, frame);
  }
  return connections;
}

}  // namespace rnic::test
