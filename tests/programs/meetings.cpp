// A program of libibverbs whose queue pairs are connected by GID and number, as over RoCE: both
// ends in one process, in either order, before either is ready, again after a reset, and with
// strangers at the door. Each message is compared. Prints what is wrong and returns 1, or prints
// "ok". With the argument "patience" it looks for a peer that is not there, which takes ten
// seconds.

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "verbs_end.hpp"

namespace {

using rnic::programs::need;

constexpr uint32_t kDepth = 8;
constexpr uint32_t kOctets = 64;
constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
constexpr int kInitMask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrMask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                         IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsMask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;

void check(bool good, const std::string& what) {
  if (good) return;
  std::printf("%s\n", what.c_str());
  std::exit(1);
}

/// A call that has to be refused.
void refuse(int status, int error, const char* what) {
  check(status == error, std::string(what) + ": " + std::strerror(status) + ", and not " +
                             std::strerror(error));
}

struct Device {
  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_gid gid{};

  Device() {
    int count = 0;
    ibv_device** const list = ibv_get_device_list(&count);
    need(0, count > 0, "ibv_get_device_list");
    context = ibv_open_device(list[0]);
    need(0, context != nullptr, "ibv_open_device");
    ibv_free_device_list(list);
    pd = ibv_alloc_pd(context);
    need(0, pd != nullptr, "ibv_alloc_pd");
    need(ibv_query_gid(context, 1, 0, &gid), "ibv_query_gid");
  }
};

/// A queue pair with a completion queue and memory of its own.
struct End {
  Device& device;
  ibv_cq* cq;
  ibv_qp* qp;
  rnic::programs::Memory<2 * kDepth * kOctets> memory;  // what is sent, and what is received
  uint32_t psn;

  explicit End(Device& on, uint32_t first_psn = 7)
      : device(on),
        cq(ibv_create_cq(on.context, 4 * kDepth, nullptr, nullptr, 0)),
        memory(on.pd, kRights),
        psn(first_psn) {
    need(0, cq != nullptr, "ibv_create_cq");
    ibv_qp_init_attr attr = rnic::programs::queues(cq, nullptr, kDepth);
    qp = ibv_create_qp(on.pd, &attr);
    need(0, qp != nullptr, "ibv_create_qp");
  }
  ~End() {
    need(ibv_destroy_qp(qp), "ibv_destroy_qp");
    need(ibv_destroy_cq(cq), "ibv_destroy_cq");
    need(ibv_dereg_mr(memory.region), "ibv_dereg_mr");
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  int to(ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
  }
  void init() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = 1;
    attr.qp_access_flags = kRights;
    need(ibv_modify_qp(qp, &attr, kInitMask), "ibv_modify_qp(INIT)");
  }
  [[nodiscard]] ibv_qp_attr rtr_to(uint32_t qpn, uint32_t peer_psn) const {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = IBV_MTU_1024;
    attr.dest_qp_num = qpn;
    attr.rq_psn = peer_psn;
    attr.max_dest_rd_atomic = 1;
    attr.min_rnr_timer = 12;
    attr.ah_attr.is_global = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.grh.dgid = device.gid;
    attr.ah_attr.grh.hop_limit = 1;
    return attr;
  }
  void rtr(const End& peer) {
    ibv_qp_attr attr = rtr_to(peer.qp->qp_num, peer.psn);
    need(ibv_modify_qp(qp, &attr, kRtrMask), "ibv_modify_qp(RTR)");
  }
  void rts() {
    ibv_qp_attr attr{};
    attr.qp_state = IBV_QPS_RTS;
    attr.timeout = 14;
    attr.retry_cnt = 7;
    attr.rnr_retry = 7;
    attr.sq_psn = psn;
    attr.max_rd_atomic = 1;
    need(ibv_modify_qp(qp, &attr, kRtsMask), "ibv_modify_qp(RTS)");
  }
  [[nodiscard]] ibv_qp_state state() const {
    ibv_qp_attr attr{};
    ibv_qp_init_attr made_with{};
    need(ibv_query_qp(qp, &attr, IBV_QP_STATE, &made_with), "ibv_query_qp");
    return attr.qp_state;
  }

