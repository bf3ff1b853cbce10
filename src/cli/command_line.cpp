#include "src/cli/command_line.hpp"

#include <algorithm>
#include <memory>
#include <set>

#include <CLI/CLI.hpp>

#include "src/base/strings.hpp"
#include "src/cli/answer.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/other_flags.hpp"
#include "src/cli/usage_error.hpp"

namespace dlrun::cli {
namespace {

// CLI11 names the flags that exclude each other in the order of their addresses, so that help would differ
// from start to start.
class HelpFormatter : public CLI::Formatter {
 public:
  // CLI11 knows neither what follows -- nor a command that need not be typed.
  std::string make_usage(const CLI::App* app, std::string) const override {
    if (const CommandRow* row = find_command(app->get_name()); row != nullptr)
      return fmt::format("Usage: dlrun {} [OPTIONS]{}{}\n", row->name, row->arguments.empty() ? "" : " ",
                         row->arguments);
    return "Usage: dlrun [run] [OPTIONS] JOB.yaml [-- ARGUMENT...]\n"
           "       dlrun [run] [OPTIONS] -- COMMAND...\n"
           "       dlrun COMMAND [OPTIONS] ...\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string out = CLI::Formatter::make_option_opts(option);
    const std::size_t excluded = out.find(" Excludes:");
    if (excluded == std::string::npos) return out;
    std::set<std::string> names;
    for (const CLI::Option* other : option->get_excludes()) names.insert(other->get_name());
    out.erase(excluded + std::string_view(" Excludes:").size());
    for (const std::string& name : names) out += " " + name;
    return out;
  }
};

CLI::Option* add_flag(CLI::App& app, const BoundFlag& bound) {
  const std::string name(bound.flag.name), help(bound.flag.help);
  const auto take = bound.take;
  if (bound.flag.value.empty())
    return app.add_flag_callback(
        name, [take] { take({}); }, help);
  if (!bound.repeated) return app.add_option_function<std::string>(name, take, help);
  return app
      .add_option_function<std::vector<std::string>>(
          name,
          [take](const std::vector<std::string>& values) {
            std::for_each(values.begin(), values.end(), take);
          },
          help)
      ->allow_extra_args(false);
}

void add_arguments(CLI::App& app, const Arguments& takes) {
  for (const BoundArgument& argument : takes.arguments())
    app.add_option(std::string(argument.name), *argument.value, std::string(argument.help))->type_name("");
  for (const BoundFlag& bound : takes.flags()) {
    CLI::Option* option = add_flag(app, bound);
    if (!bound.flag.value.empty()) option->type_name(std::string(bound.flag.value));
    if (const auto check = bound.flag.check; check != nullptr)
      option->check(CLI::Validator([check](std::string& value) { return check(value); }, ""));
  }
  for (const BoundFlag& bound : takes.flags())
    if (!bound.flag.excludes.empty())
      for (const std::string& other : split(bound.flag.excludes, ' '))
        app.get_option(std::string(bound.flag.long_name()))->excludes(app.get_option(other));
  if (takes.takes_extra()) app.allow_extras();
}

// All commands stand in the help of dlrun. Flags are made for the chosen one only: a command starts in
// milliseconds.
CLI::App* add_commands(CLI::App& app, const CommandRow* chosen, const Arguments& takes) {
  CLI::App* out = &app;
  for (const CommandRow& row : commands()) {
    CLI::App* command = app.add_subcommand(std::string(row.name), std::string(row.summary));
    command->group(row.audience == Audience::dlrun_itself ? "" : "Commands");
    if (&row != chosen) continue;
    command->footer(std::string(row.examples));
    add_arguments(*command, takes);
    out = command;
  }
  return out;
}

std::vector<std::string> flag_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

// The command line as it is being read.
struct Reading {
  std::vector<std::string> words;  // before "--", the command first
  const CommandRow* row = nullptr;
  Command* command = nullptr;
  CLI::App* app = nullptr;  // the command's, or dlrun's
  bool implied = false;     // "run" was not typed

