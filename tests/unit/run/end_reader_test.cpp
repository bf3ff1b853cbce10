#include "src/run/end_reader.hpp"

#include <csignal>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::job;

namespace {

EndQuestion end_question(Argv argv) {
  return {std::move(argv), [](const std::string& answer) -> Result<std::optional<Instant>> {
            if (answer == "never\n") return std::optional<Instant>{};
            if (answer != "soon\n") return fail(ErrorKind::input, "'{}' is not an end time", answer);
            return std::optional<Instant>(Instant(std::chrono::seconds(1)));
          }};
}

// Asks once and turns the loop until there is an answer.
struct Asked {
  std::optional<std::optional<Instant>> end;
  std::string error;

  explicit Asked(std::vector<EndQuestion> questions) {
    EventLoop loop;
    EndReader* reader = nullptr;
    REQUIRE(loop.take_signals({SIGCHLD}, [&](const CaughtSignal&) { reader->child_ended(); }));
    EndReader own(loop, std::move(questions), Environment::of_this_process(),
                  {.read =
                       [&](std::optional<Instant> read) {
                         end = read;
                         loop.stop();
                       },
                   .failed =
                       [&](const Error& why) {
                         error = why.what;
                         loop.stop();
                       }});
    reader = &own;
    own.ask();
    own.ask();  // one that is open is enough
    REQUIRE(loop.run());
  }
};

}  // namespace

TEST_CASE("the answer of a program beside the loop") {
  const Asked soon({end_question({"echo", "soon"})}), never({end_question({"echo", "never"})});
  CHECK(soon.end.value().value() == Instant(std::chrono::seconds(1)));
  CHECK(!never.end.value().has_value());
}

TEST_CASE("a program that is not there leaves the question to the next one") {
  CHECK(Asked({end_question({"no-such-scontrol"}), end_question({"echo", "soon"})}).end);
  CHECK(!Asked({end_question({"no-such-scontrol"})}).error.empty());
}

TEST_CASE("a program that fails, and an answer that says nothing, are told and change nothing") {
  const Asked failed({end_question({"sh", "-c", "echo soon; exit 3"})});
  CHECK(!failed.end);
  CHECK(failed.error == "sh: exit code 3");
  CHECK(Asked({end_question({"echo", "what?"})}).error == "'what?\n' is not an end time");
}

TEST_CASE("a controller that does not answer holds up nothing") {
  EventLoop loop;
  EndReader reader(loop, {end_question({"sleep", "1000"})}, Environment::of_this_process(),
                   {.read = [](std::optional<Instant>) { FAIL("an answer"); },
                    .failed = [](const Error&) { FAIL("an end"); }});
  reader.ask();
  CHECK(reader.children().size() == 1);
  loop.after(Seconds(0), [&] { loop.stop(); });
  REQUIRE(loop.run());
  reader.stop();
  CHECK(reader.children().empty());
}
