// What a node and the program of rank 0 are made of, for the record and for `dlrun diff`: one fact is one row
// of these tables and one file. A fact asks the kernel, a file or a driver, and never runs anything of the
// user's; what cannot be told is null. No fact has values of secrets in it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "src/base/environment.hpp"
#include "src/base/json.hpp"
#include "src/base/types.hpp"

namespace dlrun::agent {

/// A process of rank 0 as the kernel shows it, with the libraries that its loader has found so far.
struct ProgramSeen {
  pid_t pid = 0;
  std::string executable;  // the file
  Argv argv;
  Environment environment;
  std::string working_directory;
  std::vector<std::string> libraries;  // files, sorted
  std::string root;                    // where its "/" is for us
};

struct NodeFact {
  std::string_view name;
  Json (*find)();
};
std::span<const NodeFact> node_facts();

struct ProgramFact {
  std::string_view name;
  Json (*find)(const ProgramSeen&);
};
std::span<const ProgramFact> program_facts();

// Of a node.
Json find_cpus();
Json find_gpus();
Json find_system();

// Of the program.
Json find_modules(const ProgramSeen& program);
Json find_variables(const ProgramSeen& program);
Json find_libraries(const ProgramSeen& program);
Json find_versions(const ProgramSeen& program);

}  // namespace dlrun::agent
