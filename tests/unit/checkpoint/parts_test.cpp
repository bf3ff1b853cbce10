// Checkpoints that ranks write together: each its files, then one of them the manifest.
#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>

#include "runtime/base/checksum.hpp"
#include "runtime/checkpoint/tensor_reader.hpp"
#include "tests/unit/checkpoint/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

using Boxes = std::vector<TensorBox>;

// A rank's part of a FakeEngine: of some of its tensors it has boxes.
class DividedEngine final : public FakeEngine {
 public:
  explicit DividedEngine(std::map<std::size_t, Boxes> held) : FakeEngine(small_shape, 4) {
    for (std::size_t i = 0; i < divided_.size(); ++i)
      if (held.contains(i)) divided_[i].held = held[i];
  }
  const std::vector<TensorInfo>& tensors() const override { return divided_; }
  Result<void> read_tensor(std::size_t index, std::span<float> out) const override {
    std::vector<float> all(elements_of(divided_[index].shape));
    TRY(FakeEngine::read_tensor(index, all));
    for (const TensorBox& box : divided_[index].boxes()) {
      copy_part(box, whole_box(divided_[index].shape), all.data(), box, out.data());
      out = out.subspan(box.elements());
    }
    return {};
  }
  Result<void> write_tensor(std::size_t index, std::span<const float> values) override {
    std::vector<float> all(elements_of(divided_[index].shape));
    TRY(FakeEngine::read_tensor(index, all));
    for (const TensorBox& box : divided_[index].boxes()) {
      copy_part(box, box, values.data(), whole_box(divided_[index].shape), all.data());
      values = values.subspan(box.elements());
    }
    return FakeEngine::write_tensor(index, all);
  }

 private:
  std::vector<TensorInfo> divided_ = FakeEngine::tensors();
};

const TensorShape matrix{10, 16};

// What each of three ranks has: rows of the momentum (data ranks), columns of the weights (tensor ranks), of
// which the last one has two boxes; and all of the rest.
std::vector<std::map<std::size_t, Boxes>> three_ranks() {
  return {{{0, {slice_along(matrix, 1, 0, 4)}}, {3, {slice_along(matrix, 0, 0, 7)}}},
          {{0, {slice_along(matrix, 1, 4, 8)}}, {3, {slice_along(matrix, 0, 7, 3)}}},
          {{0, {slice_along(matrix, 1, 12, 2), slice_along(matrix, 1, 14, 2)}}, {3, {}}}};
}

void fill(Engine& engine, float first) {
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    std::vector<float> values(elements_of(engine.tensors()[i].shape));
    for (float& value : values) value = first++;
    REQUIRE(engine.write_tensor(i, values).has_value());
  }
}

std::vector<float> state_of(const Engine& engine) {
  std::vector<float> out;
  for (std::size_t i = 0; i < engine.tensors().size(); ++i) {
    std::vector<float> values(engine.tensors()[i].elements());
    REQUIRE(engine.read_tensor(i, values).has_value());
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

struct Bench : Folder {
  FakeEngine whole{small_shape, 4};
  FailingFileSystem files;
  std::vector<ManifestFile> written;

  Bench() { fill(whole, 0.5F); }

  // Rank `rank` of three.
  Result<void> write_rank(std::uint64_t step, int rank) {
    DividedEngine engine(three_ranks()[static_cast<std::size_t>(rank)]);
    TRY(restore_whole(engine));
    const CheckpointPart part{rank, 3};
    Snapshot snapshot = TRY(Snapshot::make(engine, pieces_of(engine, part)));
    TRY(snapshot.take(engine));
    for (ManifestFile& file : TRY(write_part(files, path, step, part, {snapshot.file(0), snapshot.file(1)})))
      written.push_back(std::move(file));
    return {};
  }
  Result<void> write(std::uint64_t step) {
    written.clear();
    for (int rank = 0; rank < 3; ++rank) TRY(write_rank(step, rank));
    return commit(step);
  }
  Result<void> commit(std::uint64_t step) {
    Manifest manifest = manifest_at(step, whole);
    manifest.parts = 3;
    manifest.files = written;
    return commit_parts(files, path, manifest);
  }
  Result<void> restore_whole(Engine& engine) const {
    for (std::size_t i = 0; i < whole.tensors().size(); ++i) {
      const TensorInfo& tensor = engine.tensors()[i];
      std::vector<float> all(elements_of(tensor.shape)), own(tensor.elements());
      TRY(whole.read_tensor(i, all));
      std::size_t at = 0;
      for (const TensorBox& box : tensor.boxes()) {
        copy_part(box, whole_box(tensor.shape), all.data(), box, own.data() + at);
        at += box.elements();
      }
      TRY(engine.write_tensor(i, own));
    }
    return {};
  }
  TensorReader reader(std::uint64_t step) {
    const auto manifest = read_manifest(files, path, {checkpoint_name(step), step});
    REQUIRE_MESSAGE(manifest.has_value(), manifest.error().text());
    return *TensorReader::open(path / checkpoint_name(step), *manifest);
  }
  Choice choose() { return *choose_checkpoint(files, path, manifest_at(0, whole).identity); }
};

void flip_byte(const std::filesystem::path& file, std::streamoff at) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(at);
  const char byte = static_cast<char>(stream.get());
  stream.seekp(at);
  stream.put(static_cast<char>(byte ^ 0x10));
  REQUIRE(stream.good());
}

}  // namespace

