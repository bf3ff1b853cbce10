// What a framework needs where its ranks run, and the probes that look for it: on every node, after the job's
// environment has been set up and before any rank starts. A probe says by itself what is missing.
#pragma once

#include <string>
#include <vector>

#include "src/base/types.hpp"
#include "src/base/yaml.hpp"
#include "src/plan/facts.hpp"

namespace dlrun::plan {

struct AdapterNeeds {
  std::vector<std::string> programs, variables;
  std::vector<std::string> modules;  // of Python, where the command is a Python program
  std::vector<std::string> facts;    // that must have a value in the job
  std::string where;
};

Result<AdapterNeeds> read_needs(const yaml::Node* node);

// An Error for the first fact that has no value in this job.
Result<void> check_facts(const AdapterNeeds& needs, const std::string& framework, const Facts& facts);

// `command` is the user's: its Python is the one that must know the modules.
std::vector<Argv> probes(const AdapterNeeds& needs, const std::string& framework, const Argv& command);

}  // namespace dlrun::plan
