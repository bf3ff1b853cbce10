// A request to change the nodes of an elastic run, as a file in its directory: `dlrun stop --hosts` and
// `dlrun grow` write it from any machine that sees the directory; the head looks for it, and keeps what came
// of each request in hosts.json. A later request takes the place of one before it that the head has not seen.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::job {

enum class HostsChange { leave, join };
struct HostsRequest {
  std::string id;  // a word of its own for each request
  HostsChange change = HostsChange::leave;
  std::vector<std::string> hosts;
  friend bool operator==(const HostsRequest&, const HostsRequest&) = default;
};

Json to_json(const HostsRequest& request);
Result<HostsRequest> hosts_request_from_json(const Json& json, const std::string& where);

Result<void> request_hosts(const std::filesystem::path& run_directory, const HostsRequest& request);
/// The last request; unset where there is none, or none that can be read now.
std::optional<HostsRequest> requested_hosts(const std::filesystem::path& run_directory);
/// Where the head keeps its answers.
std::filesystem::path host_answers_file(const std::filesystem::path& run_directory);

}  // namespace dlrun::job
