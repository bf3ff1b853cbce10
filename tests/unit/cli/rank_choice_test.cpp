#include "src/cli/rank_choice.hpp"

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::cli;

namespace {

// Six workers, ranks 0 to 5, and two ps, ranks 6 and 7.
plan::Plan plan_with_roles() {
  plan::Plan out;
  for (int i = 0; i < 8; ++i) {
    plan::RankPlan rank;
    rank.rank = Rank(i);
    rank.role = i < 6 ? "worker" : "ps";
    rank.task_index = i < 6 ? i : i - 6;
    out.ranks.push_back(rank);
  }
  return out;
}

std::string chosen(const std::string& text) {
  const auto choice = RankChoice::parse(text);
  if (!choice) return choice.error().what;
  const plan::Plan plan = plan_with_roles();
  if (auto fits = choice->check(plan); !fits) return fits.error().what;
  std::string out;
  for (const plan::RankPlan& rank : plan.ranks)
    if (choice->contains(rank)) out += std::to_string(rank.rank.get());
  return out;
}

}  // namespace

TEST_CASE("numbers are ranks, and after a role its tasks") {
  CHECK(chosen("0") == "0");
  CHECK(chosen("0-2,7") == "0127");
  CHECK(chosen("worker:0-1,3") == "013");
  CHECK(chosen("ps:1") == "7");
  CHECK(chosen("ps") == "67");
  CHECK(chosen("0,ps:0") == "06");
  CHECK(chosen("ps:0,worker:5") == "56");
}

TEST_CASE("what names no rank is refused") {
  CHECK(chosen("") == "--tee: '' does not select ranks");
  CHECK(chosen("3-1") == "--tee: '3-1' does not select ranks");
  CHECK(chosen("1,,2") == "--tee: '' does not select ranks");
  CHECK(chosen("ps:") == "--tee: 'ps:' does not select ranks");
  CHECK(chosen(":1") == "--tee: ':1' does not select ranks");
  CHECK(chosen("-1") == "--tee: '-1' does not select ranks");
  CHECK(chosen("99999999999") == "--tee: '99999999999' does not select ranks");
  CHECK(chosen("8") == "--tee: the job has no rank '8'");
  CHECK(chosen("chief") == "--tee: the job has no rank 'chief'");
}
