// A chain's decision after each link, and the leases by which two links never train at once.
#include "src/chain/chain.hpp"

#include <doctest/doctest.h>

#include "schedulers/slurm/slurm.hpp"
#include "src/base/file.hpp"
#include "src/chain/folder.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::job;

namespace {

Link link(const std::string& job, LinkEnd end, std::int64_t step = -1, int code = 0) {
  Link out;
  out.job_id = job;
  out.end = end;
  out.exit_code = code;
  out.reason = std::string(word_of(end));
  if (step >= 0) out.progress = {{"step", step}, {"steps", 400}};
  return out;
}

Chain chain_of(std::vector<Link> links) {
  Chain out;
  out.scheduler = "slurm";
  out.max_links = 5;
  out.links = std::move(links);
  for (std::size_t i = 0; i < out.links.size(); ++i) out.links[i].number = static_cast<int>(i) + 1;
  return out;
}

std::string verdict(const Chain& chain, StopRequest request = StopRequest::none) {
  const Verdict out = judge_next(chain, request);
  return fmt::format("{}{}{}", word_of(out.state), out.reason.empty() ? "" : ": ", out.reason);
}

class FakeSlurm final : public CommandRunner {
 public:
  CommandOutput answer;
  Result<CommandOutput> run(const Command& /*command*/) const override { return answer; }
};

}  // namespace

TEST_CASE("a ledger that somebody edited is read strictly") {
  const Json good = to_json(chain_of({link("1", LinkEnd::again, 100)}));
  const auto why = [&](const char* key, const Json& value) {
    Json edited = good;
    edited[key] = value;
    const auto chain = chain_from_json(edited, "chain.json");
    return chain ? std::string() : chain.error().text();
  };
  CHECK(why("max_links", 7).empty());
  CHECK(why("links", Json::object()) == "chain.json: 'links' is not a list");
  CHECK(why("max_links", -5) == "chain.json: 'max_links' must be a whole number in [1, 1000000], not -5");
  CHECK(why("retries", 1e30) == "chain.json: 'retries' must be a whole number in [0, 1000000], not 1e+30");
  CHECK(why("retries", 0.5) == "chain.json: 'retries' must be a whole number in [0, 1000000], not 0.5");
}

TEST_CASE("a chain goes on until its program is done") {
  CHECK(verdict(chain_of({link("1", LinkEnd::again, 100)})) == "queued");
  CHECK(verdict(chain_of({link("1", LinkEnd::again, 100), link("2", LinkEnd::done, 400)})) == "done: done");
  CHECK(verdict(chain_of({link("1", LinkEnd::again, 100)}), StopRequest::stop) ==
        "stopped: dlrun chain stop");
  CHECK(verdict(chain_of({link("1", LinkEnd::done, 400)}), StopRequest::stop) == "done: done");
}

TEST_CASE("preempted, requeued and killed links are no failures") {
  CHECK(verdict(chain_of({link("1", LinkEnd::interrupted, 50)})) == "queued");
  CHECK(verdict(chain_of({link("1", LinkEnd::lost), link("1", LinkEnd::again, 80)})) == "queued");
  CHECK(verdict(chain_of({link("1", LinkEnd::again, 80), link("2", LinkEnd::lost),
                          link("3", LinkEnd::again, 90)})) == "queued");
}

TEST_CASE("two links in a row without progress end it") {
  CHECK(verdict(chain_of(
            {link("1", LinkEnd::again, 80), link("2", LinkEnd::again, 80), link("3", LinkEnd::again, 80)})) ==
        "stopped: two links in a row made no progress; link 3 (job 3): again");
  CHECK(verdict(chain_of({link("1", LinkEnd::lost), link("2", LinkEnd::lost)}))
            .starts_with("stopped: two links"));
  Chain saved = chain_of({link("1", LinkEnd::lost), link("2", LinkEnd::lost)});
  saved.links[1].saved = true;
  CHECK(verdict(saved) == "queued");
}

TEST_CASE("where the program's own files tell the progress, exit code 75 alone is none") {
  Chain chain = chain_of({link("1", LinkEnd::again), link("2", LinkEnd::again)});
  CHECK(verdict(chain) == "queued");
  chain.checkpoint_files = "/home/ann/ckpt*.pt";
  CHECK(verdict(chain).starts_with("stopped: two links in a row made no progress"));
  chain.links[1].saved = true;
  CHECK(verdict(chain) == "queued");
}

