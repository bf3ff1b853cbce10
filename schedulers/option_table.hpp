// Which options of a scheduler set the same thing, so that a directive of the user replaces dlrun's and none
// is listed twice: of two, a scheduler silently uses the first or the last. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "schedulers/submission.hpp"

namespace dlrun {

struct OptionNames {
  std::string_view subject;             // "nodes"
  std::vector<std::string_view> names;  // "-N", "--nodes"
};

struct OptionTable {
  enum class Style { getopt, exact };  // getopt: -N4 and --nod=4 are read, too
  Style style = Style::getopt;
  std::vector<OptionNames> options = {};
  // What an option's value splits a subject into ("-l a=1,b=2"); unset: it is one thing.
  std::vector<std::string> (*parts)(std::string_view subject, std::string_view value) = nullptr;

  // What a line of options is about, without the marker; options that are not in the table have no say.
  std::vector<std::string> subjects(std::string_view line) const;
};

// The names before '=' of a list as "select=2:ncpus=1,walltime=1:00:00", each below its subject.
std::vector<std::string> resource_parts(std::string_view subject, std::string_view value);

// The lines of `ours` that no line of `theirs` says again, then theirs. An Error where two of theirs say the
// same.
Result<std::vector<Directive>> replace_directives(std::vector<Directive> ours, std::vector<Directive> theirs,
                                                  std::string_view marker, const OptionTable& table);

}  // namespace dlrun
