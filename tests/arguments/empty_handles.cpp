// Each call of an empty handle: never put anything into, or moved from.

#include <array>

#include "values.hpp"

namespace rnic::arguments {

namespace {

using Call = std::function<Status()>;

void empty(Table& table, const char* name, Call call) {
  table.row(
      std::string(name) + " this", two_ends, [](World&, const Call& made) { return made(); },
      Values<Call>{{Class::Empty, "an empty handle", [call](World&) { return call; },
                    refused(ErrorCode::WrongState, {})}});
}
/// A call that answers no error: the value that an empty handle has.
template <typename T>
void silent(Table& table, const char* name, const std::function<T()>& call, T expected) {
  const auto as_status = [call, expected]() -> Status {
    if (call() == expected) return {};
    return tl::unexpected(Error{ErrorCode::WrongState, "it has another value"});
  };
  table.row(
      std::string(name) + " this", two_ends, [](World&, const Call& made) { return made(); },
      Values<Call>{{Class::Empty, "an empty handle",
                    [as_status](World&) { return Call(as_status); }, works()}});
}

void add_queue_pair_calls(Table& table) {
  static QueuePair qp;
  static Stream stream;
  static PortReservation port;
  const Endpoint there{IpAddress::v4(0x0a000002), kPort};
  empty(table, "QueuePair::query", [] { return of(qp.query()); });
  empty(table, "QueuePair::info", [] { return of(qp.info()); });
  empty(table, "QueuePair::modify", [] { return qp.modify({}); });
  empty(table, "QueuePair::post_send", [] { return qp.post_send(SendRequest{}); });
  empty(table, "QueuePair::post_send",
        [] { return qp.post_send(std::span<const SendRequest>{}).status; });
  empty(table, "QueuePair::post_send", [] { return qp.post_send(1, {}); });
  empty(table, "QueuePair::post_receive", [] { return qp.post_receive(ReceiveRequest{}); });
  empty(table, "QueuePair::post_receive", [] { return qp.post_receive(1, {}); });
  empty(table, "QueuePair::post_receive",
        [] { return qp.post_receive(std::span<const ReceiveRequest>{}).status; });
  empty(table, "QueuePair::post_send_invalidate", [] { return qp.post_send_invalidate(1, {}, 2); });
  empty(table, "QueuePair::post_write", [] { return qp.post_write(1, {}, {}); });
  empty(table, "QueuePair::post_write_immediate",
        [] { return qp.post_write_immediate(1, {}, {}, {}); });
  empty(table, "QueuePair::post_read", [] { return qp.post_read(1, {}, {}); });
  empty(table, "QueuePair::post_read_invalidate",
        [] { return qp.post_read_invalidate(1, {}, {}); });
  empty(table, "QueuePair::post_local_invalidate", [] { return qp.post_local_invalidate(1, 2); });
  empty(table, "QueuePair::post_fetch_add", [] { return qp.post_fetch_add(1, {}, 1); });
  empty(table, "QueuePair::post_compare_swap", [] { return qp.post_compare_swap(1, {}, 1, 2); });
  empty(table, "QueuePair::post_immediate", [] { return qp.post_immediate(1, {}); });
  empty(table, "QueuePair::post_bind_window", [] { return qp.post_bind_window(1, {}, {}); });
  empty(table, "QueuePair::post_fast_register", [] { return qp.post_fast_register(1, {}, {}); });
  empty(table, "QueuePair::connect", [there] { return qp.connect(there); });
  empty(table, "QueuePair::connect", [] { return qp.connect(stream); });
  empty(table, "QueuePair::connect", [there] { return qp.connect(port, there); });
  empty(table, "QueuePair::accept", [] { return qp.accept({}); });
  empty(table, "QueuePair::cancel_connect", [] { return qp.cancel_connect(); });
  empty(table, "QueuePair::commit", [] { return qp.commit("terminate now"); });
  empty(table, "QueuePair::local", [] { return of(qp.local()); });
  empty(table, "QueuePair::remote", [] { return of(qp.remote()); });
  empty(table, "QueuePair::disconnect", [] { return qp.disconnect(); });
  empty(table, "QueuePair::drain", [] { return qp.drain(); });
  empty(table, "QueuePair::start_trace", [] { return qp.start_trace(1); });
  empty(table, "QueuePair::take_trace", [] { return of(qp.take_trace()); });
  silent<uint32_t>(
      table, "QueuePair::number", [] { return qp.number(); }, 0);
  silent<bool>(
      table, "QueuePair::state", [] { return qp.state() == QueuePairState::Error; }, true);
  silent<bool>(
      table, "QueuePair::destroy", [] { return qp.destroy().has_value(); }, true);
}

void add_resource_calls(Table& table) {
  static CompletionQueue cq;
  static SharedReceiveQueue srq;
  static MemoryRegion region;
  static MemoryWindow window;
  static ProtectionDomain pd;
  static std::array<std::byte, 8> memory;
  static const std::array<std::span<std::byte>, 1> pieces{std::span(memory)};
  empty(table, "CompletionQueue::info", [] { return of(cq.info()); });
  empty(table, "CompletionQueue::resize", [] { return cq.resize(1); });
  empty(table, "CompletionQueue::moderate", [] { return cq.moderate({}); });
  empty(table, "CompletionQueue::fd", [] { return of(cq.fd()); });
  empty(table, "CompletionQueue::arm", [] { return cq.arm(); });
  silent<uint32_t>(
      table, "CompletionQueue::number", [] { return cq.number(); }, 0);
  silent<uint32_t>(
      table, "CompletionQueue::poll",
      [] {
        Completion out;
        return cq.poll({&out, 1});
      },
      0);
  silent<bool>(
      table, "CompletionQueue::destroy", [] { return cq.destroy().has_value(); }, true);
  empty(table, "SharedReceiveQueue::post_receive", [] { return srq.post_receive({}); });
  empty(table, "SharedReceiveQueue::arm_limit", [] { return srq.arm_limit(1); });
  empty(table, "SharedReceiveQueue::arm_high_water", [] { return srq.arm_high_water(1); });
  empty(table, "SharedReceiveQueue::resize", [] { return srq.resize(1); });
  empty(table, "SharedReceiveQueue::info", [] { return of(srq.info()); });
  silent<uint32_t>(
      table, "SharedReceiveQueue::number", [] { return srq.number(); }, 0);
  silent<bool>(
      table, "SharedReceiveQueue::destroy", [] { return srq.destroy().has_value(); }, true);
  silent<uint32_t>(
      table, "MemoryRegion::stag", [] { return region.stag(); }, 0);
  silent<uint64_t>(
      table, "MemoryRegion::address", [] { return region.address(); }, 0);
  silent<uint64_t>(
      table, "MemoryRegion::length", [] { return region.length(); }, 0);
  silent<uint32_t>(
      table, "MemoryRegion::sge", [] { return region.sge(0, 1).stag; }, 0);
  silent<bool>(
      table, "MemoryRegion::deregister", [] { return region.deregister().has_value(); }, true);
  empty(table, "MemoryWindow::bind", [] { return window.bind(region, 0, 1, Access::RemoteRead); });
  empty(table, "MemoryWindow::unbind", [] { return window.unbind(); });
  silent<uint32_t>(
      table, "MemoryWindow::stag", [] { return window.stag(); }, 0);
  silent<bool>(
      table, "MemoryWindow::destroy", [] { return window.destroy().has_value(); }, true);
  empty(table, "ProtectionDomain::register_memory",
        [] { return of(pd.register_memory(memory, Access::LocalWrite)); });
  empty(table, "ProtectionDomain::register_pieces",
        [] { return of(pd.register_pieces(pieces, {})); });
  empty(table, "ProtectionDomain::reregister", [] { return pd.reregister(region, {}); });
  empty(table, "ProtectionDomain::allocate_region", [] { return of(pd.allocate_region()); });
  empty(table, "ProtectionDomain::create_window",
        [] { return of(pd.create_window(WindowType::Domain)); });
  empty(table, "ProtectionDomain::create_srq", [] { return of(pd.create_srq()); });
  empty(table, "ProtectionDomain::create_qp", [] { return of(pd.create_qp(cq, cq)); });
  silent<bool>(
      table, "ProtectionDomain::destroy", [] { return pd.destroy().has_value(); }, true);
}

void add_owner_calls(Table& table) {
  static Consumer consumer;
  static PortReservation port;
  static const Endpoint here{{}, kPort};
  empty(table, "Consumer::alloc_pd", [] { return of(consumer.alloc_pd()); });
  empty(table, "Consumer::create_cq", [] { return of(consumer.create_cq(1)); });
  empty(table, "Consumer::listen", [] { return of(consumer.listen(here)); });
  empty(table, "Consumer::listen", [] { return of(consumer.listen(port)); });
  empty(table, "Consumer::reserve", [] { return of(consumer.reserve()); });
  empty(table, "Consumer::unlisten", [] { return consumer.unlisten(here); });
  empty(table, "Consumer::info", [] { return of(consumer.info()); });
  silent<bool>(
      table, "Consumer::destroy", [] { return consumer.destroy().has_value(); }, true);
  silent<bool>(
      table, "PortReservation::local", [] { return port.local() == Endpoint{}; }, true);
  silent<bool>(
      table, "PortReservation::destroy", [] { return port.destroy().has_value(); }, true);
}

void add_context_calls(Table& table) {
  const auto moved_from = [](auto call) {
    return [call] {
      Config config =
          Config::from_text(starved::config_text({starved::Below::Sockets, false}), "moved from");
      Context context = must(Context::open(config));
      const Context other = std::move(context);
      return call(context);
    };
  };
  using std::chrono::nanoseconds;
  empty(table, "Context::device", moved_from([](Context& c) { return of(c.device("rnic0")); }));
  empty(table, "Context::fd", moved_from([](Context& c) { return of(c.fd()); }));
  silent<size_t>(table, "Context::device_names",
                 moved_from([](Context& c) { return c.device_names().size(); }), 0);
  silent<bool>(table, "Context::threaded", moved_from([](Context& c) { return c.threaded(); }),
               false);
  silent<uint32_t>(table, "Context::poll", moved_from([](Context& c) { return c.poll(); }), 0);
  silent<bool>(table, "Context::arm", moved_from([](Context& c) { return c.arm(); }), true);
  silent<bool>(table, "Context::wait_until",
               moved_from([](Context& c) { return c.wait_until([] { return false; }, kForever); }),
               false);
  silent<bool>(table, "Context::wait_until",
               moved_from([](Context& c) { return c.wait_until({}, kForever); }), false);
  silent<bool>(table, "Context::next_deadline",
               moved_from([](Context& c) { return c.next_deadline().has_value(); }), false);
  silent<nanoseconds>(table, "Context::now", moved_from([](Context& c) { return c.now(); }),
                      nanoseconds(0));
  silent<bool>(table, "Context::environment",
               moved_from([](Context& c) { return c.environment().empty(); }), true);
}

/// What a stream of either kind has.
template <class Handle>
void add_tcp_calls(Table& table, const std::string& name) {
  static Handle stream;
  const auto of_stream = [&table, &name](const char* call, std::function<bool()> is_right) {
    silent<bool>(table, (name + "::" + call).c_str(), std::move(is_right), true);
  };
  of_stream("unacknowledged", [] { return stream.unacknowledged() == 0; });
  of_stream("at_end", [] { return stream.at_end(); });
  of_stream("finish_sending", [] { return stream.finish_sending(), true; });
  of_stream("close", [] { return stream.close(), true; });
  of_stream("abort", [] { return stream.abort(), true; });
  of_stream("state", [] { return stream.state() == StreamState::Ended; });
  // It stands at the end of a connection that ended Closed.
  of_stream("how_ended", [] { return stream.how_ended() == StreamEnd::Closed; });
  of_stream("local", [] { return stream.local() == Endpoint{}; });
  of_stream("remote", [] { return stream.remote() == Endpoint{}; });
  of_stream("is_valid", [] { return !stream.is_valid(); });
  of_stream("readable", [] { return stream.readable() == 0; });
  of_stream("status", [] { return stream.status().has_value(); });
  static std::array<uint8_t, 8> octets{0, 6};
  empty(table, (name + "::send").c_str(), [] { return of(stream.send(octets)); });
  empty(table, (name + "::receive").c_str(), [] { return of(stream.receive(octets)); });
}

void add_stream_calls(Table& table) {
  add_tcp_calls<Stream>(table, "Stream");
  add_tcp_calls<FramedStream>(table, "FramedStream");
  static Stream stream;
  static FramedStream framed;
  static StreamListener listener;
  static FramedStreamListener framed_listener;
  static std::array<uint8_t, 8> octets{};
  silent<uint64_t>(
      table, "Stream::writable", [] { return stream.writable(); }, 0);
  silent<bool>(
      table, "Stream::is_converted", [] { return stream.is_converted(); }, false);
  empty(table, "Stream::await_rdma", [] { return stream.await_rdma(); });
  empty(table, "Stream::set_options", [] { return stream.set_options({}); });
  silent<bool>(
      table, "StreamListener::local", [] { return listener.local() == Endpoint{}; }, true);
  silent<bool>(
      table, "StreamListener::accept", [] { return !listener.accept(); }, true);
  silent<bool>(
      table, "FramedStreamListener::local", [] { return framed_listener.local() == Endpoint{}; },
      true);
  silent<bool>(
      table, "FramedStreamListener::accept", [] { return !framed_listener.accept(); }, true);
  empty(table, "FramedStream::read", [] { return of(framed.read(octets)); });
  empty(table, "FramedStream::set_send_mode",
        [] { return framed.set_send_mode(FramedSendMode::Plain); });
  empty(table, "FramedStream::set_receive_mode",
        [] { return framed.set_receive_mode(FramedReceiveMode::Plain); });
  empty(table, "FramedStream::set_send_interval", [] { return framed.set_send_interval(16); });
  empty(table, "FramedStream::set_receive_interval",
        [] { return framed.set_receive_interval(16); });
  empty(table, "FramedStream::set_packing", [] { return framed.set_packing(true); });
  empty(table, "FramedStream::set_emergency", [] { return framed.set_emergency(true); });
  empty(table, "FramedStream::set_max_frame", [] { return framed.set_max_frame(100); });
  silent<bool>(
      table, "FramedStream::writable", [] { return framed.writable(1); }, false);
  silent<uint32_t>(
      table, "FramedStream::frame_limit", [] { return framed.frame_limit(); }, 0);
  silent<uint32_t>(
      table, "FramedStream::usable_emss", [] { return framed.usable_emss(); }, 0);
  silent<uint32_t>(
      table, "FramedStream::emss_changes", [] { return framed.emss_changes(); }, 0);
  silent<bool>(
      table, "FramedStream::is_middlebox_suspected", [] { return framed.is_middlebox_suspected(); },
      false);
  silent<bool>(
      table, "FramedStream::supports", [] { return framed.supports(FramedSendMode::Align); },
      false);
  silent<bool>(
      table, "FramedStream::send_mode", [] { return framed.send_mode() == FramedSendMode::Plain; },
      true);
  silent<bool>(
      table, "FramedStream::receive_mode",
      [] { return framed.receive_mode() == FramedReceiveMode::Plain; }, true);
  silent<uint16_t>(
      table, "FramedStream::send_interval", [] { return framed.send_interval(); }, 0);
  silent<uint16_t>(
      table, "FramedStream::receive_interval", [] { return framed.receive_interval(); }, 0);
  silent<bool>(
      table, "FramedStream::packing", [] { return framed.packing(); }, false);
}

void add_blocking_calls(Table& table) {
  static blocking::Connection link;
  static blocking::Listener listener;
  static std::array<std::byte, 8> octets{};
  empty(table, "Connection::send",
        [] { return of(link.send(std::span<const std::byte>(octets))); });
  empty(table, "Connection::send", [] { return of(link.send(SgeList{})); });
  empty(table, "Connection::receive", [] { return of(link.receive(octets)); });
  empty(table, "Connection::write", [] { return of(link.write({}, {})); });
  empty(table, "Connection::read", [] { return of(link.read({}, {})); });
  empty(table, "Connection::fetch_add", [] { return of(link.fetch_add({}, 1)); });
  empty(table, "Connection::compare_swap", [] { return of(link.compare_swap({}, 1, 2)); });
  empty(table, "Connection::carry_out", [] { return of(link.carry_out({})); });
  empty(table, "Listener::accept", [] { return of(listener.accept()); });
  empty(table, "Connection::close", [] { return link.close(); });
  silent<bool>(
      table, "Connection::peer_closed", [] { return link.peer_closed(); }, false);
  silent<bool>(
      table, "Connection::peer_data", [] { return link.peer_data().empty(); }, true);
  silent<bool>(
      table, "Connection::local", [] { return link.local() == Endpoint{}; }, true);
  silent<bool>(
      table, "Connection::remote", [] { return link.remote() == Endpoint{}; }, true);
  silent<uint32_t>(
      table, "Connection::number", [] { return link.number(); }, 0);
  silent<bool>(
      table, "Listener::local", [] { return listener.local() == Endpoint{}; }, true);
}

}  // namespace

void add_empty_handles(Table& table) {
  add_queue_pair_calls(table);
  add_resource_calls(table);
  add_owner_calls(table);
  add_context_calls(table);
  add_stream_calls(table);
  add_blocking_calls(table);
}

}  // namespace rnic::arguments
