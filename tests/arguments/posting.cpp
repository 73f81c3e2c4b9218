// verbs.hpp, QueuePair: work requests. What a request names shows in its completion.

#include "values.hpp"

namespace rnic::arguments {

namespace {

constexpr uint64_t kId = 5;

Sge near_sge(World& w, uint32_t length = 8) { return w.a.region.sge(0, length); }
RemoteAddress far_octets(World& w) { return {w.b.region.stag(), w.b.region.address()}; }

/// The far end has receives.
void talking(World& w) {
  connected(w);
  for (uint64_t id = 0; id < 4; ++id) must(w.b.qp.post_receive(id, {w.b.region.sge(0, 2048)}));
}
/// Regions with every right, and a window for invalidation.
void with_rights(World& w) {
  talking(w);
  const AccessSet all = Access::LocalWrite | Access::RemoteWrite | Access::RemoteRead |
                        Access::RemoteAtomic | Access::Bind;
  const auto whole = [](starved::End& end) {
    return std::as_writable_bytes(std::span(end.octets));
  };
  w.a.region = must(w.a.pd.register_memory(whole(w.a), all));
  w.b.region = must(w.b.pd.register_memory(whole(w.b), all));
}

/// A call that posts, and what its completion says then.
template <typename Post>
auto done(Post post) {
  return [post](World& w, const auto& given) -> Status {
    if (auto status = post(w, given); !status) return status;
    return completed(w, w.a.cq);
  };
}

SgeList pieces(World& w, uint32_t n) {
  SgeList list;
  for (uint32_t i = 0; i < n; ++i) list.push_back(w.a.region.sge(i, 1));
  return list;
}

Expected protection() { return refused(ErrorCode::Protocol, {"local protection"}); }

/// \param most pieces that the operation takes
Values<SgeList> lists(uint32_t most) {
  const Expected many = wrong({"too many", "at most 16"});
  return {{Class::AtLimit, std::to_string(most) + " pieces",
           [most](World& w) { return pieces(w, most); }, works()},
          {Class::Beyond, std::to_string(most + 1) + " pieces",
           [most](World& w) { return pieces(w, most + 1); }, many},
          {Class::Beyond, "100,000 pieces", [](World& w) { return pieces(w, 100'000); }, many},
          {Class::Beyond, "longer than a message",
           [](World&) {
             return SgeList{{0, UINT32_MAX, 1}, {0, UINT32_MAX, 1}};
           },
           wrong({"2^32"})},
          {Class::Beyond, "an octet beyond the region",
           [](World& w) { return SgeList{w.a.region.sge(2041, 8)}; }, protection()},
          {Class::Empty, "nothing", [](World&) { return SgeList(); }, works()},
          {Class::Foreign, "the other device's",
           [](World& w) { return SgeList{w.b.region.sge(0, 8)}; }, protection()},
          {Class::WrongState, "a region that is gone",
           [](World& w) {
             const SgeList list{near_sge(w)};
             must(w.a.region.deregister());
             return list;
           },
           protection()}};
}

Values<RemoteAddress> places(bool shows) {
  const Expected refusal = refused(ErrorCode::Protocol, {"remote access"});
  // A Write may have completed before the peer's Terminate comes.
  const Expected bad = shows ? refusal : works();
  return {{Class::AtLimit, "the peer's region", far_octets, works()},
          {Class::AtLimit, "its last octets",
           [](World& w) {
             auto place = far_octets(w);
             place.offset += 2040;
             return place;
           },
           works()},
          {Class::Beyond, "an octet beyond it",
           [](World& w) {
             auto place = far_octets(w);
             place.offset += 2041;
             return place;
           },
           bad},
          value<RemoteAddress>(Class::Empty, "nothing", {}, bad),
          {Class::Foreign, "this side's region",
           [](World& w) {
             return RemoteAddress{w.a.region.stag(), w.a.region.address()};
           },
           bad}};
}

Values<PostOptions> post_options() {
  return {value<PostOptions>(Class::AtLimit, ".signaled .solicited .fence",
                             {.signaled = true, .solicited = true, .fence = true}),
          value<PostOptions>(Class::Beyond, "nothing of them", PostOptions{})};
}

void add_messages(Table& table) {
  const auto send = [](World& w, const SgeList& s) { return w.a.qp.post_send(kId, s); };
  table.row("QueuePair::post_send source", talking, done(send), lists(16));
  const auto id = [](World& w, uint64_t n) { return w.a.qp.post_send(n, {near_sge(w)}); };
  table.row("QueuePair::post_send id", talking, done(id), whole<uint64_t>());
  const auto how = [](World& w, const PostOptions& o) {
    return w.a.qp.post_send(kId, {near_sge(w)}, o);
  };
  table.row("QueuePair::post_send options", talking, done(how), post_options());
  const auto write = [](World& w, const SgeList& s) {
    return w.a.qp.post_write(kId, s, far_octets(w));
  };
  table.row("QueuePair::post_write source", talking, done(write), lists(16));
  table.row("QueuePair::post_write id", talking, done([](World& w, uint64_t n) {
              return w.a.qp.post_write(n, {near_sge(w)}, far_octets(w));
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_write target", talking, done([](World& w, const RemoteAddress& to) {
              return w.a.qp.post_write(kId, {near_sge(w)}, to);
            }),
            places(false));
  table.row("QueuePair::post_write options", talking, done([](World& w, const PostOptions& o) {
              return w.a.qp.post_write(kId, {near_sge(w)}, far_octets(w), o);
            }),
            post_options());
  table.row("QueuePair::post_write_immediate source", talking, done([](World& w, const SgeList& s) {
              return w.a.qp.post_write_immediate(kId, s, far_octets(w), {});
            }),
            lists(16));
  table.row("QueuePair::post_write_immediate id", talking, done([](World& w, uint64_t n) {
              return w.a.qp.post_write_immediate(n, {near_sge(w)}, far_octets(w), {});
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_write_immediate target", talking,
            done([](World& w, const RemoteAddress& to) {
              return w.a.qp.post_write_immediate(kId, {near_sge(w)}, to, {});
            }),
            places(false));
  table.row("QueuePair::post_write_immediate options", talking,
            done([](World& w, const PostOptions& o) {
              return w.a.qp.post_write_immediate(kId, {near_sge(w)}, far_octets(w), {}, o);
            }),
            post_options());
  const Values<ImmediateData> octets = {
      value<ImmediateData>(Class::AtLimit, "8 octets", {255, 255, 255, 255, 255, 255, 255, 255}),
      value<ImmediateData>(Class::Empty, "zeros", {})};
  table.row("QueuePair::post_write_immediate octets", talking,
            done([](World& w, const ImmediateData& data) {
              return w.a.qp.post_write_immediate(kId, {near_sge(w)}, far_octets(w), data);
            }),
            octets);
  table.row(
      "QueuePair::post_immediate octets", talking,
      done([](World& w, const ImmediateData& data) { return w.a.qp.post_immediate(kId, data); }),
      octets);
  table.row("QueuePair::post_immediate id", talking,
            done([](World& w, uint64_t n) { return w.a.qp.post_immediate(n, {}); }),
            whole<uint64_t>());
  table.row("QueuePair::post_immediate solicited", talking, done([](World& w, bool solicited) {
              return w.a.qp.post_immediate(kId, {}, solicited);
            }),
            both());
}

void add_reads(Table& table) {
  table.row("QueuePair::post_read sink", talking, done([](World& w, const SgeList& s) {
              return w.a.qp.post_read(kId, s, far_octets(w));
            }),
            lists(16));
  table.row("QueuePair::post_read id", talking, done([](World& w, uint64_t n) {
              return w.a.qp.post_read(n, {near_sge(w)}, far_octets(w));
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_read source", talking, done([](World& w, const RemoteAddress& from) {
              return w.a.qp.post_read(kId, {near_sge(w)}, from);
            }),
            places(true));
  table.row("QueuePair::post_read options", talking, done([](World& w, const PostOptions& o) {
              return w.a.qp.post_read(kId, {near_sge(w)}, far_octets(w), o);
            }),
            post_options());
  const Values<Sge> sinks = {
      {Class::AtLimit, "a region", [](World& w) { return near_sge(w, 2048); }, works()},
      {Class::Beyond, "an octet more", [](World& w) { return near_sge(w, 2049); }, protection()},
      value<Sge>(Class::Empty, "nothing", {}, protection()),
      {Class::Foreign, "the other device's", [](World& w) { return w.b.region.sge(0, 8); },
       protection()}};
  table.row("QueuePair::post_read_invalidate sink", talking, done([](World& w, const Sge& sink) {
              return w.a.qp.post_read_invalidate(kId, sink, far_octets(w));
            }),
            sinks);
  table.row("QueuePair::post_read_invalidate id", talking, done([](World& w, uint64_t n) {
              return w.a.qp.post_read_invalidate(n, near_sge(w), far_octets(w));
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_read_invalidate source", talking,
            done([](World& w, const RemoteAddress& from) {
              return w.a.qp.post_read_invalidate(kId, near_sge(w), from);
            }),
            places(true));
  table.row("QueuePair::post_read_invalidate options", talking,
            done([](World& w, const PostOptions& o) {
              return w.a.qp.post_read_invalidate(kId, near_sge(w), far_octets(w), o);
            }),
            post_options());
}

void add_atomics(Table& table) {
  const auto unaligned = [](World& w) {
    auto place = far_octets(w);
    place.offset = (place.offset + 7) / 8 * 8 + 1;
    return place;
  };
  const auto aligned = [](World& w) {
    auto place = far_octets(w);
    place.offset = (place.offset + 7) / 8 * 8;
    return place;
  };
  const Values<RemoteAddress> targets = {
      {Class::AtLimit, "aligned", aligned, works()},
      {Class::Beyond, "not aligned", unaligned, refused(ErrorCode::Protocol, {"remote"})},
      value<RemoteAddress>(Class::Empty, "nothing", {}, refused(ErrorCode::Protocol, {"remote"})),
      {Class::Foreign, "this side's region",
       [](World& w) {
         return RemoteAddress{w.a.region.stag(), w.a.region.address()};
       },
       refused(ErrorCode::Protocol, {"remote"})}};
  table.row(
      "QueuePair::post_fetch_add remote", with_rights,
      done([](World& w, const RemoteAddress& to) { return w.a.qp.post_fetch_add(kId, to, 1); }),
      targets);
  table.row("QueuePair::post_compare_swap remote", with_rights,
            done([](World& w, const RemoteAddress& to) {
              return w.a.qp.post_compare_swap(kId, to, 1, 2);
            }),
            targets);
  using Call = Status (*)(World&, RemoteAddress, uint64_t);
  const auto number = [&table, aligned](const char* name, Call call) {
    table.row(name, with_rights,
              done([call, aligned](World& w, uint64_t n) { return call(w, aligned(w), n); }),
              whole<uint64_t>());
  };
  number("QueuePair::post_fetch_add id",
         [](World& w, RemoteAddress to, uint64_t n) { return w.a.qp.post_fetch_add(n, to, 1); });
  number("QueuePair::post_fetch_add add",
         [](World& w, RemoteAddress to, uint64_t n) { return w.a.qp.post_fetch_add(kId, to, n); });
  number("QueuePair::post_fetch_add boundaries", [](World& w, RemoteAddress to, uint64_t n) {
    return w.a.qp.post_fetch_add(kId, to, 1, n);
  });
  number("QueuePair::post_compare_swap id", [](World& w, RemoteAddress to, uint64_t n) {
    return w.a.qp.post_compare_swap(n, to, 1, 2);
  });
  number("QueuePair::post_compare_swap compare", [](World& w, RemoteAddress to, uint64_t n) {
    return w.a.qp.post_compare_swap(kId, to, n, 2);
  });
  number("QueuePair::post_compare_swap swap", [](World& w, RemoteAddress to, uint64_t n) {
    return w.a.qp.post_compare_swap(kId, to, 1, n);
  });
  number("QueuePair::post_compare_swap compare_mask", [](World& w, RemoteAddress to, uint64_t n) {
    return w.a.qp.post_compare_swap(kId, to, 1, 2, n);
  });
  number("QueuePair::post_compare_swap swap_mask", [](World& w, RemoteAddress to, uint64_t n) {
    return w.a.qp.post_compare_swap(kId, to, 1, 2, ~uint64_t{0}, n);
  });
}

void add_grants(Table& table) {
  const auto window = [](World& w) {
    w.window.emplace(must(w.a.pd.create_window(WindowType::QueuePair)));
    return MemoryGrant{.stag = next_key(w.window->stag()), .access = Access::RemoteRead};
  };
  const auto changed = [](auto make, auto change) {
    return [=](World& w) {
      MemoryGrant grant = make(w);
      change(w, grant);
      return grant;
    };
  };
  const auto values = [&](auto make) {
    return Values<MemoryGrant>{
        {Class::AtLimit, ".stag with its next key", make, works()},
        value<MemoryGrant>(Class::Empty, ".stag 0", {}, protection()),
        {Class::Illegal, ".access a bit without a name",
         changed(make, [](World&, MemoryGrant& g) { g.access = static_cast<Access>(1u << 20); }),
         protection()},
        {Class::Beyond, ".offset wraps",
         changed(make, [](World&, MemoryGrant& g) { g.offset = UINT64_MAX; }), protection()},
        {Class::Foreign, ".stag of the other device",
         changed(make, [](World& w, MemoryGrant& g) { g.stag = w.b.region.stag(); }),
         protection()}};
  };
  table.row("QueuePair::post_bind_window grant", with_rights,
            done([](World& w, const MemoryGrant& grant) {
              return w.a.qp.post_bind_window(kId, grant, near_sge(w));
            }),
            values(window));
  const auto allocated = [](World& w) {
    w.region.emplace(must(w.a.pd.allocate_region(2)));
    return MemoryGrant{.stag = next_key(w.region->stag()), .access = Access::RemoteRead};
  };
  table.row("QueuePair::post_fast_register grant", with_rights,
            done([](World& w, const MemoryGrant& grant) {
              return w.a.qp.post_fast_register(kId, grant, {near_sge(w)});
            }),
            values(allocated));
  const Values<Sge> parts = {
      {Class::AtLimit, "all of a region", [](World& w) { return near_sge(w, 2048); }, works()},
      {Class::Beyond, "an octet more", [](World& w) { return near_sge(w, 2049); }, protection()},
      value<Sge>(Class::Empty, "nothing", {}, protection()),
      {Class::Foreign, "the other device's", [](World& w) { return w.b.region.sge(0, 8); },
       protection()}};
  table.row("QueuePair::post_bind_window part", with_rights,
            done([window](World& w, const Sge& part) {
              return w.a.qp.post_bind_window(kId, window(w), part);
            }),
            parts);
  table.row("QueuePair::post_bind_window id", with_rights, done([window](World& w, uint64_t n) {
              return w.a.qp.post_bind_window(n, window(w), near_sge(w));
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_fast_register id", with_rights,
            done([allocated](World& w, uint64_t n) {
              return w.a.qp.post_fast_register(n, allocated(w), {near_sge(w)});
            }),
            whole<uint64_t>());
}

void add_registered_parts(Table& table) {
  const Values<SgeList> several = {
      {Class::AtLimit, "as many pieces as it was allocated for",
       [](World& w) { return pieces(w, 2); }, works()},
      {Class::Beyond, "a piece more", [](World& w) { return pieces(w, 3); }, protection()},
      {Class::Beyond, "17 pieces", [](World& w) { return pieces(w, 17); }, wrong({"too many"})},
      {Class::Empty, "nothing", [](World&) { return SgeList(); }, works()},
      {Class::Foreign, "the other device's", [](World& w) { return SgeList{w.b.region.sge(0, 8)}; },
       protection()}};
  const auto with_allocated = [](World& w) {
    with_rights(w);
    w.region.emplace(must(w.a.pd.allocate_region(2)));
  };
  table.row("QueuePair::post_fast_register parts", with_allocated,
            done([](World& w, const SgeList& list) {
              const MemoryGrant grant{.stag = next_key(w.region->stag()),
                                      .access = Access::RemoteRead};
              return w.a.qp.post_fast_register(kId, grant, list);
            }),
            several);
}

void add_invalidations(Table& table) {
  const Values<uint32_t> local = {
      {Class::AtLimit, "a region's", [](World& w) { return w.a.region.stag(); }, works()},
      {Class::Beyond, "another key", [](World& w) { return w.a.region.stag() ^ 1; }, protection()},
      value<uint32_t>(Class::Empty, "0", 0, protection()),
      {Class::Foreign, "the other device's", [](World& w) { return w.b.region.stag(); },
       protection()}};
  table.row("QueuePair::post_local_invalidate stag", talking,
            done([](World& w, uint32_t stag) { return w.a.qp.post_local_invalidate(kId, stag); }),
            local);
  table.row("QueuePair::post_local_invalidate id", talking, done([](World& w, uint64_t n) {
              return w.a.qp.post_local_invalidate(n, w.a.region.stag());
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_local_invalidate options", talking,
            done([](World& w, const PostOptions& o) {
              return w.a.qp.post_local_invalidate(kId, w.a.region.stag(), o);
            }),
            post_options());
  // Success says that it is sent: whether the STag is revoked is not known.
  table.row("QueuePair::post_send_invalidate stag", talking, done([](World& w, uint32_t stag) {
              return w.a.qp.post_send_invalidate(kId, {near_sge(w)}, stag);
            }),
            whole<uint32_t>());
  table.row("QueuePair::post_send_invalidate id", talking, done([](World& w, uint64_t n) {
              return w.a.qp.post_send_invalidate(n, {near_sge(w)}, w.b.region.stag());
            }),
            whole<uint64_t>());
  table.row("QueuePair::post_send_invalidate source", talking, done([](World& w, const SgeList& s) {
              return w.a.qp.post_send_invalidate(kId, s, w.b.region.stag());
            }),
            lists(16));
  table.row("QueuePair::post_send_invalidate options", talking,
            done([](World& w, const PostOptions& o) {
              return w.a.qp.post_send_invalidate(kId, {near_sge(w)}, w.b.region.stag(), o);
            }),
            post_options());
}

Value<SendRequest> general(Class of, const char* said,
                           std::function<void(World&, SendRequest&)> fill, Expected expected = {}) {
  return {of, said,
          [fill](World& w) {
            SendRequest request{.id = kId};
            request.sges = {near_sge(w)};
            fill(w, request);
            return request;
          },
          std::move(expected)};
}

void add_requests(Table& table) {
  static const std::vector<std::byte> octets(kMaxInline + 1);
  const auto inlined = [](size_t n) {
    return [n](World&, SendRequest& r) {
      r.sges = {};
      r.inline_data = std::span(octets).first(n);
    };
  };
  const auto opcode = [](Opcode of) { return [of](World&, SendRequest& r) { r.opcode = of; }; };
  const Values<SendRequest> requests = {
      general(Class::AtLimit, ".id most", [](World&, SendRequest& r) { r.id = UINT64_MAX; }),
      general(Class::AtLimit, ".opcode Write .remote",
              [](World& w, SendRequest& r) {
                r.opcode = Opcode::Write;
                r.remote = far_octets(w);
              }),
      general(Class::Illegal, ".opcode Receive", opcode(Opcode::Receive), wrong({"opcode"})),
      general(Class::Illegal, ".opcode 13", opcode(static_cast<Opcode>(13)), wrong({"opcode"})),
      general(Class::Illegal, ".opcode 255", opcode(static_cast<Opcode>(255)), wrong({"opcode"})),
      general(Class::AtLimit, ".signaled .solicited .fence",
              [](World&, SendRequest& r) { r.solicited = r.fence = r.signaled = true; }),
      general(
          Class::Beyond, ".sges 17 pieces",
          [](World& w, SendRequest& r) { r.sges = pieces(w, 17); }, wrong({"at most 16"})),
      general(Class::AtLimit, ".inline_data 256", inlined(kMaxInline)),
      general(Class::Beyond, ".inline_data 257", inlined(kMaxInline + 1), wrong({"256", "inline"})),
      general(Class::Empty, ".inline_data and .sges nothing", inlined(0)),
      general(
          Class::Illegal, ".inline_data and .sges",
          [](World&, SendRequest& r) { r.inline_data = std::span(octets).first(8); },
          wrong({"inline"})),
      general(Class::AtLimit, ".invalidate_stag",
              [](World& w, SendRequest& r) {
                r.opcode = Opcode::LocalInvalidate;
                r.sges = {};
                r.invalidate_stag = w.a.region.stag();
              }),
      general(
          Class::Beyond, ".atomic with 9 octets",
          [](World& w, SendRequest& r) {
            r.opcode = Opcode::FetchAdd;
            r.sges = {near_sge(w, 9)};
            r.atomic.data = 1;
          },
          wrong({"8 octets"})),
      general(
          Class::Beyond, ".immediate with a piece",
          [](World&, SendRequest& r) { r.opcode = Opcode::Immediate, r.immediate = {}; },
          wrong({"too many"})),
      general(
          Class::Empty, ".grant of nothing",
          [](World&, SendRequest& r) {
            r.opcode = Opcode::FastRegister;
            r.grant = {};
          },
          protection())};
  table.row("QueuePair::post_send request", talking,
            done([](World& w, const SendRequest& r) { return w.a.qp.post_send(r); }), requests);
}

void add_atomic_requests(Table& table) {
  const auto atomic = [](const char* said, Opcode kind, uint64_t AtomicOperands::*field) {
    return general(Class::AtLimit, said, [kind, field](World& w, SendRequest& r) {
      r.opcode = kind;
      r.remote = far_octets(w);
      r.remote.offset = (r.remote.offset + 7) / 8 * 8;
      r.atomic.*field = UINT64_MAX;
    });
  };
  const Values<SendRequest> atomics = {
      atomic(".atomic.data most", Opcode::FetchAdd, &AtomicOperands::data),
      atomic(".atomic.mask most", Opcode::FetchAdd, &AtomicOperands::mask),
      atomic(".atomic.compare most", Opcode::CompareSwap, &AtomicOperands::compare),
      atomic(".atomic.compare_mask most", Opcode::CompareSwap, &AtomicOperands::compare_mask)};
  table.row("QueuePair::post_send request", with_rights,
            done([](World& w, const SendRequest& r) { return w.a.qp.post_send(r); }), atomics);
}

void add_lists(Table& table) {
  // A list is taken up to the first that is refused: the depth of the queue is 8.
  const auto send_list = [](World& w, size_t n) {
    const std::vector<SendRequest> list(n, SendRequest{.opcode = Opcode::Write});
    return w.a.qp.post_send(std::span(list)).status;
  };
  const Expected full = refused(ErrorCode::ResourceExhausted, {"queue is full (8"});
  table.row("QueuePair::post_send requests", two_ends, send_list, up_to<size_t>(8, full));
  const auto receive_list = [](World& w, size_t n) {
    const std::vector<ReceiveRequest> list(n);
    return w.a.qp.post_receive(std::span(list)).status;
  };
  table.row("QueuePair::post_receive requests", two_ends, receive_list, up_to<size_t>(8, full));
  const auto receive = [](World& w, const SgeList& sink) { return w.a.qp.post_receive(kId, sink); };
  const Values<SgeList> sinks = {
      {Class::AtLimit, "16 pieces", [](World& w) { return pieces(w, 16); }, works()},
      {Class::Beyond, "17 pieces", [](World& w) { return pieces(w, 17); }, wrong({"at most 16"})},
      {Class::Empty, "nothing", [](World&) { return SgeList(); }, works()}};
  table.row("QueuePair::post_receive sink", two_ends, receive, sinks);
  table.row(
      "QueuePair::post_receive id", two_ends,
      [](World& w, uint64_t n) { return w.a.qp.post_receive(n, {}); }, whole<uint64_t>());
  const Values<ReceiveRequest> whole_requests = {
      {Class::AtLimit, ".id most, .sges 16",
       [](World& w) {
         return ReceiveRequest{UINT64_MAX, pieces(w, 16)};
       },
       works()},
      {Class::Beyond, ".sges 17",
       [](World& w) {
         return ReceiveRequest{1, pieces(w, 17)};
       },
       wrong({"at most 16"})},
      value<ReceiveRequest>(Class::Empty, "nothing", {})};
  table.row(
      "QueuePair::post_receive request", two_ends,
      [](World& w, const ReceiveRequest& r) { return w.a.qp.post_receive(r); }, whole_requests);
}

}  // namespace

void add_posting(Table& table) {
  add_messages(table);
  add_reads(table);
  add_atomics(table);
  add_grants(table);
  add_registered_parts(table);
  add_invalidations(table);
  add_requests(table);
  add_atomic_requests(table);
  add_lists(table);
}

}  // namespace rnic::arguments
