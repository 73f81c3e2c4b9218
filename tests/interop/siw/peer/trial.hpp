// Our end of a trial: every operation of a plan in both directions, every octet compared.
#pragma once

#include <array>

#include "conversation.hpp"
#include "plan.hpp"

namespace rnic::siw {

class Trial : public Conversation {
 public:
  /// `octets`: the Request's private data, which `plan` was decoded from.
  Trial(Context& context, Device device, Plan plan, std::vector<uint8_t> octets);

  [[nodiscard]] nlohmann::ordered_json report() const override;
  [[nodiscard]] const Plan& plan() const { return plan_; }

 protected:
  Status prepare() override;
  std::vector<uint8_t> request_data() override { return octets_; }
  std::vector<uint8_t> reply_data() override;
  Status check_reply(const std::vector<uint8_t>& data) override;
  void on_established() override { next_round(); }
  void on_completion(const Completion& done) override;
  void advance() override;
  [[nodiscard]] bool expects_end() const override;
  /// The peer has our Verdict, though its acknowledgement need not have come.
  [[nodiscard]] bool may_close() const override;

 private:
  enum class Stage {
    Starting,
    AwaitReady,
    Moving,
    AwaitVerdict,
    AwaitDone,
    Settling,
    AwaitInvalidation,  // passive, before a breach: a second Ready follows
    Breaking,
    Over
  };
  static constexpr uint32_t kSlots = 4;

  [[nodiscard]] bool speaks_first() { return initiator() != plan_.acceptor_speaks; }
  [[nodiscard]] bool breaks_now() const {
    return plan_.breach != Breach::None && round_ == plan_.breach_round;
  }
  /// The breach needs a region that its user has invalidated before.
  [[nodiscard]] bool needs_invalidation() const {
    return plan_.breach == Breach::WriteInvalidated || plan_.breach == Breach::ReadInvalidated;
  }
  [[nodiscard]] bool invalidates_first() const { return breaks_now() && needs_invalidation(); }
  [[nodiscard]] std::span<uint8_t> message(size_t index) {
    return memory_.octets().subspan(offsets_[index], plan_.sizes[index]);
  }
  [[nodiscard]] workload::Pattern pattern(size_t index) const {
    return {plan_.seed, uint64_t{round_} * kMaxSizes + index};
  }

  Status register_memory();
  void next_round();
  void begin_passive();
  void begin_active();
  void begin_breach();
  bool post_receive(uint64_t id, uint64_t offset, uint32_t size);
  bool post_control_receive();
  bool say(ControlKind kind);
  /// The next control message, when it is there; fails for one of another kind.
  std::optional<Control> hear(ControlKind kind);
  bool post_operations(const Control& peer);
  bool post_invalidation(const Control& peer);
  bool post_breach(const Control& peer);
  bool post(SendRequest& request);
  void judge();
  bool turn();

  Plan plan_;
  std::vector<uint8_t> octets_;
  workload::Buffer memory_;   // the messages, with gaps between them
  workload::Buffer control_;  // control messages: in, then out
  MemoryRegion region_;
  MemoryRegion control_region_;
  std::vector<MemoryRegion> victims_;  // to be invalidated by the peer
  std::vector<uint64_t> offsets_;
  Stage stage_ = Stage::Starting;
  uint32_t round_ = 0;
  bool passive_ = false;
  bool invalidated_ = false;  // by us, before a breach
  uint32_t unfinished_ = 0;   // signalled requests
  uint32_t controls_posted_ = 0;
  uint32_t controls_taken_ = 0;
  uint32_t controls_heard_ = 0;
  uint32_t controls_said_ = 0;
  std::vector<Completion> arrived_;  // messages of the round
  std::vector<std::string> statuses_;
};

}  // namespace rnic::siw
