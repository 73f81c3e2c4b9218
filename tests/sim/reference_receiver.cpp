#include "reference_receiver.hpp"

#include <algorithm>
#include <array>

namespace rnic::simulation {

namespace {

/// `tables[k][x]`: what the octet x adds to the CRC with k octets of zero behind it.
constexpr std::array<std::array<uint32_t, 256>, 8> make_tables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1) != 0 ? value >> 1 ^ 0x82f63b78u : value >> 1;
    tables[0][i] = value;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (uint32_t i = 0; i < 256; ++i) {
      const uint32_t shorter = tables[k - 1][i];
      tables[k][i] = shorter >> 8 ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}
constexpr auto kTables = make_tables();

uint32_t be16(const uint8_t* p) { return uint32_t{p[0]} << 8 | p[1]; }
uint32_t be32(const uint8_t* p) { return be16(p) << 16 | be16(p + 2); }
uint64_t be64(const uint8_t* p) { return uint64_t{be32(p)} << 32 | be32(p + 4); }

constexpr uint64_t kMarkerInterval = 512;  // RFC 5044 s.4.3
constexpr uint64_t kStartHeader = 20;      // RFC 5044 s.7.1.1
constexpr size_t kSuspectsMax = 48;
constexpr uint8_t kTerminate = 7;  // RFC 5040 s.4.1

}  // namespace

uint32_t plain_crc32c(base::ByteView octets) {
  uint32_t crc = 0xffffffffu;
  size_t i = 0;
  for (; i + 8 <= octets.size(); i += 8) {  // eight octets at once
    const uint8_t* p = &octets[i];
    crc ^= uint32_t{p[3]} << 24 | uint32_t{p[2]} << 16 | uint32_t{p[1]} << 8 | p[0];
    crc = kTables[7][crc & 0xff] ^ kTables[6][crc >> 8 & 0xff] ^ kTables[5][crc >> 16 & 0xff] ^
          kTables[4][crc >> 24] ^ kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^
          kTables[0][p[7]];
  }
  for (; i < octets.size(); ++i) crc = crc >> 8 ^ kTables[0][(crc ^ octets[i]) & 0xff];
  return ~crc;
}

void ReferenceReceiver::segment(uint64_t offset, base::ByteView octets) {
  if (octets.empty() || offset + octets.size() <= next_ || dead_) return;
  segments_.push_back({offset, {octets.begin(), octets.end()}});
  while (!dead_ && !verdict_.failed() && advance()) {
  }
}

bool ReferenceReceiver::advance() { return start_ ? take_fpdu() : take_start_frame(); }

void ReferenceReceiver::assemble(const Excluded& without, uint64_t limit) {
  assembled_.clear();
  bool grown = true;
  while (grown && assembled_.size() < limit) {
    grown = false;
    const uint64_t at = next_ + assembled_.size();
    uint64_t stop = UINT64_MAX;  // where one begins that had come before
    for (const Segment& s : segments_) {
      if (std::find(without.begin(), without.end(), &s) != without.end()) continue;
      if (s.begin > at) stop = std::min(stop, s.begin);
      if (s.begin > at || s.end() <= at) continue;
      const uint64_t n = std::min(std::min(s.end(), stop) - at, limit - assembled_.size());
      const auto from = s.octets.begin() + static_cast<ptrdiff_t>(at - s.begin);
      assembled_.insert(assembled_.end(), from, from + static_cast<ptrdiff_t>(n));
      grown = true;
      break;
    }
  }
}

void ReferenceReceiver::consume(uint64_t octets) {
  next_ += octets;
  std::erase_if(segments_, [&](const Segment& s) { return s.end() <= next_; });
}

