// dlrun hosts: the host-list language as a tool: names of a list, a list of names, how many they are.
#include <algorithm>
#include <unordered_set>

#include <unistd.h>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/cli/commands.hpp"

namespace dlrun::cli {
namespace {

struct Input {
  std::string text;
  std::size_t number;  // of the word, or of the line of standard input
  enum class Source { only_word, word, line } source;
};

std::string place_of(const Input& input) {
  switch (input.source) {
    case Input::Source::only_word:
      return "host list";
    case Input::Source::word:
      return fmt::format("list {}", input.number);
    case Input::Source::line:
      break;
  }
  return fmt::format("standard input, line {}", input.number);
}

// A line that is empty is no list that is empty: pipes end with one.
Result<void> add_standard_input(std::vector<Input>& out) {
  const std::string content = TRY(read_all(STDIN_FILENO, "standard input"));
  const std::string_view text = content;
  std::size_t number = 1;
  for (std::size_t start = 0; start < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = trim(text.substr(start, end - start));
    if (!line.empty()) out.push_back({std::string(line), number, Input::Source::line});
    start = end + 1;
  }
  return {};
}

Result<std::vector<Input>> inputs_of(const HostsOptions& options) {
  std::vector<Input> out;
  const auto source = options.words.size() == 1 ? Input::Source::only_word : Input::Source::word;
  std::size_t number = 0;
  bool used = false;
  for (const std::string& word : options.words) {
    ++number;
    if (word != "-") {
      out.push_back({word, number, source});
      continue;
    }
    if (std::exchange(used, true))
      return fail(
          {.kind = ErrorKind::usage, .what = "standard input is named twice", .hint = "give '-' once"});
    TRY(add_standard_input(out));
  }
  return out;
}

// The same as for one list, with the place of the list; the most hosts are those of all lists together.
template <class Read>
auto read_input(const Input& input, std::size_t have, Read read) {
  auto result = read(input.text, kMaxHosts - have);
  if (!result) {
    const std::string_view column = std::string_view(result.error().where).substr(sizeof "host list" - 1);
    result.error().where = place_of(input) + std::string(column);
  }
  return result;
}

void keep_first_of_each(std::vector<HostName>& hosts) {
  std::unordered_set<std::string> seen;
  std::erase_if(hosts, [&](const HostName& host) { return !seen.insert(host.get()).second; });
}

Result<std::vector<HostName>> hosts_of(const HostsOptions& options) {
  std::vector<HostName> out;
  for (const Input& input : TRY(inputs_of(options))) {
    std::vector<HostName> more = TRY(read_input(input, out.size(), expand_hostlist));
    if (out.empty())
      out = std::move(more);
    else
      out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  if (options.unique) keep_first_of_each(out);
  return out;
}

Result<std::size_t> count_of(const HostsOptions& options) {
  if (options.unique) return TRY(hosts_of(options)).size();
  std::size_t out = 0;
  for (const Input& input : TRY(inputs_of(options))) out += TRY(read_input(input, out, count_hostlist));
  return out;
}

std::string joined(const std::vector<HostName>& hosts, const std::string& separator) {
  std::string out;
  for (const HostName& host : hosts) out.append(out.empty() ? "" : separator).append(host.get());
  if (!hosts.empty()) out += '\n';
  return out;
}

Json names_of(const std::vector<HostName>& hosts) {
  Json out = Json::array();
  for (const HostName& host : hosts) out.push_back(host.get());
  return out;
}

}  // namespace

Result<int> show_hosts(const HostsOptions& options, const Context& context) {
  using Action = HostsOptions::Action;
  Json json{{"schema", "dlrun.hosts/1"}};
  std::string text;
  if (options.action == Action::count) {
    const std::size_t count = TRY(count_of(options));
    json["count"] = count;
    text = std::to_string(count) + "\n";
  } else {
    const std::vector<HostName> hosts = TRY(hosts_of(options));
    json["count"] = hosts.size();
    if (options.action == Action::compress) {
      const std::string list = compress_hostlist(hosts);
      json["list"] = list;
      text = list + "\n";
    } else if (context.common.json) {
      json["hosts"] = names_of(hosts);
    } else {
      text = joined(hosts, options.separator);
    }
  }
  TRY(context.console.data(context.common.json ? to_pretty_text(json) : text));
  return 0;
}

}  // namespace dlrun::cli
