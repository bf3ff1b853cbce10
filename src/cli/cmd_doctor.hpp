// dlrun doctor: checks nodes before ranks run on them, and names the bad ones. It starts no rank.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/job_options.hpp"

namespace dlrun::cli {

struct DoctorCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<int> run(const Context& context) override;

  JobOptions job;  // how to find and reach the nodes
  bool full = false;
  std::string directory;  // empty: the working directory
};

}  // namespace dlrun::cli