TEST_CASE("a mark changes with the newest file of a pattern, and with no other") {
  const test::Folder there;
  const CheckpointPlace place{there.path.string(), (there.path / "ckpt*.pt").string()};
  CHECK(checkpoint_mark(place).empty());
  there.write("ckpt-1.pt", "1");
  const std::string first = checkpoint_mark(place);
  CHECK(first.starts_with("ckpt-1.pt@"));
  there.write("train.log", "x");
  CHECK(checkpoint_mark(place) == first);
  const auto later = std::filesystem::last_write_time(there.path / "ckpt-1.pt") + std::chrono::seconds(5);
  std::filesystem::last_write_time(there.write("ckpt-2.pt", "2"), later);
  CHECK(checkpoint_mark(place).starts_with("ckpt-2.pt@"));
}

TEST_CASE("ids that somebody wrote into the folder go into no command") {
  const test::Folder there;
  const ChainFolder folder(there.path);
  const auto slurm = make_slurm_submission();
  Chain chain = chain_of({link("1", LinkEnd::again)});
  REQUIRE(folder.create(chain));
  CHECK(check_job_ids(*slurm, folder, chain));
  chain.queued_job = "--user=root -f";
  CHECK(check_job_ids(*slurm, folder, chain).error().what == "'--user=root -f' is not a job id of slurm");
  chain.queued_job.clear();
  REQUIRE(folder.write_presubmitted_jobs({"1", "--me"}));
  CHECK(check_job_ids(*slurm, folder, chain).error().where.ends_with("/jobs-ahead"));
  REQUIRE(folder.write_presubmitted_jobs({}));
  REQUIRE(folder.write_first_job("-u root"));
  CHECK(check_job_ids(*slurm, folder, chain).error().where.ends_with("/first-job"));
  REQUIRE(folder.leases().make(1, {.process = this_process(), .job = "--user=root", .run = {}}).value());
  FakeSlurm commands;
  const LeaseOwner owner{.process = this_process(), .job = "7", .run = {}};
  CHECK(take_over(folder, *slurm, owner, Environment(), commands).error().what ==
        "'--user=root' is not a job id of slurm");
}

TEST_CASE("failures are tried again within chain.retries, and faults of the job are not") {
  Chain chain = chain_of({link("1", LinkEnd::failed, 30, 1)});
  CHECK(verdict(chain) == "failed: 1 failure(s), and chain.retries is 0; link 1 (job 1): failed");
  chain.retries = 1;
  CHECK(verdict(chain) == "queued");
  chain.links.back().exit_code = 65;
  CHECK(verdict(chain) == "failed: link 1 (job 1): failed");
}

TEST_CASE("a chain has so many jobs and no more; a requeued job is one job") {
  Chain chain = chain_of(
      {link("1", LinkEnd::interrupted, 10), link("1", LinkEnd::again, 20), link("2", LinkEnd::again, 30)});
  chain.max_links = 2;
  CHECK(jobs_used(chain) == 2);
  CHECK(verdict(chain) ==
        "stopped: all 2 links are used; the last one: again; to continue, submit again with a new --chain: "
        "it resumes from the checkpoint");
}

TEST_CASE("where one job is started again and again, each start that ended by itself is a link") {
  Chain chain = chain_of(
      {link("1", LinkEnd::again, 10), link("1", LinkEnd::interrupted, 15), link("1", LinkEnd::again, 20)});
  chain.mode = ChainMode::requeue;
  chain.max_links = 3;
  CHECK(links_used(chain) == 2);
  CHECK(verdict(chain) == "queued");
  chain.max_links = 2;
  CHECK(verdict(chain) ==
        "stopped: all 2 links are used; the last one: again; to continue, submit again with a new --chain: "
        "it resumes from the checkpoint");
}

TEST_CASE("a ledger reads back as it was written, and a broken one is an error") {
  Chain chain = chain_of({link("1", LinkEnd::again, 100), link("2", LinkEnd::running)});
  chain.state = ChainState::running;
  chain.queued_job = "3";
  const Json json = to_json(chain);
  CHECK(to_json(chain_from_json(json, "chain.json").value()) == json);
  Json older = json;  // as it was written before chain.way was renamed
  older.erase("mode");
  older["way"] = "ahead";
  older["links"][1]["end"] = "vanished";
  CHECK(chain_from_json(older, "chain.json")->mode == ChainMode::presubmit);
  CHECK(chain_from_json(older, "chain.json")->links[1].end == LinkEnd::lost);
  Json broken = json;
  broken["state"] = "tired";
  CHECK(chain_from_json(broken, "chain.json").error().text() ==
        "chain.json: unknown value 'tired'\n  hint: valid names: queued, running, done, stopped, failed");
  CHECK_FALSE(chain_from_json(Json::array(), "chain.json"));
}

