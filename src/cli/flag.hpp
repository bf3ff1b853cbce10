// A flag of the command line is one row of a table. The row says how the flag is written, what --help says of
// it, which key of the job file or which field it sets, and what `dlrun submit` does with it. The reader of
// command lines, the overrides of the job file, the flags of a submitted job and the shells' completions are
// made from these rows; tests compare them with the man pages.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace dlrun::cli {

/// What becomes of a flag that is given to `dlrun submit`.
enum class OnSubmit {
  own,        // submit itself uses it
  frozen,     // it sets a key of the job, and so is in the frozen job
  directive,  // the same, and the scheduler is asked for it too
  forwarded,  // the dlrun inside the job gets it
  refused,    // it has no meaning for a job that gets its nodes later
};

struct Flag {
  std::string_view name;        // "--nodes"; "-q,--quiet"
  std::string_view value = {};  // name of its value in the help: "N"; empty: a switch
  std::string_view help = {};
  OnSubmit on_submit = OnSubmit::own;
  std::string_view refusal = {};   // why submit refuses it
  std::string_view choices = {};   // usual values, for completions: "auto pmix none"
  std::string_view excludes = {};  // flags that must not be given with it
  std::string (*check)(const std::string& value) = nullptr;  // what is wrong with a value; empty: nothing

  /// "--quiet" of "-q,--quiet".
  constexpr std::string_view long_name() const { return name.substr(name.find("--")); }
};

/// The flag sets this key of the job file: to its value, or to `switched` where it is a switch.
struct Key {
  std::string_view path;
  std::string_view switched = {};
};

/// A row of a table: a flag, and where in `Options` its value goes. Key needs a field `overrides`.
template <class Options>
struct FlagRow {
  Flag flag;
  std::variant<Key, std::string Options::*, bool Options::*, std::vector<std::string> Options::*> place;
};

}  // namespace dlrun::cli
