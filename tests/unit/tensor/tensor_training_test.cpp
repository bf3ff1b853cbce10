// Training in tensor groups, with ranks as threads: the same first weights bit for bit, and losses and
// weights of the whole model up to the order of additions.
#include "../folder.hpp"
#include "model_ranks.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::runtime::test;

TEST_CASE("any number of parts starts from the same weights, bit for bit") {
  for (const Graph& whole : {gpt_like(), llama_like(), fully_connected_model()}) {
    const Trained one = train(whole, {.steps = 0}), two = train(whole, {.tensor = 2, .steps = 0});
    CHECK(one.weights == two.weights);
  }
  CHECK(train(gpt_like(), {.steps = 0}).weights == train(gpt_like(), {.tensor = 4, .steps = 0}).weights);
}

TEST_CASE("divided models train as the whole one does, up to the order of additions") {
  check_equal(gpt_like(), {.tensor = 2});
  check_equal(gpt_like(), {.tensor = 4});
  check_equal(gpt_like(40, ", tied: false, dropout: 0.1, attention-dropout: 0.2"), {.tensor = 2});
  check_equal(llama_like(), {.tensor = 2});
  check_equal(llama_like(48, 39), {.tensor = 2});
  check_equal(fully_connected_model(), {.tensor = 2});
  check_equal(fully_connected_model(), {.tensor = 4});
}

TEST_CASE("with slices of the positions between divided layers, too") {
  constexpr auto kOn = SequenceParallel::on;
  check_equal(gpt_like(), {.tensor = 2, .sequence = kOn});
  check_equal(gpt_like(39), {.tensor = 4, .sequence = kOn});
  check_equal(gpt_like(40, ", tied: false, dropout: 0.1, attention-dropout: 0.2"),
              {.tensor = 2, .sequence = kOn});
  check_equal(llama_like(), {.tensor = 2, .data = 2, .accumulate = 2, .sequence = kOn});
  check_equal(gpt_like(39), {.tensor = 2, .data = 2, .state = OptimizerState::sharded, .sequence = kOn});
  check_equal(gpt_like(40, ", dropout: 0.1, attention-dropout: 0.2"),
              {.tensor = 2, .pipeline = 2, .accumulate = 3, .sequence = kOn});
  const Graph undivided_layers = graph_of(
      "loss: vocabulary\nlayers: [{embedding: 16}, {linear: 16}, gelu, {dropout: 0.2}, {linear: 32, split: "
      "columns}, gelu, {linear: 16, split: rows}, layer-norm]",
      token_sequences(8, 40));
  check_equal(undivided_layers, {.tensor = 2, .data = 2, .sequence = kOn});
  if (can_compute(Precision::bf16))
    check_equal(llama_like(), {.tensor = 2, .precision = Precision::bf16, .sequence = kOn});
}

TEST_CASE("slices of the positions take less memory than whole values") {
  const Graph whole = graph_of("transformer: {layers: 4, heads: 8, features: 64}", token_sequences(128, 40));
  const auto bytes = [&whole](const TensorRank& rank) {
    const auto engine = compile(split_graph(whole, rank).value(), {.batch = 8}).value();
    return static_cast<double>(engine->memory_bytes());
  };
  for (const int parts : {2, 4, 8}) {
    CAPTURE(parts);
    const double share = bytes({0, parts, SequenceParallel::on}) / bytes({0, parts});
    CAPTURE(share);
    CHECK(share < (parts == 2 ? 0.9 : 0.7));
  }
}

TEST_CASE("tensor groups of two in data groups of two") {
  check_equal(gpt_like(), {.tensor = 2, .data = 2});
  check_equal(fully_connected_model(), {.tensor = 2, .data = 2});
}

// Of 39 tokens, tensor ranks have other numbers, so that they divide whole gradients at other places, too.
TEST_CASE("sharded state in tensor groups has the bits of replicated state") {
  for (const Graph& whole : {gpt_like(39), llama_like(), fully_connected_model()})
    for (const int data : {2, 3}) {
      const Trained expected = train(whole, {.tensor = 2, .data = data});
      const Trained got = train(whole, {.tensor = 2, .data = data, .state = OptimizerState::sharded});
      CAPTURE(data);
      CHECK(got.losses == expected.losses);
      CHECK(got.weights == expected.weights);  // momentum, too
      CHECK(got.square_sum == doctest::Approx(expected.square_sum).epsilon(1e-12));
    }
}

TEST_CASE("what ranks with parts of model and state wrote has the same bits at any number of them") {
  const dlrun::test::Folder folder;
  const Graph whole = gpt_like(39);
  const std::filesystem::path saved_at = folder.path / "saved", again_at = folder.path / "again";
  const Form form{.tensor = 2, .data = 3, .state = OptimizerState::sharded, .steps = 2, .save = saved_at};
  const Trained saved = train(whole, form);
  for (const int tensor : {1, 2, 4})
    for (const int data : {1, 2})
      for (const OptimizerState state : {OptimizerState::replicated, OptimizerState::sharded}) {
        CAPTURE(tensor);
        CAPTURE(data);
        const Form there{.tensor = tensor, .data = data, .state = state, .steps = 0, .load = saved_at};
        CHECK(train(whole, there).weights == saved.weights);
      }
  train(whole, {.tensor = 1,
                .data = 2,
                .state = OptimizerState::sharded,
                .steps = 0,
                .save = again_at,
                .load = saved_at});
  CHECK(train(whole, {.tensor = 2, .data = 2, .state = OptimizerState::sharded, .steps = 0, .load = again_at})
            .weights == saved.weights);
}

TEST_CASE("losses over targets are those of the whole model, too") {
  for (const char* const loss : {"mean-squared-error", "mean-absolute-error", "huber"}) {
    CAPTURE(loss);
    check_equal(target_model(loss), {.tensor = 2});
  }
}

TEST_CASE("in bf16, too") {
  if (!can_compute(Precision::bf16)) return;
  check_equal(gpt_like(), {.tensor = 2, .precision = Precision::bf16});
  check_equal(llama_like(), {.tensor = 2, .precision = Precision::bf16});
  check_equal(fully_connected_model(), {.tensor = 2, .precision = Precision::bf16});
}

TEST_CASE("a checkpoint in parts has the same bits at any other number of parts") {
  const dlrun::test::Folder folder;
  const Graph whole = gpt_like();
  const std::filesystem::path two = folder.path / "two", four = folder.path / "four";
  const Trained saved = train(whole, {.tensor = 2, .steps = 2, .save = two});
  CHECK(train(whole, {.steps = 0, .load = two}).weights == saved.weights);  // momentum, too
  CHECK(train(whole, {.tensor = 4, .steps = 0, .save = four, .load = two}).weights == saved.weights);
  CHECK(train(whole, {.tensor = 2, .steps = 0, .load = four}).weights == saved.weights);
  const Trained continued = train(whole, {.tensor = 4, .steps = 2, .load = two});
  const Trained at_once = train(whole, {.steps = 2, .load = two});
  CHECK(largest_distance(continued, at_once) < 4e-6);
}

TEST_CASE("a rank has its part of the divided weights and no more") {
  const Graph whole = llama_like();
  const Trained one = train(whole, {.steps = 0}), two = train(whole, {.tensor = 2, .steps = 0});
  const std::size_t norms = 5 * 32;  // they are whole
  for (const auto& [rank, numbers] : two.parameters)
    CHECK(numbers == (one.parameters.at(0) - norms) / 2 + norms);
}
