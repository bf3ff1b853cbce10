#include "runtime/checkpoint/writer.hpp"

#include <algorithm>
#include <fstream>

#include <doctest/doctest.h>
#include <sys/mount.h>

#include "runtime/base/checksum.hpp"
#include "tests/unit/checkpoint/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

// A folder to write checkpoints of a small model into.
struct Bench : Folder {
  FakeEngine engine{small_shape, 4};
  Snapshot snapshot = *Snapshot::make(engine);
  FailingFileSystem files;

  Result<void> write(std::uint64_t step) {
    REQUIRE(snapshot.take(engine).has_value());
    return write_checkpoint(files, path, manifest_at(step, engine), {snapshot.file(0), snapshot.file(1)});
  }
  Choice choose() { return *choose_checkpoint(files, path, manifest_at(0, engine).identity); }
  std::vector<std::string> names() {
    auto out = *files.list(path);
    std::sort(out.begin(), out.end());
    return out;
  }
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

TEST_CASE("a checkpoint that was written is found and gives the same state back") {
  Bench bench;
  REQUIRE(bench.write(50).has_value());
  CHECK(bench.names() == std::vector<std::string>{"step-00000050"});
  const Choice choice = bench.choose();
  REQUIRE(choice.newest.has_value());
  CHECK(choice.newest->manifest.position == Position{50, 0, 400});
  FakeEngine other(small_shape, 4);
  const std::vector<float> zeros(160);
  REQUIRE(other.write_tensor(0, zeros).has_value());
  REQUIRE(restore(other, {choice.newest->files[0].bytes(), choice.newest->files[1].bytes()}).has_value());
  std::vector<float> want(160), have(160);
  REQUIRE(bench.engine.read_tensor(0, want).has_value());
  REQUIRE(other.read_tensor(0, have).has_value());
  CHECK(want == have);
}

TEST_CASE("the newest is chosen by number, not by text") {
  Bench bench;
  for (const std::uint64_t step : {9u, 10u, 200000000u, 99999999u}) REQUIRE(bench.write(step).has_value());
  CHECK(bench.choose().newest->manifest.position.step == 200000000);
}

TEST_CASE("whatever is wrong with the newest, it is refused by name and the one before is used") {
  Bench bench;
  REQUIRE(bench.write(100).has_value());
  REQUIRE(bench.write(200).has_value());
  const auto newest = bench.path / "step-00000200";
  std::string reason;
  SUBCASE("torn") {
    std::filesystem::resize_file(newest / "model.safetensors", 100);
    reason = "model.safetensors has 100 bytes, but ";
  }
  SUBCASE("a bit flipped in the data") {
    flip_byte(newest / "model.safetensors", 700);
    reason = "model.safetensors: checksum";
  }
  SUBCASE("a bit flipped in the optimizer's state") {
    flip_byte(newest / "optimizer.safetensors", 300);
    reason = "optimizer.safetensors: checksum";
  }
  SUBCASE("a digit flipped in the manifest") {
    std::string text = *read_file(newest / "manifest.json");
    text.replace(text.find("\"seen\": 1600"), 12, "\"seen\": 1700");
    std::ofstream(newest / "manifest.json") << text;
    reason = "its own checksum does not match";
  }
  SUBCASE("an empty file") {
    std::filesystem::resize_file(newest / "optimizer.safetensors", 0);
    reason = "optimizer.safetensors has 0 bytes";
  }
  SUBCASE("an empty manifest") {
    std::filesystem::resize_file(newest / "manifest.json", 0);
    reason = "manifest.json is empty";
  }
  SUBCASE("a missing file") {
    std::filesystem::remove(newest / "model.safetensors");
    reason = "model.safetensors is missing";
  }
  SUBCASE("a missing manifest") {
    std::filesystem::remove(newest / "manifest.json");
    reason = "manifest.json is missing";
  }
  SUBCASE("a plain file of that name") {
    std::filesystem::remove_all(newest);
    bench.Folder::write("step-00000200", "");
    reason = "manifest.json is missing";
  }
  SUBCASE("a copy under another number") {
    std::filesystem::rename(newest, bench.path / "step-00000300");
    reason = "manifest.json is of step 200";
  }
  SUBCASE("of another model") {
    Manifest foreign = manifest_at(200, bench.engine);
    foreign.identity.model = "resnet18-cifar";
    REQUIRE(
        write_checkpoint(bench.files, bench.path, foreign, {bench.snapshot.file(0), bench.snapshot.file(1)}));
    reason = "of another training: model resnet18-cifar there, fake here";
  }
  SUBCASE("unfinished, by its name") {
    std::filesystem::rename(newest, bench.path / "step-00000200.tmp");
    reason = "not the name of a finished checkpoint";
  }
  const Choice choice = bench.choose();
  REQUIRE(choice.refused.size() == 1);
  CHECK(choice.refused[0].name.starts_with("step-00000"));
  CHECK_MESSAGE(contains(choice.refused[0].reason, reason), choice.refused[0].reason);
  REQUIRE(choice.newest.has_value());
  CHECK(choice.newest->manifest.position.step == 100);
  CHECK(check_choice(choice, bench.path).has_value());
}

TEST_CASE("where no checkpoint can be used, the run does not start anew behind the user's back") {
  Bench bench;
  SUBCASE("all damaged") {
    REQUIRE(bench.write(100).has_value());
    std::filesystem::resize_file(bench.path / "step-00000100" / "model.safetensors", 0);
    const auto checked = check_choice(bench.choose(), bench.path);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().kind == ErrorKind::input);
    CHECK(contains(checked.error().text(), "step-00000100: model.safetensors has 0 bytes"));
  }
  SUBCASE("all of another training") {
    REQUIRE(bench.write(100).has_value());
    Identity other = manifest_at(0, bench.engine).identity;
    other.seed = 2;
    const auto checked = check_choice(*choose_checkpoint(bench.files, bench.path, other), bench.path);
    REQUIRE_FALSE(checked.has_value());
    CHECK(contains(checked.error().text(), "seed 1 there, 2 here"));
    CHECK(contains(checked.error().text(), "set another checkpoint.dir"));
  }
  SUBCASE("all of another optimizer, which is named where both are known") {
    Identity there = manifest_at(0, bench.engine).identity, here = there;
    here.tensors = there.tensors + 1;
    CHECK(contains(difference(there, here), "tensors of the model and its optimizer (checksum)"));
    there.optimizer = "lamb", here.optimizer = "lars";
    CHECK(difference(there, here) == "train.optimizer.name: lamb there, lars here");
    here.tensors = there.tensors, there.optimizer = "adamw", here.optimizer = "adam";  // the same tensors
    CHECK(difference(there, here) == "train.optimizer.name: adamw there, adam here");
    there.optimizer = "adam with ema";
    CHECK(difference(there, here) == "train.ema: adam with ema there, adam here");
    here.optimizer.clear();  // of an older version
    CHECK(difference(there, here).empty());
    Manifest manifest = manifest_at(3, bench.engine);
    manifest.settings["optimizer.name"] = "lamb";
    CHECK(parse_manifest(to_text(manifest), "manifest.json").value().identity.optimizer == "lamb");
    manifest.settings["ema"] = "0.99";
    CHECK(parse_manifest(to_text(manifest), "manifest.json").value().identity.optimizer == "lamb with ema");
  }
  SUBCASE("but an empty or missing folder is a start") {
    CHECK(check_choice(bench.choose(), bench.path).has_value());
    CHECK(choose_checkpoint(bench.files, bench.path / "absent", {}).has_value());
  }
  SUBCASE("and so is one where only the first write was interrupted") {
    bench.files.fail_at = 3;
    bench.files.stay_failed = true;
    REQUIRE_FALSE(bench.write(10).has_value());
    CHECK(check_choice(bench.choose(), bench.path).has_value());
  }
}

