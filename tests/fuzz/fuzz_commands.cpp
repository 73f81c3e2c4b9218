// Commands of librdmacm, as the door hands them over: any number, length and content, on channels
// that come and go, for ids that exist and others. The device is on a local wire alone, so that
// nothing leaves the process. Addresses in a command are the program's own and right: a program
// that gives a wrong one harms itself. Queue pairs come and go in between, and commands name them;
// commands with an address of the network often have the device's own, so that connections come
// about.

#include <arpa/inet.h>
#include <rdma/rdma_user_cm.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "input.hpp"
#include "rnic-run/completions.hpp"
#include "rnic-run/memory.hpp"
#include "rnic-run/queue_pairs.hpp"
#include "rnic-run/rdma_cm.hpp"

namespace {

using namespace rnic;

constexpr size_t kNone = SIZE_MAX;
constexpr size_t kMostOctets = 512;  // of a command, which are all shorter

/// Where a command has an id, the address of its answer, and that of a value.
struct Shape {
  uint32_t command;
  size_t id = kNone;
  size_t response = kNone;
  size_t value = kNone;
  size_t qp = kNone;    // of a queue pair's number
  size_t peer = kNone;  // of an address of the network
  size_t peer_size = kNone;
};
constexpr Shape kShapes[] = {
    {RDMA_USER_CM_CMD_CREATE_ID, kNone, offsetof(rdma_ucm_create_id, response)},
    {RDMA_USER_CM_CMD_DESTROY_ID, offsetof(rdma_ucm_destroy_id, id),
     offsetof(rdma_ucm_destroy_id, response)},
    {RDMA_USER_CM_CMD_BIND_IP, offsetof(rdma_ucm_bind_ip, id)},
    {.command = RDMA_USER_CM_CMD_BIND,
     .id = offsetof(rdma_ucm_bind, id),
     .peer = offsetof(rdma_ucm_bind, addr),
     .peer_size = offsetof(rdma_ucm_bind, addr_size)},
    {RDMA_USER_CM_CMD_RESOLVE_IP, offsetof(rdma_ucm_resolve_ip, id)},
    {.command = RDMA_USER_CM_CMD_RESOLVE_ADDR,
     .id = offsetof(rdma_ucm_resolve_addr, id),
     .peer = offsetof(rdma_ucm_resolve_addr, dst_addr),
     .peer_size = offsetof(rdma_ucm_resolve_addr, dst_size)},
    {RDMA_USER_CM_CMD_RESOLVE_ROUTE, offsetof(rdma_ucm_resolve_route, id)},
    {RDMA_USER_CM_CMD_QUERY_ROUTE, offsetof(rdma_ucm_query, id),
     offsetof(rdma_ucm_query, response)},
    {RDMA_USER_CM_CMD_QUERY, offsetof(rdma_ucm_query, id), offsetof(rdma_ucm_query, response)},
    {RDMA_USER_CM_CMD_INIT_QP_ATTR, offsetof(rdma_ucm_init_qp_attr, id),
     offsetof(rdma_ucm_init_qp_attr, response)},
    {RDMA_USER_CM_CMD_LISTEN, offsetof(rdma_ucm_listen, id)},
    {.command = RDMA_USER_CM_CMD_CONNECT,
     .id = offsetof(rdma_ucm_connect, id),
     .qp = offsetof(rdma_ucm_connect, conn_param.qp_num)},
    {.command = RDMA_USER_CM_CMD_ACCEPT,
     .id = offsetof(rdma_ucm_accept, id),
     .qp = offsetof(rdma_ucm_accept, conn_param.qp_num)},
    {RDMA_USER_CM_CMD_REJECT, offsetof(rdma_ucm_reject, id)},
    {RDMA_USER_CM_CMD_DISCONNECT, offsetof(rdma_ucm_disconnect, id)},
    {RDMA_USER_CM_CMD_MIGRATE_ID, offsetof(rdma_ucm_migrate_id, id),
     offsetof(rdma_ucm_migrate_id, response)},
    {RDMA_USER_CM_CMD_SET_OPTION, offsetof(rdma_ucm_set_option, id), kNone,
     offsetof(rdma_ucm_set_option, optval)},
    {RDMA_USER_CM_CMD_GET_EVENT, kNone, offsetof(rdma_ucm_get_event, response)},
    {RDMA_USER_CM_CMD_NOTIFY, offsetof(rdma_ucm_notify, id)},
};

Shape shape_of(uint32_t command) {
  for (const Shape& shape : kShapes) {
    if (shape.command == command) return shape;
  }
  return {command};
}

/// A wire of this process alone, for as long as it runs.
class OwnWire {
 public:
  OwnWire() {
    std::string name = std::filesystem::temp_directory_path() / "softrnic-fuzz-XXXXXX";
    fuzz::demand(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    setenv("RNIC_WIRE", name.c_str(), 1);
  }
  ~OwnWire() { std::filesystem::remove_all(folder_); }
  OwnWire(const OwnWire&) = delete;
  OwnWire& operator=(const OwnWire&) = delete;

 private:
  std::filesystem::path folder_;
};

/// The program's queue pairs, on one completion queue.
class Pairs {
 public:
  Pairs()
      : pd_(run::Domain::alloc(&device_)),
        cq_(run::Completions::create(&device_, 64, nullptr, 0)) {
    fuzz::demand(pd_ != nullptr && cq_ != nullptr);
  }
  ~Pairs() {
    for (ibv_qp* qp : pairs_) end(qp);
    fuzz::demand(run::Completions::destroy(cq_) == 0);
    fuzz::demand(run::Domain::dealloc(pd_) == 0);
  }
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  [[nodiscard]] bool empty() const { return pairs_.empty(); }
  [[nodiscard]] ibv_qp* at(size_t which) const { return pairs_[which % pairs_.size()]; }