bool ReferenceReceiver::take_start_frame() {
  // A start frame has no CRC: one that a checksum-repaired corruption hit is what the device sees,
  // too.
  assemble({}, kStartHeader);
  if (assembled_.size() < kStartHeader) return false;
  if (std::equal(assembled_.begin(), assembled_.begin() + 4, "TUF ")) return take_tuf_start();
  const uint64_t length = kStartHeader + be16(&assembled_[18]);
  assemble({}, length);
  if (assembled_.size() < length) return false;
  StartFrame frame;
  frame.reply = std::equal(assembled_.begin(), assembled_.begin() + 16, "MPA ID Rep Frame");
  frame.markers = (assembled_[16] & 0x80) != 0;
  frame.crc = (assembled_[16] & 0x40) != 0;
  frame.rejected = (assembled_[16] & 0x20) != 0;
  start_ = frame;
  consume(length);
  full_operation_ = next_;
  return true;
}

bool ReferenceReceiver::take_fpdu() {
  if (opposite_ == nullptr || !opposite_->start()) return false;
  if (start_->tuf) return take_tuf();
  const Attempt attempt = try_fpdu({});
  if (attempt == Attempt::Done) return true;
  // Somebody's octets are wrong: leave out one segment, then two, until the CRC is right. A wrong
  // ULPDU Length can also look as if more had to come.
  const uint64_t reach = next_ + (attempt == Attempt::Broken ? attempted_ : 8);
  Excluded suspects;
  for (const Segment& s : segments_) {
    if (s.begin < reach) suspects.push_back(&s);
  }
  std::stable_sort(suspects.begin(), suspects.end(),
                   [](const Segment* a, const Segment* b) { return a->begin < b->begin; });
  suspects.resize(std::min<size_t>(suspects.size(), kSuspectsMax));
  for (const Segment* one : suspects) {
    if (try_fpdu({one}) == Attempt::Done) return true;
  }
  for (size_t i = 0; i < suspects.size(); ++i) {
    for (size_t j = i + 1; j < suspects.size(); ++j) {
      if (try_fpdu({suspects[i], suspects[j]}) == Attempt::Done) return true;
    }
  }
  return believe_one(suspects);
}

/// One copy of what was sent many times is right, and all that lie over it are wrong.
bool ReferenceReceiver::believe_one(const Excluded& suspects) {
  for (const Segment* right : suspects) {
    Excluded wrong;
    for (const Segment* s : suspects) {
      if (s != right && s->begin < right->end() && right->begin < s->end()) wrong.push_back(s);
    }
    if (wrong.size() > 2 && try_fpdu(wrong) == Attempt::Done) return true;
  }
  return false;
}

ReferenceReceiver::Attempt ReferenceReceiver::try_fpdu(const Excluded& without) {
  const bool markers = opposite_->start()->markers;  // the receiver asks for them
  const bool crc = start_->crc || opposite_->start()->crc;
  uint64_t want = 8;  // a marker and the ULPDU Length
  std::vector<uint8_t>& content = content_;
  std::vector<uint8_t>& covered = covered_;
  for (;;) {
    assemble(without, want);
    if (without.empty()) attempted_ = want;
    if (assembled_.size() < want) return Attempt::Incomplete;
    content.clear();
    covered.clear();
    std::optional<uint64_t> header;  // stream offset of the ULPDU Length field
    uint64_t at = 0;
    uint64_t octets = 4;  // length field, ULPDU and pad; known once the first word was read
    while (content.size() < octets + 4) {
      if (at + 4 > assembled_.size()) break;
      const uint8_t* word = &assembled_[at];
      const uint64_t offset = next_ + at;
      const uint64_t behind_marker = (offset - full_operation_) % kMarkerInterval;
      if (markers && behind_marker == 0) {
        const uint64_t pointer = header ? offset - *header : 0;
        if (be16(word + 2) != pointer) return Attempt::Broken;
        covered.insert(covered.end(), word, word + 4);
        at += 4;
        continue;
      }
      uint64_t run = 4;
      if (!header) {
        header = offset;
        octets = (2 + be16(word) + 3) & ~uint64_t{3};
      } else {  // up to the next marker, or the CRC, or the CRC itself
        run = octets > content.size() ? octets - content.size() : 4;
        run = std::min(run, (assembled_.size() - at) & ~uint64_t{3});
        if (markers) run = std::min(run, kMarkerInterval - behind_marker);
      }
      content.insert(content.end(), word, word + run);
      if (content.size() <= octets) covered.insert(covered.end(), word, word + run);
      at += run;
    }
    if (content.size() == octets + 4) {
      want = at;
      break;
    }
    want += std::max<uint64_t>(4, octets + 4 - content.size());
  }
  const uint64_t octets = content.size() - 4;
  if (crc) {
    const uint8_t* p = &content[octets];
    const uint32_t sent = uint32_t{p[3]} << 24 | uint32_t{p[2]} << 16 | uint32_t{p[1]} << 8 | p[0];
    if (plain_crc32c(covered) != sent) return Attempt::Broken;
  }
  const uint32_t length = be16(content.data());
  consume(want);
  ++fpdus_;
  ulpdu({content.data() + 2, length});
  return Attempt::Done;
}

