// What a job file says about the parameters of its model is checked on the graph, before a rank starts: that
// patterns match the name of one, and that the state of a training is not beyond any machine.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

/// A pattern of parameters' names, or of running statistics' too: the key that has it, and its place in the
/// job file.
struct ParameterPattern {
  enum class Of { parameters, tensors };
  std::string key, pattern, where;
  Of of = Of::parameters;
};

/// An Error for a pattern that matches none of them, with its place and the names that there are.
Result<void> check_patterns(const Graph& graph, const std::vector<ParameterPattern>& patterns);

/// An Error where a rank needs more than 16 TiB for its parameters, with so many numbers for each: its value,
/// its gradient, the optimizer's state.
Result<void> check_state_size(const Graph& graph, std::size_t numbers_each);

/// That each of so many parameter servers of their own has a tensor of the model to place on it; `where`: of
/// the placement in the job file.
Result<void> check_server_count(const Graph& graph, int servers, const std::string& where);

}  // namespace dlrun::runtime
