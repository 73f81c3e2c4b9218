#include "rnic-run/cm_port.hpp"

#include "rnic-run/adapter.hpp"

namespace rnic::run {

CmPort::~CmPort() {
  if (listens_) (void)Adapter::get()->device().unlisten(listening_);
}

Status CmPort::listen(uint32_t id, const Versions& versions, uint32_t backlog) {
  if (!listens_) {
    ListenOptions options;
    options.context = reinterpret_cast<void*>(uintptr_t{number_});
    options.backlog = backlog;
    auto listening = Adapter::get()->device().listen(reservation_, options);
    if (!listening) return tl::unexpected(listening.error());
    listening_ = *listening;
    listens_ = true;
  }
  if (versions.v4) heard_by_[0] = id;
  if (versions.v6) heard_by_[1] = id;
  return {};
}

void CmPort::leave(uint32_t id) {
  for (uint32_t& each : heard_by_) {
    if (each == id) each = 0;
  }
}

}  // namespace rnic::run
