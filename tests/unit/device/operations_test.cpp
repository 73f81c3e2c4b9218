// Every operation of the application on a queue pair in every state of its connection: what it
// answers, what completes, and that everything comes back afterwards. every_state_test.py has the
// list of the calls, and looks for a row of each.

#include "every_state.hpp"

namespace rnic::device::every_state {
namespace {

// RDMAP-6.2-01 DDP-6.2.1-01: work of every kind is taken in every state and completes once:
// carried out while the connection can carry it, flushed otherwise.
TEST(EveryState, PostSend_BUG_06) {
  for (const Opcode opcode :
       {Opcode::Send, Opcode::SendInvalidate, Opcode::Write, Opcode::Read, Opcode::ReadInvalidate,
        Opcode::FetchAdd, Opcode::CompareSwap, Opcode::Immediate, Opcode::LocalInvalidate,
        Opcode::WriteImmediate, Opcode::BindWindow, Opcode::FastRegister}) {
    SCOPED_TRACE(to_string(opcode));
    for_each_state([&](State state, Operations& w) {
      const auto far = w.far_;
      ASSERT_EQ(w.qp_->post_send(w.request(opcode)), PostResult::Ok);
      auto done = w.completed(w.qp_->spec().send_cq);
      if (state == State::Unheard) {
        // RFC 5044 s.7.1.2: a responder sends nothing before the initiator has.
        ASSERT_TRUE(done.empty());
        ASSERT_EQ(w.post_receives(2), PostResult::Ok);
        const SendRequest first{.opcode = Opcode::Write, .signaled = false};
        ASSERT_EQ(w.other_->post_send(first), PostResult::Ok);
        done = w.completed(w.qp_->spec().send_cq);
      }
      ASSERT_EQ(done.size(), 1u);
      EXPECT_EQ(done[0].id, 7u);
      EXPECT_EQ(done[0].opcode, opcode);
      // A peer that has closed its direction answers nothing any more.
      const bool carried = state == State::Unheard || state == State::Running ||
                           (state == State::HalfClosed && !has_response(opcode));
      EXPECT_EQ(done[0].status, carried ? CompletionStatus::Success : CompletionStatus::Flushed)
          << describe(done[0]);
      const rdmap::Counters& counters = w.left().device->rdmap_counters();
      const uint64_t local =
          counters.local_invalidations + counters.windows_bound + counters.fast_registrations;
      const bool is_local = opcode == Opcode::LocalInvalidate || opcode == Opcode::ReadInvalidate ||
                            opcode == Opcode::BindWindow || opcode == Opcode::FastRegister;
      EXPECT_EQ(local, carried && is_local ? 1u : 0u);
      if (!carried) {
        EXPECT_EQ(far, w.far_);
      }
    });
  }
}

TEST(EveryState, PostReceive_BUG_06) {
  for_each_state([](State state, Operations& w) {
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    const auto done = w.completed(w.qp_->spec().receive_cq);
    EXPECT_EQ(done.size(), keeps_receives(state) ? 0u : 1u);
    if (done.empty()) return;
    EXPECT_EQ(done[0].id, 5u);
    EXPECT_EQ(done[0].status, CompletionStatus::Flushed);
  });
}

// A queue pair serves one connection at a time: what would begin another is refused, in each of its
// ways, and changes nothing.
TEST(EveryState, ConnectAndAccept_CM_01) {
  for_each_state([](State state, Operations& w) {
    const bool free = state == State::Fresh;
    // A request, and a converted stream, to try with.
    QueuePair* asker = w.right().make_qp(2, 4);
    ASSERT_TRUE(w.right().device->connect(*asker, w.left_end(), {}, w.now_).has_value());
    ASSERT_TRUE(w.run_until([&] { return w.left().has<event::ConnectRequest>(); }));
    const auto request = w.left().take<event::ConnectRequest>();
    const auto sockets = w.connected(w.listen());
    if (!free) {
      for (const auto& status : {w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_),
                                 w.left().device->connect(*w.qp_, *sockets[0], {}, w.now_),
                                 w.left().device->accept(request->request, *w.qp_, {}, w.now_)}) {
        ASSERT_FALSE(status.has_value());
        EXPECT_EQ(status.error().code, ErrorCode::WrongState);
        EXPECT_NE(status.error().message.find("make it Idle by modify()"), std::string::npos);
      }
      EXPECT_FALSE(sockets[0]->is_converted());
      QueuePair* fresh = w.left().make_qp(2, 4);
      EXPECT_TRUE(w.left().device->accept(request->request, *fresh, {}, w.now_).has_value());
      EXPECT_TRUE(w.run_until([&] { return w.right().has<event::Established>(); }));
      EXPECT_TRUE(w.left().device->destroy_qp(fresh).has_value());
    } else {
      EXPECT_TRUE(w.left().device->accept(request->request, *w.qp_, {}, w.now_).has_value());
      EXPECT_TRUE(w.run_until([&] { return w.right().has<event::Established>(); }));
    }
    EXPECT_TRUE(w.right().device->destroy_qp(asker).has_value());
    w.tell(w.left(), sockets[0], StreamSocket::kAbort | StreamSocket::kRelease);
    w.tell(w.right(), sockets[1], StreamSocket::kAbort | StreamSocket::kRelease);
  });
}

// Disconnect(), once and again, and what it is answered by.
TEST(EveryState, Disconnect_CM_04) {
  for_each_state([](State state, Operations& w) {
    for (int again = 0; again < 2; ++again) {
      const auto status = w.left().device->disconnect(*w.qp_);
      EXPECT_EQ(status.has_value(), state != State::Fresh && state != State::Drained) << again;
      if (status) continue;
      EXPECT_EQ(status.error().code, ErrorCode::WrongState);
      EXPECT_NE(status.error().message.find("not connected"), std::string::npos);
    }
    if (state == State::Unheard || state == State::Running || state == State::Closing) {
      w.run_until([&] { return w.right().has<event::PeerClosed>(); });
      EXPECT_TRUE(w.right().device->disconnect(*w.other_).has_value());
    }
    w.run_for(std::chrono::seconds(1));
    EXPECT_EQ(w.left().device->live_connections(), 0u);
    w.left().collect();
    size_t ends = 0, failed = 0;
    for (const Event& e : w.left().events) {
      ends += std::holds_alternative<event::Disconnected>(e) ? 1 : 0;
      failed += std::holds_alternative<event::ConnectFailed>(e) ? 1 : 0;
      failed += std::holds_alternative<event::RequestWithdrawn>(e) ? 1 : 0;
    }
    const bool unborn = is_unborn(state);
    EXPECT_EQ(failed, unborn ? 1u : 0u);
    if (!unborn) {
      EXPECT_EQ(ends, has_connection(state) ? 1u : 0u);
    }
    // A used queue pair stays used.
    const auto again = w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_);
    EXPECT_EQ(again.has_value(), state == State::Fresh);
  });
}

