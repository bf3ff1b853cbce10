#include "src/cli/stack_lines.hpp"

#include <fmt/core.h>

namespace dlrun::cli {
namespace {

std::string text_in(const Json& object, const char* name) {
  return field<std::string>(object, name, "stacks.json").value_or(std::string());
}

Json list_in(const Json& object, const char* name) {
  auto list = field<Json>(object, name, "stacks.json");
  return list && list->is_array() ? std::move(*list) : Json::array();
}

int number_in(const Json& object, const char* name) {
  return field<int>(object, name, "stacks.json").value_or(0);
}

void add_frames(std::vector<std::string>& lines, const Json& frames) {
  int number = 0;
  for (const Json& frame : frames)
    lines.push_back(
        fmt::format("    #{:<2} {}  ({})", number++, text_in(frame, "function"), text_in(frame, "place")));
}

std::string ranks_of(const Json& object) {
  const int count = number_in(object, "count");
  return count == 1 ? "rank " + text_in(object, "ranks")
                    : fmt::format("{} ranks ({})", count, text_in(object, "ranks"));
}

void add_group(std::vector<std::string>& lines, const Json& group) {
  const Json first = field<Json>(group, "first", "stacks.json").value_or(Json::object());
  lines.push_back(fmt::format("{} {}", ranks_of(group), text_in(group, "where")));
  const std::string waits = text_in(first, "waits");
  lines.push_back(fmt::format("  rank {} on {}: process {} ({}), state {}{}", number_in(first, "rank"),
                              text_in(first, "host"), number_in(first, "pid"), text_in(first, "program"),
                              text_in(first, "state"), waits.empty() ? "" : ", in the kernel in " + waits));
  for (const auto& [name, title] : {std::pair("python", "  Python:"), std::pair("native", "  native:")}) {
    const Json frames = list_in(group, name);
    if (frames.empty()) continue;
    lines.emplace_back(title);
    add_frames(lines, frames);
  }
}

void add_threads(std::vector<std::string>& lines, const Json& document) {
  for (const Json& threads : list_in(document, "threads")) {
    lines.push_back(
        fmt::format("{} other threads of ranks {}", number_in(threads, "count"), text_in(threads, "ranks")));
    add_frames(lines, list_in(threads, "frames"));
  }
}

}  // namespace

std::vector<std::string> stack_lines(const Json& document, ShownThreads shown) {
  std::vector<std::string> lines;
  const std::string why =
      text_in(document, "reason") == "hang" ? "before the hung run was ended" : "on request";
  lines.push_back(fmt::format("stacks     of {} ranks, read {} at {}", number_in(document, "ranks"), why,
                              text_in(document, "written")));
  if (const std::string text = text_in(document, "text"); !text.empty())
    lines.push_back("           " + text);
  for (const Json& group : list_in(document, "groups")) {
    lines.emplace_back();
    add_group(lines, group);
  }
  if (shown == ShownThreads::all) add_threads(lines, document);
  for (const Json& problem : list_in(document, "problems"))
    lines.push_back(fmt::format("not read   {}: {}", ranks_of(problem), text_in(problem, "problem")));
  for (const Json& host : list_in(document, "silent_hosts"))
    lines.push_back("no answer  from " + (host.is_string() ? host.get<std::string>() : "?"));
  for (const Json& trace : list_in(document, "nccl_traces"))
    lines.push_back(
        fmt::format("NCCL       rank {} has left {}", number_in(trace, "rank"), text_in(trace, "file")));
  return lines;
}

}  // namespace dlrun::cli
