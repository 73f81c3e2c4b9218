/// \file
/// The trace of one end of one connection: what is delivered was placed or held before.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/interval_set.hpp"
#include "base/trace.hpp"
#include "drop_judge.hpp"
#include "verdict.hpp"

namespace rnic::simulation {

class TraceCheck final : public base::TraceSink {
 public:
  /// \param judge is told everything; nullptr: nobody
  TraceCheck(std::string name, Verdict& verdict, FILE* file, DropJudge* judge)
      : name_(std::move(name)), verdict_(verdict), file_(file), judge_(judge) {}

  void record(TraceKind kind, base::Range range, base::Now now) override;

 private:
  std::string name_;
  Verdict& verdict_;
  FILE* file_;
  DropJudge* judge_;
  base::IntervalSet<4096> arrived_;
  bool begun_ = false;
};

}  // namespace rnic::simulation