class NoTrace final : public base::TraceSink {
 public:
  void record(TraceKind, base::Range, base::Now) override {}
};

TEST(EveryState, TraceAndHeldOctets) {
  for_each_state([](State state, Operations& w) {
    NoTrace sink;
    EXPECT_EQ(w.left().device->set_trace(*w.qp_, &sink).has_value(), has_connection(state));
    EXPECT_TRUE(w.left().device->set_trace(*w.qp_, nullptr)) << "its end needs no connection";
    EXPECT_EQ(w.left().device->info(*w.qp_, w.now_).received.held_now, 0u);
  });
}

// destroy_qp() in every state, with work posted and not served: nothing of it is told from then
// on, the peer sees an end, and its completion queues and domain are free.
TEST(EveryState, Destroy_CM_04) {
  for_each_state([](State state, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    EXPECT_EQ(w.left().device->destroy_cq(spec.send_cq).error().code, ErrorCode::WrongState);
    EXPECT_EQ(w.left().device->free_pd(spec.pd).error().code, ErrorCode::WrongState);
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Write)), PostResult::Ok);
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    const uint32_t number = w.qp_->number();
    QueuePair* gone = w.qp_;
    ASSERT_TRUE(w.left().device->destroy_qp(gone).has_value());
    w.qp_ = nullptr;
    EXPECT_EQ(w.left().device->destroy_qp(gone).error().code, ErrorCode::NotFound);
    w.run_for(std::chrono::seconds(1));
    w.left().collect();
    EXPECT_TRUE(w.left().events.empty());
    EXPECT_TRUE(w.left().completions(spec.send_cq).empty());
    EXPECT_TRUE(w.left().completions(spec.receive_cq).empty());
    EXPECT_EQ(w.far_, std::vector<uint8_t>(64, 2)) << "unserved work never leaves";
    if (is_connected(state)) {
      EXPECT_TRUE(w.right().has<event::Disconnected>());
    }
    // Its completion queues and domain serve the next one, which has another number.
    ASSERT_TRUE(w.left().device->deregister_memory(w.here_).has_value());
    if (w.bulk_here_) {
      ASSERT_TRUE(w.left().device->deregister_memory(*w.bulk_here_).has_value());
    }
    QueuePairSpec again = spec;
    QueuePair* next = *w.left().device->create_qp(again);
    EXPECT_NE(next->number(), number);
    EXPECT_TRUE(w.left().device->destroy_qp(next).has_value());
    EXPECT_TRUE(w.left().device->destroy_cq(spec.send_cq).has_value());
    EXPECT_TRUE(w.left().device->destroy_cq(spec.receive_cq).has_value());
    EXPECT_TRUE(w.left().device->free_pd(spec.pd).has_value());
  });
}

