// The files are what Python's safetensors expects: read by an independent reader with numpy.
#include <cstdio>

#include <doctest/doctest.h>

#include "src/base/quote.hpp"
#include "tests/unit/checkpoint/support.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

TEST_CASE("Python and numpy read header and tensors of a checkpoint") {
  const Folder folder;
  FakeEngine engine(small_shape, 4);
  Snapshot snapshot = *Snapshot::make(engine);
  REQUIRE(snapshot.take(engine).has_value());
  FailingFileSystem files;
  REQUIRE(write_checkpoint(files, folder.path, manifest_at(1, engine), {snapshot.file(0), snapshot.file(1)}));
  const std::string command =
      shell_join(std::vector<std::string>{"/usr/bin/python3", TEST_DATA_DIR "/read_safetensors.py",
                                          folder.path / "step-00000001/model.safetensors"}) +
      " 2>&1";
  FILE* pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output(4096, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe));
  REQUIRE_MESSAGE(::pclose(pipe) == 0, output);
  std::vector<float> weights(160);
  REQUIRE(engine.read_tensor(0, weights).has_value());
  const std::string expected =
      fmt::format("fc.weight [10, 16] {:.6g} {:.6g}\n", weights.front(), weights.back());
  CHECK_MESSAGE(output.starts_with(expected), output, expected);
  CHECK_MESSAGE(output.ends_with("input.running_mean [1] 0 0\n"), output);
}
