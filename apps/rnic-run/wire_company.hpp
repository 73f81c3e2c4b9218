/// \file
/// WireCompany: whether all programs on a local wire damage their frames, or none.
#pragma once

#include <string>

namespace rnic::run {

/// A side damages the frames that it sends, and so one direction. A user who has asked one side
/// alone for it is told so, on the side that comes second. Each process holds a lock on the file of
/// its kind while it lives.
class WireCompany {
 public:
  /// \param folder of the wire, which exists \param impair the damage; empty: none
  WireCompany(std::string folder, std::string impair);
  /// The line for the user; empty: all are of one kind.
  [[nodiscard]] std::string remark() const;

 private:
  [[nodiscard]] std::string file_of(bool impaired) const;
  void join() const;

  std::string folder_;
  std::string impair_;
};

}  // namespace rnic::run