// A region is revoked in every state; once it is gone, work that names it touches
// nothing.
TEST(EveryState, Deregister) {
  for_each_state([](State state, Operations& w) {
    ASSERT_TRUE(w.left().device->deregister_memory(w.here_).has_value());
    EXPECT_EQ(w.left().device->deregister_memory(w.here_).error().code, ErrorCode::NotFound);
    const auto far = w.far_;
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Write)), PostResult::Ok);
    const auto done = w.completed(w.qp_->spec().send_cq);
    ASSERT_EQ(done.size(), state == State::Unheard ? 0u : 1u) << "it waits for the peer's first";
    if (done.empty()) return;
    const bool looked_at = state == State::Running || state == State::HalfClosed;
    EXPECT_EQ(done[0].status,
              looked_at ? CompletionStatus::LocalProtection : CompletionStatus::Flushed);
    EXPECT_EQ(far, w.far_);
  });
}

// cancel_connect() ends an attempt of this side that has no outcome yet, and nothing else.
TEST(EveryState, CancelConnect) {
  for_each_state([](State state, Operations& w) {
    const auto status = w.left().device->cancel_connect(*w.qp_);
    const bool under_way = state == State::Dialling || state == State::Asking;
    EXPECT_EQ(status.has_value(), under_way);
    if (!status) {
      EXPECT_EQ(status.error().code, ErrorCode::WrongState);
      EXPECT_NE(status.error().message.find("no connect of the queue pair is under way"),
                std::string::npos);
      EXPECT_EQ(w.qp_->state(), expected_state(state)) << "nothing has changed";
      EXPECT_EQ(w.left().device->info(*w.qp_, w.now_).connected, has_connection(state));
      return;
    }
    EXPECT_TRUE(w.left().device->cancel_connect(*w.qp_)) << "once more changes nothing";
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    w.run_for(std::chrono::seconds(1));
    EXPECT_EQ(w.left().count<event::ConnectFailed>(), 1u);
    EXPECT_EQ(w.left().count<event::Disconnected>(), 1u) << "the last one";
    EXPECT_EQ(w.left().events.size(), 2u);
    EXPECT_NE(w.left().take<event::ConnectFailed>()->detail.find("cancelled"), std::string::npos);
    EXPECT_EQ(w.left().completions(w.qp_->spec().receive_cq).size(), 1u);
    EXPECT_EQ(w.qp_->state(), QueuePairState::Error);
    EXPECT_EQ(w.left().device->live_connections(), 0u);
    EXPECT_FALSE(w.left().device->cancel_connect(*w.qp_)) << "its outcome was reported";
    EXPECT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Idle}, w.now_));
    EXPECT_TRUE(w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_).has_value());
  });
}

