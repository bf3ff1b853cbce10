// See number_source.hpp.
#include "runtime/data/numbers/number_source.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/base/counted.hpp"
#include "runtime/data/numbers/answers.hpp"
#include "runtime/data/numbers/number_samples.hpp"

namespace dlrun::runtime {
namespace {

std::string extents_text(std::span<const std::uint64_t> extents) {
  return fmt::format("[{}]", fmt::join(extents, ", "));
}

std::uint64_t rows_of(const NumberArrays& arrays) {
  std::uint64_t out = 0;
  for (const auto& array : arrays) out += array->rows();
  return out;
}

Result<void> check_equal_rows(const NumberArrays& arrays) {
  for (const auto& array : arrays)
    if (!std::equal(array->shape().begin() + 1, array->shape().end(), arrays[0]->shape().begin() + 1,
                    arrays[0]->shape().end()))
      return bad_input(array->name(),
                       fmt::format("has samples of shape {}, and {} of {}",
                                   extents_text(std::span(array->shape()).subspan(1)), arrays[0]->name(),
                                   extents_text(std::span(arrays[0]->shape()).subspan(1))));
  return {};
}

// (N) and (N, 1) are the same answers.
Result<void> check_widths(const NumberArrays& answers) {
  for (const auto& array : answers)
    if (array->numbers_per_row() != answers[0]->numbers_per_row())
      return bad_input(array->name(), fmt::format("has {} for each sample, and {} has {}",
                                                  counted(array->numbers_per_row(), "number"),
                                                  answers[0]->name(), answers[0]->numbers_per_row()));
  return {};
}

Result<void> check_counts(const NumberArrays& samples, const NumberArrays& answers) {
  if (answers.empty()) return {};
  const auto differ = [](const std::string& name, std::uint64_t there, std::uint64_t wanted) {
    return bad_input(name, fmt::format("has {} rows for {}", there, counted(wanted, "sample")));
  };
  if (answers.size() == samples.size())
    for (std::size_t i = 0; i < samples.size(); ++i)
      if (answers[i]->rows() != samples[i]->rows())
        return differ(answers[i]->name(), answers[i]->rows(), samples[i]->rows());
  if (rows_of(answers) != rows_of(samples))
    return differ(answers[0]->name(), rows_of(answers), rows_of(samples));
  return {};
}

struct Opened {
  NumberPart train, test;
  SampleAxes axes;
  InputShape shape = {};
  std::vector<std::uint16_t> train_labels = {}, test_labels = {};
};

class NumberSource final : public DataSource {
 public:
  NumberSource(NumberKeys keys, OpenPart* open) : keys_(std::move(keys)), open_(open) {}

  std::size_t channels() const override { return 0; }  // the files alone tell
  bool holds_numbers() const override { return true; }
  bool has_targets() const override { return keys_.answers == Answers::targets; }
  std::string axes() const override { return keys_.axes ? keys_.axes->letters() : std::string(); }
  std::string place() const override { return keys_.place().string(); }
  Result<InputShape> probe() const override { return TRY(open_all()).shape; }
  Result<DataParts> load(std::uint64_t) const override {
    Opened opened = TRY(open_all());
    DataParts out;
    out.notes = opened.train.notes;
    out.train = TRY(dataset(opened, opened.train, std::move(opened.train_labels)));
    out.test = TRY(dataset(opened, opened.test, std::move(opened.test_labels)));
    return out;
  }
  Result<void> check_label_targets() const override {
    const Opened opened = TRY(open_all());
    TRY(runtime::check_label_targets(opened.train.answers));
    return runtime::check_label_targets(opened.test.answers);
  }

 private:
  Result<NumberPart> open_part(Part part) const {
    NumberPart out = TRY(open_(keys_, part));
    TRY(check_equal_rows(out.samples));
    TRY(check_widths(out.answers));
    TRY(check_counts(out.samples, out.answers));
    return out;
  }

  Result<void> check_test(const Opened& opened) const {
    const NumberPart &train = opened.train, &test = opened.test;
    if (test.samples.empty() && !train.answers.empty() && keys_.train_share == 1)
      return bad_input(place(), "there are no test samples",
                       "name them (test-file, or test-samples and test-labels), or set a validation split "
                       "with train: 0.9");
    if (test.samples.empty()) return {};
    if (train.answers.empty() != test.answers.empty())
      return bad_input(place(),
                       "one of the training and the test part has labels or targets, and the other has none");
    TRY(check_equal_rows({train.samples[0], test.samples[0]}));
    return train.answers.empty() ? Result<void>{} : check_widths({train.answers[0], test.answers[0]});
  }