TEST_CASE("who lost the lease of a chain writes nothing to it any more") {
  const test::Folder there;
  const ChainFolder folder(there.path);
  REQUIRE(folder.create(chain_of({})));
  const auto slurm = make_slurm_submission();
  FakeSlurm commands;
  const LeaseOwner owner{.process = this_process(), .job = "1", .run = {}};
  const Lease first = take_over(folder, *slurm, owner, Environment(), commands).value();
  CHECK(folder.write(chain_of({}), first));
  REQUIRE(folder.leases().make(2, {.process = this_process(), .job = "2", .run = {}}).value());
  CHECK(folder.write(chain_of({}), first).error().what.find("was taken over by job 2") != std::string::npos);
}

TEST_CASE("jobs that wait: pre-submitted ones that had no turn yet, and one that is to start again") {
  const test::Folder there;
  const ChainFolder folder(there.path);
  Chain chain = chain_of({});
  REQUIRE(folder.create(chain));
  CHECK(waiting_jobs(folder, chain).empty());
  REQUIRE(folder.write_first_job("1"));
  CHECK(waiting_jobs(folder, chain) == std::vector<std::string>{"1"});
  REQUIRE(folder.write_presubmitted_jobs({"1", "2", "3"}));
  CHECK(waiting_jobs(folder, chain) == std::vector<std::string>{"1", "2", "3"});
  chain.links = {link("1", LinkEnd::again, 10), link("2", LinkEnd::running)};
  CHECK(waiting_jobs(folder, chain) == std::vector<std::string>{"3"});
  chain.queued_job = "2";  // requeued
  CHECK(waiting_jobs(folder, chain) == std::vector<std::string>{"2", "3"});
}

TEST_CASE("a link takes over from a job that is over, and never from one that may still run") {
  const test::Folder there;
  const ChainFolder folder(there.path);
  REQUIRE(folder.create(chain_of({})));
  const auto slurm = make_slurm_submission();
  FakeSlurm commands;
  const LeaseFolder leases = folder.leases();
  const auto take = [&](const std::string& job) {
    const auto out =
        take_over(folder, *slurm, {.process = this_process(), .job = job, .run = {}}, Environment(), commands,
                  {.renewal = Seconds(5), .silence = Seconds(0.2), .wait = Seconds(0)});
    return out ? fmt::format("lease {}", out->number()) : out.error().what;
  };
  const auto lost = [&](const std::string& job) {  // on another host
    const int number = leases.newest_number().value() + 1;
    ProcessIdentity far = this_process();
    far.boot = "another";
    REQUIRE(leases.make(number, {.process = far, .job = job, .run = {}}).value());
  };
  CHECK(take("1") == "lease 1");
  lost("1");
  commands.answer.out = "RUNNING\n";
  CHECK(take("2") == "job 1 is link 2 of this chain and still runs");
  CHECK(take("1") == "lease 3");  // requeued, and nothing is seen of its first start
  lost("1");
  commands.answer = {.status = {.exit_code = 1},
                     .out = {},
                     .err = "slurm_load_jobs error: Unable to contact slurm controller"};
  CHECK(take("2") == "job 1 is link 4 of this chain and may still run: the scheduler does not answer");
  commands.answer = {
      .status = {.exit_code = 1}, .out = {}, .err = "slurm_load_jobs error: Invalid job id specified"};
  CHECK(take("2") == "lease 5");
  REQUIRE(leases.make(6, {.process = this_process(), .job = "5", .run = {}}).value());
  CHECK(take("3") == "lease 7");  // the job is over, whatever is left of its processes
  commands.answer = {.status = {}, .out = "RUNNING\n", .err = {}};
  CHECK(take("4") == "lease 8");  // released
}

TEST_CASE("a job that the scheduler starts twice does not take the lease from its own first start") {
  const test::Folder there;
  const ChainFolder folder(there.path);
  REQUIRE(folder.create(chain_of({})));
  const auto slurm = make_slurm_submission();
  FakeSlurm commands;
  const LeaseOwner owner{.process = this_process(), .job = "101", .run = {}};
  const Lease first = take_over(folder, *slurm, owner, Environment(), commands).value();
  LeaseTimes times;
  times.wait = Seconds(0);
  const auto second = take_over(folder, *slurm, owner, Environment(), commands, times);
  REQUIRE_FALSE(second);
  CHECK(second.error().kind == ErrorKind::unavailable);
  CHECK(second.error().what.find(" is in use by job 101 on ") != std::string::npos);
  CHECK(folder.write(chain_of({}), first));
}