TEST_CASE("boxes of a tensor: what two have, the numbers of it, its name") {
  const TensorBox rows = slice_along({4, 6}, 0, 1, 2), columns = slice_along({4, 6}, 1, 2, 3);
  const auto both = common_part(rows, columns);
  REQUIRE(both.has_value());
  CHECK(*both == TensorBox{{1, 2}, {2, 3}});
  CHECK_FALSE(common_part(rows, slice_along({4, 6}, 0, 3, 1)).has_value());
  std::vector<float> numbers(24), out(12, -1);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  copy_part(*both, whole_box({4, 6}), numbers.data(), rows, out.data());
  CHECK(out == std::vector<float>{-1, -1, 8, 9, 10, -1, -1, -1, 14, 15, 16, -1});
  CHECK(text_of(*both) == "[1:3,2:5]");
  CHECK(parse_box("[1:3,2:5]") == *both);
  CHECK(parse_box("[]") == TensorBox{});
  for (const char* bad : {"", "[", "[1:3", "[3:1]", "[1:2]x", "[-1:2]", "[1:2,]", "[99999999999999999999:2]"})
    CHECK_FALSE(parse_box(bad).has_value());
  CHECK_FALSE(is_within(*both, {3, 4}));
  CHECK_FALSE(is_within(*both, {3, 5, 1}));
}

TEST_CASE("what three ranks wrote is read by one, by two and by three, bit for bit") {
  Bench bench;
  REQUIRE(bench.write(50).has_value());
  const Choice choice = bench.choose();
  REQUIRE(choice.newest.has_value());
  CHECK(choice.newest->manifest.parts == 3);
  const TensorReader reader = bench.reader(50);
  FakeEngine one(small_shape, 4);
  REQUIRE(restore(one, reader).has_value());
  CHECK(state_of(one) == state_of(bench.whole));
  for (auto held : std::vector<std::map<std::size_t, Boxes>>{
           {{0, {slice_along(matrix, 0, 2, 7)}}, {4, {slice_along({10}, 0, 0, 5)}}},
           {{0, {slice_along(matrix, 1, 3, 11)}}, {3, {}}},
           three_ranks()[1]}) {
    DividedEngine other(held), wanted(held);
    REQUIRE(bench.restore_whole(wanted).has_value());
    REQUIRE(restore(other, reader).has_value());
    CHECK(state_of(other) == state_of(wanted));
  }
  // As one file each, the checkpoint is the one that a single rank would have written.
  const auto whole = whole_files(bench.whole, reader);
  Snapshot alone = *Snapshot::make(bench.whole);
  REQUIRE(alone.take(bench.whole).has_value());
  for (std::size_t file = 0; file < 2; ++file) {
    const std::span<const std::byte> have = (*whole)[file].bytes(), want = alone.file(file);
    CHECK(std::equal(have.begin(), have.end(), want.begin(), want.end()));
  }
}

