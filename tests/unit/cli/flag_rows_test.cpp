// The table of flags: what a row says is what the flag does.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "src/base/file.hpp"
#include "src/chain/submit.hpp"
#include "src/cli/cmd_run.hpp"
#include "src/cli/command_line.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/job_options.hpp"
#include "src/cli/request.hpp"
#include "src/cli/submit_flags.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using cli::OnSubmit;

namespace {

const std::filesystem::path kRoot = std::filesystem::path(TEST_DATA_DIR) / "../../..";

class NoPrograms final : public CommandRunner {
 public:
  Result<CommandOutput> run(const Command& command) const override {
    return fail(ErrorKind::input, "{} is not there", command.argv.front());
  }
};

// A value that the flag takes, and that differs from the job's.
std::string value_for(const cli::Flag& flag) {
  if (flag.value == "N" || flag.value == "K") return "3";
  if (flag.value == "SIZE") return "1";
  if (flag.value == "TIME" || flag.value == "DURATION") return "47min";
  if (flag.value == "FRAMEWORK") return "mpi";
  if (flag.value == "LAUNCHER") return "ssh";
  if (flag.value == "SITE") return "lumi";
  if (flag.value == "PATH=VALUE") return "launch.grace=9s";
  return flag.value == "HOW" ? "none" : "other";
}

std::vector<std::string> given(const cli::Flag& flag) {
  std::vector<std::string> out{std::string(flag.long_name())};
  if (!flag.value.empty()) out.push_back(value_for(flag));
  return out;
}

// A job of Slurm as `dlrun submit` would submit it with these flags.
job::SubmissionPlan submission(const test::Folder& folder, const std::vector<std::string>& flags) {
  std::vector<std::string> words{"run", "--scheduler", "slurm", (folder.path / "job.yaml").string()};
  words.insert(words.end(), flags.begin(), flags.end());
  const auto line = cli::read_command_line(words);
  REQUIRE_MESSAGE(line.has_value(), line.error().text());
  const cli::JobOptions& options = dynamic_cast<const cli::RunCommand&>(*line->command).job;
  job::Request request = cli::request_of(options, Environment()).value();
  request.installation = {.bin = "/opt/dlrun/bin", .data = kRoot, .plugins = "/opt/dlrun/lib"};
  auto plan = job::plan_submission(request, cli::forwarded_flags(options, line->common), "/home/ann/runs/s",
                                   NoPrograms());
  REQUIRE_MESSAGE(plan.has_value(), plan.error().text());
  return std::move(*plan);
}

}  // namespace

TEST_CASE("what a row says of submit is what submit does with the flag") {
  const test::Folder folder;
  folder.write("job.yaml", "framework: plain\ncommand: [program]\nresources: {nodes: 1, walltime: 1h}\n");
  const job::SubmissionPlan plain = submission(folder, {});
  std::size_t seen = 0;
  for (const cli::FlagRow<cli::JobOptions>& row : cli::job_flags()) {
    const std::string name(row.flag.long_name());
    CAPTURE(name);
    if (row.flag.on_submit == OnSubmit::own || row.flag.on_submit == OnSubmit::refused) continue;
    const job::SubmissionPlan plan = submission(folder, given(row.flag));
    const bool in_job = plan.frozen_job != plain.frozen_job;
    const bool in_script = plan.script != plain.script;
    CHECK(in_job == (row.flag.on_submit != OnSubmit::forwarded));
    CHECK(in_script == (row.flag.on_submit != OnSubmit::frozen));
    if (row.flag.on_submit == OnSubmit::forwarded) CHECK(plan.script.find(name + "=") != std::string::npos);
    ++seen;
  }
  CHECK(seen >= 15);
}

namespace {

// What refuses these words; empty: nothing.
std::string refusal_of_request(std::vector<std::string> words) {
  words.insert(words.begin(), "run");
  words.push_back("job.yaml");
  const auto line = cli::read_command_line(words);
  REQUIRE_MESSAGE(line.has_value(), line.error().text());
  const auto request =
      cli::request_of(dynamic_cast<const cli::RunCommand&>(*line->command).job, Environment());
  if (request) return {};
  CHECK(request.error().kind == ErrorKind::usage);
  return request.error().text();
}

}  // namespace

