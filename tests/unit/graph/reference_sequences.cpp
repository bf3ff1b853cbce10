// See reference_sequences.hpp.
#include "reference_sequences.hpp"

#include <cmath>

namespace dlrun::runtime::test {

Numbers reference_embedding(const std::vector<std::int32_t>& tokens, const Numbers& weights,
                            const Numbers* positions, const Shape& to) {
  Numbers out;
  for (std::size_t at = 0; at < tokens.size(); ++at)
    for (std::int64_t i = 0; i < to.features(); ++i) {
      const std::int64_t position = static_cast<std::int64_t>(at) % to.positions();
      out.push_back(weights[static_cast<std::size_t>(tokens[at] * to.features() + i)] +
                    (positions == nullptr ? 0 : (*positions)[position * to.features() + i]));
    }
  return out;
}

Numbers reference_norm(Numbers in, const Numbers& weights, const Numbers* bias, double epsilon,
                       bool has_mean) {
  const std::size_t features = weights.size();
  for (std::size_t row = 0; row < in.size(); row += features) {
    double mean = 0, square = 0;
    for (std::size_t i = 0; i < features && has_mean; ++i) mean += in[row + i] / double(features);
    for (std::size_t i = 0; i < features; ++i)
      square += (in[row + i] - mean) * (in[row + i] - mean) / double(features);
    for (std::size_t i = 0; i < features; ++i)
      in[row + i] = (in[row + i] - mean) / std::sqrt(square + epsilon) * weights[i] +
                    (bias == nullptr ? 0 : (*bias)[i]);
  }
  return in;
}

Numbers reference_linear(const Numbers& in, const Numbers& weights, const Numbers* bias,
                         std::int64_t inputs) {
  const std::int64_t outputs = static_cast<std::int64_t>(weights.size()) / inputs;
  Numbers out;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(in.size()) / inputs; ++row)
    for (std::int64_t o = 0; o < outputs; ++o) {
      double sum = bias == nullptr ? 0 : (*bias)[o];
      for (std::int64_t i = 0; i < inputs; ++i) sum += in[row * inputs + i] * weights[o * inputs + i];
      out.push_back(sum);
    }
  return out;
}

Numbers reference_swiglu(const Numbers& gate, const Numbers& up) {
  Numbers out;
  for (std::size_t i = 0; i < gate.size(); ++i) out.push_back(gate[i] / (1 + std::exp(-gate[i])) * up[i]);
  return out;
}

namespace {

// One head's vector at a position, turned as Llama turns it: rotate_half of transformers.
Numbers turned(const double* from, std::int64_t width, std::int64_t position, double base) {
  Numbers out(from, from + width);
  if (base == 0) return out;
  for (std::int64_t i = 0; i < width; ++i) {
    const double angle = double(position) * std::pow(base, -2.0 * double(i % (width / 2)) / double(width));
    const double other = i < width / 2 ? -from[i + width / 2] : from[i - width / 2];
    out[i] = from[i] * std::cos(angle) + other * std::sin(angle);
  }
  return out;
}

double product(const Numbers& left, const Numbers& right) {
  double sum = 0;
  for (std::size_t i = 0; i < left.size(); ++i) sum += left[i] * right[i];
  return sum;
}

}  // namespace

Numbers reference_attention(const Numbers& in, const op::Attention& spec, const Shape& from,
                            std::int64_t rows) {
  const std::int64_t width = spec.width(from.features()), keys = spec.keys(), row = from.features();
  Numbers out(static_cast<std::size_t>(rows * from.positions() * spec.heads * width));
  for (std::int64_t n = 0; n < rows; ++n)
    for (std::int64_t head = 0; head < spec.heads; ++head)
      for (std::int64_t t = 0; t < from.positions(); ++t) {
        const auto at = [&](std::int64_t position, std::int64_t which) {
          return &in[((n * from.positions() + position) * row) + which * width];
        };
        const std::int64_t group = head / (spec.heads / keys);
        const Numbers query = turned(at(t, head), width, t, spec.rotary_base);
        Numbers shares;
        double sum = 0;
        for (std::int64_t key = 0; key <= t; ++key) {
          shares.push_back(
              std::exp(product(query, turned(at(key, spec.heads + group), width, key, spec.rotary_base)) /
                       std::sqrt(double(width))));
          sum += shares.back();
        }
        for (std::int64_t key = 0; key <= t; ++key)
          for (std::int64_t i = 0; i < width; ++i)
            out[((n * from.positions() + t) * spec.heads + head) * width + i] +=
                shares[key] / sum * at(key, spec.heads + keys + group)[i];
      }
  return out;
}

Numbers reference_scores(const Numbers& in, const Numbers& weights, std::int64_t features) {
  return reference_linear(in, weights, nullptr, features);
}

}  // namespace dlrun::runtime::test
