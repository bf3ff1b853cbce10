#include "runtime/checkpoint/safetensors.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

std::string file_of(std::string header, std::size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(out.data(), &length, sizeof length);
  return out + header + std::string(data_bytes, 'd');
}

Result<std::vector<StoredTensor>> parse(const std::string& file) {
  return parse_safetensors(std::as_bytes(std::span(file.data(), file.size())), "x.safetensors");
}

std::string refusal(const std::string& file) {
  const auto parsed = parse(file);
  REQUIRE_FALSE(parsed.has_value());
  return parsed.error().text();
}

std::string entry(const std::string& fields) {
  return R"({"w": {)" + fields + "}}";
}

}  // namespace

TEST_CASE("what is laid out is read back, aligned, in order") {
  const SafetensorsLayout layout = plan_safetensors(
      {{.name = "conv1.weight", .shape = {32, 1, 5, 5}}, {.name = "conv1.bias", .shape = {32}}});
  CHECK(layout.head.size() % 64 == 0);
  CHECK(layout.file_bytes == layout.head.size() + (32 * 25 + 32) * 4);
  const auto parsed = parse(layout.head + std::string(layout.file_bytes - layout.head.size(), '\0'));
  REQUIRE(parsed.has_value());
  CHECK(*parsed == layout.tensors);
}

TEST_CASE("a header is believed only where everything fits the file") {
  CHECK(refusal("abc").find("has 3 bytes") != std::string::npos);
  CHECK(refusal(std::string(8, '\xff') + "{}").find("has a header of 18446744073709551615 bytes") !=
        std::string::npos);
  CHECK(refusal(file_of("[1]", 0)).find("not a JSON object") != std::string::npos);
  CHECK(refusal(file_of("{", 0)).find("not valid JSON") != std::string::npos);
  const std::string good = R"("dtype": "F32", "shape": [2], "data_offsets": [0, 8])";
  CHECK(parse(file_of(entry(good), 8)).has_value());
  CHECK(refusal(file_of(entry(good), 7)).find("are outside of the 7 bytes") != std::string::npos);
  CHECK(refusal(file_of(entry(good), 12)).find("4 bytes follow the last tensor") != std::string::npos);
  CHECK(refusal(file_of(entry(R"("dtype": "F64", "shape": [1], "data_offsets": [0, 8])"), 8))
            .find("only F32") != std::string::npos);
  CHECK(refusal(file_of(entry(R"("dtype": "F32", "shape": [3], "data_offsets": [0, 8])"), 8))
            .find("does not have") != std::string::npos);
  CHECK(refusal(file_of(entry(R"("dtype": "F32", "shape": [-2], "data_offsets": [0, 8])"), 8))
            .find("does not have") != std::string::npos);
  CHECK(refusal(
            file_of(entry(R"("dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 8])"), 8))
            .find("does not have") != std::string::npos);
  CHECK(refusal(file_of(entry(R"("dtype": "F32", "shape": [2], "data_offsets": [8, 0])"), 8))
            .find("are outside of") != std::string::npos);
  CHECK(refusal(file_of(entry(R"("dtype": "F32", "shape": "x", "data_offsets": [0, 8])"), 8))
            .find("wrong type") != std::string::npos);
}

TEST_CASE("overlapping tensors and gaps are refused") {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": )" + first +
           R"(}, "b": {"dtype": "F32", "shape": [1], "data_offsets": )" + second + "}}";
  };
  CHECK(parse(file_of(two("[4, 8]", "[0, 4]"), 8)).has_value());
  CHECK(refusal(file_of(two("[0, 4]", "[0, 4]"), 8)).find("leaves a gap or overlaps") != std::string::npos);
  CHECK(refusal(file_of(two("[0, 4]", "[8, 12]"), 12)).find("leaves a gap or overlaps") != std::string::npos);
}

TEST_CASE("damaged headers are read or refused, never more") {
  std::mt19937 random(3);
  const SafetensorsLayout layout =
      plan_safetensors({{.name = "w", .shape = {4, 2}}, {.name = "b", .shape = {4}}});
  const std::string whole = layout.head + std::string(layout.file_bytes - layout.head.size(), 'd');
  int refused = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string file = whole;
    if (random() % 4 == 0) file.resize(random() % file.size());
    for (std::size_t flips = random() % 4; flips > 0 && !file.empty(); --flips)
      file[random() % file.size()] = static_cast<char>(random());
    refused += parse(file).has_value() ? 0 : 1;
  }
  CHECK(refused > 1000);
}

TEST_CASE(
    "other people's files may have other types: f16 and bf16 are read, the rest is known and not read") {
  std::string file = file_of(R"({"h": {"dtype": "F16", "shape": [4], "data_offsets": [0, 8]},)"
                             R"( "b": {"dtype": "BF16", "shape": [2], "data_offsets": [8, 12]},)"
                             R"( "n": {"dtype": "I64", "shape": [], "data_offsets": [12, 20]}})",
                             20);
  const std::uint16_t halves[] = {0x3c00, 0xc500, 0x0001, 0x7c00}, brains[] = {0x3f80, 0xc0a0};
  const std::size_t data = file.size() - 20;
  std::memcpy(file.data() + data, halves, sizeof halves);
  std::memcpy(file.data() + data + 8, brains, sizeof brains);
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  const auto tensors = parse_safetensors(bytes, "x", StoredTypes::any).value();
  REQUIRE(tensors.size() == 3);
  std::vector<float> out(4);
  REQUIRE(read_stored(bytes, tensors[0], out).has_value());
  CHECK(out == std::vector<float>{1, -5, 0x1p-24F, INFINITY});
  out.resize(2);
  REQUIRE(read_stored(bytes, tensors[1], out).has_value());
  CHECK(out == std::vector<float>{1, -5});
  out.resize(1);
  CHECK(read_stored(bytes, tensors[2], out).error().what.find("'n' has a type that is not") !=
        std::string::npos);
  CHECK_FALSE(parse(file).has_value());
}
