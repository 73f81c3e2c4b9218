#include "workload/remote.hpp"

#include <algorithm>
#include <csignal>

namespace rnic::workload {

namespace {

constexpr uint32_t kOfferMagic = 0x524e4f31;    // "RNO1"
constexpr uint32_t kControlMagic = 0x524e4331;  // "RNC1"

void put(uint8_t* at, uint64_t value, int octets) {
  for (int i = octets - 1; i >= 0; --i, value >>= 8) at[i] = static_cast<uint8_t>(value);
}

uint64_t get(const uint8_t* at, int octets) {
  uint64_t value = 0;
  for (int i = 0; i < octets; ++i) value = value << 8 | at[i];
  return value;
}

/// What a server says with its reject, where it is text.
std::string reason_in(const Event& event) {
  const auto* rejected = std::get_if<event::Rejected>(&event);
  if (rejected == nullptr || rejected->private_data.empty()) return {};
  const std::vector<uint8_t>& octets = rejected->private_data;
  const auto printable = [](uint8_t octet) { return octet >= ' ' && octet <= '~'; };
  if (!std::all_of(octets.begin(), octets.end(), printable)) return {};
  return ": " + std::string(octets.begin(), octets.end());
}

volatile std::sig_atomic_t interrupt_seen = 0;

/// Why what was waited for is not there.
Error not_there(const std::string& what, int64_t timeout_ms) {
  return Error{ErrorCode::TimedOut, interrupted()
                                        ? "interrupted"
                                        : what + " within " + std::to_string(timeout_ms) + " ms"};
}

}  // namespace

std::array<uint8_t, kOfferOctets> encode(const Offer& offer) {
  std::array<uint8_t, kOfferOctets> octets{};
  put(&octets[0], kOfferMagic, 4);
  put(&octets[4], offer.stag, 4);
  put(&octets[8], offer.address, 8);
  put(&octets[16], offer.length, 8);
  return octets;
}

std::optional<Offer> decode_offer(std::span<const uint8_t> octets) {
  if (octets.size() != kOfferOctets || get(&octets[0], 4) != kOfferMagic) return std::nullopt;
  return Offer{static_cast<uint32_t>(get(&octets[4], 4)), get(&octets[8], 8), get(&octets[16], 8)};
}

void encode(const ControlMessage& message, std::span<uint8_t> octets) {
  std::fill(octets.begin(), octets.end(), uint8_t{0});
  put(&octets[0], kControlMagic, 4);
  octets[4] = static_cast<uint8_t>(message.kind);
  octets[5] = static_cast<uint8_t>(message.operation);
  octets[6] = message.ok ? 1 : 0;
  put(&octets[8], message.size, 8);
  put(&octets[16], message.slots, 4);
  put(&octets[20], message.messages, 4);
  put(&octets[24], message.pattern.seed, 8);
  put(&octets[32], message.pattern.generation, 8);
}

std::optional<ControlMessage> decode_control(std::span<const uint8_t> octets) {
  if (octets.size() != kControlOctets || get(&octets[0], 4) != kControlMagic) return std::nullopt;
  const bool known = octets[4] >= 1 && octets[4] <= 4 && octets[5] < operation_words().size();
  if (!known) return std::nullopt;
  ControlMessage message;
  message.kind = static_cast<ControlKind>(octets[4]);
  message.operation = static_cast<Operation>(octets[5]);
  message.ok = octets[6] != 0;
  message.size = get(&octets[8], 8);
  message.slots = static_cast<uint32_t>(get(&octets[16], 4));
  message.messages = static_cast<uint32_t>(get(&octets[20], 4));
  message.pattern = {get(&octets[24], 8), get(&octets[32], 8)};
  return message;
}

Result<std::vector<uint8_t>> connect_end(Context& context, Party end, const Endpoint& remote,
                                         int64_t timeout_ms) {
  if (Status status = end.qp.connect(remote); !status) {
    return tl::unexpected(status.error());
  }
  std::optional<Event> event;
  // The link of a NIC may come up only now.
  const auto next = [&] {
    do event = end.device.poll_event();
    while (event && tells_of_link(*event));
    return event.has_value();
  };
  const bool answered = context.wait_until([&] { return interrupted() || next(); },
                                           std::chrono::milliseconds(timeout_ms));
  const std::string peer = to_string(remote);
  if (!answered || interrupted()) {
    return tl::unexpected(not_there("no answer from " + peer, timeout_ms));
  }
  if (auto* up = std::get_if<event::Established>(&*event)) return std::move(up->private_data);
  return tl::unexpected(
      Error{ErrorCode::Unreachable,
            peer + ": " + to_string(*event) + ": " + common(*event).detail + reason_in(*event)});
}

Result<Completion> await(Context& context, CompletionQueue& queue, int64_t timeout_ms,
                         const std::function<void()>& meanwhile) {
  Completion completion;
  const bool came = context.wait_until(
      [&] {
        meanwhile();
        return interrupted() || queue.poll({&completion, 1}) == 1;
      },
      std::chrono::milliseconds(timeout_ms));
  if (!came || interrupted()) {
    return tl::unexpected(not_there("no completion", timeout_ms));
  }
  if (completion.status == CompletionStatus::Success) return completion;
  return tl::unexpected(Error{ErrorCode::Reset, std::string(to_string(completion.opcode)) +
                                                    " completed with " +
                                                    to_string(completion.status)});
}

Result<Device> choose_device(Context& context, const std::string& name) {
  return context.device(name.empty() ? context.device_names().front() : name);
}

bool interrupted() {
  static const bool installed = [] {
    std::signal(SIGINT, [](int) { interrupt_seen = 1; });
    std::signal(SIGTERM, [](int) { interrupt_seen = 1; });
    return true;
  }();
  return installed && interrupt_seen != 0;
}

void interrupt() { interrupt_seen = 1; }

bool is_of_environment(const Error& error) {
  return error.code == ErrorCode::Environment || error.code == ErrorCode::ResourceExhausted ||
         error.code == ErrorCode::InvalidArgument || error.code == ErrorCode::Unsupported ||
         error.code == ErrorCode::PermissionDenied;
}

}  // namespace rnic::workload
