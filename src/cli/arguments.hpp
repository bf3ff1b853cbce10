// What one command takes on its command line: its flags and its arguments, each with the field that it fills.
// A command says it once (Command::add); the reader of command lines and the completions use it.
#pragma once

#include <functional>
#include <span>

#include "src/base/overloaded.hpp"
#include "src/cli/flag.hpp"
#include "src/plan/config_layers.hpp"

namespace dlrun::cli {

struct BoundFlag {
  Flag flag;
  bool repeated = false;  // may be given several times
  std::function<void(const std::string& value)> take = {};
};
struct BoundArgument {
  std::string_view name;  // "JOB"
  std::string_view help;
  std::string* value = nullptr;  // stays empty where the argument is not given
};

class Arguments {
 public:
  template <class Options>
  void flags(std::span<const FlagRow<Options>> rows, Options& options);
  void argument(std::string_view name, std::string& value, std::string_view help) {
    arguments_.push_back({name, help, &value});
  }
  /// Further arguments are left to Command::finish() as they stand.
  void take_extra() { takes_extra_ = true; }

  const std::vector<BoundFlag>& flags() const { return flags_; }
  const std::vector<BoundArgument>& arguments() const { return arguments_; }
  bool takes_extra() const { return takes_extra_; }

 private:
  std::vector<BoundFlag> flags_;
  std::vector<BoundArgument> arguments_;
  bool takes_extra_ = false;
};

/// What a flag of a key does to the job.
inline plan::Override override_by(Key key, std::string_view flag, const std::string& value) {
  using Reading = plan::Override::Reading;
  if (key.switched.empty()) return {std::string(key.path), value, std::string(flag), Reading::text};
  return {std::string(key.path), std::string(key.switched), std::string(flag), Reading::yaml};
}

template <class Options>
void Arguments::flags(std::span<const FlagRow<Options>> rows, Options& options) {
  for (const FlagRow<Options>& row : rows) {
    BoundFlag bound{.flag = row.flag};
    std::visit(Overloaded{[&](Key key) {
                            if constexpr (requires { options.overrides; })
                              bound.take = [&options, key, name = row.flag.name](const std::string& value) {
                                options.overrides.push_back(override_by(key, name, value));
                              };
                          },
                          [&](std::string Options::*field) {
                            bound.take = [&options, field](const std::string& value) {
                              options.*field = value;
                            };
                          },
                          [&](bool Options::*field) {
                            bound.take = [&options, field](const std::string&) { options.*field = true; };
                          },
                          [&](std::vector<std::string> Options::*field) {
                            bound.repeated = true;
                            bound.take = [&options, field](const std::string& value) {
                              (options.*field).push_back(value);
                            };
                          }},
               row.place);
    flags_.push_back(std::move(bound));
  }
}

}  // namespace dlrun::cli
