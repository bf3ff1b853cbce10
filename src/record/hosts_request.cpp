#include "src/record/hosts_request.hpp"

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/enum_names.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::job {
namespace {

constexpr auto kChanges =
    enum_names<HostsChange>({{HostsChange::leave, "leave"}, {HostsChange::join, "join"}});

std::filesystem::path request_file(const std::filesystem::path& run_directory) {
  return run_directory / "hosts-request.json";
}

}  // namespace

Json to_json(const HostsRequest& request) {
  return {{"id", request.id}, {"change", kChanges.name(request.change)}, {"hosts", request.hosts}};
}

Result<HostsRequest> hosts_request_from_json(const Json& json, const std::string& where) {
  HostsRequest out;
  out.id = TRY(field<std::string>(json, "id", where));
  out.hosts = TRY(field<std::vector<std::string>>(json, "hosts", where));
  const std::string change = TRY(field<std::string>(json, "change", where));
  const auto known = kChanges.value(change);
  if (!known) return fail(ErrorKind::input, "{}: change is '{}', not leave or join", where, change);
  if (out.id.empty() || out.hosts.empty()) return fail(ErrorKind::input, "{}: no id, or no hosts", where);
  for (const std::string& host : out.hosts) TRY(check_host_name(host));
  out.change = *known;
  return out;
}

Result<void> request_hosts(const std::filesystem::path& run_directory, const HostsRequest& request) {
  return replace_file(request_file(run_directory), to_pretty_text(to_json(request)), Durability::synced);
}

std::optional<HostsRequest> requested_hosts(const std::filesystem::path& run_directory) {
  constexpr std::size_t longest = 1 << 20;
  const std::string name = request_file(run_directory).string();
  const auto text = read_regular_file(name, longest);
  if (!text) return std::nullopt;
  const auto json = parse_json(*text, name);
  if (!json) return std::nullopt;
  auto out = hosts_request_from_json(*json, name);
  return out ? std::optional(std::move(*out)) : std::nullopt;
}

std::filesystem::path host_answers_file(const std::filesystem::path& run_directory) {
  return run_directory / "hosts.json";
}

}  // namespace dlrun::job