TEST_CASE("a failing write, at any of its effects, leaves the last good checkpoint and no litter") {
  int effects = 0;
  {
    Bench counting;
    REQUIRE(counting.write(1).has_value());
    effects = counting.files.effects;
  }
  REQUIRE(effects > 8);
  for (const bool stays : {false, true})
    for (int at = 1; at <= effects; ++at) {
      CAPTURE(at);
      Bench bench;
      REQUIRE(bench.write(100).has_value());
      bench.files.effects = 0;
      bench.files.fail_at = at;
      bench.files.stay_failed = stays;
      const auto written = bench.write(200);
      REQUIRE_FALSE(written.has_value());
      CHECK(written.error().kind == ErrorKind::io);
      CHECK(contains(written.error().text(), "checkpoint of step 200 was not written: cannot "));
      CHECK(contains(written.error().text(), "No space left on device"));
      // The very last effect comes after the rename: then the new one is there, whole.
      const Choice choice = bench.choose();
      CHECK(choice.refused.empty());
      REQUIRE(choice.newest.has_value());
      CHECK(choice.newest->manifest.position.step == (at == effects ? 200 : 100));
      CHECK(bench.names().size() == (at == effects ? 2 : 1));
    }
}

TEST_CASE("a checkpoint that was refused gives way to a new one of the same step") {
  Bench bench;
  REQUIRE(bench.write(100).has_value());
  REQUIRE(bench.write(200).has_value());
  std::filesystem::resize_file(bench.path / "step-00000200" / "model.safetensors", 1);
  REQUIRE(bench.write(200).has_value());
  CHECK(bench.choose().newest->manifest.position.step == 200);
  CHECK(bench.names().size() == 2);
}

