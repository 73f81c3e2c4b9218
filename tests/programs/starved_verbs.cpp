// A program of libibverbs and librdmacm whose memory runs out: each request for memory within each
// call is refused once. The call says so, nothing of it is left, and the next one works. Prints
// what is wrong and returns 1, or prints how many requests were refused, and "ok".

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// The C library's own, which it has for programs that put theirs in front.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* at, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

constexpr long kNone = -1;
constinit thread_local long requests_until_refusal = kNone;

bool is_refused() {
  if (requests_until_refusal == kNone) return false;
  if (requests_until_refusal-- > 0) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {
void* malloc(size_t size) { return is_refused() ? nullptr : __libc_malloc(size); }
void* calloc(size_t count, size_t size) {
  return is_refused() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* at, size_t size) { return is_refused() ? nullptr : __libc_realloc(at, size); }
void* aligned_alloc(size_t alignment, size_t size) {
  return is_refused() ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (is_refused()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return 0;
}
}

namespace {

uint32_t refusals = 0;

[[noreturn]] void fail(const char* call, const char* what) {
  std::printf("%s: %s (%s)\n", call, what, std::strerror(errno));
  std::exit(1);
}

/// Calls `make`, which returns an object or nullptr, with one request refused after the other, and
/// gives what it made to `end`, until none is left to refuse. \return what the last call made
template <typename Make, typename End>
auto starve(const char* call, Make make, End end) {
  for (long n = 0;; ++n) {
    errno = 0;
    requests_until_refusal = n;
    auto* const made = make();
    const bool refused = requests_until_refusal == kNone;
    const int error = errno;
    requests_until_refusal = kNone;
    errno = error;
    if (!refused) {
      if (made == nullptr) fail(call, "does not work, though no request was refused");
      return made;
    }
    ++refusals;
    if (made == nullptr && error != ENOMEM) fail(call, "another error than \"no memory\"");
    if (made != nullptr && end(made) != 0) fail(call, "what was made cannot be given back");
  }
}

}  // namespace

int main() {
  rdma_event_channel* events = rdma_create_event_channel();
  rdma_cm_id* first = nullptr;
  if (events == nullptr || rdma_create_id(events, &first, nullptr, RDMA_PS_TCP) != 0) {
    fail("rdma_create_id", "does not work");
  }
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (rdma_bind_addr(first, reinterpret_cast<sockaddr*>(&here)) != 0) {
    fail("rdma_bind_addr", "does not work");
  }
  ibv_context* const device = first->verbs;
  static std::array<char, 4096> octets;

  ibv_pd* pd = starve("ibv_alloc_pd", [&] { return ibv_alloc_pd(device); }, ibv_dealloc_pd);
  // ibv_reg_mr is a macro, which tells a constant's rights otherwise than a variable's.
  int rights = IBV_ACCESS_LOCAL_WRITE;
  ibv_mr* region = starve(
      "ibv_reg_mr", [&] { return ibv_reg_mr(pd, octets.data(), octets.size(), rights); },
      ibv_dereg_mr);
  ibv_mw* window =
      starve("ibv_alloc_mw", [&] { return ibv_alloc_mw(pd, IBV_MW_TYPE_1); }, ibv_dealloc_mw);
  ibv_comp_channel* channel = starve(
      "ibv_create_comp_channel", [&] { return ibv_create_comp_channel(device); },
      ibv_destroy_comp_channel);
  ibv_cq* cq = starve(
      "ibv_create_cq", [&] { return ibv_create_cq(device, 16, nullptr, channel, 0); },
      ibv_destroy_cq);
  ibv_srq_init_attr shared{};
  shared.attr = {.max_wr = 4, .max_sge = 1, .srq_limit = 0};
  ibv_srq* srq =
      starve("ibv_create_srq", [&] { return ibv_create_srq(pd, &shared); }, ibv_destroy_srq);
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq;
  attr.srq = srq;
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 8;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  attr.qp_type = IBV_QPT_RC;
  ibv_qp* qp = starve("ibv_create_qp", [&] { return ibv_create_qp(pd, &attr); }, ibv_destroy_qp);
  rdma_cm_id* listener = starve(
      "rdma_create_id, bind, listen",
      [&]() -> rdma_cm_id* {
        rdma_cm_id* id = nullptr;
        if (rdma_create_id(events, &id, nullptr, RDMA_PS_TCP) != 0) return nullptr;
        auto* const any_port = reinterpret_cast<sockaddr*>(&here);
        if (rdma_bind_addr(id, any_port) == 0 && rdma_listen(id, 4) == 0) return id;
        const int error = errno;
        rdma_destroy_id(id);
        errno = error;
        return nullptr;
      },
      rdma_destroy_id);

  // Nothing that a starved call has left stands in the way of the end.
  if (rdma_destroy_id(listener) != 0) fail("rdma_destroy_id", "is refused");
  if (ibv_destroy_qp(qp) != 0 || ibv_destroy_srq(srq) != 0 || ibv_destroy_cq(cq) != 0 ||
      ibv_destroy_comp_channel(channel) != 0 || ibv_dealloc_mw(window) != 0 ||
      ibv_dereg_mr(region) != 0 || ibv_dealloc_pd(pd) != 0) {
    fail("the end of an object", "is refused");
  }
  std::printf("%u requests refused\nok\n", refusals);
  return 0;
}
