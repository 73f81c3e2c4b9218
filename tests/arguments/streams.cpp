// stream.hpp and framed_stream.hpp.

#include "values.hpp"

namespace rnic::arguments {

namespace {

using Octets = std::vector<uint8_t>;

constexpr size_t kRing = 8192;  // limits.stream_buffer of the world

/// The stream took that many octets.
template <typename Count>
Status counted(const Result<Count>& result, size_t expected) {
  if (!result) return tl::unexpected(result.error());
  if (*result == expected) return {};
  return tl::unexpected(Error{ErrorCode::NotFound, std::to_string(*result) + " octets"});
}

Octets frame(size_t size) {
  Octets out(size, 7);
  if (size >= 2)
    out[0] = static_cast<uint8_t>((size - 2) >> 8), out[1] = static_cast<uint8_t>(size - 2);
  return out;
}

void finished(World& w) {
  with_streams(w);
  w.near_stream.finish_sending();
}

void framed_finished(World& w) {
  with_framed_streams(w);
  w.near_framed.finish_sending();
}

/// Neither direction is framed yet.
void plain_streams(World& w) {
  w.framing = FramingOptions::plain();
  with_framed_streams(w);
}

/// A frame of 100 octets waits at the far end.
void frame_waits(World& w) {
  with_framed_streams(w);
  must(w.near_framed.send(frame(100)));
  if (!w.turn_until([&] { return w.far_framed.readable() == 100; })) broken("no frame");
}

}  // namespace

void add_streams(Table& table) {
  const auto send = [](World& w, size_t n) {
    return counted(w.near_stream.send(Octets(n)), std::min(n, kRing));
  };
  const Values<size_t> sizes = {value<size_t>(Class::AtLimit, "a ring", kRing),
                                value<size_t>(Class::Beyond, "an octet more", kRing + 1),
                                value<size_t>(Class::Beyond, "a megabyte", 1 << 20),
                                value<size_t>(Class::Empty, "nothing", 0)};
  table.row("Stream::send octets", with_streams, send, sizes);
  table.row(
      "Stream::receive octets", with_streams,
      [](World& w, size_t n) {
        must(w.near_stream.send(Octets(100)));
        if (!w.turn_until([&] { return w.far_stream.readable() == 100; })) {
          broken("nothing comes");
        }
        Octets into(n);
        return counted(w.far_stream.receive(into), std::min<size_t>(n, 100));
      },
      sizes);
  const auto await = [](World& w, size_t n) { return w.near_stream.await_rdma(Octets(n)); };
  table.row("Stream::await_rdma last_message", with_streams, await,
            Values<size_t>{value<size_t>(Class::AtLimit, "a ring", kRing),
                           value<size_t>(Class::Beyond, "more than a ring", kRing + 1,
                                         wrong({"last message", "limits.stream_buffer"})),
                           value<size_t>(Class::Empty, "nothing", 0)});
  table.row(
      "Stream::set_options options", with_streams,
      [](World& w, const StreamOptions& how) { return w.near_stream.set_options(how); },
      tcp_options());
  table.row(
      "Stream::send this", finished,
      [](World& w, size_t n) { return of(w.near_stream.send(Octets(n))); },
      Values<size_t>{value<size_t>(Class::WrongState, "finished", 8,
                                   refused(ErrorCode::WrongState, {"finish_sending"}))});
  table.row("Stream::await_rdma this", finished, await,
            Values<size_t>{value<size_t>(Class::WrongState, "finished", 8,
                                         refused(ErrorCode::WrongState, {"closed by this side"}))});
}

namespace {

template <typename Mode>
Values<Mode> modes(Mode last) {
  return {value(Class::AtLimit, "the present one", Mode::Align),
          value(Class::Illegal, "one without a name",
                static_cast<Mode>(static_cast<uint8_t>(last) + 1), wrong({"mode"})),
          value(Class::Illegal, "255", static_cast<Mode>(255), wrong({"mode"}))};
}

Values<uint64_t> keys() {
  constexpr uint64_t kMost = (uint64_t{1} << 48) - 1;
  return {value<uint64_t>(Class::AtLimit, "48 bits", kMost),
          value<uint64_t>(Class::Beyond, "49 bits", kMost + 1, wrong({"key", "48"})),
          value<uint64_t>(Class::Empty, "0", 0, wrong({"key"}))};
}

Values<uint16_t> intervals() {
  return {value<uint16_t>(Class::AtLimit, "16", 16),
          value<uint16_t>(Class::AtLimit, "65535", 65535),
          value<uint16_t>(Class::Beyond, "15", 15, wrong({"interval", "16"})),
          value<uint16_t>(Class::Empty, "0", 0, wrong({"interval", "16"}))};
}

void add_framed_octets(Table& table) {
  const auto send = [](World& w, size_t n) {
    const size_t most = w.near_framed.frame_limit();
    return counted(w.near_framed.send(frame(most + n - 1000)), most + n - 1000);
  };
  table.row("FramedStream::send frame", with_framed_streams, send,
            Values<size_t>{value<size_t>(Class::AtLimit, "a segment", 1000),
                           value<size_t>(Class::Beyond, "an octet more", 1001,
                                         refused(ErrorCode::MessageSize, {"octets"}))});
  const auto raw = [](World& w, const Octets& octets) { return of(w.near_framed.send(octets)); };
  table.row("FramedStream::send frame", with_framed_streams, raw,
            Values<Octets>{value<Octets>(Class::Empty, "nothing", {}, wrong({"frame"})),
                           value<Octets>(Class::Illegal, "octets that tell another length",
                                         Octets(10, 9), wrong({"length"}))});
  const auto receive = [](World& w, size_t n) {
    Octets into(n);
    return counted(w.far_framed.receive(into), 100);
  };
  table.row("FramedStream::receive buffer", frame_waits, receive,
            Values<size_t>{value<size_t>(Class::AtLimit, "as long as the frame", 100),
                           value<size_t>(Class::Beyond, "an octet shorter", 99,
                                         refused(ErrorCode::MessageSize, {"100"})),
                           value<size_t>(Class::Empty, "nothing", 0,
                                         refused(ErrorCode::MessageSize, {"100"}))});
  const auto read = [](World& w, size_t n) {
    Octets into(n);
    return of(w.far_framed.read(into));
  };
  table.row("FramedStream::read octets", frame_waits, read,
            Values<size_t>{value<size_t>(Class::AtLimit, "a part of a frame", 1),
                           value<size_t>(Class::Beyond, "more than there is", 100'000),
                           value<size_t>(Class::Empty, "nothing", 0)});
  const auto fits = [](World& w, size_t n) {
    return w.near_framed.writable(n) ? Status{}
                                     : tl::unexpected(Error{ErrorCode::MessageSize,
                                                            "it does not fit: give a shorter one"});
  };
  table.row("FramedStream::writable octets", with_framed_streams, fits,
            Values<size_t>{
                value<size_t>(Class::AtLimit, "a frame", 1000),
                value<size_t>(Class::Beyond, "all", SIZE_MAX, refused(ErrorCode::MessageSize, {})),
                value<size_t>(Class::Empty, "0", 0, refused(ErrorCode::MessageSize, {}))});
  table.row(
      "FramedStream::send this", framed_finished,
      [](World& w, size_t n) { return of(w.near_framed.send(frame(n))); },
      Values<size_t>{value<size_t>(Class::WrongState, "finished", 8,
                                   refused(ErrorCode::WrongState, {"finish_sending"}))});
}

}  // namespace

void add_framed_streams(Table& table) {
  add_framed_octets(table);
  const auto worlds = with_framed_streams;
  const auto supported = [](World& w, auto mode) -> Status {
    if (w.near_framed.supports(mode)) return {};
    return tl::unexpected(Error{ErrorCode::Unsupported, "it says no: choose another"});
  };
  const Expected no = refused(ErrorCode::Unsupported, {});
  table.row("FramedStream::supports mode", worlds, supported,
            Values<FramedSendMode>{
                value(Class::AtLimit, "to send Markers", FramedSendMode::Markers),
                value(Class::Illegal, "to send in 4", static_cast<FramedSendMode>(4), no)});
  table.row("FramedStream::supports mode", worlds, supported,
            Values<FramedReceiveMode>{
                value(Class::AtLimit, "to receive Markers", FramedReceiveMode::Markers),
                value(Class::Illegal, "to receive in 3", static_cast<FramedReceiveMode>(3), no)});
  table.row(
      "FramedStream::set_send_mode mode", worlds,
      [](World& w, FramedSendMode mode) {
        return w.near_framed.set_send_mode(mode, w.framing.send_key);
      },
      modes(FramedSendMode::Markers));
  table.row(
      "FramedStream::set_receive_mode mode", worlds,
      [](World& w, FramedReceiveMode mode) {
        return w.near_framed.set_receive_mode(mode, w.framing.receive_key);
      },
      modes(FramedReceiveMode::Markers));
  const auto send_key = [](World& w, uint64_t key) {
    return w.near_framed.set_send_mode(FramedSendMode::Align, key);
  };
  table.row("FramedStream::set_send_mode key", plain_streams, send_key, keys());
  table.row("FramedStream::set_send_mode key", worlds, send_key,
            Values<uint64_t>{value<uint64_t>(Class::WrongState, "another than before", 5,
                                             wrong({"key already"}))});
  table.row(
      "FramedStream::set_receive_mode key", plain_streams,
      [](World& w, uint64_t key) {
        return w.near_framed.set_receive_mode(FramedReceiveMode::Align, key);
      },
      keys());
  table.row(
      "FramedStream::set_send_interval octets", worlds,
      [](World& w, uint16_t n) { return w.near_framed.set_send_interval(n); }, intervals());
  table.row(
      "FramedStream::set_receive_interval octets", worlds,
      [](World& w, uint16_t n) { return w.near_framed.set_receive_interval(n); }, intervals());
  table.row(
      "FramedStream::set_packing on", worlds,
      [](World& w, bool on) { return w.near_framed.set_packing(on); }, both());
  table.row(
      "FramedStream::set_emergency on", worlds,
      [](World& w, bool on) { return w.near_framed.set_emergency(on); }, both());
  table.row(
      "FramedStream::set_max_frame octets", worlds,
      [](World& w, uint32_t n) { return w.near_framed.set_max_frame(n); },
      Values<uint32_t>{value<uint32_t>(Class::AtLimit, "65528", 65528),
                       value<uint32_t>(Class::Beyond, "all", UINT32_MAX, wrong({"max_frame"})),
                       value<uint32_t>(Class::Empty, "0", 0, wrong({"max_frame"}))});
}

}  // namespace rnic::arguments
