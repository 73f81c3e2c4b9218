// The life of a connection, without its segments: RFC 9293 figure 5 by what moves it.

#include "tcp/life.hpp"

#include "core_parts.hpp"

namespace rnic::testing {
namespace {

using tcp::State;
using tcp::Timer;
using Next = tcp::Life::Next;

struct OneLife : CoreParts {
  explicit OneLife(const tcp::Config& of = {}) : CoreParts(of) {}
  /// The user has closed, and our FIN went out.
  void close() {
    core.life.want_fin();
    core.life.fin_sent(now);
  }
  [[nodiscard]] State state() const { return life.state(); }

  tcp::Life& life = core.life;
};

TEST(Life, OursClosesFirst) {
  OneLife o;
  EXPECT_TRUE(o.life.over());
  o.life.open(State::SynSent, o.now + seconds(3));
  EXPECT_EQ(o.core.timers().at(Timer::Life), o.now + seconds(3));
  o.life.establish();
  EXPECT_FALSE(o.core.timers().runs(Timer::Life));
  EXPECT_EQ(o.life.fin_acked(o.now), Next::Same) << "there is none";
  o.life.want_fin();
  EXPECT_EQ(o.state(), State::Established) << "what the user has goes out first";
  EXPECT_TRUE(o.life.owes_fin());
  o.life.fin_sent(o.now);
  EXPECT_EQ(o.state(), State::FinWait1);
  EXPECT_FALSE(o.life.owes_fin());
  EXPECT_EQ(o.life.fin_acked(o.now), Next::Same);
  EXPECT_EQ(o.state(), State::FinWait2);
  EXPECT_TRUE(o.life.fin_received()) << "TIME-WAIT follows";
  o.life.end();
  EXPECT_TRUE(o.life.over());
}

TEST(Life, ThePeerClosesFirst) {
  OneLife o;
  o.life.open(State::SynSent, o.now + seconds(3));
  o.life.cross();
  EXPECT_EQ(o.state(), State::SynReceived);
  o.life.establish();
  EXPECT_FALSE(o.life.fin_received());
  EXPECT_EQ(o.state(), State::CloseWait);
  EXPECT_FALSE(o.life.fin_received()) << "it comes again";
  EXPECT_EQ(o.state(), State::CloseWait);
  o.close();
  EXPECT_EQ(o.state(), State::LastAck);
  EXPECT_TRUE(o.life.fin_queued());
  EXPECT_EQ(o.life.fin_acked(o.now), Next::Closed);
}

TEST(Life, BothCloseAtOnce) {
  OneLife crossed;
  crossed.establish();
  crossed.close();
  EXPECT_FALSE(crossed.life.fin_received());
  EXPECT_EQ(crossed.state(), State::Closing);
  EXPECT_TRUE(crossed.life.fin_queued());
  EXPECT_EQ(crossed.life.fin_acked(crossed.now), Next::TimeWait);
  OneLife answered;  // by a FIN that acknowledges ours
  answered.establish();
  answered.close();
  EXPECT_EQ(answered.life.fin_acked(answered.now), Next::Same);
  EXPECT_TRUE(answered.life.fin_received());
}

TEST(Life, ThePeerHasTheCloseTimeoutAnewWithEachProgressBehindOurFin) {
  OneLife o;
  const base::Duration patience = o.config.close_timeout;
  o.establish();
  o.life.progressed(o.now);
  EXPECT_FALSE(o.core.timers().runs(Timer::Life)) << "nobody has closed";
  o.close();
  EXPECT_EQ(o.core.timers().at(Timer::Life), o.now + patience);
  o.life.progressed(o.now + seconds(1));
  EXPECT_EQ(o.core.timers().at(Timer::Life), o.now + seconds(1) + patience);
  EXPECT_EQ(o.life.fin_acked(o.now + seconds(2)), Next::Same);
  EXPECT_EQ(o.core.timers().at(Timer::Life), o.now + seconds(2) + patience);
}

TEST(Life, AHalfCloseWaitsForThePeerForEver) {
  OneLife o;
  o.binding.options.half_close = true;
  o.establish();
  o.close();
  EXPECT_FALSE(o.core.timers().runs(Timer::Life));
  EXPECT_FALSE(o.life.orphaned(o.now));
  EXPECT_FALSE(o.life.orphaned(o.now + o.config.orphan_timeout));
  o.binding.options.half_close = false;  // set while it waits
  o.life.progressed(o.now);
  EXPECT_EQ(o.core.timers().at(Timer::Life), o.now + o.config.close_timeout);
}

TEST(Life, ACloseThatDoesNotGetOnIsAnOrphanInTheEnd) {
  OneLife o;
  const base::Duration patience = o.config.orphan_timeout;
  o.establish();
  EXPECT_FALSE(o.life.orphaned(o.now));
  o.now += seconds(1);
  o.life.want_fin();
  EXPECT_FALSE(o.life.orphaned(o.now)) << "its time begins where it is seen to wait";
  EXPECT_FALSE(o.life.orphaned(o.now + patience - microseconds(1)));
  EXPECT_TRUE(o.life.orphaned(o.now + patience));
  o.life.forget_orphan();
  o.now += patience;
  EXPECT_FALSE(o.life.orphaned(o.now));
  EXPECT_TRUE(o.life.orphaned(o.now + patience));
  o.life.fin_sent(o.now);
  EXPECT_TRUE(o.life.orphaned(o.now + patience)) << "nor is the FIN acknowledged";
  EXPECT_EQ(o.life.fin_acked(o.now), Next::Same);
  EXPECT_FALSE(o.life.orphaned(o.now + patience)) << "the close timer's turn";
  tcp::Config never;
  never.orphan_timeout = base::Duration(0);
  OneLife patient(never);
  patient.establish();
  patient.close();
  EXPECT_FALSE(patient.life.orphaned(patient.now));
  EXPECT_FALSE(patient.life.orphaned(patient.now + patience));
}

TEST(Life, NothingIsPredictedBeyondEstablishedOrWhereACloseWaits) {
  OneLife o;
  o.establish();
  o.predict();
  ASSERT_TRUE(o.core.prediction.on());
  o.life.want_fin();
  EXPECT_FALSE(o.core.prediction.on());
  o.predict();
  EXPECT_FALSE(o.life.fin_received());
  EXPECT_FALSE(o.core.prediction.on());
}

TEST(Life, AStateThatFigure5DoesNotHaveNextIsADefect) {
  OneLife o;
  EXPECT_DEATH(o.life.establish(), "allows");
  o.life.open(State::SynSent, o.now);
  EXPECT_DEATH(o.life.fin_sent(o.now), "allows");
}

}  // namespace
}  // namespace rnic::testing
