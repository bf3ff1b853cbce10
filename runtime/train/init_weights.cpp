// See init_weights.hpp.
#include "runtime/train/init_weights.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/name_pattern.hpp"
#include "runtime/data/short_list.hpp"
#include "runtime/train/stage_agreement.hpp"
#include "runtime/train/weight_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {
namespace {

Result<void> check_all_there(const std::vector<std::string>& missing, const std::string& file) {
  if (missing.empty()) return {};
  constexpr std::size_t kShown = 10;
  Error error{.kind = ErrorKind::input,
              .what = fmt::format("{} tensor{} of the model cannot be taken from it", missing.size(),
                                  missing.size() == 1 ? "" : "s"),
              .where = file,
              .hint = "list the tensors to initialize: init-from: {file: ..., skip: [fc.*]}",
              .also = missing};
  if (missing.size() > kShown) {
    error.also.resize(kShown);
    error.also.push_back(fmt::format("and {} more", missing.size() - kShown));
  }
  return fail(std::move(error));
}

// Of all numbers of a tensor, those that this rank has.
std::vector<float> numbers_held(const TensorInfo& tensor, std::vector<float> whole) {
  if (!tensor.held) return whole;
  std::vector<float> out(tensor.elements());
  float* to = out.data();
  for (const TensorBox& box : *tensor.held) {
    copy_part(box, whole_box(tensor.shape), whole.data(), box, to);
    to += box.elements();
  }
  return out;
}

// Of a stage before.
bool is_counted_before(const TensorInfo& tensor) {
  return tensor.held_by == TensorInfo::HeldBy::earlier_stage;
}

using Names = std::vector<std::string>;

Result<Names> of_all(Communicator& stages, const Names& mine) {
  std::string text;
  for (const std::string& name : mine) text += name + "\n";
  Names out = split(TRY(joined_text(stages, text)), '\n');
  out.pop_back();
  return out;
}

// What no stage has taken.
Result<Names> left_by_all(Communicator& stages, const Names& mine) {
  const Names all = TRY(of_all(stages, mine));
  Names out = mine;
  std::erase_if(
      out, [&](const std::string& name) { return std::count(all.begin(), all.end(), name) < stages.size(); });
  return out;
}

}  // namespace

Result<std::vector<std::string>> init_weights(Engine& engine, const InitWeights& from, Communicator* stages) {
  WeightFile file = TRY(WeightFile::open(from.file));
  Names missing, skipped, taken;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    const TensorInfo& tensor = engine.tensors()[i];
    if (tensor.role == TensorInfo::Role::momentum) continue;
    if (matches_any(from.skip, tensor.name)) {
      if (!is_counted_before(tensor)) skipped.push_back(tensor.name);
      continue;
    }
    if (std::string why = file.obstacle(tensor); !why.empty()) {
      missing.push_back(std::move(why));
      continue;
    }
    TRY(engine.write_tensor(i, numbers_held(tensor, TRY(file.read(tensor)))));
    if (!is_counted_before(tensor)) taken.push_back(tensor.name);
  }
  TRY(check_all_there(missing, file.name()));
  Names left = file.left();
  if (stages != nullptr) {
    taken = TRY(of_all(*stages, taken));
    skipped = TRY(of_all(*stages, skipped));
    left = TRY(left_by_all(*stages, left));
  }
  std::vector<std::string> lines{fmt::format("{} tensors start from {}", taken.size(), file.name())};
  if (!skipped.empty()) lines.push_back("initialized, not read: " + short_list(skipped));
  if (!left.empty()) lines.push_back("tensors of the file that are not used: " + short_list(left));
  return lines;
}

}  // namespace dlrun::runtime
