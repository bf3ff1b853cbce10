#include "src/cli/cmd_hosts.hpp"

#include <algorithm>
#include <unordered_set>

#include <unistd.h>

#include "schedulers/hostlist/hostlist.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/cli/usage_error.hpp"

namespace dlrun::cli {
namespace {

constexpr FlagRow<HostsCommand> kHostsFlags[] = {
    {{.name = "--separator",
      .value = "TEXT",
      .help = "with expand: the separator of names (default: one name per line)"},
     &HostsCommand::separator},
    {{.name = "--unique", .help = "print each name once, where it occurs first"}, &HostsCommand::unique},
};

// "\n" and "\t" in a separator, as shells pass them on.
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    if (next != 'n' && next != 't' && next != '\\') {
      out += text[i];
      continue;
    }
    out += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    ++i;
  }
  return out;
}

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

Result<std::vector<Input>> inputs_of(const HostsCommand& options) {
  std::vector<Input> out;
  const auto source = options.lists.size() == 1 ? Input::Source::only_word : Input::Source::word;
  std::size_t number = 0;
  bool used = false;
  for (const std::string& word : options.lists) {
    ++number;
    if (word != "-") {
      out.push_back({word, number, source});
      continue;
    }
    if (std::exchange(used, true))
      return fail(
          {.kind = ErrorKind::usage, .what = "standard input is given twice", .hint = "give '-' once"});
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

Result<std::vector<HostName>> hosts_of(const HostsCommand& options) {
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

Result<std::size_t> count_of(const HostsCommand& options) {
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

const char* const HostsCommand::kExamples = R"(Commands:
  dlrun hosts expand LIST...      the names of a list, one per line
  dlrun hosts compress HOST...    a short list of the names
  dlrun hosts count LIST...       the number of names
LIST is in the host-list language of Slurm; "-" reads lists from standard input, one per line.
Examples:
  dlrun hosts expand 'n[008-011],rack[0-1]node[2-3]-ib'    one name per line, in Slurm's order
  dlrun hosts expand --separator , "$SLURM_JOB_NODELIST"   in one line
  sort -u machines | dlrun hosts compress -                a short list of the same names, in the same order
  dlrun hosts count 'n[1-4096]'                            the number of names of a list)";

// CLI11 reads "[1-3]" as a list of its own, so that lists are taken as extra arguments.
void HostsCommand::add(Arguments& arguments) {
  arguments.flags<HostsCommand>(kHostsFlags, *this);
  arguments.take_extra();
}

Result<void> HostsCommand::finish(const ExtraArguments& extra) {
  static const std::vector<std::string> actions{"expand", "compress", "count"};
  if (extra.of_command.empty())
    return fail(usage_error("hosts", "the action is missing; expected expand, compress or count"));
  const auto found = std::find(actions.begin(), actions.end(), extra.of_command[0]);
  if (found == actions.end()) return fail(unknown_action("hosts", extra.of_command[0], actions));
  action = static_cast<Action>(found - actions.begin());
  lists.assign(extra.of_command.begin() + 1, extra.of_command.end());
  lists.insert(lists.end(), extra.of_program.begin(), extra.of_program.end());
  if (lists.empty())
    return fail(usage_error("hosts", "no host list", "give one, or '-' to read lists from standard input"));
  separator = unescaped(separator);
  return {};
}

Result<int> HostsCommand::run(const Context& context) {
  Json json{{"schema", "dlrun.hosts/1"}};
  std::string text;
  if (action == Action::count) {
    const std::size_t count = TRY(count_of(*this));
    json["count"] = count;
    text = std::to_string(count) + "\n";
  } else {
    const std::vector<HostName> hosts = TRY(hosts_of(*this));
    json["count"] = hosts.size();
    if (action == Action::compress) {
      const std::string list = compress_hostlist(hosts);
      json["list"] = list;
      text = list + "\n";
    } else if (context.common.json) {
      json["hosts"] = names_of(hosts);
    } else {
      text = joined(hosts, separator);
    }
  }
  TRY(context.console.data(context.common.json ? to_pretty_text(json) : text));
  return 0;
}

}  // namespace dlrun::cli