  Result<SampleAxes> axes_of(const NumberArray& samples) const {
    const std::size_t axes = samples.shape().size() - 1;
    if (!keys_.axes) {
      auto usual = SampleAxes::usual(axes);
      if (!usual) return bad_input(samples.name(), usual.error().what);
      return usual;
    }
    if (keys_.axes->letters().size() == axes) return *keys_.axes;
    return bad_input(
        samples.name(),
        fmt::format("has samples of shape {}, and data.axes is {}",
                    extents_text(std::span(samples.shape()).subspan(1)), keys_.axes->letters()),
        "axes are those of one sample: the first axis of the array, that of the samples, is left out");
  }

  Result<Opened> open_all() const {
    NumberPart train = TRY(open_part(Part::train));
    if (train.samples.empty()) return bad_input(place(), "there are no training samples");
    const SampleAxes axes = TRY(axes_of(*train.samples[0]));
    Opened out{.train = std::move(train), .test = TRY(open_part(Part::test)), .axes = axes};
    TRY(check_test(out));
    out.shape = axes.shape_of(std::span(out.train.samples[0]->shape()).subspan(1));
    TRY(take_labels(out));
    return out;
  }

  // Without labels, only a model that needs none can be trained.
  Result<void> take_labels(Opened& out) const {
    if (has_targets()) {
      out.shape.targets = targets_per_sample(out.train.answers);
      return {};
    }
    out.train_labels = TRY(read_class_labels(out.train.answers, keys_.classes));
    out.test_labels = TRY(read_class_labels(out.test.answers, keys_.classes));
    out.shape.classes = keys_.classes.value_or(out.train_labels.empty() ? 1 : 2);
    if (keys_.classes) return {};
    for (const auto* labels : {&out.train_labels, &out.test_labels})
      for (const std::uint16_t label : *labels)
        out.shape.classes = std::max(out.shape.classes, std::int64_t{label} + 1);
    return {};
  }

  Result<Dataset> dataset(const Opened& opened, const NumberPart& part,
                          std::vector<std::uint16_t> labels) const {
    Dataset out;
    out.shape = opened.shape;
    out.count = rows_of(part.samples);
    out.damaged = keys_.damaged;
    out.numbers = std::make_shared<const NumberSamples>(part.samples, opened.axes);
    if (has_targets()) {
      out.targets = TRY(read_targets(part.answers));
      return out;
    }
    out.labels = std::move(labels);
    if (out.labels.empty()) out.labels.assign(out.count, 0);
    return out;
  }

  NumberKeys keys_;
  OpenPart* open_;
};

Result<void> read_places(yaml::Fields& data, NumberKeys& out) {
  out.dir = TRY(data.text_or("dir", ""));
  out.file = TRY(data.text_or("file", ""));
  out.test_file = TRY(data.text_or("test-file", ""));
  if (out.dir.empty() == out.file.empty())
    return yaml::error_at(data.node(), "train.data must have one of file and dir");
  if (out.file.empty() && !out.test_file.empty())
    return yaml::error_at(*data.find("test-file"),
                          "train.data.test-file is set, and train.data.file is missing");
  return {};
}

}  // namespace

Result<NumberKeys> read_number_keys(yaml::Fields& data, double train_share) {
  NumberKeys out;
  out.train_share = train_share;
  TRY(read_places(data, out));
  const bool targets = data.has("targets") || data.has("test-targets");
  if (targets && (data.has("labels") || data.has("test-labels")))
    return yaml::error_at(data.node(), "train.data has both labels and targets",
                          "labels are classes, targets are numbers to be predicted: remove one of the two");
  out.answers = targets ? Answers::targets : Answers::labels;
  const char *const train = targets ? "targets" : "labels", *const test =
                                                                targets ? "test-targets" : "test-labels";
  out.train = {TRY(data.text_or("samples", "")), TRY(data.text_or(train, ""))};
  out.test = {TRY(data.text_or("test-samples", "")), TRY(data.text_or(test, ""))};
  if (targets && out.train.answers.empty())
    return yaml::error_at(*data.find("test-targets"),
                          "train.data.test-targets is set, and train.data.targets is missing");
  if (const yaml::Node* axes = data.find("axes")) {
    const auto read = SampleAxes::of(TRY(yaml::as_text(*axes, data.path("axes"))));
    if (!read) return yaml::error_at(*axes, "train.data.axes: " + read.error().what, read.error().hint);
    out.axes = *read;
  }
  if (targets && data.has("classes"))
    return yaml::error_at(*data.find("classes"),
                          "train.data.classes goes with labels, and train.data has targets");
  if (data.has("classes")) out.classes = TRY(data.integer_or("classes", 2, 2, 65536));
  out.damaged = TRY(read_damaged(data));
  out.memory = TRY(data.size_or("memory", out.memory));
  return out;
}

std::shared_ptr<const DataSource> make_number_source(NumberKeys keys, OpenPart* open) {
  return std::make_shared<NumberSource>(std::move(keys), open);
}

}  // namespace dlrun::runtime
