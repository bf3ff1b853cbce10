// A recorded world for the tests of backends: variables, files, and answers of a scheduler's programs.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "schedulers/scheduler.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun {

class FakeCommands final : public CommandRunner {
 public:
  // Answers commands that begin with these words.
  void answer(const std::string& begin, const std::string& out) {
    answers_[begin] = {.status = {}, .out = out, .err = {}};
  }
  void refuse(const std::string& begin, const std::string& err) {
    answers_[begin] = {.status = {.exit_code = 1}, .out = {}, .err = err};
  }
  Result<CommandOutput> run(const Command& command) const override {
    for (const auto& [begin, output] : answers_)
      if (join(command.argv, " ").starts_with(begin)) return output;
    return fail(ErrorKind::input, "{} is not there", command.argv.front());
  }

 private:
  std::map<std::string, CommandOutput> answers_;
};

class World {
 public:
  World() : folder_(make_folder()) {}
  ~World() { std::filesystem::remove_all(folder_); }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void set(const std::string& name, const std::string& value) { environment.set(name, value); }
  // The variable names a file with this text.
  void set_file(const std::string& name, const std::string& text) {
    const auto path = folder_ / name;
    if (replace_file(path, text, Durability::none)) environment.set(name, path.string());
  }
  Result<Allocation> find(std::string_view wanted = "auto") const {
    const DiscoveryContext context{environment, commands, clock_, [] { return FoundGpus{}; }};
    return find_allocation(context, wanted);
  }

  Environment environment;
  FakeCommands commands;

 private:
  static std::filesystem::path make_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "dlrun-world-XXXXXX").string();
    return ::mkdtemp(name.data());
  }
  std::filesystem::path folder_;
  SystemClock clock_;
};

// "n1:2 n2:4" with CPUs and GPUs where they are known: n1:2 cpus=4 gpus=0,1
inline std::string text_of(const Result<Allocation>& found) {
  if (!found) return "error: " + found.error().text();
  std::string out;
  for (const AllocatedNode& node : found->nodes) {
    out += fmt::format("{}{}:{}", out.empty() ? "" : " ", node.host, node.slots);
    if (node.cpus) out += fmt::format("/{}", *node.cpus);
    if (node.gpus) out += fmt::format("[{}]", join(*node.gpus, ","));
  }
  return out;
}

}  // namespace dlrun
