// Losses over targets: against plain loops and central differences, against PyTorch, and what they count.
#include <doctest/doctest.h>

#include "pytorch_check.hpp"
#include "runtime/graph/target_measure.hpp"
#include "runtime/models/models.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

using Measure = op::TargetLoss::Measure;

constexpr InputShape kInput{2, 5, 4, 1, SampleKind::image, 0, 3};
constexpr TargetMeasure kMeasures[] = {
    {Measure::squared}, {Measure::absolute}, {Measure::huber, 0.5}, {Measure::huber, 2}, {Measure::sigmoid}};

// With a head that helps training.
Graph graph_of(const TargetMeasure& measure) {
  GraphBuilder g("test", kInput);
  const Value x = g.convolution("first", g.input(), {.filters = 16, .kernel = 3, .padding = 1});
  g.auxiliary_loss(g.fully_connected("helper", x, kInput.outputs()), 0.3F);
  g.softmax_cross_entropy(g.fully_connected("last", x, kInput.outputs()));
  Graph out = finished(std::move(g));
  set_measure(out, measure);
  return out;
}

// Of the fourth row nothing counts.
Batch batch_of(const TargetMeasure& measure) {
  Batch out = random_batch(kInput, 6);
  out.labels[3] = -1;
  if (measure.is_labels())
    for (float& target : out.targets) target = target > 0 ? 1.0F : 0.0F;
  return out;
}

}  // namespace

TEST_CASE("losses over targets are those of plain loops, and their gradients central differences") {
  for (const TargetMeasure& measure : kMeasures) {
    CAPTURE(measure.text());
    const Graph graph = graph_of(measure);
    const Batch batch = batch_of(measure);
    const auto engine = engine_for(graph, batch.rows());
    scramble(*engine);
    const State state = state_of(*engine);
    put(*engine, batch);
    const BatchResult ours = engine->train_batch(0, nullptr), shown = engine->evaluate_batch();
    const Outcome theirs = run_reference(graph, state, batch);
    for (const BatchResult& result : {ours, shown}) {
      CHECK(result.loss_sum == doctest::Approx(theirs.loss_sum).epsilon(1e-5));
      CHECK(result.correct == theirs.correct);
      CHECK(result.target_sums.absolute == doctest::Approx(theirs.absolute).epsilon(1e-5));
      CHECK(result.target_sums.squared == doctest::Approx(theirs.squared).epsilon(1e-5));
      CHECK(result.target_sums.found == theirs.found);
      CHECK(result.target_sums.marked == theirs.marked);
    }
    for (const auto& gradient : gradients_of(*engine)) {
      CAPTURE(gradient.first);
      CHECK(distance(along_directions(gradient.second),
                     reference_gradient(graph, state, batch, gradient.first)) < 5e-4);
    }
  }
}

TEST_CASE("losses over targets are PyTorch's, in f32 and bf16") {
  for (const TargetMeasure& measure : kMeasures) {
    CAPTURE(measure.text());
    check_against_pytorch(graph_of(measure), batch_of(measure), Precision::f32, kTight, Start::scrambled);
    check_against_pytorch(graph_of(measure), batch_of(measure), Precision::bf16, kRounded, Start::scrambled);
  }
}

TEST_CASE("a model of classes gives as many numbers as there are targets, and a GAN refuses them") {
  const InputShape input{3, 32, 32, 1, SampleKind::image, 0, 4};
  const auto graph = hep_cnn(input);
  REQUIRE(graph.has_value());
  CHECK(std::holds_alternative<op::TargetLoss>(graph->nodes.back().operation));
  CHECK(check_target_loss(*graph).has_value());
  CHECK(parameter_count(*graph) == parameter_count(*hep_cnn({3, 32, 32, 4})));
  CHECK(check_target_loss(*dcgan({1, 28, 28, 10})).error().what ==
        "model 'dcgan' has a loss of its own, and train.data has targets");
}

TEST_CASE("the text of a measure is read back as it was") {
  for (const TargetMeasure& measure : kMeasures) {
    const auto read = TargetMeasure::of_text(measure.text());
    REQUIRE(read.has_value());
    CHECK(read->text() == measure.text());
  }
  CHECK_FALSE(TargetMeasure::of_text("huber x").has_value());
  CHECK_FALSE(TargetMeasure::of_text("mean").has_value());
}
