// The JSON form of an allocation, which tools rely on (schema dlrun.allocation/1). Reading it back is strict,
// because `dlrun plan --allocation FILE` takes it from people.
#include "schedulers/allocation.hpp"

#include <array>
#include <set>

#include "schedulers/flux/flux.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/utc.hpp"

namespace dlrun {
namespace {

constexpr std::string_view kSchema = "dlrun.allocation/1";

tl::unexpected<Error> bad(std::string_view where, std::string what, std::string hint = {}) {
  return fail(Error{.kind = ErrorKind::allocation,
                    .what = std::move(what),
                    .where = std::string(where),
                    .hint = std::move(hint)});
}

// An allocation that does not read is the allocation's fault, whatever the reader below says.
template <class T>
Result<T> as_allocation(Result<T> result) {
  if (!result) result.error().kind = ErrorKind::allocation;
  return result;
}

template <std::size_t N>
Result<void> only_keys(const Json& object, const std::array<std::string, N>& keys, std::string_view where) {
  if (!object.is_object()) return bad(where, "not an object: " + short_text(object));
  for (const auto& [key, value] : object.items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      return bad(where, fmt::format("unknown field '{}'", key), did_you_mean(key, keys));
  return {};
}

Result<std::optional<int>> optional_integer(const Json& object, std::string_view key, int low,
                                            std::string_view where) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::optional<int>{};
  if (!found->is_number_integer() || *found < low || *found > 10'000'000)
    return bad(where, fmt::format("field '{}' must be a whole number of at least {}, not {}", key, low,
                                  short_text(*found)));
  return std::optional<int>(found->get<int>());
}

Result<Instant> end_time_of(const std::string& text, std::string_view where) {
  if (const auto end = parse_utc(text)) return *end;
  return bad(where, fmt::format("end_time: '{}' is not a time", text), "write it as 2026-11-27T21:00:00Z");
}

// A name of a host or an address, by the rule that host lists and host files have.
Result<std::string> host_field(const Json& json, std::string_view key, std::string_view where) {
  const auto name = TRY(as_allocation(field<std::string>(json, key, where)));
  auto good = check_host_name(name);
  if (good) return name;
  Error problem = std::move(good).error();
  problem.kind = ErrorKind::allocation;
  problem.where = fmt::format("{}, field '{}'", where, key);
  return fail(std::move(problem));
}

Result<GpuVendor> vendor_field(const Json& json, std::string_view where) {
  const auto name = TRY(as_allocation(field<std::string>(json, "gpu_vendor", where)));
  if (const auto vendor = kGpuVendors.value(name)) return *vendor;
  return bad(where, fmt::format("gpu_vendor: '{}' is not known", name),
             did_you_mean(name, kGpuVendors.names()));
}

Result<AllocatedNode> node_from_json(const Json& json, std::string_view where) {
  static const std::array<std::string, 7> keys{"host",        "slots",   "cpus",      "gpus",
                                               "asked_slots", "address", "gpu_vendor"};
  TRY(only_keys(json, keys, where));
  AllocatedNode out;
  out.host = HostName(TRY(host_field(json, "host", where)));
  const auto slots = TRY(optional_integer(json, "slots", 1, where));
  out.slots = slots.value_or(1);
  out.cpus = TRY(optional_integer(json, "cpus", 1, where));
  out.asked_slots = TRY(optional_integer(json, "asked_slots", 1, where));
  if (const auto gpus = json.find("gpus"); gpus != json.end() && !gpus->is_null())
    out.gpus = TRY(as_allocation(field<std::vector<std::string>>(json, "gpus", where)));
  if (json.contains("address")) out.address = TRY(host_field(json, "address", where));
  if (json.contains("gpu_vendor")) out.gpu_vendor = TRY(vendor_field(json, where));
  return out;
}

Json to_json(const AllocatedNode& node) {
  Json out{{"host", node.host.get()}, {"slots", node.slots}, {"cpus", nullptr}, {"gpus", nullptr}};
  if (node.cpus) out["cpus"] = *node.cpus;
  if (node.gpus) out["gpus"] = *node.gpus;
  if (node.asked_slots) out["asked_slots"] = *node.asked_slots;
  if (node.address) out["address"] = *node.address;
  if (node.gpu_vendor) out["gpu_vendor"] = kGpuVendors.name(*node.gpu_vendor);
  return out;
}

}  // namespace

Json to_json(const Allocation& allocation) {
  Json nodes = Json::array();
  for (const AllocatedNode& node : allocation.nodes) nodes.push_back(to_json(node));
  Json out{{"schema", kSchema},
           {"scheduler", allocation.scheduler},
           {"job_id", nullptr},
           {"array_index", nullptr},
           {"nodes", std::move(nodes)},
           {"end_time", nullptr},
           {"evidence", allocation.evidence},
           {"warnings", allocation.warnings}};
  if (allocation.job_id) out["job_id"] = *allocation.job_id;
  if (allocation.array_index) out["array_index"] = *allocation.array_index;
  if (allocation.end_time) out["end_time"] = format_utc(*allocation.end_time);
  return out;
}

Result<Allocation> allocation_from_json(const Json& json, std::string_view where) {
  if (is_flux_r(json)) return flux_allocation(json, where);
  static const std::array<std::string, 8> keys{"schema", "scheduler", "job_id",   "array_index",
                                               "nodes",  "end_time",  "evidence", "warnings"};
  TRY(only_keys(json, keys, where));
  const auto schema = TRY(as_allocation(field<std::string>(json, "schema", where)));
  if (schema != kSchema) return bad(where, fmt::format("schema '{}' is not '{}'", schema, kSchema));
  Allocation out;
  out.scheduler = TRY(as_allocation(field<std::string>(json, "scheduler", where)));
  if (const auto id = json.find("job_id"); id != json.end() && !id->is_null())
    out.job_id = TRY(as_allocation(field<std::string>(json, "job_id", where)));
  out.array_index = TRY(optional_integer(json, "array_index", 0, where));
  if (const auto end = json.find("end_time"); end != json.end() && !end->is_null())
    out.end_time = TRY(end_time_of(TRY(as_allocation(field<std::string>(json, "end_time", where))), where));
  if (json.contains("evidence"))
    out.evidence = TRY(as_allocation(field<std::vector<std::string>>(json, "evidence", where)));
  if (json.contains("warnings"))
    out.warnings = TRY(as_allocation(field<std::vector<std::string>>(json, "warnings", where)));
  const Json nodes = TRY(as_allocation(field<Json>(json, "nodes", where)));
  if (!nodes.is_array() || nodes.empty()) return bad(where, "field 'nodes' is not a list of nodes");
  std::set<std::string> seen;
  for (const Json& node : nodes) {
    out.nodes.push_back(TRY(node_from_json(node, fmt::format("{}: node {}", where, out.nodes.size() + 1))));
    if (!seen.insert(out.nodes.back().host.get()).second)
      return bad(where, fmt::format("host {} is listed twice", out.nodes.back().host));
  }
  return out;
}

}  // namespace dlrun