// commit() does wrong on a connection in full operation whose direction is open, and elsewhere
// nothing.
TEST(EveryState, Commit) {
  for (const char* line : {"terminate now", "stall the responder 1s"}) {
    for_each_state([line](State state, Operations& w) {
      const PlannedFault fault = *parse_planned_fault(line);
      const auto status = w.qp_->commit(fault, w.now_);
      const bool open = state == State::Unheard || state == State::Running ||
                        state == State::HalfClosed;
      EXPECT_EQ(status.has_value(), open) << line;
      if (!open) {
        EXPECT_EQ(status.error().code, ErrorCode::WrongState);
        EXPECT_EQ(w.qp_->state(), expected_state(state)) << "nothing has changed";
        EXPECT_EQ(w.left().device->info(*w.qp_, w.now_).connected, has_connection(state));
        return;
      }
      const bool at_once = fault.kind == PlannedFaultKind::Terminate && state != State::Unheard;
      EXPECT_EQ(w.qp_->state() == QueuePairState::Terminate, at_once);
    });
  }
}

// What query(), info(), local() and remote() are made of agrees with the state.
TEST(EveryState, Report) {
  for_each_state([](State state, Operations& w) {
    const QueuePairAttributes now = w.qp_->attributes();
    EXPECT_EQ(now.state, expected_state(state));
    EXPECT_EQ(now.number, w.qp_->number());
    EXPECT_EQ(now.send_depth, 8u);
    EXPECT_FALSE(now.answers_close);
    const QueuePairInfo info = w.left().device->info(*w.qp_, w.now_);
    EXPECT_EQ(info.state, expected_state(state));
    EXPECT_EQ(info.connected, has_connection(state));
    if (!info.connected) return;
    EXPECT_EQ(info.local.address, w.left_end().address);
    EXPECT_EQ(info.remote.address, w.right_end().address);
    EXPECT_EQ(w.left().device->connections(w.now_).size(), 1u);
  });
}

// What modify() answers for each state that it may be asked for.
TEST(EveryState, Modify_VERBS_18) {
  for (const QueuePairState next :
       {QueuePairState::Idle, QueuePairState::Rts, QueuePairState::Closing,
        QueuePairState::Terminate, QueuePairState::Error}) {
    SCOPED_TRACE(to_string(next));
    for_each_state([next](State state, Operations& w) {
      EXPECT_EQ(w.qp_->state(), expected_state(state)) << to_string(w.qp_->state());
      const uint32_t number = w.qp_->number();
      const auto status = w.left().device->modify_qp(*w.qp_, {.state = next}, w.now_);
      bool allowed = next == QueuePairState::Error;
      if (next == QueuePairState::Closing) allowed = state != State::Fresh;
      if (next == QueuePairState::Idle) {
        const bool ended = expected_state(state) == QueuePairState::Error;
        allowed = state == State::Fresh || (ended && !has_connection(state));
      }
      EXPECT_EQ(status.has_value(), allowed);
      if (!status) {
        const bool never = next == QueuePairState::Rts || next == QueuePairState::Terminate;
        EXPECT_EQ(status.error().code, never ? ErrorCode::InvalidArgument : ErrorCode::WrongState);
        EXPECT_EQ(w.qp_->state(), expected_state(state)) << "nothing has changed";
      } else if (next == QueuePairState::Idle || next == QueuePairState::Error) {
        EXPECT_EQ(w.qp_->state(), next);
      }
      const bool again = status && next == QueuePairState::Idle && state != State::Fresh;
      EXPECT_EQ(w.qp_->number() != number, again);
    });
  }
}

