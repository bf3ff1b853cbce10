// See task.hpp.
#include "runtime/train/task.hpp"

#include "runtime/train/classification.hpp"
#include "runtime/train/generation.hpp"
#include "runtime/train/language.hpp"
#include "runtime/train/target_task.hpp"

namespace dlrun::runtime {

std::unique_ptr<Task> make_task(const Task::Parts& parts) {
  if (parts.engine.gan() != nullptr) return std::make_unique<Generation>(parts);
  if (parts.data.train.shape.kind == SampleKind::tokens) return std::make_unique<Language>(parts);
  if (parts.data.train.shape.targets == 0) return std::make_unique<Classification>(parts);
  if (parts.spec.measure->is_labels()) return std::make_unique<MultiLabel>(parts);
  return std::make_unique<Regression>(parts);
}

}  // namespace dlrun::runtime