  void make() {
    if (pairs_.size() == kMost) return;
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap.max_send_wr = attr.cap.max_recv_wr = 4;
    attr.qp_type = IBV_QPT_RC;
    ibv_qp* const qp = run::QueuePairs::create(pd_, &attr);
    fuzz::demand(qp != nullptr);
    pairs_.push_back(qp);
  }
  void destroy(size_t which) {
    if (empty()) return;
    end(at(which));
    pairs_.erase(pairs_.begin() + static_cast<std::ptrdiff_t>(which % pairs_.size()));
  }
  void move(size_t which, uint8_t to) {
    if (empty()) return;
    ibv_qp_attr attr{};
    attr.qp_state = static_cast<ibv_qp_state>(to % (IBV_QPS_ERR + 1));
    static_cast<void>(run::QueuePairs::modify(at(which), &attr, IBV_QP_STATE));
  }
  void receive(size_t which) {
    if (empty()) return;
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    static_cast<void>(run::QueuePairs::post_receive(at(which), &wr, &bad));
    ibv_wc done[8];
    fuzz::demand(run::Completions::poll(cq_, 8, done) >= 0);
  }
  void send(size_t which) {
    if (empty()) return;
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.opcode = IBV_WR_SEND;
    static_cast<void>(run::QueuePairs::post_send(at(which), &wr, &bad));
  }

 private:
  static constexpr size_t kMost = 8;

  static void end(ibv_qp* qp) { fuzz::demand(run::QueuePairs::destroy(qp) == 0); }

  ibv_context device_{};
  ibv_pd* pd_;
  ibv_cq* cq_;
  std::vector<ibv_qp*> pairs_;
};

/// A program with up to four channels, which sends commands.
class Program {
 public:
  explicit Program(fuzz::Input input) : input_(input) { open(0); }
  ~Program() {
    for (size_t i = 0; i < channels_.size(); ++i) close(i);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void run() {
    while (!input_.empty()) {
      const size_t which = input_.octet() % channels_.size();
      const uint8_t what = input_.octet();
      if (channels_.at(which) < 0) {
        open(which);
      } else if (what == 0) {
        close(which);
      } else if (what >= kFirstOfPairs) {
        change_pairs(what, input_.octet());
      } else {
        command(channels_.at(which), what);
      }
    }
  }

 private:
  static constexpr uint8_t kFirstOfPairs = 240;
  static constexpr std::chrono::microseconds kPause{50};
  static constexpr uint16_t kPort = 7000;
  static constexpr uint8_t kAddress[4] = {10, 77, 0, 1};  // the first on a local wire

  void change_pairs(uint8_t what, uint8_t which) {
    switch (what % 8) {
      case 0:
      case 1: pairs_.make(); break;
      case 2: pairs_.destroy(which); break;
      case 3:
      case 4: pairs_.move(which, input_.octet()); break;
      case 5: pairs_.receive(which); break;
      case 6: pairs_.send(which); break;
      default: std::this_thread::sleep_for(kPause); break;  // the device's threads get on
    }
  }

  void open(size_t which) {
    const int channel = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK | EFD_CLOEXEC);
    fuzz::demand(channel >= 0);
    channels_.at(which) = channel;
    run::RdmaCm::instance().opened(channel);
  }
  void close(size_t which) {
    const int channel = std::exchange(channels_.at(which), -1);
    if (channel < 0) return;
    run::RdmaCm::instance().closed(channel);
    ::close(channel);
  }

