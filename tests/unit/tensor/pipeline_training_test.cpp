// Training in pipelines, with ranks as threads: losses and weights of the whole model that adds up as many
// batches, to the bit where no weights are tied; with tensor groups and sharded state, too.
#include <fstream>

#include "../folder.hpp"
#include "model_ranks.hpp"
#include "runtime/train/init_weights.hpp"
#include "runtime/train/weight_file.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

namespace {

Graph convolutions() {
  return model_of(
      "[{convolution: 8, kernel: 3, padding: 1}, batch-norm, relu, {convolution: 8, kernel: 3}, relu, "
      "{dropout: 0.3}, {fully-connected: 24}, relu, {dropout: 0.5}, {fully-connected: classes}]");
}

void check_bits(const Graph& whole, const Form& form) {
  Form undivided = form;
  undivided.pipeline = 1;
  const Trained expected = train(whole, undivided), got = train(whole, form);
  CAPTURE(form.pipeline);
  CAPTURE(form.accumulate);
  CHECK(got.losses == expected.losses);
  CHECK(got.accuracies == expected.accuracies);
  CHECK(got.weights == expected.weights);  // momentum, too
  CHECK(got.square_sum == doctest::Approx(expected.square_sum).epsilon(1e-12));
}

}  // namespace

TEST_CASE("stages train to the bits of the whole model that accumulates") {
  check_bits(llama_like(), {.pipeline = 2, .accumulate = 4});
  check_bits(llama_like(), {.pipeline = 4, .accumulate = 6});
  check_bits(llama_like(), {.pipeline = 4, .accumulate = 2});
  check_bits(gpt_like(40, ", tied: false, dropout: 0.1, attention-dropout: 0.2"),
             {.pipeline = 3, .accumulate = 3});
  check_bits(llama_like(), {.pipeline = 2, .accumulate = 2, .cuts = {{"model.layers.1"}}});
  check_bits(fully_connected_model(), {.pipeline = 2, .accumulate = 1});
  check_bits(convolutions(), {.data = 2, .pipeline = 3, .accumulate = 3});
}

TEST_CASE("an embedding and the loss that shares its weights stay equal on two stages") {
  check_equal(gpt_like(), {.pipeline = 2, .accumulate = 3});
  check_equal(gpt_like(39, ", dropout: 0.1"), {.data = 2, .pipeline = 3, .accumulate = 2});
}

// The two have it in other places of their buckets.
TEST_CASE("shared weights keep the same bits where sums over ranks add each number in another order") {
  for (const OptimizerState state : {OptimizerState::replicated, OptimizerState::sharded})
    train(gpt_like(39), {.data = 3,
                         .pipeline = 2,
                         .state = state,
                         .accumulate = 2,
                         .addition = dlrun::test::Addition::by_place});
}

TEST_CASE("tensor groups in pipelines in data groups, with sharded state") {
  check_equal(gpt_like(39), {.tensor = 2, .pipeline = 2, .accumulate = 2});
  check_equal(gpt_like(39),
              {.tensor = 2, .data = 2, .pipeline = 2, .state = OptimizerState::sharded, .accumulate = 2});
  const Form sharded{.data = 2, .pipeline = 2, .state = OptimizerState::sharded, .accumulate = 2};
  check_equal(gpt_like(), sharded);
}

TEST_CASE("stages in bf16") {
  if (!can_compute(Precision::bf16)) return;
  check_bits(llama_like(), {.pipeline = 2, .precision = Precision::bf16, .accumulate = 3});
  check_bits(fully_connected_model(), {.pipeline = 2, .precision = Precision::bf16, .accumulate = 2});
}

TEST_CASE("stages start from one file of weights, and all of them tell what the whole model takes") {
  const dlrun::test::Folder folder;
  const Graph whole = gpt_like();
  const auto engine = compile(whole, {.batch = 3}).value();
  const std::string file = weight_file_of(*engine, whole).value();
  const std::filesystem::path path = folder.path / "model.safetensors";
  std::ofstream(path, std::ios::binary) << file;
  const InitWeights from{.file = path, .skip = {"ln_f.*"}};
  const std::vector<std::string> expected = init_weights(*engine, from).value();
  CHECK(expected.size() > 1);
  std::array<std::vector<std::string>, 3> told;
  dlrun::test::on_ranks(3, [&](Communicator& world) {
    ProcessGroups groups;
    const GroupRanks ranks{.model = {{}, {world.rank(), 3}}, .data = 0, .data_ranks = 1};
    if (!groups.connect(world, ranks)) std::abort();
    const auto stage =
        compile(divided_graph({}, whole, ranks.model).value(), {.batch = 3, .stage_links = &groups.links()});
    told[static_cast<std::size_t>(world.rank())] =
        init_weights(*stage.value(), from, groups.pipeline()).value();
  });
  for (std::vector<std::string>& lines : told) CHECK(lines == expected);
}

TEST_CASE("what stages wrote has the same bits at any other number of them, and of ranks of other kinds") {
  const dlrun::test::Folder folder;
  const Graph whole = gpt_like(39);
  const std::filesystem::path replicated = folder.path / "replicated", sharded = folder.path / "sharded";
  const Trained saved =
      train(whole, {.tensor = 2, .pipeline = 2, .steps = 2, .accumulate = 2, .save = replicated});
  const Trained in_parts = train(whole, {.tensor = 2,
                                         .data = 2,
                                         .pipeline = 2,
                                         .state = OptimizerState::sharded,
                                         .steps = 0,
                                         .save = sharded,
                                         .load = replicated});
  CHECK(in_parts.weights == saved.weights);
  for (const std::filesystem::path& from : {replicated, sharded}) {
    CHECK(train(whole, {.steps = 0, .load = from}).weights == saved.weights);
    CHECK(train(whole, {.pipeline = 3, .steps = 0, .load = from}).weights == saved.weights);
    CHECK(train(whole, {.tensor = 4, .steps = 0, .load = from}).weights == saved.weights);
    CHECK(train(whole, {.data = 2, .state = OptimizerState::sharded, .steps = 0, .load = from}).weights ==
          saved.weights);
  }
}
