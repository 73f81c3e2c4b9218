#include "mem/holdings.hpp"

#include <string>
#include <utility>

namespace rnic::mem {

void Holding::stand_on(Dependents& region, uint32_t slot) {
  for (Tie& tie : ties_) {
    if (tie.region == &region) return;
    if (tie.region != nullptr) continue;
    region.add(tie, slot);
    return;
  }
}

void Holding::clear() {
  for (Tie& tie : ties_) Dependents::remove(tie);
  pieces_.clear();
}

Result<Holding*> Holdings::make(uint32_t pieces, uint32_t ties) {
  if (pieces > max_pieces_ - pieces_) {
    return base::fail(ErrorCode::ResourceExhausted,
                      std::to_string(pieces) + " pieces of memory are asked for, and of limits." +
                          "max_pieces (now " + std::to_string(max_pieces_) + ") " +
                          std::to_string(max_pieces_ - pieces_) +
                          " are left: deregister regions or raise it");
  }
  all_.push_back(std::make_unique<Holding>(pieces, ties, all_.size()));
  pieces_ += pieces;
  return all_.back().get();
}

void Holdings::drop(Holding* holding) {
  holding->clear();
  pieces_ -= holding->capacity();
  const size_t place = holding->position();
  if (place + 1 != all_.size()) {
    all_[place] = std::move(all_.back());
    all_[place]->move_to(place);
  }
  all_.pop_back();
}

}  // namespace rnic::mem
