// Slurm's texts about GPUs: gres strings (gpu:a40:1(S:0,2), gpu:(null):4(IDX:0-3), gpu:tesla:2,gpu:kepler:2)
// and lists of indices with ranges. Other resources than GPUs are skipped; a text that is cut or malformed is
// an Error with a caret.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun {

struct GpuGres {
  std::string type;  // empty: not told
  int count = 0;
  std::vector<int> indices;  // IDX: of the node's own numbering; empty: not told
  std::vector<int> sockets;  // S:
};

// Every GPU entry of the text, in order; none for "(null)", "N/A" and the empty text.
Result<std::vector<GpuGres>> parse_gres(std::string_view text);

// "0,2-3" -> 0 2 3; the Error names the list and the place.
Result<std::vector<int>> parse_index_list(std::string_view text);

}  // namespace dlrun
