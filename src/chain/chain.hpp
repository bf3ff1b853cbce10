// A chain: one training over many jobs, as a value, and the one decision about it: after a link has ended, is
// the training done, does the next link go on, or is this the end? Pure. Progress is what a link's program
// reported or, without reports, that its checkpoint folder changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/record/time_accounting.hpp"

namespace dlrun::job {

enum class LinkEnd {
  running,      // no end is written down (yet)
  done,         // exit code 0
  again,        // a sound checkpoint: run me again
  interrupted,  // by a signal: preempted, cancelled, out of time
  lost,         // killed, or its node died: it wrote nothing down
  failed,       // any other exit code
};
std::string_view word_of(LinkEnd end);

// How a link gets its successor.
enum class ChainMode {
  resubmit,   // each link submits the next one, which waits for its end
  requeue,    // one job, which the scheduler starts again
  presubmit,  // all links are submitted at once, each waiting for the one before
};
std::string_view word_of(ChainMode mode);
Result<ChainMode> chain_mode(const std::string& name);

struct Link {
  int number = 0;  // counts starts: a job that was requeued is two links
  std::string job_id;
  std::string run_directory;
  LinkEnd end = LinkEnd::running;
  int exit_code = 0;
  std::string reason;
  std::string began, ended;  // UTC
  double seconds = 0;
  TimeParts time;               // where these went
  Json progress;                // the last report, {"step": .., "steps": ..}; null: none
  std::string checkpoint_mark;  // of the checkpoint folder when it began
  bool saved = false;           // the folder had changed when it ended
};

enum class ChainState { queued, running, done, stopped, failed };
std::string_view word_of(ChainState state);
inline bool is_over(ChainState state) {
  return state != ChainState::queued && state != ChainState::running;
}

struct Chain {
  std::string name, scheduler;
  ChainMode mode = ChainMode::resubmit;
  int max_links = 1;  // jobs, at most; starts of the one job, where it is requeued
  int retries = 0;    // failures that are tried again
  ChainState state = ChainState::queued;
  std::string reason;
  std::string script;                 // that every link is submitted with
  std::string search_path;            // PATH where it was submitted: nodes may have another
  std::string queued_job;             // the job that comes next; empty: none
  std::string checkpoint_files = {};  // pattern of the program's own files, by which progress is judged
  std::vector<Link> links;
};

Json to_json(const Chain& chain);
Result<Chain> chain_from_json(const Json& json, const std::string& where);

std::size_t jobs_used(const Chain& chain);
// The links that count towards max_links.
std::size_t links_used(const Chain& chain);
// The number of steps done, and of all steps; unset if no link reported any.
struct ChainProgress {
  std::int64_t step = 0, steps = 0;
};
std::optional<ChainProgress> progress_of(const Chain& chain);

enum class StopRequest { none, stop };
struct Verdict {
  ChainState state = ChainState::queued;  // queued: go on
  std::string reason;
};
/// The verdict after the end of the last link.
Verdict judge(const Chain& chain, StopRequest request);
/// The same verdict, and whether another job may follow.
Verdict judge_next(const Chain& chain, StopRequest request);

}  // namespace dlrun::job