// IRD and ORD are those of the next connection: they are changed before it, or with the return to
// Idle, and beyond the device's limit never.
TEST(EveryState, ModifyOfReads) {
  const auto limit = [](Operations& w) { return w.left().device->config().limits.max_reads; };
  for (const bool is_ird : {true, false}) {
    for (const bool to_idle : {false, true}) {
      SCOPED_TRACE(std::string(is_ird ? "IRD" : "ORD") + (to_idle ? " with Idle" : ""));
      for_each_state([&](State state, Operations& w) {
        const QueuePairAttributes before = w.qp_->attributes();
        QueuePairChange change;
        (is_ird ? change.ird : change.ord) = limit(w) + 1;
        if (to_idle) change.state = QueuePairState::Idle;
        const bool ended = expected_state(state) == QueuePairState::Error && !has_connection(state);
        const bool allowed = state == State::Fresh || (to_idle && ended);
        auto status = w.left().device->modify_qp(*w.qp_, change, w.now_);
        ASSERT_FALSE(status);
        const bool named = !to_idle || allowed;
        EXPECT_EQ(status.error().code, named ? ErrorCode::InvalidArgument : ErrorCode::WrongState);
        EXPECT_EQ(status.error().message.find("limits.max_reads") != std::string::npos, named);
        (is_ird ? change.ird : change.ord) = limit(w);
        status = w.left().device->modify_qp(*w.qp_, change, w.now_);
        EXPECT_EQ(status.has_value(), allowed);
        if (!status) {
          EXPECT_EQ(status.error().code, ErrorCode::WrongState);
        }
        const QueuePairAttributes after = w.qp_->attributes();
        EXPECT_EQ(after.ird, allowed && is_ird ? limit(w) : before.ird);
        EXPECT_EQ(after.ord, allowed && !is_ird ? limit(w) : before.ord);
        EXPECT_EQ(after.state, allowed ? QueuePairState::Idle : expected_state(state));
      });
    }
  }
}

// What is of the queue pair is changed in every state; options of TCP where there is a connection.
TEST(EveryState, ModifyOfTheRest) {
  for_each_state([](State state, Operations& w) {
    int mine = 0;
    const QueuePairChange change{.answer_close = true, .context = &mine};
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, change, w.now_));
    EXPECT_TRUE(w.qp_->attributes().answers_close);
    EXPECT_EQ(w.qp_->attributes().context, &mine);
    const TcpOptions tcp{.nagle = true};
    const QueuePairChange both{.answer_close = false, .tcp = tcp};
    const auto status = w.left().device->modify_qp(*w.qp_, both, w.now_);
    EXPECT_EQ(status.has_value(), has_connection(state));
    EXPECT_EQ(w.qp_->attributes().answers_close, !status) << "both or none";
    if (!status) {
      EXPECT_EQ(status.error().code, ErrorCode::WrongState);
      EXPECT_NE(status.error().message.find("there is none"), std::string::npos);
    }
    const auto wrong = w.left().device->modify_qp(*w.qp_, {.tcp = TcpOptions{.dscp = 64}}, w.now_);
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().code, ErrorCode::InvalidArgument);
    EXPECT_EQ(w.qp_->state(), expected_state(state));
  });
}

