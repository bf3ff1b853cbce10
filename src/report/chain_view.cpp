#include "src/report/chain_view.hpp"

#include "schedulers/scheduler.hpp"
#include "src/base/json.hpp"

namespace dlrun::report {
namespace {

using job::Chain;
using job::ChainFolder;
using job::ChainState;

// A job on hold waits until somebody releases it.
std::string why_held(const Chain& chain, const std::string& job, const World& world) {
  const auto scheduler = find_submission(chain.scheduler, world.environment, world.commands);
  if (!scheduler || !(*scheduler)->is_job_id(job)) return {};
  const auto said = world.commands.run({.argv = (*scheduler)->hold_command(job),
                                        .environment = (*scheduler)->environment(world.environment),
                                        .limit = Seconds(30)});
  return said ? (*scheduler)->why_held(*said) : std::string();
}

}  // namespace

bool all_gone(const std::vector<std::string>& jobs, const Submission& scheduler, const World& world) {
  for (const std::string& job : jobs) {
    const auto said = world.commands.run({.argv = scheduler.state_command(job),
                                          .environment = scheduler.environment(world.environment),
                                          .limit = Seconds(30)});
    if (!said || scheduler.is_pending_or_alive(*said).value_or(true)) return false;
  }
  return true;
}

Result<Chain> read_chain(const ChainFolder& folder, const World& world) {
  Chain chain = TRY(folder.read());
  if (is_over(chain.state)) return chain;
  std::vector<std::string> jobs = waiting_jobs(folder, chain);
  if (chain.state == ChainState::running && !chain.links.empty()) jobs.push_back(chain.links.back().job_id);
  const auto scheduler = find_submission(chain.scheduler, world.environment, world.commands);
  if (!scheduler || jobs.empty()) return chain;
  TRY(check_job_ids(**scheduler, folder, chain));
  if (!all_gone(jobs, **scheduler, world)) return chain;
  const Chain again = TRY(folder.read());  // a link may have ended while we asked
  if (job::to_json(again) != job::to_json(chain)) return again;
  chain.state = ChainState::stopped;
  chain.reason = fmt::format("job {} is gone from {} without a recorded end; its output is in {}",
                             jobs.back(), chain.scheduler, folder.path().string());
  return chain;
}

namespace {

// Of the first job that waits.
void find_place(ChainView& view, const World& world) {
  if (view.waiting.empty()) return;
  const Chain& chain = view.chain;
  view.held = why_held(chain, view.waiting.front(), world);
  if (chain.state == ChainState::queued)
    view.place = ask_scheduler_job(chain.scheduler, view.waiting.front(), world).place;
}

}  // namespace

// The scheduler knows that its job waits for another start, or that it is gone and the next one waits.
void find_waiting(ChainView& view, const World& world) {
  Chain& chain = view.chain;
  if (chain.state != ChainState::running || chain.links.empty()) return;
  const std::string& last = chain.links.back().job_id;
  const JobLife life = ask_scheduler_job(chain.scheduler, last, world).life;
  if (life == JobLife::waiting) {
    view.waiting.insert(view.waiting.begin(), last);
    chain.reason = fmt::format("job {} waits for another start", last);
  } else if (life == JobLife::gone && !view.waiting.empty()) {
    chain.reason =
        fmt::format("job {} is gone without a recorded end; job {} is next", last, view.waiting.front());
  } else {
    return;
  }
  chain.state = ChainState::queued;
  find_place(view, world);
}

Result<ChainView> chain_view_of(const ChainFolder& folder, const World& world) {
  ChainView out;
  out.chain = TRY(read_chain(folder, world));
  out.waiting = is_over(out.chain.state) ? std::vector<std::string>{} : waiting_jobs(folder, out.chain);
  find_place(out, world);
  out.time = times_of(out.chain);
  if (out.held.empty()) out.left = time_left(out.chain, world.clock.now());
  return out;
}

std::string eta_text(const job::TimeLeft& left, Instant now) {
  return format_utc(std::chrono::time_point_cast<Milliseconds>(now + left.total()));
}

// Said while there is time to do something about it.
std::string too_few_jobs(const ChainView& shown) {
  if (!shown.left || is_over(shown.chain.state)) return {};
  const auto used = links_used(shown.chain) + static_cast<std::size_t>(shown.left->further_links);
  if (used <= static_cast<std::size_t>(shown.chain.max_links)) return {};
  return fmt::format(
      "about {} jobs are needed, and the maximum is {}: submit again after the end of this chain", used,
      shown.chain.max_links);
}

Json to_json(const ChainView& shown, const ChainFolder& folder, Instant now) {
  Json out = job::to_json(shown.chain);
  const auto progress = job::progress_of(shown.chain);
  const auto& left = shown.left;
  out["directory"] = folder.path().string();
  out["first_job"] = folder.first_job();
  out["waiting_jobs"] = shown.waiting;
  out["held"] = shown.held.empty() ? Json(nullptr) : Json(shown.held);
  out["warning"] = too_few_jobs(shown).empty() ? Json(nullptr) : Json(too_few_jobs(shown));
  out["stop_asked"] = folder.stop_requested() == job::StopRequest::stop;
  out["seconds"] = shown.time.total.count();
  out["time"] = to_json(shown.time);
  out["step"] = progress ? Json(progress->step) : Json(nullptr);
  out["steps"] = progress && progress->steps > 0 ? Json(progress->steps) : Json(nullptr);
  out["seconds_left"] = left ? Json{{"in_jobs", left->in_jobs.count()},
                                    {"queue", left->queue ? Json(left->queue->count()) : Json(nullptr)},
                                    {"further_links", left->further_links}}
                             : Json(nullptr);
  out["eta"] = left ? Json(eta_text(*left, now)) : Json(nullptr);
  return out;
}

}  // namespace dlrun::report