TEST_CASE("the newest are kept, others of this training removed, foreign and damaged ones left alone") {
  Bench bench;
  for (const std::uint64_t step : {8u, 9u, 10u, 11u, 12u}) REQUIRE(bench.write(step).has_value());
  std::filesystem::resize_file(bench.path / "step-00000011" / "model.safetensors", 1);
  Manifest foreign = manifest_at(7, bench.engine);
  foreign.identity.model = "other";
  REQUIRE(
      write_checkpoint(bench.files, bench.path, foreign, {bench.snapshot.file(0), bench.snapshot.file(1)}));
  REQUIRE(prune_checkpoints(bench.files, {bench.path, 2}, manifest_at(0, bench.engine).identity).has_value());
  CHECK(bench.names() ==
        std::vector<std::string>{"step-00000007", "step-00000010", "step-00000011", "step-00000012"});
}

TEST_CASE("what an interrupted write left is removed at the next start") {
  Bench bench;
  std::filesystem::create_directories(bench.path / ".writing-step-00000012");
  bench.Folder::write(".removing-step-00000001", "");
  CHECK(bench.choose().refused.empty());
  CHECK(remove_leftovers(bench.files, bench.path)->size() == 2);
  CHECK(bench.names().empty());
}

TEST_CASE("the background writer tells what it saved, once") {
  Bench bench;
  BackgroundWriter writer(bench.files, {bench.path, 3}, *Snapshot::make(bench.engine));
  CHECK_FALSE(writer.poll()->has_value());
  REQUIRE(writer.start(bench.engine, manifest_at(5, bench.engine)).has_value());
  const auto saved = writer.wait();
  REQUIRE(saved.has_value());
  CHECK((*saved)->step == 5);
  CHECK_FALSE(writer.wait()->has_value());
  CHECK_FALSE(writer.busy());
}

TEST_CASE("the background writer hands its Error over") {
  Bench bench;
  bench.files.fail_at = 2;
  BackgroundWriter writer(bench.files, {bench.path, 3}, *Snapshot::make(bench.engine));
  REQUIRE(writer.start(bench.engine, manifest_at(5, bench.engine)).has_value());
  CHECK(writer.wait().error().kind == ErrorKind::io);
}

TEST_CASE("a disk that is really full: clear error, last good checkpoint intact, disk usable again") {
  Bench bench;
  const auto mounted = bench.path / "disk";
  std::filesystem::create_directories(mounted);
  REQUIRE_MESSAGE(::mount("tmpfs", mounted.c_str(), "tmpfs", 0, "size=400k") == 0,
                  "this test mounts a small tmpfs, which needs root");
  {
    const auto disk = real_file_system();
    FakeEngine engine({.channels = 1, .height = 50, .width = 50, .classes = 10}, 4);  // 200 kB of state
    Snapshot snapshot = *Snapshot::make(engine);
    REQUIRE(snapshot.take(engine).has_value());
    const auto write = [&](std::uint64_t step) {
      return write_checkpoint(*disk, mounted, manifest_at(step, engine),
                              {snapshot.file(0), snapshot.file(1)});
    };
    CHECK(write(100).has_value());
    const auto second = write(200);
    REQUIRE_FALSE(second.has_value());
    CHECK(second.error().kind == ErrorKind::io);
    CHECK(contains(second.error().what, "No space left on device"));
    const auto choice = choose_checkpoint(*disk, mounted, manifest_at(0, engine).identity);
    CHECK(choice->newest->manifest.position.step == 100);
    CHECK(disk->list(mounted)->size() == 1);
  }
  CHECK(::umount(mounted.c_str()) == 0);
}

TEST_CASE("a folder that cannot be written is an error at the start") {
  const auto disk = real_file_system();
  const Folder folder;
  CHECK(check_writable(*disk, folder.path / "new" / "deep").has_value());
  folder.write("file", "x");
  const auto refused = check_writable(*disk, folder.path / "file");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::io);
}

TEST_CASE("the manifest of a language model says so, and its tokenizer is a file beside it") {
  Bench bench;
  Manifest manifest = manifest_at(5, bench.engine);
  manifest.identity.shape = token_sequences(64, 257);
  manifest.tokenizer = "{}";
  REQUIRE(bench.snapshot.take(bench.engine));
  REQUIRE(
      write_checkpoint(bench.files, bench.path, manifest, {bench.snapshot.file(0), bench.snapshot.file(1)}));
  const std::filesystem::path folder = bench.path / checkpoint_name(5);
  CHECK(read_file(folder / tokenizer_file_name).value() == "{}");
  const auto read = parse_manifest(read_file(folder / "manifest.json").value(), "manifest.json");
  REQUIRE_MESSAGE(read.has_value(), read.error().text());
  CHECK(read->identity.shape.kind == SampleKind::tokens);
  CHECK(read->identity.shape.height == 64);
  CHECK(read->tokenizer_checksum == checksum(std::string_view("{}")));
  Identity images = manifest.identity;
  images.shape.kind = SampleKind::image;
  CHECK(difference(manifest.identity, images) == "input sequences of 64 tokens there, 1x64x1 here");
}