  [[nodiscard]] char* sent(uint32_t slot) { return memory.octets.data() + size_t{slot} * kOctets; }
  [[nodiscard]] char* received(uint32_t slot) { return sent(kDepth + slot); }
  int receive(uint32_t slot) {
    ibv_sge piece = memory.piece(size_t{kDepth + slot} * kOctets, kOctets);
    ibv_recv_wr wr{};
    ibv_recv_wr* bad = nullptr;
    wr.wr_id = 100 + slot;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    return ibv_post_recv(qp, &wr, &bad);
  }
  int send(uint32_t slot, const char* text, ibv_wr_opcode how = IBV_WR_SEND,
           const End* peer = nullptr) {
    std::snprintf(sent(slot), kOctets, "%s", text);
    ibv_sge piece = memory.piece(size_t{slot} * kOctets, kOctets);
    ibv_send_wr wr{};
    ibv_send_wr* bad = nullptr;
    wr.wr_id = slot;
    wr.sg_list = &piece;
    wr.num_sge = 1;
    wr.opcode = how;
    wr.send_flags = IBV_SEND_SIGNALED;
    if (peer != nullptr) {
      wr.wr.rdma.remote_addr = reinterpret_cast<uintptr_t>(
          peer->memory.octets.data() + size_t{kDepth + slot} * kOctets);
      wr.wr.rdma.rkey = peer->memory.region->rkey;
    }
    return ibv_post_send(qp, &wr, &bad);
  }
  /// The next completion, which has to be of this request.
  void complete(uint64_t id, ibv_wc_status status, const char* what) {
    ibv_wc done{};
    int count = 0;
    while (count == 0) count = ibv_poll_cq(cq, 1, &done);
    check(count == 1 && done.wr_id == id && done.status == status && done.qp_num == qp->qp_num,
          std::string(what) + ": request " + std::to_string(done.wr_id) + " of " +
              std::to_string(done.qp_num) + ", " + ibv_wc_status_str(done.status));
  }
  void complete_nothing(const char* what) {
    ibv_wc done{};
    for (int i = 0; i < 50; ++i) {
      const int count = ibv_poll_cq(cq, 1, &done);
      check(count == 0, std::string(what) + ": a completion too early: " +
                            ibv_wc_status_str(done.status));
      usleep(1000);
    }
  }
};

/// A message each way, and a Write and a Read.
void talk(End& one, End& other) {
  need(other.receive(0), "ibv_post_recv");
  need(one.send(0, "there"), "ibv_post_send");
  one.complete(0, IBV_WC_SUCCESS, "a Send");
  other.complete(100, IBV_WC_SUCCESS, "its receive");
  check(std::strcmp(other.received(0), "there") == 0, "another message has come");
  need(one.receive(1), "ibv_post_recv");
  need(other.send(1, "back"), "ibv_post_send");
  other.complete(1, IBV_WC_SUCCESS, "a Send back");
  one.complete(101, IBV_WC_SUCCESS, "its receive");
  check(std::strcmp(one.received(1), "back") == 0, "another message has come back");
  need(one.send(2, "written", IBV_WR_RDMA_WRITE, &other), "ibv_post_send");
  one.complete(2, IBV_WC_SUCCESS, "a Write");
  std::snprintf(other.received(3), kOctets, "read");
  need(one.send(3, "nothing", IBV_WR_RDMA_READ, &other), "ibv_post_send");
  one.complete(3, IBV_WC_SUCCESS, "a Read");
  check(std::strcmp(one.sent(3), "read") == 0, "something else was read");
  // What was written before a Read is there when the Read is done.
  check(std::strcmp(other.received(2), "written") == 0, "something else was written");
}

void connect(End& one, End& other) {
  for (End* each : {&one, &other}) each->init();
  one.rtr(other);
  other.rtr(one);
  for (End* each : {&one, &other}) each->rts();
}

/// Either end may be ready first, and send at once.
void meet_in_either_order(Device& device) {
  for (const bool lower_first : {true, false}) {
    // Of a packet's number 24 bits count, and some programs draw more.
    End one(device, 0x5a000007);
    End other(device, 0x5a000008);
    End& early = (one.qp->qp_num < other.qp->qp_num) == lower_first ? one : other;
    End& late = &early == &one ? other : one;
    early.init();
    early.rtr(late);
    early.rts();
    for (uint32_t i = 0; i < kDepth; ++i) need(early.send(i, std::to_string(i).c_str()), "a Send");
    refuse(early.send(0, "0"), ENOMEM, "a Send beyond the depth");
    early.complete_nothing("the peer is not ready");
    late.init();
    for (uint32_t i = 0; i < kDepth; ++i) need(late.receive(i), "ibv_post_recv");
    refuse(late.receive(0), ENOMEM, "a receive beyond the depth");
    usleep(20'000);
    late.rtr(early);
    for (uint32_t i = 0; i < kDepth; ++i) {
      late.complete(100 + i, IBV_WC_SUCCESS, "a receive");
      check(late.received(i) == std::to_string(i), "another message has come, or in another order");
      early.complete(i, IBV_WC_SUCCESS, "an early Send");
    }
    late.rts();
    talk(early, late);
    talk(late, early);
  }
}

/// A queue pair keeps its number, and can be connected to another one.
void meet_again(Device& device) {
  End one(device);
  End other(device, 8);
  const uint32_t number = one.qp->qp_num;
  for (int round = 0; round < 3; ++round) {
    connect(one, other);
    talk(one, other);
    need(one.receive(0), "ibv_post_recv");
    need(one.to(IBV_QPS_RESET), "ibv_modify_qp(RESET)");
    need(other.to(IBV_QPS_RESET), "ibv_modify_qp(RESET)");
    one.complete_nothing("a reset leaves no completion");
    check(one.qp->qp_num == number, "the number is another one");
    check(one.state() == IBV_QPS_RESET, "it is not reset");
  }
  End third(device, 9);
  connect(third, one);
  talk(one, third);
}

/// An attempt that is under way is given up, on either side, and another one made.
void change_the_mind(Device& device) {
  End one(device);
  End other(device, 8);
  End& connects = one.qp->qp_num < other.qp->qp_num ? one : other;
  End& accepts = &connects == &one ? other : one;
  for (int round = 0; round < 3; ++round) {
    connects.init();
    need(connects.receive(0), "ibv_post_recv");
    connects.rtr(accepts);
    usleep(3000 * round);
    need(connects.to(IBV_QPS_RESET), "ibv_modify_qp(RESET)");
  }
  connects.complete_nothing("a reset leaves no completion");
  accepts.init();
  accepts.rtr(connects);
  need(accepts.to(IBV_QPS_ERR), "ibv_modify_qp(ERR)");
  need(accepts.to(IBV_QPS_RESET), "ibv_modify_qp(RESET)");
  connect(one, other);
  talk(one, other);
}

/// A peer that has gone is noticed by a Send.
void miss_the_peer(Device& device) {
  End one(device);
  {
    End other(device, 8);
    connect(one, other);
    talk(one, other);
    for (uint32_t i = 0; i < 2; ++i) need(one.receive(i), "ibv_post_recv");
  }
  one.complete_nothing("the peer has gone");
  check(one.state() == IBV_QPS_RTS, "it is not ready to send any more");
  // The first one may be taken by the system, which is told then.
  ibv_wc done{};
  for (uint32_t i = 0; done.status == IBV_WC_SUCCESS; ++i) {
    check(i < 100, "nobody notices that the peer has gone");
    need(one.send(i % kDepth, "where are you"), "ibv_post_send");
    while (ibv_poll_cq(one.cq, 1, &done) == 0) {}
    usleep(1000);
  }
  check(done.status == IBV_WC_RETRY_EXC_ERR, ibv_wc_status_str(done.status));
  for (uint32_t i = 0; i < 2; ++i) one.complete(100 + i, IBV_WC_WR_FLUSH_ERR, "a receive");
  check(one.state() == IBV_QPS_ERR, "it is not in error");
  need(one.send(0, "nobody"), "ibv_post_send");
  one.complete(0, IBV_WC_WR_FLUSH_ERR, "a Send in error");
}

/// What is posted to a queue pair in error is flushed, and the peer has what was sent before.
void end_in_error(Device& device) {
  End one(device);
  End other(device, 8);
  connect(one, other);
  talk(one, other);
  need(one.receive(0), "ibv_post_recv");
  need(other.receive(1), "ibv_post_recv");
  need(one.send(2, "farewell"), "ibv_post_send");
  one.complete(2, IBV_WC_SUCCESS, "a Send");
  need(one.to(IBV_QPS_ERR), "ibv_modify_qp(ERR)");
  one.complete(100, IBV_WC_WR_FLUSH_ERR, "a receive");
  need(one.send(3, "never"), "ibv_post_send");
  one.complete(3, IBV_WC_WR_FLUSH_ERR, "a Send in error");
  other.complete(101, IBV_WC_SUCCESS, "the last receive");
  check(std::strcmp(other.received(1), "farewell") == 0, "another message has come");
  need(one.to(IBV_QPS_RESET), "ibv_modify_qp(RESET)");
  need(other.to(IBV_QPS_RESET), "ibv_modify_qp(RESET)");
  connect(one, other);
  talk(one, other);
}

/// What waits for the peer is flushed.
void give_up(Device& device) {
  End one(device);
  End other(device, 8);
  one.init();
  need(one.receive(0), "ibv_post_recv");
  one.rtr(other);
  one.rts();
  need(one.send(1, "never"), "ibv_post_send");
  need(one.to(IBV_QPS_ERR), "ibv_modify_qp(ERR)");
  one.complete(1, IBV_WC_WR_FLUSH_ERR, "an early Send");
  one.complete(100, IBV_WC_WR_FLUSH_ERR, "an early receive");
}

/// What programs do wrong, or over another link layer.
void be_refused(Device& device) {
  ibv_cq* const cq = ibv_create_cq(device.context, 1, nullptr, nullptr, 0);
  for (const ibv_qp_type type : {IBV_QPT_UD, IBV_QPT_UC}) {
    ibv_qp_init_attr attr = rnic::programs::queues(cq, nullptr);
    attr.qp_type = type;
    check(ibv_create_qp(device.pd, &attr) == nullptr && errno == EOPNOTSUPP, "no RC, and made");
  }
  need(ibv_destroy_cq(cq), "ibv_destroy_cq");
  End one(device);
  End other(device);
  refuse(one.send(0, "early"), EINVAL, "a Send in RESET");
  ibv_qp_attr attr = one.rtr_to(other.qp->qp_num, 0);
  refuse(ibv_modify_qp(one.qp, &attr, kRtrMask), EINVAL, "RTR behind RESET");
  one.init();
  refuse(ibv_modify_qp(one.qp, &attr, kRtrMask & ~IBV_QP_DEST_QPN), EINVAL, "RTR without a number");
  attr.ah_attr.grh.sgid_index = 200;
  refuse(ibv_modify_qp(one.qp, &attr, kRtrMask), EINVAL, "RTR with no such GID");
  attr = one.rtr_to(other.qp->qp_num, 0);
  attr.ah_attr.is_global = 0;
  refuse(ibv_modify_qp(one.qp, &attr, kRtrMask), EINVAL, "RTR with a LID");
  attr = one.rtr_to(one.qp->qp_num, 0);
  refuse(ibv_modify_qp(one.qp, &attr, kRtrMask), EINVAL, "RTR to itself");
  attr = one.rtr_to(5, 0);
  refuse(ibv_modify_qp(one.qp, &attr, kRtrMask), EINVAL, "RTR to a number without a port");
  check(one.state() == IBV_QPS_INIT, "a refused change has changed the state");
}

// ---- Strangers ----

/// A connection of somebody's to the port that a queue pair's number names.
class Stranger {
 public:
  explicit Stranger(const End& to) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<uint16_t>(to.qp->qp_num >> 8));
    std::memcpy(&where.sin_addr, to.device.gid.raw + 12, 4);
    need(::connect(socket_, reinterpret_cast<sockaddr*>(&where), sizeof(where)), "connect");
  }
  ~Stranger() { close(socket_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void say(const std::string& octets) {
    check(write(socket_, octets.data(), octets.size()) == static_cast<ssize_t>(octets.size()),
          "a stranger cannot write");
  }
  /// An MPA Request (RFC 5044 s.7.1.1) of revision 1 with CRC.
  void ask(const std::string& private_data) {
    std::string frame = "MPA ID Req Frame";
    frame += '\x40';
    frame += '\x01';
    frame += static_cast<char>(private_data.size() >> 8);
    frame += static_cast<char>(private_data.size());
    say(frame + private_data);
  }
  /// \return whether somebody has answered, or has closed the connection
  bool is_answered(int milliseconds = 5000) {
    pollfd wait{socket_, POLLIN, 0};
    return poll(&wait, 1, milliseconds) == 1;
  }
  void expect_no() {
    check(is_answered(), "a stranger is not answered");
    char reply[20];
    const ssize_t octets = recv(socket_, reply, sizeof(reply), MSG_WAITALL);
    const bool rejects = octets == 20 && (reply[16] & 0x20) != 0;
    check(octets <= 0 || rejects, "a stranger is let in");
  }

 private:
  int socket_;
};

std::string number(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift);
  return out;
}

std::string introduction(uint32_t from, uint32_t to, uint32_t psn) {
  return std::string("rnic-qp\x01", 8) + number(from) + number(to) + number(psn);
}

/// Whoever is not the peer is refused, and the peer gets in all the same.
void meet_strangers(Device& device) {
  End one(device);
  End other(device, 8);
  End& accepts = one.qp->qp_num > other.qp->qp_num ? one : other;
  End& connects = &accepts == &one ? other : one;
  const uint32_t qpn = accepts.qp->qp_num;
  Stranger(accepts).say("GET / HTTP/1.0\r\n\r\n");
  for (const std::string& data :
       {std::string(), std::string("hello"), std::string(400, 'x'),
        introduction(1, qpn + 0x40, 0), introduction(0x1000000, qpn, 0),
        introduction(1, qpn, 0).substr(1)}) {
    Stranger stranger(accepts);
    stranger.ask(data);
    stranger.expect_no();
  }
  // The queue pair has no peer yet, and keeps a few who claim to be it.
  accepts.init();
  std::vector<std::unique_ptr<Stranger>> claim;
  for (uint32_t i = 0; i < 4; ++i) {
    claim.push_back(std::make_unique<Stranger>(accepts));
    claim.back()->ask(introduction(i + 1, qpn, 0));
  }
  check(!claim.front()->is_answered(100), "it is not kept");
  Stranger beyond(accepts);
  beyond.ask(introduction(9, qpn, 0));
  beyond.expect_no();
  // The genuine one finds no room, and comes again.
  connects.init();
  connects.rtr(accepts);
  connects.rts();
  need(connects.send(0, "genuine"), "ibv_post_send");
  need(accepts.receive(0), "ibv_post_recv");
  connects.complete_nothing("the peer is not ready");
  accepts.rtr(connects);
  for (const auto& each : claim) each->expect_no();
  connects.complete(0, IBV_WC_SUCCESS, "a Send");
  accepts.complete(100, IBV_WC_SUCCESS, "its receive");
  accepts.rts();
  talk(one, other);
  // It is met, and nobody else may come.
  Stranger late(accepts);
  late.ask(introduction(connects.qp->qp_num, qpn, accepts.psn));
  late.expect_no();
  talk(other, one);
}

/// Somebody at the address and port of a queue pair who says of himself what he was told.
class Echo {
 public:
  explicit Echo(const Device& device) : listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    std::memcpy(&where.sin_addr, device.gid.raw + 12, 4);
    // The lower number connects.
    for (port_ = 65535; port_ != 0; --port_) {
      where.sin_port = htons(port_);
      if (bind(listener_, reinterpret_cast<sockaddr*>(&where), sizeof(where)) == 0) break;
    }
    check(port_ != 0 && listen(listener_, 1) == 0, "there is no port to listen at");
  }
  ~Echo() { close(listener_); }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  [[nodiscard]] uint32_t number() const { return uint32_t{port_} << 8; }
  /// Answers one Request by itself. \return what comes behind it until the connection is closed
  std::string answer() {
    pollfd wait{listener_, POLLIN, 0};
    check(poll(&wait, 1, 5000) == 1, "nobody asks");
    const int socket = accept(listener_, nullptr, nullptr);
    need(0, socket >= 0, "accept");
    char frame[44];  // a start frame, IRD and ORD, and an introduction
    check(recv(socket, frame, sizeof(frame), MSG_WAITALL) == sizeof(frame), "no Request");
    std::memcpy(frame, "MPA ID Rep Frame", 16);
    check(write(socket, frame, sizeof(frame)) == sizeof(frame), "no answer");
    std::string told;
    char octets[256];
    for (ssize_t got = 1; got > 0;) {
      wait = {socket, POLLIN, 0};
      check(poll(&wait, 1, 5000) == 1, "an impostor is let in");
      got = recv(socket, octets, sizeof(octets), 0);
      if (got > 0) told.append(octets, static_cast<size_t>(got));
    }
    close(socket);
    return told;
  }

