#include "src/plan/valid_names.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace dlrun::plan {

std::string as_job_name(std::string_view text) {
  constexpr std::size_t longest = 64;
  std::string out;
  for (const char c : text.substr(0, longest)) {
    const bool first_ok = std::isalnum(static_cast<unsigned char>(c)) != 0;
    const bool ok = first_ok || c == '_' || c == '-' || c == '.';
    if (out.empty() && !first_ok) continue;
    out += ok ? c : '-';
  }
  return out;
}

bool is_reserved_variable(std::string_view name) {
  static constexpr std::array<std::string_view, 32> names{"DLRUN_RANK",
                                                          "DLRUN_STAGE",
                                                          "DLRUN_SIZE",
                                                          "DLRUN_LOCAL_RANK",
                                                          "DLRUN_LOCAL_SIZE",
                                                          "DLRUN_NODE",
                                                          "DLRUN_NODES",
                                                          "DLRUN_ROLE",
                                                          "DLRUN_TASK_INDEX",
                                                          "DLRUN_RUN_DIR",
                                                          "DLRUN_JOB_ID",
                                                          "DLRUN_ATTEMPT",
                                                          "DLRUN_PREVIOUS_SIZE",
                                                          "DLRUN_PREVIOUS_END",
                                                          "DLRUN_LEFT_OUT",
                                                          "DLRUN_CONTROL",
                                                          "DLRUN_CHECKPOINT_REQUEST",
                                                          "DLRUN_SEQUENCE_PARALLEL",
                                                          "DLRUN_TENSOR_RANK",
                                                          "DLRUN_TENSOR_SIZE",
                                                          "DLRUN_CONTEXT_RANK",
                                                          "DLRUN_CONTEXT_SIZE",
                                                          "DLRUN_EXPERT_RANK",
                                                          "DLRUN_EXPERT_SIZE",
                                                          "DLRUN_DATA_RANK",
                                                          "DLRUN_DATA_SIZE",
                                                          "DLRUN_PIPELINE_RANK",
                                                          "DLRUN_PIPELINE_SIZE",
                                                          "DLRUN_EXPERT_DATA_RANK",
                                                          "DLRUN_EXPERT_DATA_SIZE",
                                                          "DLRUN_MESH_SHAPE",
                                                          "DLRUN_MESH_NAMES"};
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace dlrun::plan
