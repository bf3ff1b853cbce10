// RankProbe: what an agent sees of a rank whose job has stopped moving: is a process of it stopped, stuck in
// the kernel, or inside MPI_Finalize? It only looks; whom to blame is the head's to say, which hears of all
// ranks.
#pragma once

#include <string>

#include "src/base/json_fwd.hpp"
#include "src/process/process_state.hpp"

namespace dlrun::agent {

struct RankProbe {
  char state = '?';  // the most telling of its processes: T, t stopped; D stuck in the kernel; else its own
  pid_t pid = 0;     // that process
  std::string name = {};    // its program
  std::string waits = {};   // the kernel's function that it waits in
  bool finalizing = false;  // inside MPI_Finalize
  bool in_barrier = false;  // waits in a barrier of its MPI for other ranks
};

// Of the rank that `pid` leads.
RankProbe probe_rank(pid_t pid);
// The same from what is known of its processes, itself first: pure.
RankProbe look_at(const std::vector<ProcessState>& tree);

Json to_json(const RankProbe& look);
RankProbe probe_from_json(const Json& json);

}  // namespace dlrun::agent
