// Operators on volumes, and losses over targets: each in a small graph, then models of science.
#include "compare.hpp"
#include "runtime/graph/target_measure.hpp"
#include "runtime/models/models.hpp"

namespace dlrun::runtime::gpu {

namespace {

using Measure = op::TargetLoss::Measure;

constexpr InputShape kVolume{.channels = 3, .height = 7, .width = 6, .classes = 7, .depth = 8};
// As many numbers as there are classes: of one measure or the other.
constexpr InputShape kTargets{.channels = 3, .height = 12, .width = 12, .classes = 5, .targets = 5};

Result<Graph> measured(const InputShape& in, const TargetMeasure& measure) {
  Graph graph = TRY(graph_of(in, [](GraphBuilder& g, Value x) {
    g.auxiliary_loss(g.fully_connected("aux", g.global_average_pool(x), kTargets.classes), 0.3F);
    return g.relu(x);
  }));
  set_measure(graph, measure);
  return graph;
}

}  // namespace

const std::vector<Case>& science_cases() {
  static const std::vector<Case> all = {
      {"volume: convolution 3x3x3", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1});
         });
       }},
      {"volume: convolution of 12 channels, whose windows get zeros", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.convolution("few", x, {.filters = 12, .kernel = 1});
           return g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1});
         });
       }},
      {"volume: convolution by steps of 2, relu", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.convolution("c", x, {.filters = 8, .kernel = 2, .stride = 2, .bias = Bias::none}));
         });
       }},
      {"volume: convolution of 5 channels, leaky, beside another reader", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value odd = g.convolution("c", x, {.filters = 5, .kernel = 3, .padding = 1});
           const Value more = g.convolution("d", odd, {.filters = 5, .kernel = 3, .padding = 1});
           return g.add(odd, g.leaky_relu(more, 0.3F));
         });
       }},
      {"volume: convolution 1x1x1", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.convolution("c", x, {.filters = 32, .kernel = 1}));
         });
       }},
      {"volume: convolution 1x1x1 by steps of 2 with a border", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x, {.filters = 8, .kernel = 1, .stride = 2, .padding = 1});
         });
       }},
      {"volume: convolution in groups beside another reader", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.convolution("c", x, {.filters = 16, .kernel = 3, .padding = 1, .groups = 4}));
         });
       }},
      {"volume: max pool", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.max_pool(x, {}); });
       }},
      {"volume: max pool behind batch norm and relu, overlapping", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.relu(g.batch_norm("bn", g.convolution("c", x, {.filters = 5, .kernel = 1})));
           return g.max_pool(x, {.window = 3, .stride = 2, .padding = 1, .edge = Edge::kept});
         });
       }},
      {"volume: max pool of a leaky convolution, all in a window",
       {.channels = 3, .height = 8, .width = 4, .classes = 7, .depth = 6},
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.leaky_relu(g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1}), 0.3F);
           return g.max_pool(x, {.window = 2, .stride = 2});
         });
       }},
      {"max pool of a convolution with ReLU, overlapping",
       {.channels = 3, .height = 9, .width = 12, .classes = 7},
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.relu(g.convolution("c", x, {.filters = 12, .kernel = 3, .padding = 1}));
           return g.max_pool(x, {.window = 3, .stride = 2, .padding = 1});
         });
       }},
      {"volume: average pool", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.average_pool(x, {.window = 3, .stride = 1, .padding = 1});
         });
       }},
      {"volume: average pool without its padding", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.convolution("c", x, {.filters = 5, .kernel = 1});
           return g.average_pool(x, {.window = 3, .stride = 2, .padding = 1, .counted = Padding::ignored});
         });
       }},
      {"volume: batch norm, a sum and the mean of each channel", kVolume,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.global_average_pool(g.add(g.relu(g.batch_norm("bn", x)), x));
         });
       }},
      {"volume: flatten and a layer", kVolume,
       [](const InputShape& in) {
         return graph_of(
             in, [](GraphBuilder& g, Value x) { return g.relu(g.fully_connected("f", g.flatten(x), 24)); });
       }},
      {"targets: squared error", kTargets,
       [](const InputShape& in) { return measured(in, {.measure = Measure::squared}); }},
      {"targets: absolute error", kTargets,
       [](const InputShape& in) { return measured(in, {.measure = Measure::absolute}); }},
      {"targets: huber", kTargets,
       [](const InputShape& in) { return measured(in, {.measure = Measure::huber, .delta = 0.3}); }},
      {"targets: several labels", kTargets,
       [](const InputShape& in) { return measured(in, {.measure = Measure::sigmoid}); }},
      {"targets: more than a warp has lanes",
       {.channels = 3, .height = 6, .width = 6, .classes = 45, .targets = 45},
       [](const InputShape& in) { return graph_of(in, [](GraphBuilder& g, Value x) { return g.relu(x); }); }},
      {"cosmoflow",
       {.channels = 4, .height = 32, .width = 32, .classes = 4, .depth = 32, .targets = 4},
       cosmoflow,
       10},
      {"hep-cnn over targets",
       {.channels = 3, .height = 64, .width = 64, .classes = 2, .targets = 2},
       hep_cnn,
       10},
  };
  return all;
}

}  // namespace dlrun::runtime::gpu
