/// \file
/// Whole pages for many arrays, side by side.
#pragma once

#include <bitset>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace rnic::base {

/// Runs of pages, which are cut from blocks of many pages and touched by their owners alone. What
/// asks the system for a few pages each shares the pages before and behind them with whatever
/// stands there, so that for each run most of a page more is backed than is used.
///
/// A block goes back to the system with the last of its runs. Giving back needs no memory.
class PageStore {
 public:
  static constexpr size_t kPage = 4096;      ///< octets
  static constexpr size_t kBlockPages = 512;
  /// Longer runs would leave too much of a block empty, and lose little by standing alone.
  static constexpr size_t kRunMax = kBlockPages / 8;

  struct alignas(kPage) Page {
    std::byte octets[kPage];
  };

  PageStore() = default;
  ~PageStore() { RNIC_CHECK(blocks_.empty()); }
  PageStore(const PageStore&) = delete;
  PageStore& operator=(const PageStore&) = delete;

  /// \param pages 1 to kRunMax \throw std::bad_alloc, and nothing has happened
  [[nodiscard]] Page* take(size_t pages) {
    RNIC_CHECK(pages >= 1 && pages <= kRunMax);
    for (const auto& block : blocks_) {
      if (Page* const run = block->take(pages)) return run;
    }
    blocks_.push_back(std::make_unique<Block>());
    return blocks_.back()->take(pages);
  }
  /// Takes back a run that take() gave.
  void give(const Page* run) {
    for (auto& block : blocks_) {
      if (!block->holds(run)) continue;
      block->give(run);
      if (!block->is_empty()) return;
      std::swap(block, blocks_.back());
      return blocks_.pop_back();
    }
    RNIC_CHECK(false);
  }
  [[nodiscard]] size_t blocks() const { return blocks_.size(); }
  void validate() const {
    for (const auto& block : blocks_) block->validate();
  }

 private:
  class Block {
   public:
    /// \return nullptr: there are not so many pages in a row
    [[nodiscard]] Page* take(size_t pages) {
      if (kBlockPages - taken_.count() < pages) return nullptr;
      size_t free = 0;
      for (size_t at = 0; at < kBlockPages; ++at) {
        free = taken_[at] ? 0 : free + 1;
        if (free == pages) return mark(at + 1 - pages, pages);
      }
      return nullptr;
    }
    [[nodiscard]] bool holds(const Page* run) const {
      return run >= &pages_[0] && run < &pages_[0] + kBlockPages;
    }
    void give(const Page* run) {
      auto at = static_cast<size_t>(run - &pages_[0]);
      RNIC_CHECK(taken_[at] && (at == 0 || !taken_[at - 1] || last_[at - 1]));  // a run begins
      while (!last_[at]) taken_.reset(at++);
      taken_.reset(at);
      last_.reset(at);
    }
    [[nodiscard]] bool is_empty() const { return taken_.none(); }
    /// Checks that somebody has a run of it, and that each run ends before what is free.
    void validate() const {
      RNIC_CHECK(!is_empty());
      RNIC_CHECK((last_ & ~taken_).none());
      RNIC_CHECK((taken_ & ~last_ & ~(taken_ >> 1)).none());
    }

   private:
    Page* mark(size_t first, size_t pages) {
      for (size_t at = first; at < first + pages; ++at) taken_.set(at);
      last_.set(first + pages - 1);
      return &pages_[first];
    }

    std::unique_ptr<Page[]> pages_ = std::make_unique_for_overwrite<Page[]>(kBlockPages);
    std::bitset<kBlockPages> taken_;
    std::bitset<kBlockPages> last_;  // the last page of a run
  };

  std::vector<std::unique_ptr<Block>> blocks_;
};

}  // namespace rnic::base
