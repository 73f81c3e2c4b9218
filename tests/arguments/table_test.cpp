// Each cell of the table in a world of its own: the call is answered as it is said there, a refusal
// names the object and the limit and takes nothing, and what is not concerned works on.
//
// ARGUMENTS_SHOW=1 prints what each call has answered.

#include "table.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "counts.hpp"
#include "remedy.hpp"
#include "support/long_form.hpp"

namespace rnic::arguments {

const char* to_string(Class of) {
  switch (of) {
    case Class::AtLimit: return "at its limit";
    case Class::Beyond: return "beyond";
    case Class::Empty: return "empty";
    case Class::Foreign: return "foreign";
    case Class::WrongState: return "wrong state";
    case Class::Illegal: return "illegal";
  }
  return "?";
}

namespace {

const std::vector<Cell>& cells() {
  static const std::vector<Cell> all = [] {
    Table table;
    for (const auto add :
         {add_queue_pair, add_posting, add_completion_queue, add_shared_receive_queue, add_memory,
          add_device, add_context, add_consumer, add_streams, add_framed_streams, add_blocking,
          add_empty_handles, add_texts}) {
      add(table);
    }
    return table.cells();
  }();
  return all;
}

/// \return false: the text is a completion's status, or the TOML parser's
bool is_answered_by_call(const Cell& cell) {
  const ErrorCode code = cell.expected.code;
  if (code == ErrorCode::Protocol) return false;
  if (cell.argument.starts_with("Connection::")) return code != ErrorCode::PermissionDenied;
  return !cell.argument.starts_with("Config::") && cell.argument != "Context::open config";
}

void expect_answer(const Cell& cell, const Status& answer) {
  if (std::getenv("ARGUMENTS_SHOW") != nullptr) {
    std::printf("%s %s (%s): %s\n", cell.argument.c_str(), to_string(cell.of), cell.said.c_str(),
                answer ? "done" : answer.error().message.c_str());
  }
  EXPECT_EQ(answer.has_value(), cell.expected.works)
      << (answer ? "it was taken" : answer.error().message);
  if (answer || cell.expected.works) return;
  const std::string& message = answer.error().message;
  EXPECT_EQ(rnic::to_string(answer.error().code), std::string(rnic::to_string(cell.expected.code)))
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  EXPECT_FALSE(message.empty());
  for (const std::string& word : cell.expected.words) {
    EXPECT_NE(message.find(word), std::string::npos) << "no \"" << word << "\" in: " << message;
  }
  EXPECT_TRUE(has_remedy(message) || !is_answered_by_call(cell)) << "no remedy in: " << message;
}

/// \return whether the call that was answered so has ended its connection: then the ends are not as
/// before
bool ends_connection(const Cell& cell, ErrorCode answer) {
  // A request was posted, and its completion tells of the mistake.
  if (answer == ErrorCode::Protocol) return true;
  // As blocking.hpp says.
  return cell.argument.starts_with("Connection::") && answer != ErrorCode::InvalidArgument &&
         answer != ErrorCode::MessageSize && answer != ErrorCode::Unsupported &&
         !cell.argument.starts_with("Connection::receive");
}

void expect_unchanged(const Cell& cell, ErrorCode answer, World& w, const Counts& before) {
  if (ends_connection(cell, answer)) return;
  // What a refused connect had begun goes with the device's next turns.
  std::string changed;
  const auto as_before = [&] { return (changed = difference(before, counts(w))).empty(); };
  w.context->wait_until(as_before, std::chrono::seconds(2));
  EXPECT_EQ(changed, "") << "a refusal changes nothing";
}

void run_cell(const Cell& cell, bool threaded) {
  SCOPED_TRACE(cell.argument + " " + to_string(cell.of) + " (" + cell.said + ")");
  World w({starved::Below::Wire, threaded});
  try {
    cell.prepare(w);
    const auto call = cell.ready(w);
    const Counts before = counts(w);
    const Status answer = call();
    expect_answer(cell, answer);
    if (!answer) expect_unchanged(cell, answer.error().code, w, before);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  w.settle();
  w.prove_traffic();
}

TEST(Remedy, IsToldApartFromWhatIsWrong) {
  for (const char* without :
       {"no trace was started", "the queue pair is not connected",
        "the connection request is gone or was answered already",
        "nobody asked for a connection in time", "the request is nobody's: no device named it",
        "create_qp: IRD or ORD is above limits.max_reads (128)",
        "create_qp: a completion queue belongs to device rnic0, and not to rnic1"}) {
    EXPECT_FALSE(has_remedy(without)) << without;
  }
  for (const char* with :
       {"no trace was started: call start_trace() first", "depth 0 is outside 1..64",
        "max_frame 0: give 2 to 65528", "the message is too long: split it",
        "a wake-up for 0 completions: at least 1", "is taken; unlisten() it or choose another"}) {
    EXPECT_TRUE(has_remedy(with)) << with;
  }
}

TEST(EveryArgument, IsAnsweredAsTheTableSays) {
  const char* only = std::getenv("ARGUMENTS_ONLY");
  for (const Cell& cell : cells()) {
    if (only != nullptr && cell.argument.find(only) == std::string::npos) continue;
    run_cell(cell, false);
    if (test::is_long_form()) run_cell(cell, true);
  }
}

}  // namespace

/// A line for each cell: argument, class and value, with tabs between.
void list_cells() {
  for (const Cell& cell : cells()) {
    std::printf("%s\t%s\t%s\n", cell.argument.c_str(), to_string(cell.of), cell.said.c_str());
  }
}

}  // namespace rnic::arguments

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--list") {
    rnic::arguments::list_cells();
    return 0;
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
