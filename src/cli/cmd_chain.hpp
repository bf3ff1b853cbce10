// dlrun chain status and stop: where one training over many jobs stands, and how it is ended.
#pragma once

#include "src/cli/command.hpp"
#include "src/report/chain_view.hpp"

namespace dlrun::cli {

struct ChainCommand final : Command {
  static const char* const kExamples;

  void add(Arguments& arguments) override;
  Result<void> finish(const ExtraArguments& extra) override;
  Result<int> run(const Context& context) override;

  std::string action;
  std::string folder;  // empty: the newest chain
  bool now = false;
};

/// For people, on stdout.
void print_chain(const report::ChainView& shown, const job::ChainFolder& folder, Console& console);

enum class StopTime { when_saved, now };
/// Cancels what waits, and asks the running job to save and end.
Result<int> stop_chain(const job::ChainFolder& folder, StopTime time, const Context& context);

}  // namespace dlrun::cli
