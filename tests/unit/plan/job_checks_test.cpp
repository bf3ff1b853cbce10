#include "src/plan/job_checks.hpp"

#include <doctest/doctest.h>

using namespace dlrun;

namespace {

Error said(std::string_view text) {
  return plan::check_error({{"dlrun-train", "--check"}}, {}, text, "exit code 65", 65);
}

}  // namespace

TEST_CASE("a check's message in our own form is taken apart, and has the same text again") {
  const Error error = said(
      "dlrun-train: error: bad job.yaml:2:75: unknown key 'epocs' in 'train'\n  of the first job\n  hint: "
      "did you "
      "mean 'epochs'?\n");
  CHECK(error.kind == ErrorKind::input);
  CHECK(error.where == "bad job.yaml:2:75");
  CHECK(error.what == "unknown key 'epocs' in 'train'");
  CHECK(error.also == std::vector<std::string>{"of the first job"});
  CHECK(error.hint == "did you mean 'epochs'?");
  CHECK(error.text() ==
        "bad job.yaml:2:75: unknown key 'epocs' in 'train'\n  of the first job\n  hint: did you mean "
        "'epochs'?");
}

TEST_CASE("a check's message in another form stays whole") {
  const char* const trace = "Traceback (most recent call last):\n  File \"x.py\"\nValueError: 12:30: no time";
  CHECK(said(trace).what == trace);
  CHECK(said(trace).where.empty());
  CHECK(said("at 12:30: no time").what == "at 12:30: no time");
  CHECK(said("").what == "dlrun-train --check: exit code 65");
}
