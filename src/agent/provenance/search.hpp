// ProvenanceSearch: finds out what a node is, and what the program of rank 0 is made of where that rank is
// ours, while the ranks run, and tells it as it changes: a program loads libraries for a while. Files and
// drivers are asked on a thread of their own, since they may answer late. It holds up no rank.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "src/agent/provenance/facts.hpp"
#include "src/agent/provenance/python_packages.hpp"
#include "src/process/aside.hpp"

namespace dlrun::agent {

class ProvenanceSearch {
 public:
  struct Callbacks {
    std::function<std::optional<pid_t>()> first_rank;  // rank 0's process, where it is here and runs
    std::function<void(const Json&)> found;            // {"node": {..}, "program": {..} or null}
  };
  ProvenanceSearch(EventLoop& loop, Callbacks callbacks) : loop_(loop), callbacks_(std::move(callbacks)) {}

  /// For ranks that have just been started.
  void begin();
  /// The ranks have ended: what still asks is ended.
  void end();
  /// Of a process of its own, which is no rank's.
  std::optional<pid_t> child() const;

 private:
  // What has been seen of one program; of several, the one that was seen most often counts.
  struct Known {
    int times = 0;
    std::vector<std::string> libraries;
    Json facts;
  };
  void probe_after(Seconds pause);
  void probe();
  void learn(const ProgramSeen& seen, Json facts);
  void ask_python(const ProgramSeen& seen);
  void tell();

  EventLoop& loop_;
  Callbacks callbacks_;
  bool ended_ = false;
  Seconds pause_{0};
  Json node_, python_;
  std::map<std::string, Known> programs_;  // by their file
  std::unique_ptr<Aside<Json>> asking_node_, asking_;
  std::unique_ptr<PythonPackages> packages_;
  bool asked_python_ = false;
  std::string told_;  // as text
};

}  // namespace dlrun::agent
