// A chain whose link was killed, as its scheduler knows it: its job, or the next one, waits in the queue.
#include "src/report/chain_view.hpp"

#include <doctest/doctest.h>

#include "src/report/run_view.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using job::ChainState;

namespace {

// squeue, of jobs by their states.
class FakeSlurm final : public CommandRunner {
 public:
  explicit FakeSlurm(std::map<std::string, std::string> states) : states_(std::move(states)) {}
  Result<CommandOutput> run(const Command& command) const override {
    CommandOutput out;
    const auto& argv = command.argv;
    if (argv.front() != "squeue") return out;
    if (argv.back() == "%i|%P|%S|%r") {
      for (const auto& [id, state] : states_)
        if (state == "PENDING") out.out += id + "|gpu|N/A|Priority\n";
      return out;
    }
    for (const auto& [id, state] : states_)
      for (const std::string& word : argv)
        if (word == id) return out.out = state + "\n", out;
    out.err = "slurm_load_jobs error: Invalid job id specified\n", out.status.exit_code = 1;
    return out;
  }

 private:
  std::map<std::string, std::string> states_;
};

// Of a chain whose first link, job 17, wrote no end, and whose next job is 18.
report::RunView view_of(std::map<std::string, std::string> states) {
  const test::Folder folder;
  job::Chain chain;
  chain.name = "small", chain.scheduler = "slurm", chain.state = ChainState::running;
  job::Link link;
  std::filesystem::create_directory(folder.path / "link-0001");
  link.number = 1, link.job_id = "17", link.run_directory = (folder.path / "link-0001").string();
  chain.links.push_back(link);
  chain.queued_job = "18";
  REQUIRE(job::ChainFolder(folder.path).create(chain));
  const FakeSlurm slurm(std::move(states));
  const SystemClock clock;
  const Environment environment;
  return report::view_of({.path = folder.path, .kind = report::FolderKind::chain},
                         {environment, slurm, clock, [](Seconds) {}});
}

}  // namespace

TEST_CASE("a link that was preempted waits for another start") {
  const report::RunView view = view_of({{"17", "PENDING"}, {"18", "PENDING"}});
  CHECK(view.standing.state == report::RunState::queued);
  CHECK(view.standing.reason == "job 17 waits for another start");
  CHECK(view.scheduler_job == "17");
  CHECK(view.chain->chain.state == ChainState::queued);
  CHECK(view.chain->waiting == std::vector<std::string>{"17", "18"});
  CHECK(view.job.place.position == 1);
}

TEST_CASE("where a link was killed, the next job of the chain waits") {
  const report::RunView view = view_of({{"18", "PENDING"}});
  CHECK(view.standing.state == report::RunState::queued);
  CHECK(view.standing.reason == "job 17 is gone without a recorded end; job 18 is next");
  CHECK(view.scheduler_job == "18");
}

TEST_CASE("a link whose job runs is running, and a chain without jobs is stopped") {
  CHECK(view_of({{"17", "RUNNING"}, {"18", "PENDING"}}).chain->chain.state == ChainState::running);
  const report::RunView none = view_of({});
  CHECK(none.standing.state == report::RunState::stopped);
}