void ReferenceReceiver::ulpdu(base::ByteView ulpdu) {
  if (ulpdu.size() < 14) {
    verdict_.fail("reference", name_ + ": a ULPDU of " + std::to_string(ulpdu.size()) + " octets");
  } else if ((ulpdu[0] & 0x80) != 0) {
    tagged_segment(ulpdu);
  } else if (ulpdu.size() < 18) {
    verdict_.fail("reference", name_ + ": an untagged ULPDU of " + std::to_string(ulpdu.size()));
  } else {
    untagged_segment(ulpdu);
  }
}

void ReferenceReceiver::tagged_segment(base::ByteView ulpdu) {
  const uint8_t* p = ulpdu.data();
  if (!tagged_open_) {
    tagged_ = {};
    tagged_.tagged = true;
    tagged_.opcode = p[1] & 0x0f;
    tagged_.stag = be32(p + 2);
    tagged_.to = be64(p + 6);
    tagged_open_ = true;
  } else if (tagged_.opcode != (p[1] & 0x0f) || tagged_.stag != be32(p + 2) ||
             tagged_.to + tagged_.payload.size() != be64(p + 6)) {
    verdict_.fail("reference", name_ + ": a tagged segment does not continue its message");
    return;
  }
  tagged_.payload.insert(tagged_.payload.end(), ulpdu.begin() + 14, ulpdu.end());
  if ((p[0] & 0x40) == 0) return;
  tagged_open_ = false;
  finish(tagged_);
}

void ReferenceReceiver::untagged_segment(base::ByteView ulpdu) {
  const uint8_t* p = ulpdu.data();
  const uint32_t offset = be32(p + 14);
  if (!untagged_open_) {
    untagged_ = {};
    untagged_.opcode = p[1] & 0x0f;
    untagged_.stag = be32(p + 2);
    untagged_.qn = be32(p + 6);
    untagged_.msn = be32(p + 10);
    untagged_open_ = true;
  }
  if (untagged_.opcode != (p[1] & 0x0f) || untagged_.qn != be32(p + 6) ||
      untagged_.msn != be32(p + 10) || untagged_.payload.size() != offset) {
    // A Terminate may cut a message short (design, section 5).
    if ((p[1] & 0x0f) != kTerminate) {
      verdict_.fail("reference", name_ + ": an untagged segment does not continue its message");
    }
    dead_ = true;
    return;
  }
  untagged_.payload.insert(untagged_.payload.end(), ulpdu.begin() + 18, ulpdu.end());
  if ((p[0] & 0x40) == 0) return;
  untagged_open_ = false;
  finish(untagged_);
}

void ReferenceReceiver::finish(WireMessage& message) {
  if (message.opcode == kTerminate) dead_ = true;
  deliver_(message);
}

}  // namespace rnic::simulation
