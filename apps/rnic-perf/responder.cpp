#include "rnic-perf/responder.hpp"

#include <algorithm>
#include <utility>
#include <variant>

#include "rnic-perf/second_core.hpp"

namespace rnic::perf {

namespace {

/// \param number of the device; the initiator may connect when the responder is there
std::string memif(uint32_t number, const std::string& folder, Role role) {
  const std::string text = std::to_string(number);
  return "net_memif" + text + ",role=" + (role == Role::Responder ? "server" : "client") +
         ",id=0,socket=" + folder + "/" + text + ",socket-abstract=no";
}

/// The other process.
class Responder {
 public:
  Responder(const Options& options, std::string folder, Board& board)
      : options_(options), folder_(std::move(folder)), board_(board) {}

  int run() {
    if (Status status = set_up(); !status) return complain(status.error());
    pin(kCore);
    board_.obeyed.store(Board::kListening, std::memory_order_release);
    for (uint32_t last = 0;;) {
      const uint32_t order = board_.order.load(std::memory_order_acquire);
      if (order == 0) continue;
      const auto what = static_cast<Order>(order & ((1u << Board::kOrderBits) - 1));
      if (what == Order::End) return kOk;
      if (order != last) {
        if (Status status = begin(what); !status) return complain_of_run(status.error());
        board_.obeyed.store(order, std::memory_order_release);
        last = order;
      }
      if (Status status = turn(what); !status) return complain_of_run(status.error());
    }
  }

 private:
  Status set_up();
  Status begin(Order order);
  Status turn(Order order);
  Status accept(const event::ConnectRequest& request);
  [[nodiscard]] Status compare_memory() const;

  static constexpr uint32_t kCore = 1;

  const Options& options_;
  std::string folder_;
  Board& board_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<workload::End> end_;
  workload::Buffer memory_;
  MemoryRegion region_;
  std::unique_ptr<dpdk::LinkFloor> floor_;
  bool connected_ = false;
};

Status Responder::set_up() {
  auto config = memif_configuration(options_, folder_, Role::Responder);
  if (!config) return tl::unexpected(config.error());
  auto context = Context::open(*config);
  if (!context) return tl::unexpected(context.error());
  context_ = std::make_unique<Context>(std::move(*context));
  auto device = workload::choose_device(*context_, "");
  if (!device) return tl::unexpected(device.error());
  auto end = workload::make_end(*device, options_.depth);
  if (!end) return tl::unexpected(end.error());
  end_ = std::move(*end);
  const uint64_t stride = workload::slot_stride(options_.size);
  const uint64_t places = std::max<uint64_t>(options_.region / stride, 1);
  auto memory = workload::Buffer::allocate(places * stride);
  if (!memory) return tl::unexpected(memory.error());
  memory_ = std::move(*memory);
  auto region = end_->pd.register_memory(std::as_writable_bytes(memory_.octets()),
                                         Access::LocalWrite | Access::RemoteWrite);
  if (!region) return tl::unexpected(region.error());
  region_ = std::move(*region);
  if (options_.floor) {
    auto floor = dpdk::LinkFloor::create(memif_floor(options_, folder_, Role::Responder),
                                         board_.progress);
    if (!floor) return tl::unexpected(floor.error());
    floor_ = std::move(*floor);
  }
  const auto listening = end_->device.listen(options_.port.tcp);
  return listening ? Status{} : tl::unexpected(listening.error());
}

Status Responder::begin(Order order) {
  if (order == Order::Prepare) workload::poison(memory_.octets());
  if (order == Order::Verify) return compare_memory();
  if (order == Order::JudgeFloor && !floor_->verified()) {
    return workload::fail(ErrorCode::Protocol, "the floor's own verification failed");
  }
  return {};
}

Status Responder::turn(Order order) {
  if (order == Order::Lines) board_.lines.answer_turn();
  if (order == Order::TakeFloor) floor_->receive();
  if (order != Order::TakeMessages) return {};
  end_->device.poll();
  while (!connected_) {
    const auto event = end_->device.poll_event();
    if (!event) break;
    if (std::holds_alternative<event::Established>(*event)) connected_ = true;
    if (const auto* asked = std::get_if<event::ConnectRequest>(&*event)) return accept(*asked);
  }
  return {};
}

Status Responder::accept(const event::ConnectRequest& request) {
  const auto offer =
      workload::encode(workload::Offer{region_.stag(), region_.address(), region_.length()});
  return end_->qp.accept(request.request, offer);
}

Status Responder::compare_memory() const {
  const uint64_t stride = workload::slot_stride(options_.size);
  for (uint64_t offset = 0; offset < memory_.size(); offset += stride) {
    auto mismatch = workload::compare(memory_.octets().subspan(offset, options_.size),
                                      board_.pattern, offset);
    if (!mismatch) continue;
    mismatch->offset += offset;
    return workload::fail(ErrorCode::Protocol,
                          "verification failed: " + workload::describe(*mismatch));
  }
  return {};
}

}  // namespace

Result<Config> memif_configuration(const Options& options, const std::string& folder, Role role) {
  const char* address = role == Role::Responder ? kResponderAddress : kInitiatorAddress;
  Config config = Config::from_text("[[device]]\nname = \"rnic0\"\nport = \"" +
                                        memif(0, folder, role) + "\"\naddress = \"" + address +
                                        "/24\"\nmtu = " + std::to_string(options.mtu) + "\n",
                                    "--processes 2");
  for (const std::string& assignment : options.overrides) config.set(assignment);
  if (Status status = config.check(); !status) return tl::unexpected(status.error());
  config.set(std::string("mpa.crc=") + (options.crc ? "true" : "false"));
  config.set(std::string("mpa.markers=") + (options.markers ? "true" : "false"));
  return config;
}

dpdk::LinkFloor::Options memif_floor(const Options& options, const std::string& folder, Role role) {
  return {.port = memif(1, folder, role), .mtu = options.mtu, .region = options.region};
}

int run_responder(const Options& options, const std::string& folder, Board& board) {
  return Responder(options, folder, board).run();
}

}  // namespace rnic::perf