// In every state a move to Error flushes what was posted before the call returns, in the order in
// which it was posted; what is posted from then on is flushed, too; and after the end of the
// connection the queue pair can be used again.
TEST(EveryState, ToError_VERBS_19) {
  for_each_state([](State state, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    for (uint64_t id = 1; id <= 3; ++id) {
      SendRequest write = w.request(Opcode::Write);
      write.id = id;
      ASSERT_EQ(w.qp_->post_send(write), PostResult::Ok);
      ASSERT_EQ(w.qp_->post_receive(w.receive(10 + id, w.near_, w.here_, 64)), PostResult::Ok);
    }
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Error}, w.now_));
    for (const bool sends : {true, false}) {
      const auto done = w.left().completions(sends ? spec.send_cq : spec.receive_cq);
      ASSERT_EQ(done.size(), 3u);
      for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(done[i].id, (sends ? 1u : 11u) + i);
        EXPECT_EQ(done[i].status, CompletionStatus::Flushed);
      }
    }
    EXPECT_EQ(w.far_, std::vector<uint8_t>(64, 2)) << "unserved work never leaves";
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Send)), PostResult::Ok);
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    EXPECT_EQ(w.completed(spec.send_cq).size(), 1u);
    EXPECT_EQ(w.left().completions(spec.receive_cq).size(), 1u);
    w.run_for(std::chrono::seconds(1));
    if (is_connected(state)) {
      EXPECT_EQ(w.left().count<event::Disconnected>(), 1u);
    }
    EXPECT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Idle}, w.now_));
    EXPECT_TRUE(w.left().device->connect(*w.qp_, w.right_end(), {}, w.now_).has_value());
  });
}

// drain() ends in every state, and everything that was posted has completed then; of a peer that
// does not close no later than its limit says.
TEST(EveryState, Drain_BUG_06) {
  for_each_state([](State state, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    constexpr base::Duration kLimit = std::chrono::milliseconds(300);
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::Write)), PostResult::Ok);
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    const base::Now begun = w.now_;
    ASSERT_TRUE(w.left().device->drain(*w.qp_, kLimit, w.now_));
    ASSERT_TRUE(w.left().device->drain(*w.qp_, kLimit, w.now_)) << "once more changes nothing";
    if (state == State::Terminating) {
      EXPECT_EQ(w.qp_->state(), QueuePairState::Terminate) << "everything was flushed";
    } else if (!is_connected(state)) {
      EXPECT_EQ(w.qp_->state(), QueuePairState::Error);
    }
    ASSERT_TRUE(w.run_until([&] { return w.qp_->state() == QueuePairState::Error; }));
    EXPECT_LE(w.now_ - begun, kLimit + std::chrono::milliseconds(1));
    const auto sends = w.completed(spec.send_cq);
    ASSERT_EQ(sends.size(), 1u);
    const bool carried = state == State::Running || state == State::HalfClosed;
    EXPECT_EQ(sends[0].status, carried ? CompletionStatus::Success : CompletionStatus::Flushed);
    const auto receives = w.left().completions(spec.receive_cq);
    ASSERT_EQ(receives.size(), 1u);
    EXPECT_EQ(receives[0].status, CompletionStatus::Flushed);
    if (state == State::Unheard || state == State::Running || state == State::Closing) {
      const auto gone = w.left().take<event::Disconnected>();
      ASSERT_TRUE(gone);
      EXPECT_EQ(gone->end, StreamEnd::Aborted);
      EXPECT_NE(gone->detail.find("drain"), std::string::npos) << gone->detail;
    }
  });
}

// Of several limits the earliest holds, and 0 is over at once.
TEST(EveryState, ALaterDrainMayShortenTheTime_BUG_06) {
  for_each_state([](State, Operations& w) {
    const base::Now begun = w.now_;
    ASSERT_TRUE(w.left().device->drain(*w.qp_, std::chrono::seconds(3), w.now_));
    ASSERT_TRUE(w.left().device->drain(*w.qp_, base::Duration(0), w.now_));
    ASSERT_TRUE(w.left().device->drain(*w.qp_, std::chrono::seconds(9), w.now_));
    ASSERT_TRUE(w.run_until([&] {
      return w.qp_->state() == QueuePairState::Error && !w.qp_->connection().valid();
    }));
    EXPECT_LE(w.now_ - begun, std::chrono::milliseconds(2));
  });
}

