#include "rnic/fault.hpp"

#include <cstdio>
#include <iterator>

#include "api/no_throw.hpp"

namespace rnic {

namespace {

// RFC 5040 figure 9, RFC 5041 s.7.2, RFC 5044 s.8, RFC 6581 s.9.
const char* name_of(FaultLayer layer, uint8_t type, uint8_t code) {
  if (layer == FaultLayer::Rdmap || layer == FaultLayer::Ddp) {
    if (type == 0) return "";
  }
  if (layer == FaultLayer::Llp) {
    constexpr const char* kNames[] = {nullptr,
                                      "TCP connection closed or lost",
                                      "CRC mismatch",
                                      "marker and ULPDU length disagree",
                                      "invalid MPA Request or Reply",
                                      "local catastrophic error",
                                      "insufficient IRD resources",
                                      "no matching RTR option"};
    return type == 0 && code < std::size(kNames) ? kNames[code] : nullptr;
  }
  if (layer == FaultLayer::Ddp && type == 1) {
    constexpr const char* kNames[] = {"invalid STag", "base or bounds violation",
                                      "STag not associated with the stream", "TO wrap",
                                      "invalid DDP version"};
    return code < std::size(kNames) ? kNames[code] : nullptr;
  }
  if (layer == FaultLayer::Ddp && type == 2) {
    constexpr const char* kNames[] = {nullptr,
                                      "invalid QN",
                                      "invalid MSN: no buffer available",
                                      "invalid MSN: not in the legal range",
                                      "invalid MO",
                                      "message too long for the buffer",
                                      "invalid DDP version"};
    return code < std::size(kNames) ? kNames[code] : nullptr;
  }
  if (layer == FaultLayer::Ddp && type == 3) return "reserved for the LLP";
  if (layer != FaultLayer::Rdmap) return nullptr;
  constexpr const char* kNames[] = {"invalid STag",
                                    "base or bounds violation",
                                    "access rights violation",
                                    "STag not associated with the stream",
                                    "TO wrap",
                                    "invalid RDMAP version",
                                    "unexpected opcode",
                                    "catastrophic error of the stream",
                                    "global catastrophic error",
                                    "STag cannot be invalidated"};
  if (code == 0xff && (type == 1 || type == 2)) return "unspecified error";
  if (type == 1 && (code <= 4 || code == 9)) return kNames[code];
  if (type == 2 && code >= 5 && code <= 9) return kNames[code];
  return nullptr;
}

const char* type_name(FaultLayer layer, uint8_t type) {
  constexpr const char* kRdmapNames[] = {"local catastrophic error", "remote protection error",
                                         "remote operation error"};
  constexpr const char* kDdpNames[] = {"local catastrophic error", "tagged buffer error",
                                       "untagged buffer error", "LLP error"};
  if (layer == FaultLayer::Rdmap && type < std::size(kRdmapNames)) return kRdmapNames[type];
  if (layer == FaultLayer::Ddp && type < std::size(kDdpNames)) return kDdpNames[type];
  if (layer == FaultLayer::Llp && type == 0) return "MPA error";
  return "unknown";
}

}  // namespace

const char* code_name(const Fault& fault) { return name_of(fault.layer, fault.type, fault.code); }

namespace {

std::string in_words(const Fault& fault) {
  constexpr const char* kLayers[] = {"RDMAP", "DDP", "LLP"};
  const auto layer = static_cast<uint8_t>(fault.layer);
  char code[8];
  std::snprintf(code, sizeof code, "0x%02x", fault.code);
  std::string text = std::string("layer ") + (layer < 3 ? kLayers[layer] : "unknown") + ", type " +
                     type_name(fault.layer, fault.type) + ", code " + code;
  const char* name = code_name(fault);
  if (name == nullptr) return text + " (unknown)";
  if (*name != '\0') text += std::string(" ") + name;
  return text;
}

}  // namespace

std::string describe(const Fault& fault) {
  return text_or_none([&] { return in_words(fault); });
}

const char* to_string(QueuePairError error) {
  switch (error) {
    case QueuePairError::None: return "none";
    case QueuePairError::Access: return "access";
    case QueuePairError::Request: return "request";
    case QueuePairError::Fatal: return "fatal";
  }
  return "unknown";
}

QueuePairError error_of(const Fault& fault) {
  // RFC 5040 figure 9, RFC 5041 s.7.2: type 0 is catastrophic, type 1 about memory that is named by
  // an STag, type 2 about the message itself. A tagged segment of a version that there is not is
  // no access.
  constexpr uint8_t kBadVersion = 0x4;
  constexpr uint8_t kCatastrophicStream = 0x7, kCatastrophicGlobal = 0x8;
  if (fault.layer == FaultLayer::Llp || fault.type == 0) return QueuePairError::Fatal;
  const bool ddp = fault.layer == FaultLayer::Ddp;
  if (fault.type == 1) {
    return ddp && fault.code == kBadVersion ? QueuePairError::Request : QueuePairError::Access;
  }
  const bool catastrophic = fault.code == kCatastrophicStream || fault.code == kCatastrophicGlobal;
  return !ddp && catastrophic ? QueuePairError::Fatal : QueuePairError::Request;
}

}  // namespace rnic
