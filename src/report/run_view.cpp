#include "src/report/run_view.hpp"

#include <algorithm>
#include <map>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/utc.hpp"
#include "src/record/stop_request.hpp"
#include "src/report/head_life.hpp"

namespace dlrun::report {
namespace {

namespace fs = std::filesystem;

struct Draft {
  RunView view;
  std::optional<RunFolder> folder;
};

std::string text_of(const Json& json, const char* name) {
  return field<std::string>(json, name, "").value_or("");
}

std::optional<Instant> time_of(const Json& json, const char* name) {
  return parse_utc(text_of(json, name));
}

void read_head(Draft& draft) {
  RunView& view = draft.view;
  view.head = head_of(*draft.folder);
  if (!view.head) return;
  const job::HeadStatus& head = *view.head;
  view.name = head.name, view.framework = head.framework, view.scheduler = head.scheduler;
  view.scheduler_job = head.scheduler_job;
  view.nodes = head.nodes, view.ranks = head.ranks, view.attempt = head.attempt;
  view.began = head.began;
  view.progress = head.progress;
}

void read_record(const Json& record, RunView& view) {
  if (record.is_null()) return;
  view.name = text_of(record, "name"), view.framework = text_of(record, "framework");
  view.scheduler = text_of(record, "scheduler");
  if (const std::string job = text_of(record, "scheduler_job_id"); !job.empty()) view.scheduler_job = job;
  view.began = time_of(record, "began"), view.ended = time_of(record, "ended");
  view.result = field<Json>(record, "result", "record").value_or(Json());
  view.progress = field<Json>(record, "last_progress", "record").value_or(Json());
  // The last report may be a second older than the end.
  if (const auto steps = field<std::int64_t>(view.result, "steps", "record");
      steps && view.progress.is_object())
    view.progress["step"] = *steps;
  const Json attempts = field<Json>(record, "attempts", "record").value_or(Json());
  if (!attempts.is_array() || attempts.empty()) return;
  view.attempt = static_cast<int>(attempts.size());
  view.ranks = field<Json>(attempts.back(), "ranks", "record").value_or(Json::array()).size();
}

// Of one that never said anything of itself, its plan does.
void read_plan(const Json& plan, RunView& view) {
  if (plan.is_null()) return;
  view.planned = text_of(plan, "run_directory");
  if (view.name.empty()) view.name = text_of(plan, "name");
  if (view.framework.empty()) view.framework = text_of(plan, "framework");
  std::map<int, std::size_t> ranks_of;
  const Json ranks = field<Json>(plan, "ranks", "plan").value_or(Json::array());
  for (const Json& rank : ranks) {
    ++ranks_of[field<int>(rank, "node", "plan").value_or(0)];
    const std::string role = text_of(rank, "role");
    if (view.roles.empty() || view.roles.back().first != role) view.roles.emplace_back(role, 0);
    ++view.roles.back().second;
  }
  if (view.roles.size() == 1) view.roles.clear();
  int index = 0;
  for (const Json& node : field<Json>(plan, "nodes", "plan").value_or(Json::array()))
    view.hosts.push_back({.host = text_of(node, "host"), .ranks = ranks_of[index++]});
  view.nodes = view.hosts.size(), view.ranks = ranks.size();
}

void add_usage(RunView& view) {
  if (!view.head) return;
  for (const job::NodeUsage& usage : view.head->usage)
    for (HostView& host : view.hosts)
      if (host.host == usage.host) host.usage = usage;
}

void read_run(Draft& draft, Depth depth) {
  RunView& view = draft.view;
  auto folder = read_run_folder(view.run, depth);
  if (!folder) {
    view.standing = {RunState::lost, folder.error().what, std::nullopt};
    return;
  }
  draft.folder = std::move(*folder);
  read_head(draft);
  read_record(draft.folder->record, view);
  read_plan(draft.folder->plan, view);
  view.problems = draft.folder->problems;
}

RunState state_of(job::ChainState state) {
  switch (state) {
    case job::ChainState::queued:
      return RunState::queued;
    case job::ChainState::running:
      return RunState::running;
    case job::ChainState::done:
      return RunState::done;
    case job::ChainState::stopped:
      return RunState::stopped;
    case job::ChainState::failed:
      return RunState::failed;
  }
  return RunState::lost;
}

void read_chain_of(Draft& draft, Depth depth, const World& world) {
  RunView& view = draft.view;
  auto chain = chain_view_of(job::ChainFolder(view.entry.path), world);
  if (!chain) {
    view.standing = {RunState::lost, chain.error().text(), std::nullopt};
    return;
  }
  view.chain = std::move(*chain);
  const job::Chain& ledger = view.chain->chain;
  std::error_code problem;
  if (!ledger.links.empty() && fs::exists(ledger.links.back().run_directory, problem)) {
    view.run = ledger.links.back().run_directory;
    read_run(draft, depth);
  }
  view.name = ledger.name, view.scheduler = ledger.scheduler;
  if (!ledger.links.empty()) view.began = parse_utc(ledger.links.front().began);
}

void read_submission(Draft& draft, const World& world) {
  RunView& view = draft.view;
  const fs::path file = view.entry.path / "submission.json";
  const auto text = read_regular_file(file);
  const auto json = text ? parse_json(*text, file.string()) : Result<Json>(tl::unexpected(text.error()));
  view.name = job_name_of(view.entry.folder());
  if (!json) {
    view.standing = {RunState::lost, "its job is not known: " + json.error().what, std::nullopt};
    return;
  }
  view.name = text_of(*json, "name"), view.framework = text_of(*json, "framework");
  view.scheduler = text_of(*json, "scheduler"), view.scheduler_job = text_of(*json, "job_id");
  view.job = ask_scheduler_job(view.scheduler, *view.scheduler_job, world);
  const std::string job = fmt::format("job {} of {}", *view.scheduler_job, view.scheduler);
  if (view.job.life == JobLife::gone && job::requested_stop(view.entry.path) != job::RunStop::none)
    view.standing = {RunState::stopped, job + " was cancelled by dlrun stop before a run began",
                     std::nullopt};
  else if (view.job.life == JobLife::gone)
    view.standing = {
        RunState::lost,
        fmt::format("{} is gone and began no run: what it printed is in {}", job, view.entry.path.string()),
        std::nullopt};
  else if (view.job.life == JobLife::started)
    view.standing = {RunState::starting, job + " has started and no run yet", std::nullopt};
  else if (view.job.life == JobLife::unknown)
    view.standing = {RunState::queued, "the scheduler does not tell how " + job + " stands", std::nullopt};
  else
    view.standing = {RunState::queued, view.job.held.empty() ? "" : "on hold: " + view.job.held,
                     std::nullopt};
}

Draft draft_of(const RunEntry& entry, Depth depth, const World& world) {
  Draft out;
  out.view.entry = entry;
  if (entry.kind == FolderKind::run) out.view.run = entry.path, read_run(out, depth);
  if (entry.kind == FolderKind::chain) read_chain_of(out, depth, world);
  if (entry.kind == FolderKind::submission) read_submission(out, world);
  return out;
}

// The ledger's word counts, but for a link that runs: there its head's does.
void conclude_chain(RunView& view, const World& world) {
  const job::Chain& ledger = view.chain->chain;
  const Standing link = view.standing;
  if (!view.run.empty() && is_over(link.state)) find_waiting(*view.chain, world);
  view.job = {.life = JobLife::unknown, .place = view.chain->place, .held = view.chain->held};
  const std::vector<std::string>& waiting = view.chain->waiting;
  if (!waiting.empty() && (ledger.links.empty() || ledger.state == job::ChainState::queued))
    view.scheduler_job = waiting.front();
  else if (!ledger.links.empty())
    view.scheduler_job = ledger.links.back().job_id;
  view.standing = {state_of(ledger.state), ledger.reason, std::nullopt};
  if (ledger.state == job::ChainState::queued && !view.chain->held.empty())
    view.standing.reason = "on hold: " + view.chain->held;
  if (ledger.state != job::ChainState::running || view.run.empty()) return;
  if (!is_over(link.state) || link.state == RunState::lost) view.standing = link;
}

// Elements of an array may share an id (Grid Engine, LSF): what waits under it are others.
bool may_be_of_array(const RunView& view) {
  const auto text = read_regular_file(view.run / "allocation.json");
  if (!text) return true;
  const auto json = parse_json(*text, "allocation.json");
  return !json || field<int>(*json, "array_index", "allocation.json").has_value();
}

// A link that ended is followed by another one, in a directory of its own.
bool is_link(const RunView& view) {
  return kind_of(view.entry.path.parent_path()) == FolderKind::chain;
}

// The job of a run that was preempted, or that lost a node, may be in the queue again.
void conclude_requeued(RunView& view, const World& world) {
  const bool may = is_over(view.standing.state) && view.standing.state != RunState::done;
  if (!may || view.entry.kind != FolderKind::run || !view.scheduler_job || is_link(view)) return;
  const auto job = ask_waiting_job(view.scheduler, *view.scheduler_job, world);
  if (!job || may_be_of_array(view)) return;
  view.job = *job;
  const std::string held = job->held.empty() ? "" : ", on hold: " + job->held;
  view.standing = {RunState::queued,
                   fmt::format("job {} of {} waits for another start{}; the last one is {}{}{}",
                               *view.scheduler_job, view.scheduler, held, word_of(view.standing.state),
                               view.standing.reason.empty() ? "" : ": ", view.standing.reason),
                   std::nullopt};
}

void conclude(Draft& draft, Life life, const World& world) {
  RunView& view = draft.view;
  if (draft.folder) view.standing = standing_of(*draft.folder, view.head, life);
  if (view.chain)
    conclude_chain(view, world);
  else
    conclude_requeued(view, world);
  if (view.standing.state == RunState::queued) view.head.reset();  // nobody leads it now
  if (view.name.empty()) view.name = job_name_of(view.entry.folder());
  if (!is_over(view.standing.state)) add_usage(view);
}

}  // namespace

bool waits_again(const RunView& view) {
  return view.entry.kind == FolderKind::run && view.standing.state == RunState::queued;
}

std::vector<RunView> views_of(const std::vector<RunEntry>& entries, Depth depth, const World& world) {
  std::vector<Draft> drafts;
  std::vector<HeadSign> heads;
  std::vector<std::size_t> of;
  for (const RunEntry& entry : entries) {
    drafts.push_back(draft_of(entry, depth, world));
    const Draft& draft = drafts.back();
    if (!draft.view.head || !draft.folder->record.is_null() || draft.view.head->exit_code) continue;
    heads.push_back({draft.view.run, *draft.view.head});
    of.push_back(drafts.size() - 1);
  }
  std::vector<Life> lives(drafts.size(), Life::unknown);
  const std::vector<Life> found = lives_of(heads, world.clock.now(), world.pause);
  for (std::size_t i = 0; i < of.size(); ++i) lives[of[i]] = found[i];
  std::vector<RunView> out;
  const AskedOnce commands(world.commands);
  const World asked{world.environment, commands, world.clock, world.pause};
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    conclude(drafts[i], lives[i], asked);
    out.push_back(std::move(drafts[i].view));
  }
  return out;
}