TEST_CASE("a tensor that all ranks have is written once, divided by rows as evenly as they allow") {
  const FakeEngine engine(small_shape, 4);  // 170 parameters, one statistic, 170 of momentum
  std::vector<std::size_t> have(3);
  std::map<std::size_t, std::size_t> of_tensor;
  for (int part = 0; part < 3; ++part)
    for (const SnapshotPiece& piece : pieces_of(engine, {part, 3})) {
      have[static_cast<std::size_t>(part)] += piece.box.elements();
      of_tensor[piece.tensor] += piece.box.elements();
    }
  for (std::size_t i = 0; i < engine.tensors().size(); ++i)
    CHECK(of_tensor[i] == engine.tensors()[i].elements());
  for (const std::size_t count : have) CHECK(std::abs(static_cast<int>(count) - 341 / 3) <= 16);
}

TEST_CASE("running statistics, which every rank has of its own samples, are those of the first") {
  const FakeEngine engine(small_shape, 4);
  for (int part = 0; part < 3; ++part) {
    std::size_t have = 0;
    for (const SnapshotPiece& piece : pieces_of(engine, {part, 3}))
      if (engine.tensors()[piece.tensor].role == TensorInfo::Role::statistic) have += piece.box.elements();
    CHECK(have == (part == 0 ? 1 : 0));
  }
}

TEST_CASE("a checkpoint of one rank is read in parts, too") {
  Bench bench;
  Snapshot snapshot = *Snapshot::make(bench.whole);
  REQUIRE(snapshot.take(bench.whole).has_value());
  REQUIRE(write_checkpoint(bench.files, bench.path, manifest_at(7, bench.whole),
                           {snapshot.file(0), snapshot.file(1)})
              .has_value());
  const TensorReader reader = bench.reader(7);
  std::vector<float> rows(32), all(160);
  REQUIRE(reader.read("fc.weight", matrix, slice_along(matrix, 0, 3, 2), rows).has_value());
  REQUIRE(bench.whole.read_tensor(0, all).has_value());
  CHECK(std::equal(rows.begin(), rows.end(), all.begin() + 48));
  CHECK(reader.read("fc.weight", {16, 10}, whole_box({16, 10}), all).error().what ==
        "tensor 'fc.weight' is of another shape");
  CHECK(reader.read("fc", matrix, whole_box(matrix), all).error().what == "tensor 'fc' is missing");
}

TEST_CASE("whatever is wrong with one of the files, it is named and the checkpoint before is used") {
  Bench bench;
  REQUIRE(bench.write(100).has_value());
  REQUIRE(bench.write(200).has_value());
  const auto newest = bench.path / "step-00000200";
  const std::string second = "optimizer-00002-of-00003.safetensors";
  std::string reason;
  // The manifest as a rank with other files would write it.
  const auto with_files = [&](const std::vector<ManifestFile>& files) {
    Manifest manifest = manifest_at(200, bench.whole);
    manifest.parts = 3;
    manifest.files = files;
    std::ofstream(newest / "manifest.json") << to_text(manifest);
  };
  SUBCASE("torn") {
    std::filesystem::resize_file(newest / second, 100);
    reason = second + " has 100 bytes, but ";
  }
  SUBCASE("a bit flipped") {
    flip_byte(newest / second, static_cast<std::streamoff>(std::filesystem::file_size(newest / second)) - 1);
    reason = second + ": checksum";
  }
  SUBCASE("missing") {
    std::filesystem::remove(newest / second);
    reason = second + " is missing";
  }
  SUBCASE("not listed") {
    auto files = bench.written;
    files.pop_back();
    with_files(files);
    reason = "its manifest lists 5 files of 3 parts";
  }
  SUBCASE("of another number of ranks") {
    auto files = bench.written;
    files[3].name = "optimizer-00002-of-00004.safetensors";
    with_files(files);
    reason = "its manifest lists a file 'optimizer-00002-of-00004.safetensors'";
  }
  SUBCASE("of another rank: parts overlap") {
    auto files = bench.written;
    std::filesystem::copy_file(newest / files[1].name, newest / second,
                               std::filesystem::copy_options::overwrite_existing);
    files[3] = {second, files[1].bytes, files[1].checksum};
    with_files(files);
    reason = second +
             ": tensor 'fc.weight.momentum[0:7,0:16]' has numbers that "
             "optimizer-00001-of-00003.safetensors has, too";
  }
  SUBCASE("of another rank: parts are missing") {
    auto files = bench.written;
    std::filesystem::copy_file(newest / files[5].name, newest / second,
                               std::filesystem::copy_options::overwrite_existing);
    files[3] = {second, files[5].bytes, files[5].checksum};
    with_files(files);
    reason = "has numbers that " + second + " has, too";
  }
  SUBCASE("written by one that had nothing") {
    const auto empty = plan_safetensors({}).head;
    std::ofstream(newest / second, std::ios::trunc) << empty;
    auto files = bench.written;
    files[3] = {second, empty.size(), checksum(std::string_view(empty))};
    with_files(files);
    reason = "the files of this checkpoint have 7 of 10 numbers";
  }
  const Choice choice = bench.choose();
  REQUIRE(choice.refused.size() == 1);
  CHECK(choice.refused[0].kind == RefusalKind::damaged);
  CHECK_MESSAGE(contains(choice.refused[0].reason, reason), choice.refused[0].reason);
  REQUIRE(choice.newest.has_value());
  CHECK(choice.newest->manifest.position.step == 100);
}

