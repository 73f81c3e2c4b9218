// verbs.hpp: ProtectionDomain, MemoryRegion, MemoryWindow.

#include <sys/mman.h>

#include <array>

#include "values.hpp"

namespace rnic::arguments {

namespace {

using Memory = std::span<std::byte>;

Memory octets(World& w) { return std::as_writable_bytes(std::span(w.a.octets)); }

/// A page that may be read only, for the life of the process.
Memory read_only() {
  static void* const page = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(page), 4096};
}

Values<Memory> memories() {
  const auto page = [](World&) { return read_only(); };
  return {
      {Class::AtLimit, "all of it", octets, works()},
      value<Memory>(Class::Empty, "no octet", {}),
      {Class::Beyond, "longer than the address space",
       [](World& w) { return Memory(octets(w).data(), SIZE_MAX); },
       wrong({"passes the end of the address space"})},
      {Class::Beyond, "octets of nobody",
       [](World&) { return Memory(reinterpret_cast<std::byte*>(4096), 4096); }, wrong({"mapped"})},
      {Class::Illegal, "octets at no address",
       [](World&) { return Memory(static_cast<std::byte*>(nullptr), 4096); },
       wrong({"0x0", "mapped"})},
      {Class::WrongState, "memory that cannot be written", page, wrong({"writ"})}};
}

Values<AccessSet> rights() {
  return {value<AccessSet>(Class::AtLimit, "all but one queue pair's",
                           AccessSet::all().without(Access::RemoteInvalidate)),
          value<AccessSet>(Class::Empty, "none", {}),
          value<AccessSet>(Class::Beyond, "RemoteInvalidate of nobody", Access::RemoteInvalidate,
                           wrong({"RemoteInvalidate", "queue pair"})),
          value<AccessSet>(Class::Illegal, "a bit without a name", static_cast<Access>(1u << 7),
                           wrong({"unknown rights", "128"}))};
}

Value<RegionOptions> region(Class of, const char* said,
                            std::function<void(World&, RegionOptions&)> change,
                            Expected expected = {}) {
  return {of, said,
          [change](World& w) {
            RegionOptions options{.access = Access::LocalWrite};
            change(w, options);
            return options;
          },
          std::move(expected)};
}

Values<RegionOptions> region_options() {
  static const QueuePair none;
  Values<RegionOptions> all = {
      region(Class::AtLimit, ".offset the last",
             [](World& w, RegionOptions& o) { o.offset = UINT64_MAX - w.a.octets.size() + 1; }),
      region(
          Class::Beyond, ".offset one more",
          [](World& w, RegionOptions& o) { o.offset = UINT64_MAX - w.a.octets.size() + 2; },
          wrong({"passes 2^64"})),
      region(Class::AtLimit, ".key 255", [](World&, RegionOptions& o) { o.key = uint8_t{255}; }),
      region(Class::AtLimit, ".key 0", [](World&, RegionOptions& o) { o.key = uint8_t{0}; }),
      region(Class::AtLimit, ".queue_pair and .access all",
             [](World& w, RegionOptions& o) {
               o.queue_pair = &w.a.qp;
               o.access = AccessSet::all();
             }),
      region(
          Class::Empty, ".queue_pair an empty one",
          [](World&, RegionOptions& o) { o.queue_pair = &none; },
          refused(ErrorCode::WrongState, {"empty"})),
      region(
          Class::Foreign, ".queue_pair of the other device",
          [](World& w, RegionOptions& o) { o.queue_pair = &w.b.qp; },
          wrong({"queue pair", "rnic0", "rnic1"})),
      region(
          Class::Foreign, ".queue_pair of another domain",
          [](World& w, RegionOptions& o) {
            w.pd.emplace(must(w.near().alloc_pd()));
            w.cq.emplace(must(w.near().create_cq(16)));
            w.qp.emplace(must(w.pd->create_qp(*w.cq, *w.cq, small())));
            o.queue_pair = &*w.qp;
          },
          wrong({"another protection domain"}))};
  for (const Value<AccessSet>& one : rights()) {
    all.push_back({one.of, ".access " + one.said,
                   [make = one.make](World& w) { return RegionOptions{.access = make(w)}; },
                   one.expected});
  }
  return all;
}

void add_registering(Table& table) {
  const auto registered = [](World& w, Memory memory) {
    return of(w.a.pd.register_memory(memory, Access::LocalWrite));
  };
  table.row("ProtectionDomain::register_memory memory", two_ends, registered, memories());
  table.row(
      "ProtectionDomain::register_memory access", two_ends,
      [](World& w, AccessSet access) { return of(w.a.pd.register_memory(octets(w), access)); },
      rights());
  table.row(
      "ProtectionDomain::register_memory options", two_ends,
      [](World& w, const RegionOptions& how) { return of(w.a.pd.register_memory(octets(w), how)); },
      region_options());
  table.row(
      "ProtectionDomain::register_pieces options", two_ends,
      [](World& w, const RegionOptions& how) {
        const std::array<Memory, 2> two{octets(w).first(1000), octets(w).subspan(1000)};
        return of(w.a.pd.register_pieces(two, how));
      },
      region_options());
  Values<std::vector<Memory>> pieces;
  for (const Value<Memory>& one : memories()) {
    pieces.push_back({one.of, one.said,
                      [make = one.make](World& w) {
                        return std::vector<Memory>{octets(w).first(8), make(w)};
                      },
                      one.expected});
  }
  pieces.push_back(value<std::vector<Memory>>(Class::Empty, "no piece", {}));
  table.row(
      "ProtectionDomain::register_pieces pieces", two_ends,
      [](World& w, const std::vector<Memory>& list) {
        return of(w.a.pd.register_pieces(list, {.access = Access::LocalWrite}));
      },
      pieces);
  table.row(
      "ProtectionDomain::allocate_region max_pieces", two_ends,
      [](World& w, uint32_t n) { return of(w.a.pd.allocate_region(n)); },
      Values<uint32_t>{
          value<uint32_t>(Class::AtLimit, "as many as a request has", kMaxSge),
          value<uint32_t>(Class::Empty, "0", 0, wrong({"at least 1"})),
          value<uint32_t>(Class::Beyond, "all", UINT32_MAX,
                          refused(ErrorCode::ResourceExhausted, {"4294967295", "max_pieces"}))});
  table.row(
      "ProtectionDomain::create_window type", two_ends,
      [](World& w, WindowType type) { return of(w.a.pd.create_window(type)); },
      Values<WindowType>{
          value(Class::AtLimit, "QueuePair", WindowType::QueuePair),
          value(Class::Illegal, "0", static_cast<WindowType>(0), wrong({"type 1", "type 2"})),
          value(Class::Illegal, "3", static_cast<WindowType>(3), wrong({"type 1", "type 2"}))});
}

void with_window(World& w) {
  two_ends(w);
  w.window.emplace(must(w.a.pd.create_window(WindowType::Domain)));
}
void bound(World& w) {
  with_window(w);
  must(w.window->bind(w.a.region, w.a.region.address(), 8, Access::RemoteRead));
}

void add_reregistering(Table& table) {
  const auto anew = [](World& w, MemoryRegion* region) { return w.a.pd.reregister(*region, {}); };
  static MemoryRegion none;
  table.row("ProtectionDomain::reregister region", bound, anew,
            Values<MemoryRegion*>{{Class::WrongState, "one with a window",
                                   [](World& w) { return &w.a.region; },
                                   refused(ErrorCode::WrongState, {"1 window on it"})}});
  table.row("ProtectionDomain::reregister region", two_ends, anew,
            Values<MemoryRegion*>{
                {Class::AtLimit, "one of the domain", [](World& w) { return &w.a.region; }, {}},
                {Class::Empty, "nothing", [](World&) { return &none; },
                 refused(ErrorCode::WrongState, {"empty"})},
                {Class::Foreign, "the other device's", [](World& w) { return &w.b.region; },
                 wrong({"region", "rnic0", "rnic1"})}});
  const auto change = [](World& w, const RegionChanges& changes) {
    const uint32_t stag = w.a.region.stag();
    const Status status = w.a.pd.reregister(w.a.region, changes);
    // After an error the region is as it was.
    if (!status && w.a.region.stag() != stag) broken("the region has changed");
    return status;
  };
  Values<RegionChanges> changes;
  for (const Value<AccessSet>& one : rights()) {
    changes.push_back({one.of, ".access " + one.said,
                       [make = one.make](World& w) { return RegionChanges{.access = make(w)}; },
                       one.expected});
  }
  for (const Value<Memory>& one : memories()) {
    changes.push_back({one.of, ".memory " + one.said,
                       [make = one.make](World& w) { return RegionChanges{.memory = make(w)}; },
                       one.expected});
  }
  changes.push_back(value<RegionChanges>(Class::Beyond, ".offset the last", {.offset = UINT64_MAX},
                                         wrong({"passes 2^64"})));
  changes.push_back(
      {Class::WrongState, ".key the present one",
       [](World& w) { return RegionChanges{.key = static_cast<uint8_t>(w.a.region.stag())}; },
       wrong({"key"})});
  table.row("ProtectionDomain::reregister changes", two_ends, change, changes);
}

void add_windows(Table& table) {
  static constexpr AccessSet kBoth = Access::RemoteRead | Access::RemoteWrite;
  static const MemoryRegion none;
  table.row(
      "MemoryWindow::bind region", with_window,
      [](World& w, const MemoryRegion* region) {
        return w.window->bind(*region, region->address(), 8, kBoth);
      },
      Values<const MemoryRegion*>{
          {Class::AtLimit, "one of the domain", [](World& w) { return &w.a.region; }, {}},
          {Class::Empty, "nothing", [](World&) { return &none; },
           refused(ErrorCode::WrongState, {"empty"})},
          {Class::Foreign, "the other device's", [](World& w) { return &w.b.region; },
           wrong({"region", "rnic0", "rnic1"})},
          {Class::Foreign, "another domain's",
           [](World& w) {
             w.pd.emplace(must(w.near().alloc_pd()));
             w.region.emplace(
                 must(w.pd->register_memory(octets(w), Access::Bind | Access::LocalWrite)));
             return &*w.region;
           },
           wrong({"another domain"})},
          {Class::WrongState, "one without Access::Bind",
           [](World& w) {
             w.region.emplace(must(w.a.pd.register_memory(octets(w), Access::LocalWrite)));
             return &*w.region;
           },
           refused(ErrorCode::PermissionDenied, {"Access::Bind"})}});
  const auto from = [](World& w, uint64_t offset) {
    return w.window->bind(w.a.region, w.a.region.address() + offset, 8, kBoth);
  };
  table.row("MemoryWindow::bind from", with_window, from,
            Values<uint64_t>{
                value<uint64_t>(Class::AtLimit, "the last octets", 2040),
                value<uint64_t>(Class::Beyond, "an octet more", 2041, wrong({"not inside"})),
                value<uint64_t>(Class::Beyond, "one below", UINT64_MAX, wrong({"not inside"})),
                value<uint64_t>(Class::Empty, "0", 0)});
  const auto length = [](World& w, uint32_t n) {
    return w.window->bind(w.a.region, w.a.region.address(), n, kBoth);
  };
  table.row("MemoryWindow::bind length", with_window, length,
            up_to<uint32_t>(2048, wrong({"not inside"})));
  const auto access = [](World& w, AccessSet rights) {
    return w.window->bind(w.a.region, w.a.region.address(), 8, rights);
  };
  table.row(
      "MemoryWindow::bind access", with_window, access,
      Values<AccessSet>{
          value<AccessSet>(Class::AtLimit, "what the region gives", kBoth),
          value<AccessSet>(Class::Empty, "none", {}),
          value<AccessSet>(Class::AtLimit, "what this side may do itself", Access::RemoteAtomic),
          {Class::Beyond, "more than this side may do",
           [](World& w) {
             w.a.region = must(w.a.pd.register_memory(octets(w), Access::LocalRead | Access::Bind));
             return Access::RemoteAtomic;
           },
           refused(ErrorCode::PermissionDenied, {"region"})},
          value<AccessSet>(Class::Illegal, "a local right", Access::LocalWrite,
                           wrong({"type 1", "RemoteRead"})),
          value<AccessSet>(Class::Illegal, "a bit without a name", static_cast<Access>(1u << 7),
                           wrong({"type 1"}))});
}

void add_states(Table& table) {
  using Call = Status (*)(World&);
  const auto state = [&table](const char* name, void (*prepare)(World&), Call call,
                              Expected expected) {
    table.row(
        name, prepare, [](World& w, Call made) { return made(w); },
        Values<Call>{value(Class::WrongState, expected.words[0], call, expected)});
  };
  state(
      "MemoryRegion::deregister this", bound, [](World& w) { return w.a.region.deregister(); },
      refused(ErrorCode::WrongState, {"1 window on it"}));
  state(
      "ProtectionDomain::destroy this", two_ends, [](World& w) { return w.a.pd.destroy(); },
      refused(ErrorCode::WrongState, {"1 region and 1 queue pair"}));
  state(
      "MemoryWindow::bind this",
      [](World& w) {
        two_ends(w);
        w.window.emplace(must(w.a.pd.create_window(WindowType::QueuePair)));
      },
      [](World& w) {
        return w.window->bind(w.a.region, w.a.region.address(), 8, Access::RemoteRead);
      },
      refused(ErrorCode::NotFound, {"work request"}));
  // A piece of a region is only a name: what it names is looked at where it is used.
  table.row(
      "MemoryRegion::sge offset", two_ends,
      [](World& w, uint64_t n) { return w.a.qp.post_receive(1, {w.a.region.sge(n, 1)}); },
      whole<uint64_t>());
  table.row(
      "MemoryRegion::sge length", two_ends,
      [](World& w, uint32_t n) { return w.a.qp.post_receive(1, {w.a.region.sge(0, n)}); },
      whole<uint32_t>());
}

template <typename Field, typename Given>
Value<QueuePairOptions> option(Class of, const char* said, Field QueuePairOptions::*field,
                               Given given, Expected expected = {}) {
  QueuePairOptions options = small();
  options.*field = given;
  return value<QueuePairOptions>(of, said, options, std::move(expected));
}

Values<QueuePairOptions> queue_pair_options() {
  using Options = QueuePairOptions;
  using std::chrono::nanoseconds;
  static SharedReceiveQueue none, other;
  static int mine = 0;
  const Expected deep = wrong({"limits.max_work_depth (64)"});
  const Expected reads = wrong({"limits.max_reads (128)"});
  const auto given_srq = [](Class kind, const char* said, SharedReceiveQueue* srq, bool near,
                            Expected expected) {
    return Value<Options>{kind, said,
                          [srq, near](World& w) {
                            if (srq == nullptr) return small(&*w.srq);
                            if (srq == &other) {
                              if (!near) w.pd.emplace(must(w.far().alloc_pd()));
                              other = must((near ? w.a.pd : *w.pd).create_srq({.depth = 8}));
                            }
                            return small(srq);
                          },
                          std::move(expected)};
  };
  return {
      option(Class::AtLimit, ".send_depth 64", &Options::send_depth, 64u),
      option(Class::Beyond, ".send_depth 65", &Options::send_depth, 65u, deep),
      option(Class::Empty, ".send_depth 0", &Options::send_depth, 0u),
      option(Class::AtLimit, ".receive_depth 64", &Options::receive_depth, 64u),
      option(Class::Beyond, ".receive_depth 65", &Options::receive_depth, 65u, deep),
      option(Class::Empty, ".receive_depth 0", &Options::receive_depth, 0u),
      option(Class::AtLimit, ".ird 128", &Options::ird, 128u),
      option(Class::Beyond, ".ird 129", &Options::ird, 129u, reads),
      option(Class::Empty, ".ird 0", &Options::ird, 0u),
      option(Class::AtLimit, ".ord 128", &Options::ord, 128u),
      option(Class::Beyond, ".ord 129", &Options::ord, 129u, reads),
      option(Class::Empty, ".ord 0", &Options::ord, 0u),
      option(Class::AtLimit, ".answer_close", &Options::answer_close, false),
      option(Class::AtLimit, ".strict_read_sinks", &Options::strict_read_sinks, true),
      option(Class::AtLimit, ".context", &Options::context, static_cast<void*>(&mine)),
      option(Class::AtLimit, ".receive_wait longest", &Options::receive_wait, nanoseconds::max()),
      option(Class::Beyond, ".receive_wait negative", &Options::receive_wait, nanoseconds(-1),
             wrong({"receive_wait"})),
      option(Class::AtLimit, ".several_threads", &Options::several_threads, true),
      given_srq(Class::AtLimit, ".srq of the domain", nullptr, true, {}),
      given_srq(Class::Empty, ".srq an empty one", &none, true,
                refused(ErrorCode::WrongState, {"empty"})),
      given_srq(Class::Foreign, ".srq of another domain", &other, true, wrong({"domain"})),
      given_srq(Class::Foreign, ".srq of the other device", &other, false,
                wrong({"rnic0", "rnic1"}))};
}

/// The completion queue of a consumer is in `cq`.
void with_consumers_queue(World& w) {
  with_consumer(w);
  w.cq.emplace(must(w.consumer->create_cq(16)));
}

void add_making(Table& table) {
  table.row(
      "ProtectionDomain::create_qp options", with_srq,
      [](World& w, const QueuePairOptions& how) {
        return of(w.pd->create_qp(w.a.cq, w.a.cq, how));
      },
      queue_pair_options());
  static CompletionQueue none;
  const Values<CompletionQueue*> queues = {
      {Class::AtLimit, "one of the device", [](World& w) { return &w.a.cq; }, {}},
      {Class::Empty, "nothing", [](World&) { return &none; },
       refused(ErrorCode::WrongState, {"empty"})},
      {Class::Foreign, "the other device's", [](World& w) { return &w.b.cq; },
       wrong({"completion queue", "rnic0", "rnic1"})},
      {Class::Foreign, "a consumer's", [](World& w) { return &*w.cq; },
       refused(ErrorCode::PermissionDenied, {"consumer"})}};
  table.row(
      "ProtectionDomain::create_qp send_cq", with_consumers_queue,
      [](World& w, CompletionQueue* cq) { return of(w.a.pd.create_qp(*cq, w.a.cq, small())); },
      queues);
  table.row(
      "ProtectionDomain::create_qp receive_cq", with_consumers_queue,
      [](World& w, CompletionQueue* cq) { return of(w.a.pd.create_qp(w.a.cq, *cq, small())); },
      queues);
  using Options = SharedReceiveQueueOptions;
  static int mine = 0;
  const auto outside = [](uint32_t n) {
    return wrong({"create_srq", std::to_string(n), "limits.max_work_depth (64)"});
  };
  table.row(
      "ProtectionDomain::create_srq options", two_ends,
      [](World& w, const Options& how) { return of(w.a.pd.create_srq(how)); },
      Values<Options>{value<Options>(Class::AtLimit, ".depth 64", {.depth = 64}),
                      value<Options>(Class::Beyond, ".depth 65", {.depth = 65}, outside(65)),
                      value<Options>(Class::Empty, ".depth 0", {.depth = 0}, outside(0)),
                      value<Options>(Class::AtLimit, ".max_sges 16", {.depth = 8, .max_sges = 16}),
                      value<Options>(Class::Beyond, ".max_sges 17", {.depth = 8, .max_sges = 17},
                                     wrong({"create_srq", "17", "at most 16"})),
                      value<Options>(Class::Empty, ".max_sges 0", {.depth = 8, .max_sges = 0}),
                      value<Options>(Class::AtLimit, ".context", {.depth = 8, .context = &mine}),
                      value<Options>(Class::AtLimit, ".several_threads",
                                     {.depth = 8, .several_threads = true})});
}

}  // namespace

void add_memory(Table& table) {
  add_registering(table);
  add_reregistering(table);
  add_windows(table);
  add_states(table);
  add_making(table);
}

}  // namespace rnic::arguments
