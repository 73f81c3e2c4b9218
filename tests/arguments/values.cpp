#include "values.hpp"

namespace rnic::arguments {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// --- worlds ---

void two_ends(World& w) {
  w.a = w.end(w.near());
  w.b = w.end(w.far());
}
void connected(World& w) {
  two_ends(w);
  w.connect(w.a, w.b, kPort);
  // A responder may send once it was spoken to (RFC 5044 s.7.1.2).
  must(w.a.qp.post_write(0, {}, {}));
  if (!w.await_completion(w.a.cq, w.completion)) broken("an empty Write does not complete");
}
void listening(World& w) {
  two_ends(w);
  must(w.far().listen(kPort));
}
void asked(World& w) {
  listening(w);
  must(w.a.qp.connect({w.far_address, kPort}));
  if (!w.await(w.far(), w.request)) broken("no connection request comes");
}
void answered(World& w) {
  must(w.far().reject(w.request.request));
  const auto gone = [&w] {
    return must(w.near().limits()).connections + must(w.far().limits()).connections == 0;
  };
  if (!w.turn_until(gone)) broken("the connection of a request that was rejected does not end");
}
void with_consumer(World& w) {
  two_ends(w);
  w.consumer.emplace(must(w.near().create_consumer({.name = "one"})));
}
void with_port(World& w) {
  listening(w);
  w.reserved_port = must(w.near().reserve());
}
void with_srq(World& w) {
  two_ends(w);
  w.pd.emplace(must(w.near().alloc_pd()));
  w.srq.emplace(must(w.pd->create_srq({.depth = 16, .max_sges = 2})));
}
void with_streams(World& w) {
  two_ends(w);
  w.listener.emplace(must(w.far().listen_stream(kStreamPort, {.backlog = 4})));
  w.connect_stream(kStreamPort);
}
void with_framed_streams(World& w) {
  two_ends(w);
  w.framed_listener.emplace(
      must(w.far().listen_framed(kFramedPort, {.backlog = 4, .framing = w.framing})));
  w.connect_framed(kFramedPort);
}
void with_adapters(World& w) {
  two_ends(w);
  w.near_adapter.emplace(must(blocking::Adapter::open(*w.context, "rnic0")));
  w.far_adapter.emplace(must(blocking::Adapter::open(*w.context, "rnic1")));
}
void with_links(World& w) {
  with_adapters(w);
  blocking::ConnectionOptions few;
  few.message_size = 64;
  few.receives = 4;
  few.reads = 2;
  auto [near, far] =
      must(w.near_adapter->connect_pair(*w.far_adapter, 7300, World::kPatience, few));
  w.near_link = std::move(near);
  w.far_link = std::move(far);
}

QueuePairOptions small(SharedReceiveQueue* srq) {
  QueuePairOptions options;
  options.send_depth = options.receive_depth = 8;
  options.ird = options.ord = 2;
  options.srq = srq;
  return options;
}

Status completed(World& w, CompletionQueue& cq) {
  if (!w.await_completion(cq, w.completion)) broken("a request does not complete");
  if (w.completion.status == CompletionStatus::Success) return {};
  return tl::unexpected(Error{ErrorCode::Protocol, describe(w.completion)});
}

// --- endpoints ---

Values<Endpoint> remotes(uint16_t listener) {
  const auto at_far = [listener](World& w) { return Endpoint{w.far_address, listener}; };
  const auto nobody = [](const char* said, Class of, Endpoint there) {
    return value<Endpoint>(of, said, there, wrong({to_string(there), "nobody's"}));
  };
  return {{Class::AtLimit, "a listener", at_far, works()},
          nobody("nothing", Class::Empty, {}),
          nobody("port 0", Class::Beyond, {IpAddress::v4(0x0a000002), 0}),
          nobody("multicast", Class::Illegal, {IpAddress::v4(0xe0000001), listener}),
          nobody("broadcast", Class::Illegal, {IpAddress::v4(0xffffffff), listener}),
          value<Endpoint>(Class::Foreign, "another network", {IpAddress::v4(0x0b000001), listener},
                          refused(ErrorCode::Unreachable, {"11.0.0.1", "route"}))};
}

Values<Endpoint> locals(const std::string& call) {
  const auto at_far = [](World& w) { return Endpoint{w.far_address, 0}; };
  return {{Class::AtLimit, "an address", at_far, works()},
          value<Endpoint>(Class::AtLimit, "the last port", {{}, 65535}),
          value<Endpoint>(Class::Empty, "nothing", {}),
          value<Endpoint>(Class::Foreign, "the other device's", {IpAddress::v4(0x0a000001), 80},
                          wrong({call, "10.0.0.1"})),
          value<Endpoint>(Class::Illegal, "multicast", {IpAddress::v4(0xe0000001), 80},
                          wrong({call, "224.0.0.1"})),
          {Class::WrongState, "a port that somebody has",
           [](World& w) {
             must(w.far().listen(uint16_t{81}));
             return Endpoint{{}, 81};
           },
           refused(ErrorCode::AlreadyExists, {"81"})}};
}

Values<uint16_t> listen_ports() {
  return {value<uint16_t>(Class::AtLimit, kWholeType, 65535),
          value<uint16_t>(Class::Empty, "0", 0),
          {Class::WrongState, "a port that somebody has",
           [](World& w) {
             must(w.far().listen(uint16_t{81}));
             return uint16_t{81};
           },
           refused(ErrorCode::AlreadyExists, {"81"})}};
}

Values<std::vector<uint8_t>> private_data(size_t most) {
  using Octets = std::vector<uint8_t>;
  return {value<Octets>(Class::AtLimit, std::to_string(most), Octets(most)),
          value<Octets>(Class::Beyond, std::to_string(most + 1), Octets(most + 1),
                        wrong({std::to_string(most + 1), std::to_string(most)})),
          value<Octets>(Class::Empty, "nothing", {})};
}

// --- options ---

namespace {

template <typename Options, typename Field, typename Given>
Value<Options> with(Class of, const std::string& said, Field Options::*field, Given given,
                    Expected expected = {}) {
  Options options;
  options.*field = given;
  return value<Options>(of, said, options, std::move(expected));
}

template <typename Options>
Values<Options> time_of(const std::string& name, std::optional<milliseconds> Options::*field) {
  return {with(Class::AtLimit, name + " 49 days", field, milliseconds(UINT32_MAX)),
          with(Class::Beyond, name + " and 1 ms", field, milliseconds(int64_t{UINT32_MAX} + 1),
               wrong({name.substr(1), "4294967296", "4294967295"})),
          with(Class::Empty, name + " 0", field, milliseconds(0), wrong({name.substr(1), "0 ms"}))};
}

}  // namespace

Values<TcpOptions> tcp_options() {
  using Tcp = TcpOptions;
  const Values<Tcp> numbers = {
      with(Class::AtLimit, ".congestion_control Dctcp", &Tcp::congestion_control,
           CongestionControl::Dctcp),
      with(Class::Illegal, ".congestion_control 3", &Tcp::congestion_control,
           static_cast<CongestionControl>(3), wrong({"congestion_control"})),
      with(Class::AtLimit, ".ecn Offer", &Tcp::ecn, Ecn::Offer),
      with(Class::Illegal, ".ecn 3", &Tcp::ecn, static_cast<Ecn>(3), wrong({"ecn"})),
      with(Class::AtLimit, ".pacing", &Tcp::pacing, true),
      with(Class::AtLimit, ".nagle", &Tcp::nagle, true),
      with(Class::AtLimit, ".keep_alive", &Tcp::keep_alive, true),
      with(Class::AtLimit, ".keep_alive_count most", &Tcp::keep_alive_count, UINT32_MAX),
      with(Class::Beyond, ".keep_alive_count 1", &Tcp::keep_alive_count, 1u, wrong({"two probes"})),
      with(Class::AtLimit, ".dscp 63", &Tcp::dscp, uint8_t{63}),
      with(Class::Beyond, ".dscp 64", &Tcp::dscp, uint8_t{64}, wrong({"dscp 64", "63"})),
      with(Class::AtLimit, ".hop_limit 255", &Tcp::hop_limit, uint8_t{255}),
      with(Class::Empty, ".hop_limit 0", &Tcp::hop_limit, uint8_t{0}),
      with(Class::AtLimit, ".max_segment 64", &Tcp::max_segment, uint16_t{64}),
      with(Class::Beyond, ".max_segment 63", &Tcp::max_segment, uint16_t{63},
           wrong({"max_segment 63", "64"})),
  };
  return numbers + time_of(".keep_alive_idle", &Tcp::keep_alive_idle) +
         time_of(".keep_alive_interval", &Tcp::keep_alive_interval) +
         time_of(".user_timeout", &Tcp::user_timeout);
}

namespace {

template <typename Options>
Values<Options> span_of(const std::string& name, std::optional<nanoseconds> Options::*field,
                        nanoseconds least, nanoseconds most) {
  const Expected out = wrong({"StartPolicy", name.substr(1)});
  return {with(Class::AtLimit, name + " most", field, most),
          with(Class::AtLimit, name + " least", field, least),
          with(Class::Beyond, name + " more", field, most + nanoseconds(1), out),
          with(Class::Beyond, name + " less", field, least - nanoseconds(1), out),
          with(Class::Beyond, name + " longest", field, nanoseconds::max(), out)};
}

Values<StartPolicy> start_policies() {
  using Start = StartPolicy;
  using std::chrono::hours;
  const RtrKinds none{.send = false, .write = false, .read = false};
  const Values<Start> one = {
      with(Class::AtLimit, ".revision 2", &Start::revision, uint8_t{2}),
      with(Class::AtLimit, ".revision 0", &Start::revision, uint8_t{0}),
      with(Class::Beyond, ".revision 3", &Start::revision, uint8_t{3}, wrong({"revision", "2"})),
      with(Class::AtLimit, ".permissive", &Start::permissive, true),
      with(Class::AtLimit, ".crc", &Start::crc, false),
      with(Class::AtLimit, ".markers_receive", &Start::markers_receive, true),
      with(Class::AtLimit, ".markers_send", &Start::markers_send, false),
      with(Class::AtLimit, ".rtr.send alone", &Start::rtr, RtrKinds{true, false, false}),
      with(Class::AtLimit, ".rtr.write alone", &Start::rtr, RtrKinds{false, true, false}),
      with(Class::AtLimit, ".rtr.read alone", &Start::rtr, RtrKinds{false, false, true}),
      with(Class::Empty, ".rtr none", &Start::rtr, none, wrong({"RTR"})),
      with(Class::AtLimit, ".silent_drop", &Start::silent_drop, true),
      with(Class::AtLimit, ".reads_in_private_data", &Start::reads_in_private_data, true),
      with(Class::AtLimit, ".fall_back", &Start::fall_back, true),
  };
  return one +
         span_of(".first_fpdu_delay", &Start::first_fpdu_delay, nanoseconds(0),
                 std::chrono::minutes(1)) +
         span_of(".timeout", &Start::timeout, milliseconds(10), hours(1)) +
         span_of(".rtr_timeout", &Start::rtr_timeout, milliseconds(1), hours(1));
}

template <typename Options>
Values<Options> framings(const std::string& said, std::optional<Framing> Options::*field) {
  return {with(Class::AtLimit, said + " Tuf", field, Framing::Tuf),
          with(Class::Illegal, said + " 2", field, static_cast<Framing>(2), wrong({"framing"}))};
}

}  // namespace

Values<ConnectOptions> accept_options() {
  using Connect = ConnectOptions;
  const Values<Connect> reads = {
      with(Class::AtLimit, ".ird 2", &Connect::ird, 2u),
      with(Class::Beyond, ".ird 3", &Connect::ird, 3u, wrong({"IRD", "queue pair"})),
      with(Class::AtLimit, ".ord 2", &Connect::ord, 2u),
      with(Class::Beyond, ".ord 3", &Connect::ord, 3u, wrong({"ORD", "queue pair"})),
      with(Class::AtLimit, ".ird by the applications", &Connect::ird,
           uint32_t{kReadsByApplication}),
      with(Class::AtLimit, ".ord_required most", &Connect::ord_required, kReadsByApplication - 1u),
      with(Class::Beyond, ".ord_required more", &Connect::ord_required,
           uint32_t{kReadsByApplication}, wrong({"ord_required 16383", "at most 16382"})),
      with(Class::AtLimit, ".packing", &Connect::packing, true),
  };
  return reads + inside(tcp_options(), &Connect::tcp, ".tcp");
}

Values<ConnectOptions> connect_options() {
  using Connect = ConnectOptions;
  const Values<Connect> one = {
      with(Class::AtLimit, ".exchange_reads", &Connect::exchange_reads, true),
      with(Class::AtLimit, ".peer_to_peer", &Connect::peer_to_peer, true),
      with(Class::AtLimit, ".source a port", &Connect::source, Endpoint{{}, 65535}),
      with(Class::Foreign, ".source the other device's", &Connect::source,
           Endpoint{IpAddress::v4(0x0a000002), 0}, wrong({"10.0.0.2"})),
      with(Class::Illegal, ".source multicast", &Connect::source,
           Endpoint{IpAddress::v4(0xe0000001), 0}, wrong({"224.0.0.1"})),
  };
  return one + accept_options() + framings(".framing", &Connect::framing) +
         inside(start_policies(), &Connect::start, ".start");
}

Values<ListenOptions> listen_options() {
  using Listen = ListenOptions;
  static int mine = 0;
  const Values<Listen> one = {
      with(Class::AtLimit, ".backlog most", &Listen::backlog, UINT32_MAX),
      with(Class::AtLimit, ".backlog 1", &Listen::backlog, 1u),
      with(Class::Beyond, ".backlog 0", &Listen::backlog, 0u, wrong({"listen", "backlog"})),
      with(Class::AtLimit, ".context", &Listen::context, static_cast<void*>(&mine)),
  };
  return one + framings(".framing", &Listen::framing) +
         inside(tcp_options(), &Listen::tcp, ".tcp") +
         inside(start_policies(), &Listen::start, ".start");
}

Values<NotifyModeration> moderations() {
  using Moderation = NotifyModeration;
  const auto second = nanoseconds(kMaxNotifyPeriod);
  const auto of = [](uint32_t count, nanoseconds period) {
    return Moderation{.count = count, .period = period};
  };
  return {value(Class::AtLimit, ".count most", of(kMaxNotifyCount, second)),
          value(Class::AtLimit, ".count 1", of(1, nanoseconds(0))),
          value(Class::Beyond, ".count more", of(kMaxNotifyCount + 1, second), wrong({"65535"})),
          value(Class::Empty, ".count 0", of(0, second), wrong({"65535"})),
          value(Class::Beyond, ".period more", of(2, second + nanoseconds(1)), wrong({"period"})),
          value(Class::Empty, ".period 0", of(2, nanoseconds(0)), wrong({"period"})),
          value(Class::Beyond, ".period negative", of(2, nanoseconds(-1)), wrong({"period"}))};
}

Values<CompletionQueueOptions> completion_queue_options() {
  using Options = CompletionQueueOptions;
  static int mine = 0;
  const Values<Options> one = {
      with(Class::AtLimit, ".fits_all", &Options::fits_all, true),
      with(Class::AtLimit, ".context", &Options::context, static_cast<void*>(&mine)),
      with(Class::AtLimit, ".timestamps", &Options::timestamps, true),
      with(Class::AtLimit, ".several_threads", &Options::several_threads, true),
  };
  return one + inside(moderations(), &Options::moderation, ".moderation");
}

namespace {

template <typename Change>
Value<FramingOptions> framed(Class of, const std::string& said, Change change,
                             Expected expected = {}) {
  return {of, said,
          [change](World& w) {
            FramingOptions options = w.framing;
            change(options);
            return options;
          },
          std::move(expected)};
}

Values<FramingOptions> frame_formats() {
  const auto format = [](Class of, const char* said, const FrameFormat& given,
                         Expected expected = {}) {
    return framed(
        of, said, [given](FramingOptions& o) { o.format = given; }, std::move(expected));
  };
  return {format(Class::AtLimit, ".format.length_octets 4", {0, 4, 4}),
          format(Class::Beyond, ".format.length_octets 5", {0, 5, 4}, wrong({"length"})),
          format(Class::AtLimit, ".format.length_at most", {255, 2, 2}),
          format(Class::Illegal, ".format.length_at of no length", {1, 0, 0}, wrong({"length"})),
          format(Class::AtLimit, ".format.adds most", {0, 2, 65535})};
}

}  // namespace

Values<FramingOptions> framing_options() {
  using Framed = FramingOptions;
  constexpr uint64_t kMostKey = (uint64_t{1} << 48) - 1;
  const auto markers = [](uint16_t send, uint16_t receive, uint32_t frame) {
    return [=](Framed& o) {
      o.send_mode = FramedSendMode::Markers;
      o.receive_mode = FramedReceiveMode::Markers;
      o.send_interval = send, o.receive_interval = receive, o.max_frame = frame;
    };
  };
  const Values<Framed> one = {
      framed(Class::AtLimit, ".send_mode Markers", markers(2048, 2048, 65528)),
      framed(Class::AtLimit, ".receive_mode Plain",
             [](Framed& o) { o.receive_mode = FramedReceiveMode::Plain; }),
      framed(
          Class::Illegal, ".send_mode 4",
          [](Framed& o) { o.send_mode = static_cast<FramedSendMode>(4); }, wrong({"mode"})),
      framed(
          Class::Illegal, ".receive_mode 4",
          [](Framed& o) { o.receive_mode = static_cast<FramedReceiveMode>(4); }, wrong({"mode"})),
      framed(Class::AtLimit, ".send_key most", [](Framed& o) { o.send_key = kMostKey; }),
      framed(
          Class::Beyond, ".send_key more", [](Framed& o) { o.send_key = kMostKey + 1; },
          wrong({"key", "48"})),
      framed(
          Class::Empty, ".send_key 0", [](Framed& o) { o.send_key = 0; }, wrong({"key"})),
      framed(
          Class::Beyond, ".receive_key more", [](Framed& o) { o.receive_key = kMostKey + 1; },
          wrong({"key", "48"})),
      framed(
          Class::Empty, ".receive_key 0", [](Framed& o) { o.receive_key = 0; }, wrong({"key"})),
      framed(Class::AtLimit, ".send_interval 16", markers(16, 2048, 65528)),
      framed(Class::Beyond, ".send_interval 15", markers(15, 2048, 65528),
             wrong({"interval", "16"})),
      framed(Class::AtLimit, ".receive_interval 16", markers(2048, 16, 65528)),
      framed(Class::Beyond, ".receive_interval 15", markers(2048, 15, 65528),
             wrong({"interval", "16"})),
      framed(Class::Beyond, ".max_frame more", markers(2048, 2048, UINT32_MAX),
             wrong({"max_frame"})),
      framed(Class::Empty, ".max_frame 0", markers(2048, 2048, 0), wrong({"max_frame"})),
      framed(Class::AtLimit, ".packing", [](Framed& o) { o.packing = false; }),
      framed(Class::AtLimit, ".emergency", [](Framed& o) { o.emergency = true; }),
      framed(Class::AtLimit, ".refuse_on_growth", [](Framed& o) { o.refuse_on_growth = true; }),
      framed(Class::AtLimit, ".middlebox_limit most",
             [](Framed& o) { o.middlebox_limit = UINT32_MAX; }),
      framed(Class::Empty, ".middlebox_limit 0", [](Framed& o) { o.middlebox_limit = 0; }),
  };
  return one + frame_formats();
}

}  // namespace rnic::arguments