TEST_CASE("a flag of a key and --set of the same key must agree") {
  for (const cli::FlagRow<cli::JobOptions>& row : cli::job_flags()) {
    const auto* key = std::get_if<cli::Key>(&row.place);
    if (key == nullptr) continue;
    const std::string path(key->path), name(row.flag.long_name());
    CAPTURE(name);
    const std::string value = key->switched.empty() ? value_for(row.flag) : std::string(key->switched);
    const auto with = [&](const std::string& set) {
      std::vector<std::string> words = given(row.flag);
      words.insert(words.begin(), {"--set", set});
      return refusal_of_request(words);
    };
    CHECK(with(path + "=" + value).empty());
    const std::string said = with(path + "=unlike");
    CHECK(said.find(name) != std::string::npos);
    CHECK(said.find("--set " + path + "=unlike give different values of " + path) != std::string::npos);
    CHECK(said.find("hint: remove one of them") != std::string::npos);
  }
  CHECK(refusal_of_request({"--nodes", "2", "--set", "resources={nodes: 3}"})
            .starts_with("--nodes 2 and --set resources.nodes=3 give"));
  CHECK(refusal_of_request({"--no-bind", "--set", "launch.bind=true"})
            .starts_with("--no-bind (launch.bind=false) and --set launch.bind=true give"));
  CHECK(refusal_of_request({"--set", "resources=null", "--nodes", "2"}).empty());
  CHECK(refusal_of_request({"--set", "resources.nodes=3", "--set", "resources.nodes=2", "--nodes", "2"})
            .empty());
}

TEST_CASE("a flag that is refused says why") {
  const auto refusal = [](const std::vector<std::string>& words) {
    const auto line = cli::read_command_line(words);
    REQUIRE_MESSAGE(line.has_value(), line.error().text());
    const auto result = cli::check_refused_flags(dynamic_cast<const cli::RunCommand&>(*line->command).job);
    return result ? std::string() : result.error().what;
  };
  CHECK(refusal({"run", "--hosts", "a,b", "x.yaml"}) ==
        "--hosts a,b: the scheduler chooses the nodes of a submitted job");
  CHECK(refusal({"run", "--hostfile", "f", "x.yaml"}).starts_with("--hostfile f: "));
  CHECK(refusal({"run", "--allocation", "a.json", "x.yaml"}).starts_with("--allocation a.json: "));
  CHECK(refusal({"run", "--nodes", "2", "x.yaml"}).empty());
}

TEST_CASE("flags of dlrun itself go to the dlrun in the job") {
  const auto line = cli::read_command_line({"run", "-q", "--verbose", "--run-dir", "-x", "x.yaml"}).value();
  const cli::JobOptions& options = dynamic_cast<const cli::RunCommand&>(*line.command).job;
  CHECK(cli::forwarded_flags(options, line.common) == Argv{"--run-dir=-x", "--quiet", "--verbose"});
}

TEST_CASE("every flag of every command has a row that is complete and is its own") {
  for (const cli::CommandRow& row : cli::commands()) {
    CAPTURE(std::string(row.name));
    cli::Arguments takes;
    const auto command = row.make();
    command->add(takes);
    std::set<std::string_view> names;
    for (const cli::BoundFlag& bound : takes.flags()) {
      CAPTURE(std::string(bound.flag.name));
      CHECK(names.insert(bound.flag.long_name()).second);
      CHECK(bound.flag.long_name().starts_with("--"));
      CHECK_FALSE(bound.flag.help.empty());
      CHECK((bound.flag.on_submit == OnSubmit::refused) == !bound.flag.refusal.empty());
      CHECK(static_cast<bool>(bound.take));
    }
  }
}

// What adding a flag costs: --retries stands in its row, in the man page and in no other source; that users
// of other launchers are told of it is other_flags.cpp's business.
TEST_CASE("one flag is one row: --retries") {
  std::vector<std::string> naming;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / "src")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".hpp") continue;
    if (read_file(entry.path()).value().find("\"--retries\"") != std::string::npos)
      naming.push_back(entry.path().filename().string());
  }
  CHECK(naming == std::vector<std::string>{"job_options.cpp"});
  const auto options = cli::read_command_line({"run", "--retries", "5", "x.yaml"}).value();
  const auto& job = dynamic_cast<const cli::RunCommand&>(*options.command).job;
  REQUIRE(job.overrides.size() == 1);
  CHECK(job.overrides[0].path == "launch.retries");
  CHECK(job.overrides[0].value == "5");
  CHECK(job.overrides[0].source == "--retries");
}

TEST_CASE("--site offers the presets that come with dlrun") {
  std::string names = "auto none";
  const auto sites = plan::all_sites(kRoot / "share").value();
  for (const plan::SitePreset& site : sites) names += " " + site.name;
  for (const auto& row : cli::job_flags())
    if (row.flag.name == "--site") CHECK(row.flag.choices == names);
}
