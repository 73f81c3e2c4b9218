#include "workload/server.hpp"

#include <iostream>
#include <utility>

#include "workload/command_line.hpp"

namespace rnic::workload {

namespace {

constexpr double kSecond = 1e9;

GuestList::Limits limits_of(const ServerOptions& options) {
  return {.most = options.clients, .silence_ns = static_cast<int64_t>(options.silence_s * kSecond)};
}

}  // namespace

void add_server_options(CLI::App& app, ServerOptions& options) {
  app.add_option("--clients", options.clients,
                 "server: clients at once; for one more, one that has said nothing gives way")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000));  // below limits.max_connections, where the device refuses
  app.add_option("--silence", options.silence_s,
                 "server: seconds after which a client that says nothing is let go; 0: never")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6))
      ->check(a_number());
}

Server::Server(Context& context, Device device, std::string program, const ServerOptions& options,
               Welcome welcome)
    : context_(context),
      device_(std::move(device)),
      program_(std::move(program)),
      options_(options),
      welcome_(std::move(welcome)),
      guests_(limits_of(options)) {}

void Server::say(const std::string& line) {
  const auto left_out = lines_.next(context_.now().count());
  if (!left_out) return;
  if (*left_out != 0) std::cerr << program_ << ": " << *left_out << " lines like these left out\n";
  std::cerr << line << "\n";
}

void Server::step() {
  while (const auto event = device_.poll_event()) on_event(*event);
  for (size_t i = 0; i < seats_.size();) {
    Seat& seat = seats_[i];
    const Status status = seat.session->step();
    if (!status) {
      end(i, "is gone: " + status.error().message);
      continue;
    }
    if (const uint64_t heard = seat.session->heard(); heard != seat.heard) {
      seat.heard = heard;
      guests_.heard(seat.session->qp(), context_.now().count());
    }
    ++i;
  }
  let_silent_go();
}

size_t Server::seat_of(uint32_t qp) const {
  size_t i = 0;
  while (i < seats_.size() && seats_[i].session->qp() != qp) ++i;
  return i;
}

void Server::on_event(const Event& event) {
  if (const auto* asked = std::get_if<event::ConnectRequest>(&event)) return receive(*asked);
  if (!std::holds_alternative<event::PeerClosed>(event)) return;
  if (const size_t i = seat_of(common(event).qp); i != seats_.size()) {
    seats_[i].finishing = true;
    seats_[i].session->finish();
  }
}

void Server::receive(const event::ConnectRequest& request) {
  const std::string remote = to_string(request.remote);
  if (guests_.full() && !make_room(request)) {
    return reject(
        request, "no place: " + std::to_string(seats_.size()) + " clients are at work (--clients)");
  }
  auto session = welcome_(device_, request.request);
  // Fewer than --clients are the most where the device or the machine has no more for them.
  const bool lacks = !session && session.error().code == ErrorCode::ResourceExhausted;
  if (lacks && make_room(request)) session = welcome_(device_, request.request);
  if (!session && session.error().code == ErrorCode::NotFound) return;  // gone while it waited
  if (!session) return reject(request, session.error().message);
  say("client " + remote);
  guests_.enter((*session)->qp(), remote, context_.now().count());
  seats_.push_back({std::move(*session), remote});
}

bool Server::make_room(const event::ConnectRequest& request) {
  const std::string remote = to_string(request.remote);
  const auto who = guests_.gives_way(remote, context_.now().count());
  if (!who) return false;
  const std::string most =
      guests_.full()
          ? std::to_string(options_.clients) + " clients are the most (--clients)"
          : "there is nothing left for one more than " + std::to_string(seats_.size()) + " clients";
  end(seat_of(*who), "was let go for " + remote + ": it said nothing, and " + most);
  return true;
}

/// The client is told why, in the private data of the Reply.
void Server::reject(const event::ConnectRequest& request, const std::string& why) {
  say(program_ + ": " + to_string(request.remote) + " rejected: " + why);
  const std::string told = why.substr(0, kMaxPrivateData);
  const auto* octets = reinterpret_cast<const uint8_t*>(told.data());
  static_cast<void>(device_.reject(request.request, {octets, told.size()}));
}

void Server::let_silent_go() {
  const auto who = guests_.too_silent(context_.now().count());
  if (!who) return;
  Seat& seat = seats_[seat_of(*who)];
  guests_.heard(*who,
                context_.now().count());  // its end has as long again, and then it is cut short
  if (seat.finishing) return end(seat_of(*who), "did not close its end");
  seat.finishing = true;
  say("client " + seat.remote + " is let go: it said nothing for " +
      std::to_string(static_cast<int64_t>(options_.silence_s)) + " s (--silence)");
  seat.session->finish();
}

/// Without the session the connection is reset, where it still stands.
void Server::end(size_t index, const std::string& why) {
  say("client " + seats_[index].remote + " " + why);
  guests_.leave(seats_[index].session->qp());
  std::swap(seats_[index], seats_.back());
  seats_.pop_back();
}

}  // namespace rnic::workload
