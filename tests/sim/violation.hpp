/// \file
/// An application that breaks a rule on purpose: one request that the other end must refuse with
/// the right Terminate code, without writing one octet of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/prng.hpp"
#include "traffic.hpp"

namespace rnic::simulation {

enum class Violation : uint8_t {
  WriteUnknownStag,
  WriteWrongKey,
  WriteOutside,
  WriteOnePast,
  WriteWrap,
  WriteOtherDomain,
  WriteOtherStream,
  WriteWithoutRight,
  WriteRevoked,
  SendWithoutReceive,
  SendTooLong,
  SendInvalidateForeign,
  ReadWrongKey,
  ReadOutside,
  ReadOnePast,
  ReadWrap,
  ReadOtherDomain,
  ReadWithoutRight,
  ReadRevoked,
};

[[nodiscard]] std::span<const Violation> violations();
[[nodiscard]] const char* to_string(Violation violation);

class ViolationCase {
 public:
  /// `from` offends, `to` must notice.
  ViolationCase(Violation violation, End& from, End& to, uint64_t seed, Verdict& verdict);

  /// A good Write, the offence, and one more Write that comes too late.
  void post();
  [[nodiscard]] bool posted() const { return posted_; }

  void send_completed(const Completion& completion);
  void receive_completed(const Completion& completion);
  /// TerminateSent or TerminateReceived at an end of this connection.
  /// \param here the Terminate was sent at this end; false: it came there
  void terminated(const End& at, bool here, const Fault& fault);

  /// After the connection is gone.
  void check_end();
  void release_regions();
  [[nodiscard]] std::string describe() const;

 private:
  static constexpr uint32_t kRegion = 8192;
  static constexpr uint32_t kGood = 100;  // octets of the good Write, from TO 0
  static constexpr uint32_t kLate = 200;  // octets of the late one
  static constexpr uint32_t kLateAt = 4000;

  void fail(const std::string& message);
  void post_writes(bool late);
  SendRequest offence();
  void check_target();

  Violation violation_;
  End& from_;
  End& to_;
  base::Prng prng_;
  Verdict& verdict_;
  std::unique_ptr<Region> source_;
  std::unique_ptr<Region> sink_;
  std::unique_ptr<Region> target_;
  std::unique_ptr<Region> receive_;
  std::optional<uint32_t> foreign_pd_;
  bool revoked_ = false;
  bool posted_ = false;
  uint32_t receives_ = 0;
  uint32_t sends_completed_ = 0;
  uint32_t receives_completed_ = 0;
  bool sent_ = false;
  bool received_ = false;
};

}  // namespace rnic::simulation
