#include "src/run/tuned_threads.hpp"

#include "schedulers/node_identity.hpp"
#include "src/agent/provenance/facts.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/state_folder.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMaxThreads = 65'536;

bool is_here(const Allocation& allocation) {
  if (allocation.scheduler == "local") return true;
  std::vector<HostName> hosts;
  for (const AllocatedNode& node : allocation.nodes) hosts.push_back(node.host);
  const auto found = find_machine(NodeFinder(hosts), this_machine());
  return found && found->has_value();
}

std::map<int, int> threads_in(const Json& json, const std::string& file) {
  std::map<int, int> out;
  const auto threads = field<std::map<std::string, int>>(json, "threads", file);
  if (!threads) return out;
  for (const auto& [cores, count] : *threads)
    if (const auto number = parse_integer(cores, 1, kMaxThreads);
        number && count >= 1 && count <= kMaxThreads)
      out[static_cast<int>(*number)] = count;
  return out;
}

}  // namespace

TunedThreads::TunedThreads(const Environment& environment) : folder_(state_folder(environment)) {
  if (folder_) *folder_ /= "threads";
}

bool TunedThreads::any() const {
  std::error_code problem;
  return folder_ && fs::exists(*folder_, problem);
}

std::map<int, int> TunedThreads::of(const std::string& cpu_model) const {
  const auto all_models = all();
  const auto found = all_models.find(cpu_model);
  return found == all_models.end() ? std::map<int, int>{} : found->second;
}

std::map<std::string, std::map<int, int>> TunedThreads::all() const {
  std::map<std::string, std::map<int, int>> out;
  if (!folder_) return out;
  std::error_code problem;
  for (const fs::directory_entry& entry : fs::directory_iterator(*folder_, problem)) {
    const std::string file = entry.path().string();
    const auto text = read_regular_file(file, 64 << 10);
    const auto json = text ? parse_json(*text, file) : fail(text.error());
    if (!json || !json->is_object()) continue;
    const auto model = field<std::string>(*json, "cpu", file);
    if (auto threads = threads_in(*json, file); model && !threads.empty()) out[*model] = std::move(threads);
  }
  return out;
}

Result<void> TunedThreads::remember(const std::string& cpu_model, int cores, int threads) const {
  if (!folder_) return fail(no_state_folder());
  TRY(make_directories(*folder_, Access::owner_only));
  std::map<int, int> all = of(cpu_model);
  all[cores] = threads;
  Json by_cores = Json::object();
  for (const auto& [key, value] : all) by_cores[std::to_string(key)] = value;
  const Json json{{"schema", "dlrun.threads/1"}, {"cpu", cpu_model}, {"threads", std::move(by_cores)}};
  return replace_file(*folder_ / (state_file_name(cpu_model) + ".json"), to_pretty_text(json),
                      Durability::none);
}

std::map<int, int> tuned_threads_of(const Allocation& allocation, const Environment& environment) {
  const TunedThreads memory(environment);
  if (!memory.any() || !is_here(allocation)) return {};
  const Json cpus = agent::find_cpus();
  const auto model =
      cpus.is_object() ? field<std::string>(cpus, "model", "/proc/cpuinfo") : Result<std::string>("");
  return model ? memory.of(*model) : std::map<int, int>{};
}

}  // namespace dlrun::job
