/// \file
/// TCP octets out of a capture file (classic pcap, Ethernet, IPv4).
#pragma once

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/endian.hpp"
#include "support/mpa_fakes.hpp"

namespace rnic::test {

/// One direction of one connection: segments with payload as they came, by stream offset.
struct CapturedSegment {
  uint64_t offset = 0;
  Octets octets;
};

struct CapturedDirection {
  std::vector<CapturedSegment> segments;
  uint32_t first = 0;  ///< sequence number of the first octet

  /// The stream, put together.
  [[nodiscard]] Octets stream() const {
    Octets all;
    for (const CapturedSegment& s : segments) {
      if (all.size() < s.offset + s.octets.size()) all.resize(s.offset + s.octets.size());
      std::copy(s.octets.begin(), s.octets.end(), all.begin() + static_cast<long>(s.offset));
    }
    return all;
  }
};

/// Connections in the order of their SYNs: [0] from the opener, [1] towards it.
using CapturedConnection = std::array<CapturedDirection, 2>;

inline std::vector<CapturedConnection> read_capture(const std::string& path) {
  struct Close {
    void operator()(FILE* f) const { std::fclose(f); }
  };
  const std::unique_ptr<FILE, Close> file(std::fopen(path.c_str(), "rb"));
  std::vector<CapturedConnection> connections;
  if (file == nullptr) return connections;
  std::array<uint8_t, 24> head;
  if (std::fread(head.data(), 1, head.size(), file.get()) != head.size()) return connections;
  using Key = std::array<uint8_t, 12>;  // addresses and ports as they stand in the frame
  std::map<Key, std::pair<size_t, size_t>> known;
  std::array<uint8_t, 16> record;
  while (std::fread(record.data(), 1, record.size(), file.get()) == record.size()) {
    uint32_t length = 0;
    std::memcpy(&length, record.data() + 8, 4);  // the file has the byte order of its host
    Octets frame(length);
    if (length > 65536 || std::fread(frame.data(), 1, length, file.get()) != length) break;
    if (length < 54 || frame[12] != 0x08 || frame[13] != 0 || frame[23] != 6) continue;
    const uint8_t* ip = frame.data() + 14;
    const uint8_t* tcp = ip + (ip[0] & 15) * 4;
    const uint8_t* end = ip + base::load_be16(ip + 2);
    const uint8_t* payload = tcp + (tcp[12] >> 4) * 4;
    if (end > frame.data() + length || payload > end) continue;
    Key key, back;
    std::copy_n(ip + 12, 8, key.begin());
    std::copy_n(tcp, 4, key.begin() + 8);
    std::copy_n(ip + 16, 4, back.begin());
    std::copy_n(ip + 12, 4, back.begin() + 4);
    std::copy_n(tcp + 2, 2, back.begin() + 8);
    std::copy_n(tcp, 2, back.begin() + 10);
    const uint32_t seq = base::load_be32(tcp + 4);
    if ((tcp[13] & 2) != 0) {
      if (known.count(key) == 0) {
        connections.emplace_back();
        known[key] = {connections.size() - 1, 0};
        known[back] = {connections.size() - 1, 1};
      }
      connections[known[key].first][known[key].second].first = seq + 1;
      continue;
    }
    if (payload == end || known.count(key) == 0) continue;
    CapturedDirection& direction = connections[known[key].first][known[key].second];
    direction.segments.push_back({uint32_t{seq - direction.first}, Octets(payload, end)});
  }
  return connections;
}

}  // namespace rnic::test
