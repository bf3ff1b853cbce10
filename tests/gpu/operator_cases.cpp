// Each operator in a small graph, then the models that classify.
#include "compare.hpp"
#include "runtime/models/models.hpp"

namespace dlrun::runtime::gpu {

const std::vector<Case>& operator_cases() {
  static const InputShape small{3, 12, 12, 7};
  static const std::vector<Case> all = {
      {"convolution 3x3", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1});
         });
       }},
      {"convolution 3x3 stride 2", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x,
                                {.filters = 8, .kernel = 3, .stride = 2, .padding = 1, .bias = Bias::none});
         });
       }},
      {"convolution 1x1 stride 2 relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.convolution("c", x, {.filters = 8, .kernel = 1, .stride = 2}));
         });
       }},
      {"convolution 1x7", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x, {.filters = 24, .kernel = 1, .kernel_width = 7, .padding_width = 3});
         });
       }},
      {"convolution 7x1 of stride 2", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.convolution("c", x,
                                {.filters = 24,
                                 .kernel = 7,
                                 .stride = 2,
                                 .padding = 3,
                                 .kernel_width = 1,
                                 .padding_width = 0});
         });
       }},
      {"convolution in groups", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.convolution("c", x, {.filters = 24, .kernel = 3, .padding = 1, .groups = 2}));
         });
       }},
      {"convolution in groups beside another reader", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.convolution("c", x, {.filters = 16, .kernel = 3, .padding = 1, .groups = 4}));
         });
       }},
      {"concat", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value left = g.convolution("l", x, {.filters = 24, .kernel = 1});
           return g.relu(g.concat({left, x, g.relu(g.convolution("r", x, {.filters = 8, .kernel = 1}))}));
         });
       }},
      {"concat of odd channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.concat({g.convolution("l", x, {.filters = 5, .kernel = 1}), x,
                            g.convolution("r", x, {.filters = 3, .kernel = 1})});
         });
       }},
      {"average over padded windows", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.average_pool(x, {.window = 3, .stride = 1, .padding = 1}));
         });
       }},
      {"average over windows, padding ignored", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.average_pool(x, {.window = 3, .stride = 2, .padding = 1, .counted = Padding::ignored});
         });
       }},
      {"average over windows beyond the edge", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value odd = g.convolution("c", x, {.filters = 5, .kernel = 1});
           return g.average_pool(odd, {.window = 5, .stride = 3, .edge = Edge::kept});
         });
       }},
      {"max pool beyond the edge", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.max_pool(x, {.window = 3, .stride = 2, .edge = Edge::kept});
         });
       }},
      {"gelu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.add(x, g.apply(op::Gelu{}, {x})); });
       }},
      {"gelu by tanh of a vector", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.apply(op::Gelu{op::Gelu::Form::tanh}, {g.fully_connected("inner", x, 40)});
         });
       }},
      {"local response norm", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(x, g.local_response_norm(x, {.size = 5, .alpha = 0.5F}));
         });
       }},
      {"local response norm of 12 channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.convolution("c", x, {.filters = 12, .kernel = 1});
           return g.local_response_norm(x, {.size = 3, .alpha = 0.5F});
         });
       }},
      {"auxiliary head", small,
       [](const InputShape& in) {
         return graph_of(in, [classes = in.classes](GraphBuilder& g, Value x) {
           g.auxiliary_loss(g.fully_connected("aux", g.global_average_pool(x), classes), 0.3F);
           return g.convolution("c", x, {.filters = 8, .kernel = 3});
         });
       }},
      {"max pool", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.max_pool(x, {.window = 3, .stride = 2, .padding = 1});
         });
       }},
      {"max pool after relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.max_pool(g.relu(x), {}); });
       }},
      {"average pool", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.global_average_pool(x); });
       }},
      {"batch norm", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.batch_norm("bn", x); });
       }},
      {"batch norm relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) { return g.relu(g.batch_norm("bn", x)); });
       }},
      {"batch norm of 5 channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.batch_norm("bn", g.convolution("c", x, {.filters = 5, .kernel = 1}));
         });
       }},
      {"add relu", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.relu(g.add(x, g.convolution("c", x, {.filters = 16, .kernel = 3, .padding = 1})));
         });
       }},
      {"relu of two readers", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           return g.add(g.relu(x), g.convolution("c", x, {.filters = 16, .kernel = 1}));
         });
       }},
      {"sum of two batch norms", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value left = g.batch_norm("left", g.convolution("l", x, {.filters = 16, .kernel = 1}));
           return g.relu(
               g.add(left, g.batch_norm("right", g.convolution("r", x, {.filters = 16, .kernel = 1}))));
         });
       }},
      {"batch norm added to a value with another reader", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           const Value sum =
               g.add(x, g.batch_norm("bn", g.convolution("c", x, {.filters = 16, .kernel = 1})));
           return g.add(sum, g.convolution("d", g.relu(sum), {.filters = 16, .kernel = 1}));
         });
       }},
      {"batch norm, relu and max pool of 5 channels", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.batch_norm("bn", g.convolution("c", x, {.filters = 5, .kernel = 1, .bias = Bias::none}));
           return g.max_pool(g.relu(x), {.window = 3, .stride = 2, .padding = 1});
         });
       }},
      {"batch norm and max pool beyond the edge", small,
       [](const InputShape& in) {
         return graph_of(in, [](GraphBuilder& g, Value x) {
           x = g.batch_norm("bn", g.convolution("c", x, {.filters = 16, .kernel = 1, .bias = Bias::none}));
           return g.max_pool(x, {.window = 3, .stride = 2, .edge = Edge::kept});
         });
       }},
      {"stem 7x7 stride 2",
       {3, 30, 29, 7},
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         Value x = g.convolution("stem", g.input(),
                                 {.filters = 16, .kernel = 7, .stride = 2, .padding = 3, .bias = Bias::none});
         x = g.max_pool(g.relu(g.batch_norm("bn", x)), {.window = 3, .stride = 2, .padding = 1});
         g.softmax_cross_entropy(g.fully_connected("last", x, in.classes));
         return std::move(g).finish();
       }},
      {"stem 7x7 with a bias and relu",
       {3, 30, 29, 7},
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         const Value x = g.relu(
             g.convolution("stem", g.input(), {.filters = 16, .kernel = 7, .stride = 2, .padding = 3}));
         g.softmax_cross_entropy(g.fully_connected("last", x, in.classes));
         return std::move(g).finish();
       }},
      {"stem 3x3 stride 2",
       {3, 30, 29, 7},
       [](const InputShape& in) {
         GraphBuilder g("case", in);
         const Value x = g.convolution(
             "stem", g.input(), {.filters = 16, .kernel = 3, .stride = 2, .padding = 0, .bias = Bias::none});
         g.softmax_cross_entropy(g.fully_connected("last", g.batch_norm("bn", x), in.classes));
         return std::move(g).finish();
       }},
      {"dropout", small,
       [](const InputShape& in) {
         return graph_of(
             in, [](GraphBuilder& g, Value x) { return g.dropout(g.fully_connected("f", x, 64), 0.3F); });
       }},
      {"mnist-cnn", {1, 28, 28, 10}, mnist_cnn},
      {"resnet18-cifar", {3, 32, 32, 10}, resnet18_cifar, 10},
      {"resnet34", {3, 64, 64, 10}, resnet34, 10, 1e-4, 0x1p-8F},
      {"resnet50", {3, 64, 64, 10}, resnet50, 10, 1e-4, 0x1p-8F},
      {"cifar10-convnet", {3, 32, 32, 10}, cifar10_convnet, 10},
      {"alexnet",
       {3, 63, 63, 10},
       alexnet,
       10},  // of that size dropout sees one pixel, whose order is the CPU's
      {"caffenet", {3, 67, 67, 10}, caffenet, 10},
      {"googlenet", {3, 96, 96, 10}, googlenet, 10, 1e-4},
      {"hep-cnn", {3, 64, 64, 10}, hep_cnn, 10},
      {"inception-v3", {3, 299, 299, 10}, inception_v3, 10, 1e-4, 0x1p-8F, 8},
  };
  return all;
}

}  // namespace dlrun::runtime::gpu
