#include "base/sabotage.hpp"

namespace rnic::base {

#ifdef RNIC_SABOTAGE
Defect active_defect = Defect::None;
#endif

}  // namespace rnic::base
