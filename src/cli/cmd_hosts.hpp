// dlrun hosts: the host-list language as a tool: the names of a list, a list of names, how many they are.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct HostsCommand final : Command {
  enum class Action { expand, compress, count };
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  Action action = Action::expand;
  std::vector<std::string> lists;  // "-" is standard input
  std::string separator = "\n";
  bool unique = false;
};

}  // namespace dlrun::cli
