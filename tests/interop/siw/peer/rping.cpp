#include "rping.hpp"

#include <algorithm>
#include <cstring>
#include <span>

namespace rnic::siw {

namespace {

constexpr uint32_t kInfoOctets = 16;  // address, STag, length, in network order

void put(uint8_t* at, uint64_t value, int octets) {
  for (int i = octets - 1; i >= 0; --i, value >>= 8) at[i] = static_cast<uint8_t>(value);
}

uint64_t get(const uint8_t* at, int octets) {
  uint64_t value = 0;
  for (int i = 0; i < octets; ++i) value = value << 8 | at[i];
  return value;
}

}  // namespace

Rping::Rping(Context& context, Device device, const RpingOptions& options)
    : Conversation(context, std::move(device)), options_(options) {
  set_patience(options.patience);
}

Status Rping::prepare() {
  auto memory = workload::Buffer::allocate(2 * size_t{options_.size});
  if (!memory) return tl::unexpected(memory.error());
  auto control = workload::Buffer::allocate(2 * kInfoOctets);
  if (!control) return tl::unexpected(control.error());
  memory_ = std::move(*memory);
  control_ = std::move(*control);
  ProtectionDomain& pd = end().pd;
  auto start = pd.register_memory(std::as_writable_bytes(std::span(half(0).data(), options_.size)),
                                  Access::LocalWrite | Access::RemoteRead);
  if (!start) return tl::unexpected(start.error());
  auto sink = pd.register_memory(std::as_writable_bytes(std::span(half(1).data(), options_.size)),
                                 Access::RemoteWrite);
  if (!sink) return tl::unexpected(sink.error());
  auto region = pd.register_memory(std::as_writable_bytes(control_.octets()), Access::LocalWrite);
  if (!region) return tl::unexpected(region.error());
  start_ = std::move(*start);
  sink_ = std::move(*sink);
  control_region_ = std::move(*region);
  post_receive();
  return {};
}

bool Rping::post_receive() {
  ReceiveRequest request;
  request.sges = {control_region_.sge(0, kInfoOctets)};
  return good(end().qp.post_receive(request));
}

/// A server's messages say nothing by their content.
bool Rping::advertise(const MemoryRegion& region) {
  uint8_t* out = control_.data() + kInfoOctets;
  put(out, region.address(), 8);
  put(out + 8, region.stag(), 4);
  put(out + 12, options_.size, 4);
  SendRequest request;
  request.sges = {control_region_.sge(kInfoOctets, kInfoOctets)};
  return good(end().qp.post_send(request));
}

bool Rping::move(Opcode opcode) {
  SendRequest request;
  request.opcode = opcode;
  request.sges = {start_.sge(0, peer_size_)};
  request.remote = {peer_stag_, peer_address_};
  return good(end().qp.post_send(request));
}

void Rping::on_established() {
  if (initiator()) begin_exchange();
}

/// The text that rping sends: a head with the number of the exchange, then letters that wander.
void Rping::begin_exchange() {
  const std::string head = "rdma-ping-" + std::to_string(exchanges_) + ": ";
  auto text = half(0);
  uint8_t letter = static_cast<uint8_t>(65 + exchanges_ % 58);
  for (size_t i = 0; i < text.size(); ++i) {
    text[i] = i < head.size() ? static_cast<uint8_t>(head[i]) : letter;
    if (i >= head.size() && ++letter > 122) letter = 65;
  }
  if (!text.empty()) text.back() = 0;
  workload::poison(half(1));
  writing_ = false;
  advertise(start_);
}

bool Rping::expects_end() const { return !initiator() && exchanges_ > 0 && !writing_; }

void Rping::on_completion(const Completion& done) {
  if (done.status != CompletionStatus::Success) return;
  if (done.opcode == Opcode::Receive) {
    if (done.length != kInfoOctets) return fail("a message that is not rping's");
    post_receive();
  }
  initiator() ? ask(done) : serve(done);
}

void Rping::ask(const Completion& done) {
  if (done.opcode != Opcode::Receive) return;
  if (!writing_) {
    writing_ = true;
    advertise(sink_);
    return;
  }
  const auto sent = half(0), came = half(1);
  if (!std::equal(sent.begin(), sent.end(), came.begin())) return fail("the echo differs");
  if (++exchanges_ == options_.count) return leave(true);
  begin_exchange();
}

void Rping::serve(const Completion& done) {
  if (done.opcode == Opcode::Receive) {
    const uint8_t* in = control_.data();
    peer_address_ = get(in, 8);
    peer_stag_ = static_cast<uint32_t>(get(in + 8, 4));
    peer_size_ = static_cast<uint32_t>(get(in + 12, 4));
    if (peer_size_ > options_.size) return fail("the client's messages are longer than ours");
    move(writing_ ? Opcode::Write : Opcode::Read);
  } else if (done.opcode == Opcode::Read) {
    const std::string head = "rdma-ping-" + std::to_string(exchanges_) + ": ";
    if (peer_size_ > head.size() && std::memcmp(memory_.data(), head.data(), head.size()) != 0) {
      return fail("what was read is not the text of exchange " + std::to_string(exchanges_));
    }
    writing_ = true;
    advertise(start_);
  } else if (done.opcode == Opcode::Write) {
    writing_ = false;
    ++exchanges_;
    advertise(start_);
  }
}

nlohmann::ordered_json Rping::report() const {
  auto result = Conversation::report();
  result["exchanges"] = exchanges_;
  return result;
}

}  // namespace rnic::siw
