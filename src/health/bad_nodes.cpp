#include "src/health/bad_nodes.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/state_folder.hpp"
#include "src/base/utc.hpp"

namespace dlrun::health {
namespace {

namespace fs = std::filesystem;

Result<BadNode> read(const fs::path& file) {
  const Json json = TRY(parse_json(TRY(read_regular_file(file, 64 << 10)), file.string()));
  const auto until = parse_utc(TRY(field<std::string>(json, "until", file.string())));
  if (!until) return bad_input(file.string(), "'until' is not a time");
  return BadNode{TRY(field<std::string>(json, "host", file.string())),
                 TRY(field<std::string>(json, "reason", file.string())), *until};
}

}  // namespace

BadNodes::BadNodes(const Environment& environment, std::string_view cluster)
    : folder_(state_folder(environment)) {
  if (folder_) *folder_ = *folder_ / "bad-nodes" / state_file_name(cluster);
}

std::vector<BadNode> BadNodes::all(Instant now) const {
  std::vector<BadNode> out;
  if (!folder_) return out;
  std::error_code problem;
  for (fs::directory_iterator file(*folder_, problem), end; !problem && file != end;
       file.increment(problem)) {
    if (file->path().extension() != ".json") continue;  // one that is being written
    auto node = read(file->path());
    std::error_code ignored;
    if (!node) continue;  // not ours, or another version's
    if (node->until > now)
      out.push_back(std::move(*node));
    else
      fs::remove(file->path(), ignored);
  }
  std::sort(out.begin(), out.end(), [](const BadNode& a, const BadNode& b) { return a.host < b.host; });
  return out;
}

Result<void> BadNodes::remember(const BadNode& node) const {
  if (!folder_) return fail(no_state_folder());
  TRY(make_directories(*folder_, Access::owner_only));
  const Json json{{"schema", "dlrun.bad-node/1"},
                  {"host", node.host},
                  {"reason", node.reason},
                  {"until", format_utc(node.until)}};
  return replace_file(*folder_ / (state_file_name(node.host) + ".json"), to_pretty_text(json),
                      Durability::none);
}

void BadNodes::forget(const std::string& host) const {
  std::error_code ignored;
  if (folder_) fs::remove(*folder_ / (state_file_name(host) + ".json"), ignored);
}

}  // namespace dlrun::health
