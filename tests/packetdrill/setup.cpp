#include "packetdrill/setup.hpp"

#include <charconv>
#include <functional>
#include <map>
#include <optional>

namespace rnic::packetdrill {

namespace {

using Set = std::function<bool(Setup&, const std::string&)>;

std::optional<uint64_t> number_in(const std::string& text, uint64_t least, uint64_t most) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (value < least || value > most) return std::nullopt;
  return value;
}

template <typename T>
Set number(T tcp::Config::*field, uint64_t least, uint64_t most) {
  return [=](Setup& setup, const std::string& text) {
    const auto value = number_in(text, least, most);
    if (value) setup.tcp.*field = static_cast<T>(*value);
    return value.has_value();
  };
}

template <typename T>
Set number(T Setup::*field, uint64_t least, uint64_t most) {
  return [=](Setup& setup, const std::string& text) {
    const auto value = number_in(text, least, most);
    if (value) setup.*field = static_cast<T>(*value);
    return value.has_value();
  };
}

Set duration(base::Duration tcp::Config::*field) {
  return [=](Setup& setup, const std::string& text) {
    const auto value = number_in(text, 0, 1u << 30);
    if (value) setup.tcp.*field = std::chrono::milliseconds(*value);
    return value.has_value();
  };
}

bool set_congestion_control(Setup& setup, const std::string& text) {
  static const std::map<std::string, CongestionControl> kinds = {
      {"reno", CongestionControl::NewReno},
      {"cubic", CongestionControl::Cubic},
      {"dctcp", CongestionControl::Dctcp},
  };
  const auto found = kinds.find(text);
  if (found == kinds.end()) return false;
  setup.tcp.congestion_control = found->second;
  return true;
}

bool set_ecn(Setup& setup, const std::string& text) {
  // The numbers of Linux's tcp_ecn.
  static const std::map<std::string, Ecn> kinds = {
      {"0", Ecn::Off}, {"1", Ecn::Offer}, {"2", Ecn::Accept}};
  const auto found = kinds.find(text);
  if (found == kinds.end()) return false;
  setup.tcp.ecn = found->second;
  return true;
}

bool set_local(Setup& setup, const std::string& text) {
  const auto address = parse_ip(text);
  if (address) setup.local = *address;
  return address.has_value();
}

bool set_push_at(Setup& setup, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(':', at), text.size());
    const auto number = number_in(text.substr(at, end - at), 0, UINT32_MAX);
    if (!number) return false;
    setup.push_at.insert(static_cast<uint32_t>(*number));
    at = end + 1;
  }
  return true;
}

const std::map<std::string, Set>& setters() {
  using C = tcp::Config;
  static const std::map<std::string, Set> table = {
      {"cc", set_congestion_control},
      {"local", set_local},
      {"psh", set_push_at},
      {"mtu", number(&Setup::mtu, 256, 65535)},
      {"sndbuf", number(&Setup::send_buffer, 2048, 1u << 30)},
      {"rcvbuf", number(&Setup::receive_buffer, 1024, 1u << 30)},
      {"nagle", number(&C::nagle, 0, 1)},
      {"iw", number(&C::initial_window_segments, 0, 64)},
      {"growth", number(&C::growth_limit_segments, 1, 1u << 16)},
      {"rwnd", number(&C::receive_window, 1024, 1u << 30)},
      {"sack", number(&C::sack, 0, 1)},
      {"ts", number(&C::timestamps, 0, 1)},
      {"ws", number(&C::window_scaling, 0, 1)},
      {"loss_acks", number(&C::loss_acks, 0, 2)},
      {"reordering_max", duration(&C::reordering_max)},
      {"recovery_probe", number(&C::recovery_probe, 0, 1)},
      {"tlp", number(&C::tail_loss_probe, 0, 1)},
      {"tlp_ack_delay", duration(&C::tlp_max_ack_delay)},
      {"frto", number(&C::frto, 0, 1)},
      {"hystart", number(&C::hystart, 0, 1)},
      {"idle_restart", number(&C::idle_restart, 0, 1)},
      {"pacing", number(&C::pacing, 0, 1)},
      {"ecn", set_ecn},
      {"ecn_syn_attempts", number(&C::ecn_syn_attempts, 1, 32)},
      {"half_open", number(&C::max_half_open, 0, 1u << 16)},
      {"keep_alive", number(&C::keep_alive, 0, 1)},
      {"probe_from_base", number(&C::mtu_probe_from_base, 0, 1)},
      {"synretries", number(&C::syn_retries, 0, 255)},
      {"rto_min", duration(&C::rto_min)},
      {"rto_initial", duration(&C::rto_initial)},
      {"rto_max", duration(&C::rto_max)},
      {"delack", duration(&C::delayed_ack)},
      {"time_wait", duration(&C::time_wait)},
      {"user_timeout", duration(&C::user_timeout)},
      {"connect_timeout", duration(&C::connect_timeout)},
      {"close_timeout", duration(&C::close_timeout)},
  };
  return table;
}

}  // namespace

Result<Setup> parse_setup(const std::string& flags) {
  Setup setup;
  setup.local = *parse_ip("192.168.0.1");
  setup.tcp.nagle = true;  // until TCP_NODELAY
  for (size_t at = 0; at < flags.size();) {
    const size_t end = std::min(flags.find(',', at), flags.size());
    const std::string word = flags.substr(at, end - at);
    at = end + 1;
    if (word.empty()) continue;
    const size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals);
    const auto found = setters().find(key);
    if (found == setters().end()) {
      std::string known;
      for (const auto& [name, set] : setters()) known += " " + name;
      return base::fail(ErrorCode::InvalidArgument,
                        "--so_flags: no flag \"" + key + "\"; there are" + known);
    }
    if (equals == word.size() || !found->second(setup, word.substr(equals + 1))) {
      return base::fail(ErrorCode::InvalidArgument,
                        "--so_flags: \"" + word + "\": " + key + " takes no such value");
    }
  }
  return setup;
}

}  // namespace rnic::packetdrill
