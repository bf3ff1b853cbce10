// See synthetic.hpp.
#include "runtime/data/synthetic.hpp"

#include <algorithm>

#include "runtime/base/keyed_random.hpp"
#include "runtime/data/data_format.hpp"

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

}  // namespace

Result<DataParts> make_synthetic(const InputShape& shape, std::uint64_t samples, std::uint64_t seed) {
  DataParts out;
  out.train = TRY(make_part(shape, samples, seed, 0));
  out.test = TRY(make_part(shape, std::max<std::uint64_t>(1, samples / 8), seed, 1));
  return out;
}

namespace {

class SyntheticSource final : public DataSource {
 public:
  SyntheticSource(const InputShape& shape, std::uint64_t samples) : shape_(shape), samples_(samples) {}
  std::size_t channels() const override { return static_cast<std::size_t>(shape_.channels); }
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

}  // namespace

DataFormat::Read read_synthetic_section;

Result<std::shared_ptr<const DataSource>> read_synthetic_section(yaml::Fields& data, double) {
  const std::int64_t classes = TRY(data.integer_or("classes", 10, 2, 65536));
  const auto samples = static_cast<std::uint64_t>(TRY(data.integer_or("samples", 4096, 1, 1 << 30)));
  InputShape shape = TRY(read_shape(data));
  shape.classes = classes;
  return std::make_shared<SyntheticSource>(shape, samples);
}

}  // namespace dlrun::runtime
