#include "tuf/key_source.hpp"

namespace rnic::tuf {

wire::TufKey KeySource::next() {
  base::SipHash sip(secret_);
  sip.add(count_++);
  return sip.finish() & wire::kTufKeyMask;
}

}  // namespace rnic::tuf