TEST_CASE("a rank that ends before all have written leaves no checkpoint that could be found") {
  Bench bench;
  REQUIRE(bench.write(100).has_value());
  bench.written.clear();
  REQUIRE(bench.write_rank(200, 0).has_value());
  REQUIRE(bench.write_rank(200, 2).has_value());
  SUBCASE("all ranks end") {
    CHECK(bench.choose().newest->manifest.position.step == 100);
    CHECK(bench.choose().refused.empty());
    CHECK(remove_leftovers(bench.files, bench.path)->size() == 1);
  }
  SUBCASE("a file is shorter than its rank says") {
    REQUIRE(bench.write_rank(200, 1).has_value());
    std::filesystem::resize_file(bench.path / ".writing-step-00000200" / bench.written[4].name, 10);
    const auto committed = bench.commit(200);
    REQUIRE_FALSE(committed.has_value());
    CHECK(contains(committed.error().text(), "has 10 bytes, and its rank has written"));
    CHECK(bench.files.list(bench.path)->size() == 1);
  }
  SUBCASE("a file is not there") {
    REQUIRE(bench.write_rank(200, 1).has_value());
    std::filesystem::remove(bench.path / ".writing-step-00000200" / bench.written[1].name);
    CHECK_FALSE(bench.commit(200).has_value());
    CHECK(bench.files.list(bench.path)->size() == 1);
  }
}

TEST_CASE("a failing write of a part is an error that names the part") {
  Bench bench;
  bench.files.fail_at = 7;  // in the second file
  const auto written = bench.write_rank(200, 1);
  REQUIRE_FALSE(written.has_value());
  CHECK(written.error().kind == ErrorKind::io);
  CHECK(bench.files.list(bench.path / ".writing-step-00000200")->empty());
  CHECK(
      contains(written.error().text(), "part 2 of 3 of the checkpoint of step 200 was not written: cannot "));
}

TEST_CASE("the header of a part must fit its whole") {
  const auto parse = [](std::string file) {
    file.resize(file.size() + 32);
    return parse_safetensors(std::as_bytes(std::span(file)), "part");
  };
  const auto good = plan_safetensors({stored_box("w", {8, 4}, slice_along({8, 4}, 0, 2, 2))}).head;
  const auto read = parse(good);
  REQUIRE_MESSAGE(read.has_value(), read.error().text());
  CHECK(read->front().part == PartOf{"w", {8, 4}, slice_along({8, 4}, 0, 2, 2)});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    for (std::size_t at = 0; (at = bad.find(from, at)) != std::string::npos; at += to.size())
      bad.replace(at, from.size(), to);
    const auto refused = parse(bad);
    REQUIRE_FALSE(refused.has_value());
    return refused.error().text();
  };
  CHECK(contains(with("2:4,", "7:9,"), "is no part of a tensor of the shape 8x4 with the shape 2x4"));
  CHECK(contains(with("2:4,", "2:5,"), "is no part of"));
  CHECK(contains(with("0:4]", "0:4}"), "its name does not end in ranges"));
  CHECK(contains(with("8x4", "8xx"), "its whole has the shape '8xx'"));
}
