// RankStack: where a rank is: the functions that its threads are in, natively and in Python, and what it
// waits for in the kernel. As values with a JSON form, in which they go from a node to the head. What could
// not be read is told in `problems`, and is not left out in silence. Names of functions and files alone: no
// argument and no variable.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "src/base/json.hpp"
#include "src/base/types.hpp"

namespace dlrun {

struct StackFrame {
  std::string function;
  std::string place;  // the library, or file:line in Python
  bool operator==(const StackFrame&) const = default;
};
/// The innermost function first.
using StackFrames = std::vector<StackFrame>;

/// Threads of one process that are in the same functions.
struct ThreadStack {
  int count = 1;
  StackFrames frames;
};

struct RankStack {
  Rank rank;
  pid_t pid = 0;  // the program: the rank's first process that is no shell, or one that is stopped
  std::string program = {};
  char state = '?';                       // as in proc(5)
  std::string waits = {};                 // the kernel's function, where the kernel tells
  StackFrames native = {};                // of the first thread
  StackFrames python = {};                // the same
  std::vector<ThreadStack> threads = {};  // the others
  std::vector<std::string> problems = {};
  std::string nccl_trace = {};  // the file of NCCL's flight recorder, where there is one
};

Json to_json(const StackFrames& frames);
Json to_json(const RankStack& stack);
Result<RankStack> rank_stack_from_json(const Json& json, const std::string& where);
/// Those of `json`, a list; an absent one is empty.
Result<StackFrames> stack_frames_from_json(const Json& json, const std::string& where);

}  // namespace dlrun