  std::string_view name() const { return row == nullptr ? std::string_view() : row->name; }
};

// The first word that is a flag but none of ours.
std::optional<Error> unknown_flag(const Reading& reading) {
  const std::vector<std::string> names = flag_names(*reading.app);
  for (const std::string& word : reading.words) {
    if (word.size() < 2 || word[0] != '-' || is_digit(word[1])) continue;
    const std::string name = word.substr(0, word.find('='));
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string_view other = hint_for_other_flag(word);
    const std::string near = word.starts_with("--") ? nearest(name, names) : "";
    return usage_error(reading.name(), fmt::format("unknown flag '{}'", name),
                       !other.empty() ? std::string(other)
                       : near.empty() ? ""
                                      : fmt::format("did you mean '{}'?", near));
  }
  return std::nullopt;
}

// What CLI11 found wrong. It names unexpected arguments all at once, and from the end.
Error misread(const Reading& reading, const CLI::ParseError& problem) {
  if (reading.words.empty()) return usage_error("", "no job file and no command");
  if (auto flag = unknown_flag(reading)) return std::move(*flag);
  if (reading.command != nullptr)
    if (auto mistyped = reading.command->mistyped()) return std::move(*mistyped);
  const std::vector<std::string> extra = reading.app->remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&problem) == nullptr || extra.empty())
    return usage_error(reading.name(), problem.what());
  const bool takes_program = reading.app->get_option_no_throw("--set") != nullptr;
  return usage_error(reading.name(), fmt::format("unexpected argument '{}'", extra[0]),
                     takes_program ? "give one job file, and the arguments of its program after --" : "");
}

// An empty value is what is left of a shell variable that was not set: it must not pass for no flag.
std::optional<Error> empty_value(const Reading& reading) {
  for (const CLI::Option* option : reading.app->get_options())
    for (const std::string& value : option->results())
      if (value.empty())
        return usage_error(reading.name(), fmt::format("{} has an empty value", option->get_name()),
                           "give it a value, or remove it");
  return std::nullopt;
}

// The first word from there on that is no flag which every command takes, and not the value of one.
std::size_t behind_common_flags(const std::vector<std::string>& words, std::size_t at) {
  const auto flag_of = [](const std::string& word) -> const Flag* {
    for (const FlagRow<CommonOptions>& row : common_flags())
      for (const std::string& name : split(row.flag.name, ','))
        if (word == name || (!row.flag.value.empty() && word.starts_with(name + "="))) return &row.flag;
    return nullptr;
  };
  for (; at < words.size(); ++at) {
    const Flag* flag = flag_of(words[at]);
    if (flag == nullptr) break;
    if (!flag->value.empty() && words[at].find('=') == std::string::npos) ++at;
  }
  return std::min(at, words.size());
}

// "dlrun --json list" is "dlrun list --json".
std::vector<std::string> command_first(std::vector<std::string> words) {
  const std::size_t at = behind_common_flags(words, 0);
  if (at == words.size() || (words[at] != "help" && find_command(words[at]) == nullptr)) return words;
  const auto command = words.begin() + static_cast<std::ptrdiff_t>(at);
  std::rotate(words.begin(), command, command + 1);
  return words;
}

// "dlrun help nosuch", which must not pass for an answer. A flag behind help asks for the same.
std::optional<Error> unknown_help(const std::vector<std::string>& words) {
  if (words.empty() || words[0] != "help") return std::nullopt;
  const std::size_t at = behind_common_flags(words, 1);
  if (at == words.size() || words[at] == "help" || words[at].starts_with('-')) return std::nullopt;
  if (find_command(words[at]) != nullptr) {
    const std::size_t next = behind_common_flags(words, at + 1);
    if (next == words.size() || words[next].starts_with('-')) return std::nullopt;
    return usage_error(words[at], fmt::format("unexpected argument '{}'", words[next]));
  }
  const std::string near = nearest(words[at], command_names());
  return usage_error(
      "", fmt::format("unknown command '{}'", words[at]),
      near.empty() ? "dlrun --help shows all commands" : fmt::format("did you mean 'dlrun help {}'?", near));
}

