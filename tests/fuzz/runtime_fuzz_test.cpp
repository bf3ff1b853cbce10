// What the training runtime reads back (checkpoints) or is told (its section of a job file) may be damaged in
// any way: it answers with a value or an Error that has words.
#include <doctest/doctest.h>

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/data/numbers/npy_header.hpp"
#include "runtime/data/numbers/number_array.hpp"
#include "runtime/data/numbers/zip.hpp"
#include "runtime/train/train_spec.hpp"
#include "tests/fuzz/mutate.hpp"
#include "tests/unit/data/number_support.hpp"

using namespace dlrun;
using test::Mutator;

namespace {

constexpr int kTexts = 4000;

template <class R>
bool is_sound(const R& result) {
  return result.has_value() || !result.error().text().empty();
}

std::string small_safetensors() {
  const auto layout =
      runtime::plan_safetensors({{.name = "conv1.weight", .shape = {2, 1, 3, 3}},
                                 {.name = "b", .shape = {2}},
                                 runtime::stored_box("fc", {8, 4}, runtime::slice_along({8, 4}, 0, 2, 2))});
  return layout.head + std::string(layout.file_bytes - layout.head.size(), '\0');
}

}  // namespace

TEST_CASE("a damaged safetensors file never names bytes outside of it") {
  const std::string good = small_safetensors();
  REQUIRE(runtime::parse_safetensors(std::as_bytes(std::span(good)), "file"));
  Mutator mutator({good}, {std::string(8, '\xff'), "[0,0]", "[9999999999,1]", "-1", "F16", "{", "}", ",",
                           "2:4", "[2:1]", "8x4", "{\"x\":" + std::string(1000, '[')});
  for (int i = 0; i < kTexts; ++i) {
    const std::string file = mutator.next();
    const auto tensors = runtime::parse_safetensors(std::as_bytes(std::span(file)), "file");
    REQUIRE(is_sound(tensors));
    if (!tensors) continue;
    for (const runtime::StoredTensor& tensor : *tensors) {
      REQUIRE(tensor.begin <= file.size());
      REQUIRE(tensor.bytes <= file.size() - tensor.begin);
      if (tensor.part) REQUIRE(runtime::is_within(tensor.part->box, tensor.part->whole));
    }
  }
}

TEST_CASE("a damaged manifest") {
  runtime::Manifest manifest;
  manifest.position = {.step = 12, .epoch = 1, .seen = 100};
  manifest.identity.model = "mnist-cnn";
  manifest.identity.samples = 1000;
  manifest.precision = "f32";
  manifest.files = {{.name = "a", .bytes = 3, .checksum = 7}};
  const std::string good = runtime::to_text(manifest);
  REQUIRE(runtime::parse_manifest(good, "manifest.json"));
  Mutator mutator({good}, {"null", "-1", "1e300", "[]", "{}", "\"\"", "true", "18446744073709551616",
                           std::string(1000, '[')});
  for (int i = 0; i < kTexts; ++i)
    REQUIRE(is_sound(runtime::parse_manifest(mutator.next(), "manifest.json")));
}

TEST_CASE("a damaged description of a training") {
  const std::string good = R"(name: x
train:
  model: mnist-cnn
  data: {format: synthetic, samples: 100, shape: [1, 28, 28], augment: {crop: 2, flip: true}}
  batch: 8
  epochs: 2
  optimizer: {name: sgd, lr: 0.1, momentum: 0.9, weight-decay: 1e-4}
  schedule: {warmup: 10steps, decay: cosine, scale-lr: linear}
  precision: bf16
checkpoint: {dir: /tmp/c, every: 5steps, keep: 2}
)";
  REQUIRE(runtime::read_train_spec(yaml::parse(good, "job.yaml").value()));
  Mutator mutator({good}, test::odd_values());
  for (int i = 0; i < kTexts; ++i) {
    const auto tree = yaml::parse(mutator.next(), "job.yaml");
    REQUIRE(is_sound(tree));
    if (tree) REQUIRE(is_sound(runtime::read_train_spec(*tree)));
  }
}

TEST_CASE("a damaged header of a NumPy array, whose numbers can be counted where it is read") {
  const std::string header = test::npy("<f4", "(12, 3, 224, 224)", "");
  Mutator mutator({header, test::npy("|u1", "(4,)", "")},
                  {"'descr': ", "(", ")", ",", "'", "18446744073709551615", "'<f8'", "[('a', '<f4')]", "True",
                   "\xff\xff", "{", "}"});
  for (int i = 0; i < kTexts; ++i) {
    const std::string text = mutator.next();
    const auto read =
        runtime::parse_npy_header({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}, "x.npy");
    REQUIRE(is_sound(read));
    if (read) REQUIRE(read->numbers <= runtime::kMaxNumbers);
  }
}

TEST_CASE("a damaged ZIP file never names bytes outside of it, and its members are what their sums say") {
  const std::string array = test::npy("<f4", "(8,)", test::raw_bytes(test::counting(8)));
  Mutator mutator(
      {test::npz({{"x", array}, {"y", array}}, test::Packing::stored),
       test::npz({{"x", array}}, test::Packing::deflated)},
      {"PK\x05\x06", "PK\x01\x02", "PK\x03\x04", "PK\x06\x07", std::string(4, '\xff'), std::string(8, '\0')});
  for (int i = 0; i < kTexts; ++i) {
    const std::string content = mutator.next();
    const runtime::ReadableFile file{
        .name = "x.npz",
        .size = content.size(),
        .read = [&](std::uint64_t offset, std::span<std::uint8_t> room) -> Result<void> {
          REQUIRE(offset + room.size() <= content.size());
          std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(offset), room.size(), room.begin());
          return {};
        }};
    const auto members = runtime::read_zip_directory(file);
    REQUIRE(is_sound(members));
    if (!members) continue;
    for (const runtime::ZipMember& member : *members) {
      const auto bytes = runtime::read_zip_member(file, member);
      REQUIRE(is_sound(bytes));
      if (bytes) REQUIRE(bytes->size() == member.size);
    }
  }
}