// A queue pair is made idle again and connected anew: another number, receives that wait for the
// new connection, and completions of its former life under their own number.
TEST(EveryState, Reconnect) {
  for_each_state([](State, Operations& w) {
    const QueuePairSpec spec = w.qp_->spec();
    const uint32_t before = w.qp_->number();
    ASSERT_EQ(w.qp_->post_receive(w.receive(4, w.near_, w.here_, 64)), PostResult::Ok);
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Error}, w.now_));
    w.run_for(std::chrono::seconds(1));
    ASSERT_TRUE(w.left().device->modify_qp(*w.qp_, {.state = QueuePairState::Idle}, w.now_));
    EXPECT_NE(w.qp_->number(), before);
    w.left().collect();
    w.left().events.clear();
    while (const auto old = w.right().take<event::ConnectRequest>()) {
      static_cast<void>(w.right().device->reject(old->request, {}, w.now_));
    }
    w.run_for(std::chrono::seconds(1));
    w.right().events.clear();
    // A region of the queue pair alone was one of its former life, and serves no later one.
    w.here_ = w.left().add(w.near_, spec.pd, Operations::kRights, w.qp_->stream());
    ASSERT_EQ(w.qp_->post_receive(w.receive(5, w.near_, w.here_, 64)), PostResult::Ok);
    QueuePair* peer = w.right().make_qp(8, 16);
    w.join(w.qp_, peer);
    std::vector<uint8_t> text(8, 7);
    const mem::Stag stag = w.right().add(text, peer->spec().pd, Access::LocalWrite);
    ASSERT_EQ(peer->post_send(Operations::work(Opcode::Send, 1, text, stag, 8)), PostResult::Ok);
    ASSERT_TRUE(w.run_until([&] { return w.near_[0] == 7; }));
    ASSERT_EQ(w.qp_->post_send(w.request(Opcode::LocalInvalidate)), PostResult::Ok);
    w.run_for(std::chrono::milliseconds(1));
    const auto receives = w.left().completions(spec.receive_cq);
    ASSERT_EQ(receives.size(), 2u);
    EXPECT_EQ(receives[0].id, 4u);
    EXPECT_EQ(receives[0].qp, before);
    EXPECT_EQ(receives[0].status, CompletionStatus::Flushed);
    EXPECT_EQ(receives[1].id, 5u);
    EXPECT_EQ(receives[1].qp, w.qp_->number());
    EXPECT_EQ(receives[1].status, CompletionStatus::Success);
    const auto sends = w.left().completions(spec.send_cq);
    ASSERT_EQ(sends.size(), 1u);
    EXPECT_EQ(sends[0].status, CompletionStatus::Success);
    EXPECT_EQ(sends[0].qp, w.qp_->number());
    EXPECT_TRUE(w.right().device->destroy_qp(peer).has_value());
  });
}

// What the queues refuse, they refuse in every state, and it completes nothing.
TEST(EveryState, RequestsThatAreNone) {
  for_each_state([](State, Operations& w) {
    SendRequest many = w.request(Opcode::ReadInvalidate);
    many.sges.push_back(many.sges[0]);
    EXPECT_EQ(w.qp_->post_send(many), PostResult::TooManySge);
    many.opcode = Opcode::Write;
    while (many.sges.size() <= kMaxSge) many.sges.push_back({});
    EXPECT_EQ(w.qp_->post_send(many), PostResult::TooManySge);
    SendRequest atomic = w.request(Opcode::FetchAdd);
    atomic.sges[0].length = 7;
    EXPECT_EQ(w.qp_->post_send(atomic), PostResult::BadLength);
    EXPECT_EQ(w.qp_->post_send(w.request(Opcode::Receive)), PostResult::BadOpcode);
    SendRequest longest = w.request(Opcode::Write);
    longest.sges = {{.length = UINT32_MAX}, {.length = UINT32_MAX}};
    EXPECT_EQ(w.qp_->post_send(longest), PostResult::TooLong);
    ReceiveRequest receives;
    while (receives.sges.size() <= kMaxSge) receives.sges.push_back({});
    EXPECT_EQ(w.qp_->post_receive(receives), PostResult::TooManySge);
    EXPECT_TRUE(w.completed(w.qp_->spec().send_cq).empty());
    EXPECT_TRUE(w.completed(w.qp_->spec().receive_cq).empty());
  });
}

}  // namespace
}  // namespace rnic::device::every_state
