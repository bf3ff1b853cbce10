// Sums of two batch norms, which are done in one pass: eight channels a thread or one, more rows than
// threads, and every way in which the summands' inputs take their gradients.
#include "compare.hpp"

namespace dlrun::runtime::gpu {

namespace {

template <class Body>
Result<Graph> classified(const InputShape& input, const Body& body) {
  GraphBuilder g("case", input);
  g.softmax_cross_entropy(g.fully_connected("last", body(g, g.input()), input.classes));
  return std::move(g).finish();
}

Value convolution(GraphBuilder& g, const char* name, Value x, std::int64_t filters) {
  return g.convolution(name, x, {.filters = filters, .kernel = 3, .padding = 1, .bias = Bias::none});
}
Value sum(GraphBuilder& g, Value left, Value right) {
  const Value first = g.batch_norm("left.norm", left), second = g.batch_norm("right.norm", right);
  return g.add(first, second);
}

Value sum_of(GraphBuilder& g, Value x, std::int64_t filters) {
  const Value left = convolution(g, "left", x, filters), right = convolution(g, "right", x, filters);
  return sum(g, left, right);
}

}  // namespace

const std::vector<Case>& norm_sum_cases() {
  static const InputShape small{3, 12, 12, 7};
  static const std::vector<Case> all = {
      {"two batch norms, no ReLU", small,
       [](const InputShape& in) {
         return classified(in, [](GraphBuilder& g, Value x) { return sum_of(g, x, 16); });
       }},
      {"two batch norms of 5 channels", small,
       [](const InputShape& in) {
         return classified(in, [](GraphBuilder& g, Value x) { return g.relu(sum_of(g, x, 5)); });
       }},
      {"two batch norms of many pixels",
       {3, 96, 96, 7},
       [](const InputShape& in) {
         return classified(in, [](GraphBuilder& g, Value x) {
           x = g.relu(sum_of(g, x, 16));
           return g.max_pool(x, {.window = 8, .stride = 8});
         });
       }},
      {"two batch norms of one value", small,
       [](const InputShape& in) {
         return classified(in, [](GraphBuilder& g, Value x) {
           x = convolution(g, "both", x, 16);
           return g.relu(sum(g, x, x));
         });
       }},
      {"two batch norms of values with other readers", small,
       [](const InputShape& in) {
         return classified(in, [](GraphBuilder& g, Value x) {
           const Value left = convolution(g, "left", x, 16), right = convolution(g, "right", x, 16);
           const Value both = g.relu(sum(g, left, right));
           return g.concat({convolution(g, "more", left, 8), both, convolution(g, "most", right, 8)});
         });
       }},
      {"two batch norms, one of the image",
       {8, 12, 12, 7},
       [](const InputShape& in) {
         return classified(
             in, [](GraphBuilder& g, Value x) { return g.relu(sum(g, x, convolution(g, "right", x, 8))); });
       }},
      {"two batch norms of the image", small,
       [](const InputShape& in) {
         return classified(in, [](GraphBuilder& g, Value x) { return g.relu(sum(g, x, x)); });
       }},
  };
  return all;
}

}  // namespace dlrun::runtime::gpu
