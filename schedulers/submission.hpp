// Submission: how a job is submitted to one scheduler, as values: the directive lines of its script, the
// submit command, the job id among what that command prints, and which directive a refusal is about; and how
// it is cancelled, requeued and asked for its state. Each scheduler that takes jobs has one in its row.
// Nothing that people type becomes more than one word of one directive: what a scheduler's directive language
// cannot say exactly is an Error, never a repair.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedulers/queue_place.hpp"
#include "src/base/clock.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/process/command.hpp"

namespace dlrun {

// So many nodes that are alike.
struct RequestedNodes {
  int nodes = 1, cpus = 1, gpus = 0;
  std::optional<std::uint64_t> memory = {};
};

// What is asked of a scheduler. Numbers that a scheduler needs and the job does not give are filled in by the
// caller.
struct SubmissionRequest {
  std::string name;
  std::string directory;              // the job's working directory, absolute
  std::string output;                 // the folder that gets what the job prints, absolute
  int nodes = 1;                      // the most of a range
  std::optional<int> min_nodes = {};  // of a range; unset: exactly `nodes`
  int tasks_per_node = 1;
  int cpus_per_task = 1;
  int gpus_per_node = 0;
  std::optional<std::chrono::seconds> walltime;
  bool unlimited = false;  // UNLIMITED was said: not the same as no walltime, where the site has a default
  std::string queue, account;
  std::optional<std::uint64_t> memory = {};  // of each node, in bytes
  std::vector<RequestedNodes> chunks = {};   // where nodes are unlike: all of them
  std::string gpu_type = {}, constraint = {}, qos = {};
  bool exclusive = false;
  std::string mail = {};                      // an address
  std::vector<std::string> mail_events = {};  // begin, end, fail
  std::vector<std::string> extra;             // directives as the scheduler writes them, without the marker
  std::string outlives_nodes = {};            // the key by which the job goes on without nodes that it loses
  std::vector<HostName> excluded = {};  // nodes that the job is kept off, by options of the submit command
};

// One line of the script, and the key of the job file it comes from (empty: dlrun's own).
struct Directive {
  std::string text;
  std::string key;
  std::string place = {};  // where the key was given: "job.yaml:3:12", "--nodes"
};

/// The fewest nodes with which the job may start.
inline int fewest_nodes(const SubmissionRequest& request) {
  return request.min_nodes.value_or(request.nodes);
}

/// "4", or "2-8": as Slurm and others write it.
std::string node_count(const SubmissionRequest& request);

// A key that a scheduler has no directive for, and what to do instead.
struct InexpressibleKey {
  std::string_view key, hint;
};

// "partition" in a refusal is about resources.queue.
struct RefusalKeyword {
  std::string_view word, key;
  std::string_view option = {};  // in resources.extra, where the key is not given
};

class Submission {
 public:
  virtual ~Submission() = default;
  virtual std::string_view name() const = 0;
  virtual std::string_view marker() const = 0;  // "#SBATCH"
  virtual Result<std::vector<Directive>> directives(const SubmissionRequest& request) const = 0;
  virtual std::vector<InexpressibleKey> inexpressible() const { return {}; }
  // `after`: the job that must have ended first, however it ended; empty: none.
  virtual Argv submit_command(const std::string& script, const std::string& after) const = 0;
  virtual Argv cancel_command(const std::string& job_id) const = 0;
  // Options of the submit command that keep the job off these nodes; empty where there are none. And the
  // command that does the same for a job that waits already.
  virtual Argv exclude_options(std::span<const HostName> /*nodes*/) const { return {}; }
  virtual Argv exclude_command(const std::string& /*job_id*/, std::span<const HostName> /*nodes*/) const {
    return {};
  }
  // Whether a directive of the script itself names nodes that are wanted or not: ours would replace it.
  virtual bool names_nodes(std::string_view /*script*/) const { return false; }
  // Has the scheduler start a job again that runs; empty where it cannot be told to, or not by users.
  virtual Argv requeue_command(const std::string& /*job_id*/) const { return {}; }
  // The directive without which it would refuse that.
  virtual std::string_view requeue_directive() const { return {}; }
  // The indices, as written, if an option of the script makes the job an array; else unset.
  virtual std::optional<std::string> array_list(std::string_view option) const = 0;
  virtual std::string_view array_variable() const = 0;  // the variable with the index of an array element
  virtual Argv state_command(const std::string& job_id) const = 0;
  // Whether the job is alive, from the output of the state command; unset if that is no answer (a busy
  // controller).
  virtual std::optional<bool> is_alive(const CommandOutput& state) const = 0;
  // Whether the job is pending, runs or will be requeued; unset if the output does not tell.
  virtual std::optional<bool> is_pending_or_alive(const CommandOutput& state) const {
    return is_alive(state).value_or(false) ? std::optional(true) : std::nullopt;
  }
  // Why a waiting job will not start by itself ("held by a user"), by the answer to this command; empty where
  // it will, or where it does not tell.
  virtual Argv hold_command(const std::string& job_id) const { return state_command(job_id); }
  virtual std::string why_held(const CommandOutput& /*state*/) const { return {}; }
  // Where a waiting job stands, by the answer to this command, which is asked in English and UTC; no command
  // where it does not tell, unset where the job does not wait.
  virtual Argv queue_command() const { return {}; }
  virtual std::optional<QueuePlace> queue_place(const CommandOutput& /*queue*/,
                                                std::string_view /*job_id*/) const {
    return std::nullopt;
  }
  virtual std::string_view own_job_variable() const = 0;
  // Whether a text has the shape of one of its job ids: what is read back from a file goes into commands.
  virtual bool is_job_id(std::string_view text) const;
  // The id among site banners: the last line that has the whole shape of one.
  virtual Result<std::string> job_id(std::string_view printed) const = 0;
  // An Error where the job could wait for ever: schedulers accept more than they can run. No answer from the
  // scheduler's programs is no Error.
  virtual Result<void> check_possible(const SubmissionRequest& /*request*/,
                                      const Environment& /*environment*/,
                                      const CommandRunner& /*commands*/) const {
    return {};
  }
  // Why an accepted job will never run, from the output of the state command: empty if it may run, unset if
  // the scheduler has not considered it yet.
  virtual std::optional<std::string> why_never(const CommandOutput& /*state*/) const { return std::nullopt; }
  // How long after accepting a job the scheduler may find that out; zero: it never does.
  virtual Seconds doubts_for() const { return Seconds(0); }
  virtual std::vector<RefusalKeyword> refusal_keywords() const { return {}; }
  // What its commands may inherit: no variables of a job that they are called from, whosever job it is. A
  // command passes them on, and dlrun in the new job would find the allocation of the old one.
  Environment environment(Environment ours) const;