  void command(int channel, uint8_t what) {
    const uint8_t other = input_.octet();
    const Shape shape =
        what % 32 < std::size(kShapes) ? kShapes[what % 32] : shape_of(uint32_t{other});
    const size_t length = std::min<size_t>(input_.number() % 320, kMostOctets);
    std::array<uint8_t, kMostOctets> octets{};
    const auto header = sizeof(rdma_ucm_cmd_hdr);
    rdma_ucm_cmd_hdr head{shape.command, static_cast<uint16_t>(length), input_.number()};
    std::memcpy(octets.data(), &head, header);
    const base::ByteView body = input_.octets(std::min(length, kMostOctets - header));
    std::copy(body.begin(), body.end(), octets.begin() + static_cast<std::ptrdiff_t>(header));
    size_t size = header + length;
    size = std::max(size, put_address(octets, shape.response, answer_.data()));
    size = std::max(size, put_address(octets, shape.value, value_.data()));
    if (shape.value != kNone) {
      std::copy_n(body.begin(), std::min(body.size(), value_.size()), value_.begin());
    }
    if (shape.id != kNone) put_id(octets, header + shape.id);
    if (shape.qp != kNone) put_qp(octets, header + shape.qp);
    if (shape.peer != kNone && other % 4 != 3) put_peer(octets, shape, other);
    // Octets behind the command would be seen by the sanitizer.
    const std::vector<uint8_t> exact(octets.begin(),
                                     octets.begin() + static_cast<std::ptrdiff_t>(size));
    errno = 0;
    const ssize_t done = run::RdmaCm::instance().write(channel, exact.data(), exact.size());
    fuzz::demand(done == static_cast<ssize_t>(exact.size()) || (done == -1 && errno > 0));
    if (done > 0) learn(shape.command);
  }

  /// \return how long the command is with the address in it
  static size_t put_address(std::array<uint8_t, kMostOctets>& octets, size_t where, void* what) {
    if (where == kNone) return 0;
    const auto address = reinterpret_cast<uint64_t>(what);
    const size_t at = sizeof(rdma_ucm_cmd_hdr) + where;
    std::memcpy(octets.data() + at, &address, sizeof address);
    return at + sizeof address;
  }
  /// The number in the command chooses among the ids that there are; one in eight stays as it is.
  void put_id(std::array<uint8_t, kMostOctets>& octets, size_t at) const {
    uint32_t id = 0;
    std::memcpy(&id, octets.data() + at, sizeof id);
    if (ids_.empty() || id % 8 == 7) return;
    id = ids_[id % ids_.size()];
    std::memcpy(octets.data() + at, &id, sizeof id);
  }
  /// As put_id(), for a queue pair's number.
  void put_qp(std::array<uint8_t, kMostOctets>& octets, size_t at) const {
    uint32_t number = 0;
    std::memcpy(&number, octets.data() + at, sizeof number);
    if (pairs_.empty() || number % 8 == 7) return;
    number = pairs_.at(number)->qp_num;
    std::memcpy(octets.data() + at, &number, sizeof number);
  }
  /// The device's own address, and one of two ports or, to be chosen, none.
  static void put_peer(std::array<uint8_t, kMostOctets>& octets, const Shape& shape,
                       uint8_t which) {
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_port = htons(which % 4 == 2 ? uint16_t{0} : static_cast<uint16_t>(kPort + which % 4));
    std::memcpy(&own.sin_addr, kAddress, sizeof kAddress);
    const uint16_t size = sizeof own;
    const size_t header = sizeof(rdma_ucm_cmd_hdr);
    std::memcpy(octets.data() + header + shape.peer, &own, sizeof own);
    std::memcpy(octets.data() + header + shape.peer_size, &size, sizeof size);
  }
  /// Ids that the answer names.
  void learn(uint32_t command) {
    if (command == RDMA_USER_CM_CMD_CREATE_ID) {
      rdma_ucm_create_id_resp made{};
      std::memcpy(&made, answer_.data(), sizeof made);
      ids_.push_back(made.id);
    } else if (command == RDMA_USER_CM_CMD_GET_EVENT) {
      rdma_ucm_event_resp event{};
      std::memcpy(&event, answer_.data(), sizeof event);
      ids_.push_back(event.id);
    }
  }

  fuzz::Input input_;
  std::array<int, 4> channels_{-1, -1, -1, -1};
  std::vector<uint32_t> ids_;
  Pairs pairs_;
  std::array<uint8_t, UINT16_MAX> answer_{};
  std::array<uint8_t, 64> value_{};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const OwnWire wire;
  Program(fuzz::Input(data, size)).run();
  return 0;
}