RunView view_of(const RunEntry& entry, const World& world) {
  return views_of({entry}, Depth::whole, world).front();
}

namespace {

bool is_of_job(const RunEntry& run, const std::string& job) {
  if (run.kind != FolderKind::run) return false;
  const std::string its = scheduler_job_of(run);
  return its == job || its.starts_with(job + "_");  // an element of an array
}

}  // namespace

RunEntry resolved(const RunEntry& entry) {
  if (entry.kind != FolderKind::submission) return entry;
  const std::string job = scheduler_job_of(entry);
  if (job.empty()) return entry;
  for (const RunEntry& run : all_runs(entry.path.parent_path().parent_path()))
    if (run.made >= entry.made && is_of_job(run, job)) return run;
  return entry;
}

std::vector<RunEntry> resolved(const std::vector<RunEntry>& entries) {
  std::vector<std::string> jobs;
  for (const RunEntry& entry : entries)
    if (entry.kind == FolderKind::run) jobs.push_back(scheduler_job_of(entry));
  std::vector<RunEntry> out;
  for (const RunEntry& entry : entries) {
    const std::string job = entry.kind == FolderKind::submission ? scheduler_job_of(entry) : "";
    const auto same = [&](const std::string& its) { return its == job || its.starts_with(job + "_"); };
    if (job.empty() || std::none_of(jobs.begin(), jobs.end(), same)) out.push_back(entry);
  }
  return out;
}

}  // namespace dlrun::report
