// The devices that CUDA_VISIBLE_DEVICES leaves visible, by CUDA's own rule: the list is read from the left,
// and the first entry that is no device (a negative index, one that is not there, an id among indices or the
// other way round, something unreadable) hides itself and all that follow. Unset is another thing than empty:
// the caller asks only where it is set. ROCm reads its two lists in the same way.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun {

struct VisibleGpus {
  std::vector<std::string> names;      // as they are written, less blanks
  std::optional<std::string> warning;  // what hides the rest of the list, where anything does
};

// `count`: how many GPUs the machine has, if known; then an index beyond it ends the list.
VisibleGpus read_cuda_visible(std::string_view value, std::optional<std::size_t> count = {});

// The same for another list: `variable` and who reads it ("ROCm") are named in the warning.
struct VisibleList {
  std::string_view variable, reader;
};
VisibleGpus read_visible(const VisibleList& list, std::string_view value,
                         std::optional<std::size_t> count = {});

// GPU-<uuid> or a prefix of it; MIG-<uuid> or MIG-GPU-<uuid>/gi/ci.
bool is_gpu_id(std::string_view name);
bool is_mig_id(std::string_view name);

}  // namespace dlrun
