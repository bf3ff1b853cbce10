// See synthetic.hpp.
#include "runtime/data/synthetic.hpp"

#include <algorithm>

#include "runtime/base/keyed_random.hpp"
#include "runtime/data/data_format.hpp"
#include "runtime/data/tokens/token_samples.hpp"

namespace dlrun::runtime {
namespace {

// Noise over the whole range with the class's pattern added in; both come eight pixels a draw.
void draw(std::span<std::uint8_t> pixels, std::uint64_t noise_key, std::uint64_t pattern_key) {
  for (std::size_t i = 0; i < pixels.size(); i += 8) {
    const std::uint64_t noise = mix(noise_key, i), pattern = mix(pattern_key, i);
    for (std::size_t j = 0; j < 8 && i + j < pixels.size(); ++j)
      pixels[i + j] =
          static_cast<std::uint8_t>(((noise >> (8 * j) & 0xff) + (pattern >> (8 * j) & 0xff)) / 2);
  }
}

Result<Dataset> make_part(const InputShape& shape, std::uint64_t samples, std::uint64_t seed,
                          std::uint64_t part) {
  Dataset out;
  out.shape = shape;
  out.count = samples;
  out.stride = out.pixels_per_sample();
  out.bytes = TRY(HugeBuffer::make(samples * out.stride));
  out.labels.resize(samples);
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t key = mix(seed, part, i);
    out.labels[i] = static_cast<std::uint16_t>(below(key, static_cast<std::uint64_t>(shape.classes)));
    auto* start = reinterpret_cast<std::uint8_t*>(out.bytes.data()) + i * out.stride;
    draw({start, out.stride}, key, mix(seed, 0x636c617373u, out.labels[i]));
  }
  return out;
}

// Half of the tokens follow from the one before them, which alone tells them.
Dataset make_tokens(const InputShape& shape, std::uint64_t samples, std::uint64_t seed, std::uint64_t part) {
  const auto vocabulary = static_cast<std::uint64_t>(shape.classes);
  const auto length = static_cast<std::uint64_t>(shape.height);
  std::vector<std::uint32_t> tokens(samples * length + 1);
  for (std::uint64_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t key = mix(seed, part, i), before = i % length == 0 ? 0 : tokens[i - 1];
    const bool follows = (key & 1) != 0;
    tokens[i] = static_cast<std::uint32_t>(
        below(follows ? mix(seed, 0x746f6b656eu, before) : mix(key, 1), vocabulary));
  }
  return token_samples(TokenStream::of(tokens, vocabulary), shape.height);
}

}  // namespace

Result<DataParts> make_synthetic(const InputShape& shape, std::uint64_t samples, std::uint64_t seed) {
  DataParts out;
  const std::uint64_t tests = std::max<std::uint64_t>(1, samples / 8);
  if (shape.kind == SampleKind::tokens) {
    out.train = make_tokens(shape, samples, seed, 0);
    out.test = make_tokens(shape, tests, seed, 1);
    return out;
  }
  out.train = TRY(make_part(shape, samples, seed, 0));
  out.test = TRY(make_part(shape, tests, seed, 1));
  return out;
}

namespace {

class SyntheticSource final : public DataSource {
 public:
  SyntheticSource(const InputShape& shape, std::uint64_t samples) : shape_(shape), samples_(samples) {}
  std::size_t channels() const override { return static_cast<std::size_t>(shape_.channels); }
  SampleKind kind() const override { return shape_.kind; }
  Result<InputShape> probe() const override { return shape_; }
  Result<DataParts> load(std::uint64_t seed) const override { return make_synthetic(shape_, samples_, seed); }
  std::string place() const override { return {}; }

 private:
  InputShape shape_;
  std::uint64_t samples_;
};

// shape: [channels, height, width]
Result<InputShape> read_shape(yaml::Fields& data) {
  InputShape out;
  const yaml::Node* shape = data.find("shape");
  if (shape == nullptr) return out;
  if (shape->kind != yaml::Kind::list || shape->items.size() != 3)
    return yaml::error_at(*shape, "train.data.shape must be [channels, height, width]");
  std::int64_t* sides[] = {&out.channels, &out.height, &out.width};
  for (std::size_t i = 0; i < 3; ++i)
    *sides[i] = TRY(yaml::as_integer(shape->items[i], "train.data.shape", 1, 1 << 14));
  return out;
}

// context: 1024, vocabulary: 50257
Result<std::shared_ptr<const DataSource>> read_sequences(yaml::Fields& data, std::uint64_t samples) {
  const std::int64_t context = TRY(data.integer_or("context", 1024, 1, kMaxContext));
  const std::int64_t vocabulary =
      TRY(data.integer_or("vocabulary", 50257, 2, static_cast<std::int64_t>(kMaxVocabulary)));
  constexpr std::uint64_t kMaxTokens = std::uint64_t{1} << 31;
  if (samples > kMaxTokens / static_cast<std::uint64_t>(context))
    return yaml::error_at(data.node(),
                          fmt::format("train.data asks for more than {} synthetic tokens, which "
                                      "lie in memory",
                                      kMaxTokens),
                          "set fewer samples, or a shorter context");
  return std::make_shared<SyntheticSource>(token_sequences(context, vocabulary), samples);
}

}  // namespace

DataFormat::Read read_synthetic_section;

Result<std::shared_ptr<const DataSource>> read_synthetic_section(yaml::Fields& data, double) {
  const auto samples = static_cast<std::uint64_t>(TRY(data.integer_or("samples", 4096, 1, 1 << 30)));
  if (data.has("context")) return read_sequences(data, samples);
  const std::int64_t classes = TRY(data.integer_or("classes", 10, 2, 65536));
  InputShape shape = TRY(read_shape(data));
  shape.classes = classes;
  return std::make_shared<SyntheticSource>(shape, samples);
}

}  // namespace dlrun::runtime
