// make_plan(): the one function that decides what runs where, with which environment and argv. It is pure: no
// files, no network, no clock, no environment of its own, so that the preview on a login node, the tests and
// production give the same plan. It refuses whatever it cannot do as asked, and never plans less.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "schedulers/allocation.hpp"
#include "src/base/environment.hpp"
#include "src/base/install.hpp"
#include "src/plan/adapter.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/plan.hpp"
#include "src/plan/ports.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::plan {

// The threads that were measured as best, by the cores of a rank.
using ThreadsByCores = std::map<int, int>;

/// Why there is a further attempt, for programs that want to know.
struct PreviousAttempt {
  int ranks = 0;
  std::string reason;
  std::vector<std::string> left_out;  // hosts that no attempt uses any more
};

struct PlanInput {
  JobSpec spec;
  Allocation allocation;
  Adapter adapter;
  std::string job_id;  // no other run has it
  int attempt = 1;
  std::optional<PreviousAttempt> previous = {};
  std::string run_directory;      // absolute
  std::string working_directory;  // empty: the job file's folder
  Installation installation;
  std::optional<MpiProtocol> detected_mpi;  // needed where requested_mpi() is "auto": what the program speaks
  TakenPorts taken_ports = {};              // by others, as agents found
  std::map<std::string, ThreadsByCores> tuned_by_model = {};  // by the model of the processors
  std::map<std::string, std::string> cpu_models = {};         // by host, as nodes told them
  ThreadsByCores tuned_threads = {};                          // on nodes that told no model
  Environment environment;  // dlrun's own: it can hold what the user chose already
};

Result<Plan> make_plan(const PlanInput& input);

// "auto" or a protocol's name: the job's own word, else the adapter's.
std::string requested_mpi(const JobSpec& spec, const Adapter& adapter);

}  // namespace dlrun::plan
