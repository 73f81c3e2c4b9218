#include "services.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace rnic::experiment {

namespace {

constexpr size_t kShown = 32;  // octets of what was received
constexpr size_t kKept = 4096;

std::string octets(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

std::string printable(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, kShown)) {
    const auto octet = static_cast<unsigned char>(c);
    if (std::isprint(octet) != 0) {
      out += c;
    } else {
      constexpr const char* kDigits = "0123456789abcdef";
      out += std::string("\\x") + kDigits[octet >> 4] + kDigits[octet & 15];
    }
  }
  return out;
}

}  // namespace

std::vector<Service> plain_servers() {
  const std::string line = " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ\r\n";
  return {
      {.name = "echo (RFC 862)", .echoes = true},
      {.name = "discard (RFC 863)"},
      {.name = "chargen (RFC 864)", .greeting = line, .repeats = true},
      {.name = "quote (RFC 865)", .greeting = "Less is more.\r\n", .closes = true},
      {.name = "daytime (RFC 867)", .greeting = "21 NOV 2026 10:00:00 UTC\r\n", .closes = true},
      {.name = "time (RFC 868)", .greeting = octets({0xee, 0xa9, 0x10, 0x20}), .closes = true},
      {.name = "time, value 0", .greeting = octets({0, 0, 0, 0}), .closes = true},
      {.name = "SMTP",
       .greeting = "220 mail.example ESMTP\r\n",
       .answer = "500 unknown command\r\n"},
      {.name = "HTTP",
       .answer = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
       .closes = true},
      {.name = "DNS (waits for 19,792 octets)"},
      {.name = "closes at once", .closes = true},
  };
}

std::vector<Service> plain_clients() {
  return {
      {.name = "HTTP GET", .greeting = "GET / HTTP/1.1\r\nHost: example\r\n\r\n"},
      {.name = "SMTP EHLO", .greeting = "EHLO client.example\r\n"},
      {.name = "IRC NICK", .greeting = "NICK someone\r\n"},
      {.name = "iSCSI login",
       .greeting = octets({0x43, 0x87, 0, 0, 0, 0, 0, 0x80}) + std::string(40, '\0')},
      {.name = "iSNS", .greeting = octets({0, 1, 0, 1, 0, 0, 0x84, 0, 0, 1, 0, 0})},
      {.name = "DNS query", .greeting = octets({0, 29, 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0})},
      {.name = "LPR", .greeting = octets({2}) + "queue\n"},
      {.name = "Kerberos (length first)", .greeting = octets({0, 0, 0, 0x64, 0x6a, 0x62})},
      {.name = "BGP OPEN", .greeting = std::string(16, '\xff') + octets({0, 29, 1, 4})},
      {.name = "LDAP bind", .greeting = octets({0x30, 0x0c, 2, 1, 1, 0x60, 7, 2, 1, 3})},
      {.name = "RTP", .greeting = octets({0x80, 0x60, 0, 1, 0, 0, 0, 160})},
      {.name = "SOCKS", .greeting = octets({5, 1, 0})},
      {.name = "TLS ClientHello", .greeting = octets({0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})},
      {.name = "SLP", .greeting = octets({2, 1, 0, 0, 40, 0, 0, 0, 0, 0})},
      {.name = "eight zero octets", .greeting = std::string(8, '\0')},
      {.name = "MPA frame, cut short", .greeting = "MPA ID Req Frame"},
      {.name = "says nothing"},
      {.name = "closes at once", .closes = true},
  };
}

void PlainEnd::say(const std::string& text) {
  if (!socket_->reserve_ring()) return;
  unsaid_ += text;
}

void PlainEnd::tell(uint8_t wishes) {
  const uint32_t number = socket_->doorbell();
  if (wishes != 0) socket_->request(wishes);
  device_.ring_doorbell(number);
}

void PlainEnd::work() {
  if (socket_ == nullptr || over_ || !socket_->is_established()) return;
  if (!greeted_) {
    greeted_ = true;
    if (!service_.greeting.empty()) say(service_.greeting);
  }
  std::array<uint8_t, 1024> room;
  while (const uint32_t n = socket_->take(room)) {
    const std::string text(room.begin(), room.begin() + n);
    if (received_.size() < kKept) received_ += text;
    if (service_.echoes) say(text);
    if (!answered_ && !service_.answer.empty()) say(service_.answer);
    answered_ = true;
    tell(0);
  }
  if (service_.repeats && unsaid_.size() < kKept && !closed_) say(service_.greeting);
  if (!unsaid_.empty() && !closed_) {
    const uint32_t n =
        socket_->put({reinterpret_cast<const uint8_t*>(unsaid_.data()), unsaid_.size()});
    unsaid_.erase(0, n);
    if (n != 0) tell(0);
  }
  const bool said = unsaid_.empty() && !service_.repeats && (service_.answer.empty() || answered_);
  if (!closed_ && ((service_.closes && said) || socket_->peer_has_finished())) {
    closed_ = true;
    tell(device::StreamSocket::kFinish);
  }
  if (const auto how = socket_->how_ended()) {
    end_ = to_string(*how);
    over_ = true;
    tell(device::StreamSocket::kRelease);
  }
}

std::string PlainEnd::seen() const {
  std::string text = received_.empty() ? "nothing" : "\"" + printable(received_) + "\"";
  if (received_.size() > kShown) text += "...";
  return text + (over_ ? ", then: " + end_ : ", still open");
}

}  // namespace rnic::experiment