 protected:
  // Without those variables of its own jobs that its commands would take for options.
  virtual Environment own_environment(Environment ours) const { return ours; }
};

/// What a program prints for one flag ("--version"), in lower case; each flag is asked for once.
class ProgramText {
 public:
  ProgramText(std::string program, const Environment& environment, const CommandRunner& commands)
      : program_(std::move(program)), environment_(environment), commands_(commands) {}
  const std::string& of(const std::string& flag) const;

 private:
  std::string program_;
  const Environment& environment_;
  const CommandRunner& commands_;
  mutable std::map<std::string, std::string> known_;
};

// The chunks, or the one that all nodes are.
std::vector<RequestedNodes> requested_nodes(const SubmissionRequest& request);

// The first key that is asked for and that the scheduler cannot be told; unset: it can be told all.
std::optional<InexpressibleKey> inexpressible_key(const Submission& submission,
                                                  const SubmissionRequest& request);

// Submits the script. A refusal is an Error that shows the scheduler's words and the directive that they
// mean.
Result<std::string> submit_job(const Submission& submission, const std::vector<Directive>& directives,
                               const std::string& script, const std::string& after,
                               const Environment& environment, const CommandRunner& commands,
                               std::span<const HostName> excluded = {});
// The command that submits it, kept off these nodes.
Argv submit_command(const Submission& submission, const std::string& script, const std::string& after,
                    std::span<const HostName> excluded);
// A job that was accepted and will never run is cancelled: an Error with the scheduler's words for why.
// `pause` is called between two questions.
Result<void> check_taken(const Submission& submission, const std::string& job_id,
                         const Environment& environment, const CommandRunner& commands,
                         const std::function<void(Seconds)>& pause);
// The directive that a refusal is about, and the key in it; no line where it cannot be told.
struct RefusedDirective {
  const Directive* line = nullptr;
  std::string key = {};
};
RefusedDirective refused_directive(const Submission& submission, const std::vector<Directive>& directives,
                                   std::string_view refusal);

}  // namespace dlrun