// "dlrun help" and "dlrun help plan", as other programs have them.
std::vector<std::string> help_words(const std::vector<std::string>& words) {
  const std::size_t at = behind_common_flags(words, 1);
  if (at < words.size() && find_command(words[at]) != nullptr) return {words[at], "--help"};
  return {"--help"};
}

// "dlrun JOB" is "dlrun run JOB". Only a first word can be a command, so a job file may be called
// "plan.yaml".
std::vector<std::string> with_command(std::vector<std::string> words) {
  if (!words.empty() && words[0] == "help") words = help_words(words);
  const bool asks_program =
      words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "--version";
  if (!asks_program && find_command(words[0]) == nullptr) words.insert(words.begin(), "run");
  return words;
}

std::unique_ptr<Command> answer(std::string text) {
  return std::make_unique<Answer>(std::move(text));
}

// The answer where the command line asks for one; nullptr where the command is to be run.
Result<std::unique_ptr<Command>> parse(CLI::App& app, const Reading& reading) {
  try {
    // CLI11 takes a vector from its end.
    std::vector<std::string> reversed(reading.words.rbegin(), reading.words.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    // "dlrun nosuch --help" is not to show the help of run.
    if (reading.implied && reading.command != nullptr)
      if (auto mistyped = reading.command->mistyped()) return fail(std::move(*mistyped));
    return answer(reading.row == nullptr ? app.help() : reading.app->help("dlrun"));
  } catch (const CLI::CallForVersion& version) {
    return answer(version.what());
  } catch (const CLI::ParseError& problem) {
    return fail(misread(reading, problem));
  }
  return nullptr;
}

Result<void> check_values(const Reading& reading) {
  if (auto empty = empty_value(reading)) return fail(std::move(*empty));
  if (auto mistyped = reading.command->mistyped()) return fail(std::move(*mistyped));
  for (const std::string& word : reading.app->remaining())
    if (word.size() > 1 && word[0] == '-')
      return fail(unknown_flag(reading).value_or(
          usage_error(reading.name(), fmt::format("unknown flag '{}'", word))));
  return {};
}

}  // namespace

Result<CommandLine> read_command_line(const std::vector<std::string>& arguments) {
  // What follows "--" is the program's, whatever it looks like.
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const std::vector<std::string> own = command_first({arguments.begin(), dashes});
  if (auto unknown = unknown_help(own)) return fail(std::move(*unknown));
  Reading reading{.words = with_command(own)};
  ExtraArguments extra;
  if (dashes != arguments.end()) extra.of_program.assign(dashes + 1, arguments.end());
  if (reading.words.empty() && !extra.of_program.empty()) reading.words = {"run"};

  CommandLine out;
  Arguments takes;
  if (!reading.words.empty()) reading.row = find_command(reading.words[0]);
  reading.implied = !own.empty() && own[0] != "help" && find_command(own[0]) == nullptr;
  if (reading.row != nullptr) {
    out.command = reading.row->make();
    out.command->add(takes);
    if (reading.row->audience == Audience::people) takes.flags(common_flags(), out.common);
  }
  CLI::App app("dlrun: launches distributed training jobs on clusters and on this machine", "dlrun");
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "'dlrun JOB.yaml' is 'dlrun run JOB.yaml'. 'dlrun COMMAND --help' shows the flags of a command, with "
      "examples.\nSee also: man dlrun.");
  app.set_version_flag("--version", version_text);
  app.require_subcommand(1);
  reading.command = out.command.get();
  reading.app = add_commands(app, reading.row, takes);
  if (auto text = TRY(parse(app, reading))) {
    out.command = std::move(text);
    return out;
  }
  TRY(check_values(reading));
  extra.of_command = reading.app->remaining();
  TRY(out.command->finish(extra));
  return out;
}

}  // namespace dlrun::cli
