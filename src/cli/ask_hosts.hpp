// How `dlrun stop --hosts` and `dlrun grow` ask the head of a run for other nodes, and wait for what comes of
// it. Who interrupts the command takes nothing back: the head goes on.
#pragma once

#include <string>
#include <vector>

#include "src/cli/command.hpp"
#include "src/record/hosts_request.hpp"
#include "src/report/run_view.hpp"

namespace dlrun::cli {

/// "c3,c[5-6]" as names. An Error where it is no host list, or empty.
Result<std::vector<std::string>> hosts_of_flag(const std::string& flag, const std::string& text);

/// Asks, waits until each host has left or joined, and tells. The exit code; an Error with the head's reason
/// where one cannot.
Result<int> ask_hosts(const report::RunView& view, job::HostsChange change,
                      const std::vector<std::string>& hosts, const Context& context);

}  // namespace dlrun::cli