 private:
  int listener_;
  uint16_t port_ = 0;
};

/// The one who answers has to be the peer, too; else nothing is told, and the peer is looked for
/// again.
void meet_an_impostor(Device& device) {
  Echo echo(device);
  End one(device);
  one.init();
  need(one.receive(0), "ibv_post_recv");
  ibv_qp_attr attr = one.rtr_to(echo.number(), 0);
  need(ibv_modify_qp(one.qp, &attr, kRtrMask), "ibv_modify_qp(RTR)");
  one.rts();
  need(one.send(0, "a secret"), "ibv_post_send");
  for (int attempt = 0; attempt < 3; ++attempt) {
    check(echo.answer().find("a secret") == std::string::npos, "an impostor is told");
  }
  one.complete_nothing("an impostor has answered");
}

/// Nobody is there.
void be_patient(Device& device) {
  End one(device);
  uint32_t nobody = 0;
  {
    End other(device);
    nobody = other.qp->qp_num;
  }
  one.init();
  need(one.receive(0), "ibv_post_recv");
  ibv_qp_attr attr = one.rtr_to(nobody, 0);
  need(ibv_modify_qp(one.qp, &attr, kRtrMask), "ibv_modify_qp(RTR)");
  one.rts();
  for (uint32_t i = 0; i < 2; ++i) need(one.send(i, "nobody"), "ibv_post_send");
  one.complete(0, IBV_WC_RETRY_EXC_ERR, "a Send to nobody");
  one.complete(1, IBV_WC_WR_FLUSH_ERR, "a Send behind it");
  one.complete(100, IBV_WC_WR_FLUSH_ERR, "a receive");
  check(one.state() == IBV_QPS_ERR, "it is not in error");
}

}  // namespace

int main(int argc, char** argv) {
  Device device;
  if (argc > 1 && std::strcmp(argv[1], "patience") == 0) {
    be_patient(device);
  } else {
    be_refused(device);
    meet_in_either_order(device);
    meet_again(device);
    change_the_mind(device);
    miss_the_peer(device);
    end_in_error(device);
    give_up(device);
    meet_strangers(device);
    meet_an_impostor(device);
  }
  std::printf("ok\n");
  return 0;
}
