// dlrun allocation: the nodes we may use, from which source, and why.
#pragma once

#include "src/cli/command.hpp"
#include "src/cli/host_options.hpp"

namespace dlrun::cli {

struct AllocationCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<int> run(const Context& context) override;

  std::string scheduler = "auto";
  std::string file;  // an allocation as JSON, or R of Flux
  HostOptions hosts;
};

}  // namespace dlrun::cli
