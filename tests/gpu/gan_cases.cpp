// What GANs are made of, each in a small graph, then GANs: transposed convolutions, smooth activations,
// vectors seen as images, noise, weights that are shared and held, several losses.
#include "compare.hpp"
#include "runtime/models/models.hpp"

namespace dlrun::runtime::gpu {

namespace {

// One layer three times: it learns, learns through another use of it, and is held.
template <class Layer>
Value three_times(GraphBuilder& g, Value x, const Layer& layer) {
  x = g.relu(layer(x));
  g.use_weights(Weights::shared);
  x = g.relu(layer(x));
  g.use_weights(Weights::frozen);
  x = layer(x);
  g.use_weights(Weights::own);
  return x;
}

Result<Graph> two_classes(const InputShape& in) {
  GraphBuilder g("case", in);
  const Value x = g.leaky_relu(g.convolution("c", g.input(), {.filters = 8, .kernel = 3}), 0.2F);
  g.sigmoid_cross_entropy(g.fully_connected("last", x, 1), op::SigmoidCrossEntropy::Target::labels);
  return std::move(g).finish();
}

Result<Graph> stem_three_times(const InputShape& in) {
  GraphBuilder g("case", in);
  const auto stem = [&] {
    return g.convolution("stem", g.input(), {.filters = 16, .kernel = 7, .stride = 2, .padding = 3});
  };
  const Value own = stem();
  g.use_weights(Weights::shared);
  const Value shared = g.relu(stem());
  g.use_weights(Weights::frozen);
  const Value held = stem();
  g.use_weights(Weights::own);
  g.softmax_cross_entropy(g.fully_connected("last", g.add(g.add(own, shared), held), in.classes));
  return std::move(g).finish();
}

Result<Graph> two_losses_of_the_same_scores(const InputShape& in) {
  GraphBuilder g("case", in);
  const Value scores = g.fully_connected("last", g.convolution("c", g.input(), {.filters = 8}), in.classes);
  g.auxiliary_loss(scores, 0.3F);
  g.softmax_cross_entropy(scores);
  return std::move(g).finish();
}

}  // namespace

const std::vector<Case>& gan_cases() {
  static const InputShape small{3, 12, 12, 7};
  static const std::vector<Case> all = {
      {"transposed convolution 4x4 of stride 2", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.transposed_convolution("t", x, {.filters = 8, .kernel = 4, .stride = 2, .padding = 1});
         });
       }},
      {"transposed convolution 5x5 with output padding and relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.transposed_convolution(
               "t", x, {.filters = 24, .kernel = 5, .stride = 2, .padding = 2, .output_padding = 1}));
         });
       }},
      {"transposed convolution that leaves pixels out", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.transposed_convolution("t", x,
                                           {.filters = 8, .kernel = 2, .stride = 3, .output_padding = 2});
         });
       }},
      {"transposed convolution beside another reader", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.transposed_convolution("t", x, {.filters = 16, .kernel = 3, .padding = 1}));
         });
       }},
      {"transposed convolution of a pixel to 5 channels, leaky relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.reshape(g.fully_connected("f", x, 10), {10, 1, 1});
           return g.leaky_relu(
               g.transposed_convolution("t", x, {.filters = 5, .kernel = 4, .bias = Bias::none}), 0.2F);
         });
       }},
      {"transposed convolution and tanh", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.tanh(
               g.transposed_convolution("t", x, {.filters = 3, .kernel = 4, .stride = 2, .padding = 1}));
         });
       }},
      {"convolution and leaky relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.leaky_relu(g.convolution("c", x, {.filters = 24, .kernel = 3}), 0.1F);
         });
       }},
      {"convolution without a bias and tanh", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.tanh(g.convolution("c", x, {.filters = 5, .kernel = 3, .bias = Bias::none}));
         });
       }},
      {"leaky relu alone, of two readers", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value pooled = g.max_pool(x, {});
           return g.add(g.leaky_relu(pooled, 0.3F), g.convolution("c", pooled, {.filters = 16}));
         });
       }},
      {"tanh alone", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.tanh(g.batch_norm("bn", x)); });
       }},
      {"reshape of a vector with another reader", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value vector = g.fully_connected("f", x, 24), image = g.reshape(vector, {4, 2, 3});
           const Value other = g.reshape(g.fully_connected("h", vector, 24), {4, 2, 3});
           return g.add(g.convolution("c", image, {.filters = 4, .kernel = 3, .padding = 1}), other);
         });
       }},
      // The CPU refuses a flatten whose reader is no fully connected layer; a concat of one changes nothing.
      {.name = "flatten before what reads a vector",
       .input = small,
       .build =
           [](const InputShape& in) {
             return graph_of(in, [](GraphBuilder& g, Value x) { return g.concat({x}); });
           },
       .on_gpu =
           [](const InputShape& in) {
             return graph_of(in, [](GraphBuilder& g, Value x) { return g.concat({g.flatten(x)}); });
           }},
      {"detach", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.concat({g.detach(x), g.convolution("c", x, {.filters = 16, .kernel = 3, .padding = 1})});
         });
       }},
      {"noise", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value noise = g.reshape(g.fully_connected("n", g.noise(100), 16 * 12 * 12), {16, 12, 12});
           return g.add(x, noise);
         });
       }},
      {"sigmoid loss", {3, 12, 12, 2}, two_classes},
      {"two losses of the same scores", small, two_losses_of_the_same_scores},
      {"shared and held convolution", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return three_times(g, x, [&](Value y) {
             return g.convolution("c", y, {.filters = 16, .kernel = 3, .padding = 1});
           });
         });
       }},
      {"shared and held convolution in groups", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return three_times(g, x, [&](Value y) {
             return g.convolution("c", y, {.filters = 16, .kernel = 3, .padding = 1, .groups = 2});
           });
         });
       }},
      {"shared and held transposed convolution", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return three_times(g, x, [&](Value y) {
             return g.transposed_convolution("t", y, {.filters = 16, .kernel = 3, .padding = 1});
           });
         });
       }},
      {"shared and held batch norm", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return three_times(g, x, [&](Value y) { return g.batch_norm("bn", y); });
         });
       }},
      {"shared and held stem", {3, 30, 29, 7}, stem_three_times},
      {"dcgan of 32x32", {1, 32, 32, 10}, dcgan, 10, 1e-5, 0x1p-8F},
      {"dcgan", {3, 64, 64, 10}, dcgan, 10, 1e-5, 0x1p-8F},
      {"cosmogan", {1, 64, 64, 10}, cosmogan, 10, 1e-5, 0x1p-8F},
  };
  return all;
}

}  // namespace dlrun::runtime::gpu
