#include "src/agent/rank_program.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include <fmt/core.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

std::string link_of(pid_t pid, const char* name) {
  std::error_code problem;
  return fs::read_symlink(fmt::format("/proc/{}/{}", pid, name), problem).string();
}

std::vector<std::string> words_of(pid_t pid, const char* name) {
  const auto text = read_file(fmt::format("/proc/{}/{}", pid, name));
  std::vector<std::string> out = split(text ? *text : std::string(), '\0');
  if (!out.empty() && out.back().empty()) out.pop_back();
  return out;
}

bool takes_a_word(std::string_view option) {
  return option == "-u" || option == "-C" || option == "--unset" || option == "--chdir";
}

// "#!/usr/bin/env -S python3 -u": the kernel gives all behind env as one word.
std::optional<std::string_view> split_string(std::string_view option) {
  for (const std::string_view name : {"--split-string=", "-vS", "-S"})
    if (option.starts_with(name)) return trim(option.substr(name.size()));
  return std::nullopt;
}

}  // namespace

std::string program_behind_env(const Argv& argv, const Environment& environment,
                               const std::string& working_directory) {
  Environment changed = environment;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (auto rest = split_string(word)) {
      if (rest->empty() && i + 1 < argv.size()) rest = argv[++i];
      Argv inner{argv[0]};
      for (std::string& part : split(*rest, ' '))
        if (!part.empty()) inner.push_back(std::move(part));
      inner.insert(inner.end(), argv.begin() + static_cast<std::ptrdiff_t>(i) + 1, argv.end());
      return program_behind_env(inner, changed, working_directory);
    }
    const std::size_t equals = word.find('=');
    if (word.starts_with('-')) {
      if (takes_a_word(word)) ++i;
    } else if (equals != std::string::npos) {
      changed.set(word.substr(0, equals), word.substr(equals + 1));
    } else {
      const auto found = find_program(word, changed, working_directory);
      std::error_code problem;
      return found ? fs::weakly_canonical(*found, problem).string() : std::string();
    }
  }
  return {};
}

std::string program_started_by(const Argv& argv, const Environment& environment,
                               const std::string& working_directory) {
  if (argv.empty()) return {};
  const auto file = find_program(argv[0], environment, working_directory);
  if (!file) return {};
  std::ifstream stream(*file);
  std::string first(256, '\0');  // as much as the kernel reads of it
  stream.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<std::size_t>(stream.gcount()));
  first.resize(std::min(first.find('\n'), first.size()));
  std::error_code problem;
  if (!first.starts_with("#!")) return fs::weakly_canonical(*file, problem).string();
  const std::string_view line = trim(std::string_view(first).substr(2));
  const std::size_t blank = std::min(line.find(' '), line.size());
  Argv words{std::string(line.substr(0, blank))};
  if (const auto rest = trim(line.substr(blank)); !rest.empty()) words.emplace_back(rest);
  if (fs::path(words[0]).filename() == "env")
    return program_behind_env(words, environment, working_directory);
  return fs::weakly_canonical(words[0], problem).string();
}

std::string program_of(pid_t pid) {
  std::string program = link_of(pid, "exe");
  if (fs::path(program).filename() != "env") return program;
  const Argv argv = words_of(pid, "cmdline");
  const Environment environment = Environment::from_entries(words_of(pid, "environ"));
  const std::string directory = link_of(pid, "cwd");
  // It may have gone on meanwhile: what was read then is another program's.
  if (std::string now = link_of(pid, "exe"); now != program) return now;
  // In the middle of an exec the kernel shows no arguments and no environment yet: then nothing is found
  // here.
  return program_behind_env(argv, environment, directory);
}

}  // namespace dlrun::agent
