// See answers.hpp.
#include "runtime/data/numbers/answers.hpp"

#include <algorithm>
#include <cmath>

namespace dlrun::runtime {
namespace {

constexpr std::int64_t kMaxLabels = 65536;

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

Result<std::uint16_t> class_of(const NumberArray& array, std::uint64_t row, double value,
                               std::int64_t classes) {
  if (value >= 0 && value < static_cast<double>(classes) && value == std::floor(value))
    return static_cast<std::uint16_t>(value);
  const bool whole = value == std::floor(value);
  return bad_input(
      array.place(row),
      fmt::format(
          "label {} of sample {} is {}", number_text(value), row,
          whole ? fmt::format("out of range [0, {}]", classes - 1) : std::string("not a whole number")),
      whole ? "data.classes of the job file sets the number of classes"
            : "labels are classes; for numbers to be predicted, write targets: in place of labels:");
}

}  // namespace

Result<std::vector<std::uint16_t>> read_class_labels(const NumberArrays& arrays,
                                                     std::optional<std::int64_t> classes) {
  std::vector<std::uint16_t> out;
  for (const auto& array : arrays) {
    if (array->numbers_per_row() != 1)
      return bad_input(
          array->name(),
          fmt::format("has {} numbers for each sample, and a label is one number", array->numbers_per_row()),
          "for several numbers per sample, write targets: in place of labels:");
    const std::vector<double> values = TRY(array->read_all());
    for (std::uint64_t row = 0; row < values.size(); ++row)
      out.push_back(TRY(class_of(*array, row, values[row], classes.value_or(kMaxLabels))));
  }
  return out;
}

std::int64_t targets_per_sample(const NumberArrays& arrays) {
  return static_cast<std::int64_t>(arrays.at(0)->numbers_per_row());
}

Result<std::vector<float>> read_targets(const NumberArrays& arrays) {
  std::vector<float> out;
  for (const auto& array : arrays) {
    const std::vector<double> values = TRY(array->read_all());
    for (std::uint64_t i = 0; i < values.size(); ++i) {
      out.push_back(static_cast<float>(values[i]));
      if (std::isfinite(out.back())) continue;
      return bad_input(array->place(i), fmt::format("target {} of sample {} is not a finite number",
                                                    number_text(values[i]), i / array->numbers_per_row()));
    }
  }
  return out;
}

Result<void> check_label_targets(const NumberArrays& arrays) {
  for (const auto& array : arrays) {
    const std::vector<double> values = TRY(array->read_all());
    const auto bad =
        std::find_if(values.begin(), values.end(), [](double value) { return value != 0 && value != 1; });
    if (bad == values.end()) continue;
    const auto at = static_cast<std::uint64_t>(bad - values.begin());
    return bad_input(
        array->place(at),
        fmt::format("target {} of sample {} is {}, and train.loss sigmoid-cross-entropy needs 0 or 1",
                    at % array->numbers_per_row(), at / array->numbers_per_row(), number_text(*bad)),
        "for numbers, choose another loss: mean-squared-error, mean-absolute-error, huber");
  }
  return {};
}

}  // namespace dlrun::runtime
