#include "src/plan/stage_in.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <set>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::plan {
namespace {

using yaml::Fields;
using yaml::Node;

constexpr std::array<std::string_view, 13> kArchiveEnds{".tar",     ".tar.gz", ".tgz",     ".tar.xz", ".txz",
                                                        ".tar.zst", ".tzst",   ".tar.bz2", ".tbz2",   ".tbz",
                                                        ".gz",      ".zst",    ".zip"};
constexpr std::size_t kMaxItems = 64, kMaxName = 100;

bool is_item_name(std::string_view name) {
  const auto ok = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' && name[0] != '-' &&
         std::all_of(name.begin(), name.end(), ok);
}

std::string without_archive_end(const std::string& name) {
  std::string_view longest;
  for (const std::string_view end : kArchiveEnds)
    if (name.ends_with(end) && end.size() > longest.size()) longest = end;
  return name.substr(0, name.size() - longest.size());
}

// Its last part, which a path that ends with a slash does not have.
std::string last_part(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return std::filesystem::path(path).filename().string();
}

Result<std::string> read_place(Fields& fields, const std::filesystem::path& base) {
  const std::string to = TRY(fields.text_or("to", "node-local"));
  if (to == "node-local" || to == "shm") return to;
  if (to.find('/') != to.npos) return (base / to).lexically_normal().string();
  return yaml::error_at(*fields.find("to"), fmt::format("{}: '{}' is not known", fields.path("to"), to),
                        "write node-local, shm, or the path of a folder on each node");
}

Result<StageIn> read_item(Fields fields, const std::filesystem::path& base) {
  StageIn out;
  const Node& from = *TRY(fields.require("from"));
  out.from = TRY(fields.text_or("from", ""));
  if (out.from.empty() || out.from.find('\0') != out.from.npos)
    return yaml::error_at(from, fmt::format("{} is empty", fields.path("from")));
  out.from = (base / out.from).lexically_normal().string();
  out.to = TRY(read_place(fields, base));
  out.unpack = TRY(fields.bool_or("unpack", false));
  out.reuse = TRY(fields.bool_or("reuse", false));
  out.time_limit = TRY(fields.duration_or("time-limit", out.time_limit));
  const std::string last = last_part(out.from);
  out.name = TRY(fields.text_or("as", out.unpack ? without_archive_end(last) : last));
  TRY(fields.finish());
  if (is_item_name(out.name)) return out;
  const Node* named = fields.find("as");
  return yaml::error_at(named != nullptr ? *named : from,
                        fmt::format("{}: '{}' is not a name below $DLRUN_STAGE", fields.path("as"), out.name),
                        "use letters, digits, '-', '_' and '.', a letter, digit or '_' first");
}

// Two names may also have one variable: a-b and a_b.
Result<void> check_names(const Node& list, const std::vector<StageIn>& items) {
  std::set<std::string> variables;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!variables.insert(stage_variable(items[i].name)).second)
      return yaml::error_at(
          list.items[i],
          fmt::format("stage[{}]: an item before it has the name '{}' too, or the same variable, {}", i,
                      items[i].name, stage_variable(items[i].name)),
          "give it another name with 'as'");
  return {};
}

}  // namespace

Result<std::vector<StageIn>> read_stage(Fields& job, const std::filesystem::path& base) {
  std::vector<StageIn> out;
  const Node* list = job.find("stage");
  if (list == nullptr) return out;
  if (list->kind != yaml::Kind::list || list->items.size() > kMaxItems)
    return yaml::error_at(*list, fmt::format("stage must be a list of up to {} maps", kMaxItems),
                          "write it as [{from: /project/flowers.tar, to: node-local}]");
  for (const Node& item : list->items)
    out.push_back(TRY(read_item(TRY(Fields::of(item, fmt::format("stage[{}]", out.size()))), base)));
  TRY(check_names(*list, out));
  return out;
}

std::string stage_folder(std::string_view job_id) {
  return fmt::format("/tmp/dlrun-staged-{}", job_id);
}

std::string stage_variable(std::string_view name) {
  std::string out = fmt::format("{}_", kStageVariable);
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    out += std::isalnum(letter) != 0 ? static_cast<char>(std::toupper(letter)) : '_';
  }
  return out;
}

std::string with_stage_folder(std::string_view text, const std::string& folder) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find(kStagePlaceholder);
    if (at == text.npos) return out += text;
    const std::size_t end = at + kStagePlaceholder.size();
    const bool ends =
        end == text.size() || (text[end] != '_' && std::isalnum(static_cast<unsigned char>(text[end])) == 0);
    out += text.substr(0, at);
    out += ends ? std::string_view(folder) : kStagePlaceholder;
    text.remove_prefix(end);
  }
}

Seconds stage_limit(const std::vector<StageIn>& items) {
  const bool unlimited = std::any_of(items.begin(), items.end(),
                                     [](const StageIn& item) { return item.time_limit.count() <= 0; });
  if (unlimited) return Seconds(0);
  return std::accumulate(items.begin(), items.end(), Seconds(0),
                         [](Seconds sum, const StageIn& item) { return sum + item.time_limit; });
}

Json to_json(const StageIn& item) {
  return {{"name", item.name},     {"from", item.from},   {"to", item.to},
          {"unpack", item.unpack}, {"reuse", item.reuse}, {"time_limit", item.time_limit.count()}};
}

Result<StageIn> stage_in_from_json(const Json& json, std::string_view where) {
  StageIn out;
  out.name = TRY(field<std::string>(json, "name", where));
  out.from = TRY(field<std::string>(json, "from", where));
  out.to = TRY(field<std::string>(json, "to", where));
  out.unpack = TRY(field<bool>(json, "unpack", where));
  out.reuse = TRY(field<bool>(json, "reuse", where));
  out.time_limit = Seconds(TRY(field<double>(json, "time_limit", where)));
  if (is_item_name(out.name) && out.from.starts_with('/') && out.time_limit.count() >= 0) return out;
  return fail(Error{.kind = ErrorKind::input,
                    .what = "field 'stage' has an item without a name, an absolute path or a time limit",
                    .where = std::string(where)});
}

}  // namespace dlrun::plan
