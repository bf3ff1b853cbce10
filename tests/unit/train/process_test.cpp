// dlrun-train as a process of its own, one rank, on synthetic data: killed, stopped, asked over its control
// channel, and run again.
#include <algorithm>
#include <csignal>
#include <fstream>
#include <thread>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "runtime/checkpoint/catalog.hpp"
#include "runtime/data/images/image.hpp"
#include "src/base/json.hpp"
#include "src/base/unique_fd.hpp"
#include "tests/unit/data/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

namespace fs = std::filesystem;

// A job of 40 steps in two epochs that writes a checkpoint every other step.
struct Program : Folder {
  Json train = {{"model", "mnist-cnn"},
                {"data", {{"format", "synthetic"}, {"samples", 79}}},
                {"batch", 4},
                {"epochs", 2},
                {"seed", 3}};
  Json checkpoint = {{"dir", "ckpt"}, {"every", "2steps"}, {"keep", 2}};
  Json sources = {{"/train/batch", "job.yaml:9:10"}};
  std::vector<std::string> variables;
  std::string output_device;  // takes the standard output; empty: a file that has the errors, too
  pid_t process = -1;

  void start(std::vector<std::string> arguments = {"--config", "job.json"}) {
    write("job.json", to_text(Json{{"value", {{"name", "t"}, {"train", train}, {"checkpoint", checkpoint}}},
                                   {"sources", sources}}));
    fs::create_directories(path / "run");
    std::vector<std::string> environment = {"DLRUN_RUN_DIR=" + (path / "run").string(), "DLRUN_COMM=none",
                                            "OMP_NUM_THREADS=1"};
    environment.insert(environment.end(), variables.begin(), variables.end());
    process = ::fork();
    REQUIRE(process >= 0);
    if (process > 0) return;
    become(arguments, environment);
  }

  [[noreturn]] void become(std::vector<std::string>& arguments, std::vector<std::string>& environment) const {
    const int out = ::open((path / "out").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    const int to = output_device.empty() ? out : ::open(output_device.c_str(), O_WRONLY);
    if (::chdir(path.c_str()) != 0 || ::dup2(to, 1) < 0 || ::dup2(out, 2) < 0) ::_exit(99);
    arguments.insert(arguments.begin(), "dlrun-train");
    std::vector<char*> argv, envp;
    for (std::string& word : arguments) argv.push_back(word.data());
    for (std::string& entry : environment) envp.push_back(entry.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    ::execve(DLRUN_TRAIN, argv.data(), envp.data());
    ::_exit(99);
  }

  // The exit code, or 128 + the signal.
  int wait() {
    int status = 0;
    REQUIRE(::waitpid(process, &status, 0) == process);
    process = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  int run() {
    start();
    return wait();
  }
  std::string output() const { return *read_file(path / "out"); }

  std::vector<std::string> checkpoints() const {
    std::vector<std::string> out;
    std::error_code problem;
    for (const auto& entry : fs::directory_iterator(path / "ckpt", problem))
      out.push_back(entry.path().filename());
    return out;
  }
  // Those that are complete, oldest first.
  std::vector<std::string> finished() const {
    std::vector<std::string> out;
    for (const std::string& name : checkpoints())
      if (name.starts_with("step-")) out.push_back(name);
    std::sort(out.begin(), out.end());
    return out;
  }
  // True once `wanted` holds; false where the process ended first.
  template <class Condition>
  bool wait_until(Condition wanted) const {
    for (;;) {
      if (wanted()) return true;
      siginfo_t info{};
      if (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
          info.si_pid != 0)
        return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  bool has_checkpoint_like(const std::string& start) const {
    for (const std::string& name : checkpoints())
      if (name.starts_with(start)) return true;
    return false;
  }
  std::string final_state() const {
    const fs::path last = path / "ckpt" / finished().back();
    return *read_file(last / "model.safetensors") + *read_file(last / "optimizer.safetensors");
  }
  ~Program() {
    if (process > 0) {
      ::kill(process, SIGKILL);
      ::waitpid(process, nullptr, 0);
    }
  }
};

}  // namespace

TEST_CASE("killed at any moment and run again, a job ends with the bits of an uninterrupted run") {
  Program whole;
  whole.train["epochs"] = 6;
  REQUIRE_MESSAGE(whole.run() == 0, whole.output());
  CHECK(contains(whole.output(), "test accuracy "));
  CHECK_FALSE(contains(whole.output(), "resuming from"));
  Program killed;
  killed.train = whole.train;
  int kills = 0;
  const auto kill_when = [&](auto reached) {
    killed.start();
    if (killed.wait_until(reached)) {
      ::kill(killed.process, SIGKILL);
      ++kills;
    }
    killed.wait();
  };
  kill_when([&] { return killed.has_checkpoint_like(".writing-"); });  // in the first write
  kill_when([&] { return killed.has_checkpoint_like("step-"); });
  for (int round = 0; round < 4; ++round) {  // in a later write, at any point of it
    kill_when([&] { return killed.has_checkpoint_like(".writing-"); });
    kill_when([&, first = std::string()]() mutable {
      std::string now;
      for (const std::string& name : killed.checkpoints()) now += name;
      if (first.empty()) first = now;
      return now != first;
    });
  }
  CHECK(kills >= 3);  // a busy machine may let some runs end before their moment is seen
  REQUIRE_MESSAGE(killed.run() == 0, killed.output());
  CHECK((contains(killed.output(), "resuming from ckpt/step-") ||
         contains(killed.output(), "already finished")));
  CHECK(killed.final_state() == whole.final_state());
  // Done is done: the same command says so, quickly, and changes nothing.
  REQUIRE(killed.run() == 0);
  CHECK(contains(killed.output(), "already finished"));
  CHECK(contains(killed.output(), "test accuracy "));
  CHECK(killed.final_state() == whole.final_state());
}

TEST_CASE("SIGTERM: a checkpoint at the next step, exit 75, and the run goes on from there") {
  Program program;
  program.checkpoint = {{"dir", "ckpt"}};
  program.train["epochs"] = 1000;
  program.start();
  const fs::path metrics = program.path / "run" / "metrics.jsonl";
  REQUIRE(program.wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  ::kill(program.process, SIGTERM);
  CHECK(program.wait() == 75);
  CHECK(contains(program.output(), "stopped on request after step "));
  CHECK(program.has_checkpoint_like("step-"));
  program.train["epochs"] = 4;
  CHECK(program.run() == 0);
  CHECK(contains(program.output(), "resuming from ckpt/step-"));
}

TEST_CASE("without a checkpoint folder a stop is what the signal says, not 'run me again'") {
  Program program;
  program.checkpoint = Json::object();
  program.train["epochs"] = 1000;
  program.start();
  const fs::path metrics = program.path / "run" / "metrics.jsonl";
  REQUIRE(program.wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  ::kill(program.process, SIGTERM);
  CHECK(program.wait() == 128 + SIGTERM);
}

TEST_CASE("a request file that appears stops the run with a checkpoint") {
  Program program;
  program.checkpoint = {{"dir", "ckpt"}};
  program.train["epochs"] = 1000;
  program.variables = {"DLRUN_CHECKPOINT_REQUEST=" + (program.path / "request").string()};
  program.start();
  const fs::path metrics = program.path / "run" / "metrics.jsonl";
  REQUIRE(program.wait_until([&] { return fs::exists(metrics) && fs::file_size(metrics) > 0; }));
  CHECK(program.checkpoints().size() == 1);  // the lock alone
  program.write("request", "");
  CHECK(program.wait() == 75);
  CHECK(program.has_checkpoint_like("step-"));
}

TEST_CASE("over the control channel: progress, a checkpoint on demand, a stop, in this order") {
  Program program;
  program.checkpoint = {{"dir", "ckpt"}};
  program.train["epochs"] = 1000;
  const std::string name = (program.path / "control").string();
  program.variables = {"DLRUN_CONTROL=" + name};
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(::listen(listener.get(), 1) == 0);
  program.start();
  const UniqueFd agent(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(agent.get() >= 0);
  std::string heard;
  const auto hear_until = [&](const std::string& what) {
    char buffer[4096];
    while (!contains(heard, what)) {
      const ssize_t got = ::recv(agent.get(), buffer, sizeof buffer, 0);
      if (got <= 0) return false;
      heard.append(buffer, static_cast<std::size_t>(got));
    }
    return true;
  };
  const auto say = [&](const std::string& text) {
    REQUIRE(::send(agent.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
  };
  REQUIRE(hear_until("\"images_per_s\":"));
  CHECK(heard.starts_with("{\"rank\":0}\n"));
  CHECK(contains(heard, "{\"phase\":\"training\"}"));
  say("{\"checkpoint\":\"now\"}\n");
  REQUIRE(hear_until("{\"saved\":"));
  heard.clear();
  REQUIRE(hear_until("\"learning_rate\":"));  // it goes on
  say("{\"checkpoint\":\"now\",\"stop\":true}\n");
  REQUIRE(hear_until("{\"saved\":"));
  CHECK(program.wait() == 75);
}

TEST_CASE("a finished run reports its result over the control channel's last lines and in metrics.jsonl") {
  Program program;
  REQUIRE(program.run() == 0);
  const std::string metrics = *read_file(program.path / "run" / "metrics.jsonl");
  CHECK(contains(metrics, "\"test_accuracy\":"));
  CHECK(contains(metrics, "\"step\":40"));
}

TEST_CASE("bf16 on a processor without instructions for it is said to be slow") {
  Program program;
  program.checkpoint = Json::object();
  program.train["precision"] = "bf16";
  program.variables = {"ONEDNN_MAX_CPU_ISA=AVX512_CORE"};
  const int code = program.run();
  if (code != 0) {  // one without AVX-512
    CHECK(contains(program.output(), "this processor cannot compute in bf16"));
    return;
  }
  CHECK(contains(program.output(), "no bf16 instructions: f32 is faster here"));
}

TEST_CASE("a GAN trains to two losses and a grid of its images, with the same bits over a kill") {
  Program whole;
  whole.train = {{"model", "dcgan"},
                 {"data", {{"format", "synthetic"}, {"samples", 79}, {"shape", {1, 16, 16}}}},
                 {"batch", 8},
                 {"epochs", 2},
                 {"optimizer", {{"name", "adam"}, {"lr", 2e-4}, {"beta1", 0.5}}}};
  REQUIRE_MESSAGE(whole.run() == 0, whole.output());
  CHECK(contains(whole.output(), "loss_d "));
  CHECK(contains(whole.output(), "loss_g "));
  const std::string metrics = *read_file(whole.path / "run" / "metrics.jsonl");
  CHECK(contains(metrics, "\"loss_d\":"));
  CHECK(contains(metrics, "\"epoch_loss_g\":"));
  for (const char* name : {"samples-epoch-0001.png", "samples-epoch-0002.png"}) {
    const std::string file = *read_file(whole.path / "run" / name);
    const auto grid =
        runtime::decode_png({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, name);
    REQUIRE(grid.has_value());
    CHECK(grid->width == 8 * 18 - 2);
    CHECK(grid->height == 16);
  }
  Program killed;
  killed.train = whole.train;
  killed.start();
  if (killed.wait_until([&] { return killed.has_checkpoint_like("step-"); })) ::kill(killed.process, SIGKILL);
  killed.wait();
  REQUIRE_MESSAGE(killed.run() == 0, killed.output());
  CHECK(killed.final_state() == whole.final_state());
  CHECK(*read_file(killed.path / "run" / "samples-epoch-0002.png") ==
        *read_file(whole.path / "run" / "samples-epoch-0002.png"));
  const auto tool = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--checkpoint", "ckpt"});
    whole.start(words);
    return whole.wait();
  };
  CHECK_MESSAGE(tool({"--export", "gan.safetensors"}) == 0, whole.output());
  CHECK(contains(*read_file(whole.path / "gan.safetensors"), "\"generator.0.weight\""));
  CHECK(tool({"--export", "gan.onnx"}) == 65);
  CHECK(contains(whole.output(), "hint: write .safetensors"));
  CHECK(tool({"--sample", "x"}) == 64);
  CHECK(contains(whole.output(), "dcgan is a GAN: it makes images and continues no texts"));
  CHECK(tool({"--evaluate", "x"}) == 64);
  CHECK(contains(whole.output(), "--evaluate needs classes, which dcgan, a GAN, does not have"));
}

TEST_CASE("a resume with another kind of optimizer, or without its average, is refused by the key") {
  Program program;
  program.train["optimizer"] = {{"name", "adamw"}, {"lr", 0.001}};
  program.train["ema"] = 0.99;
  program.train["data"]["samples"] = 8;
  REQUIRE_MESSAGE(program.run() == 0, program.output());
  program.train["epochs"] = 3;
  program.train.erase("ema");
  CHECK(program.run() == 65);
  CHECK_MESSAGE(contains(program.output(), "train.ema: adamw with ema there, adamw here"), program.output());
  program.train["ema"] = 0.99;
  program.train["optimizer"]["name"] = "adam";
  CHECK(program.run() == 65);
  CHECK_MESSAGE(contains(program.output(), "train.optimizer.name: adamw with ema there, adam with ema here"),
                program.output());
}

TEST_CASE("--check finds what is wrong before any rank starts, with the exit code of its kind") {
  Program program;
  const auto check = [&](const std::string& expected) {
    program.start({"--check", "--config", "job.json"});
    const int code = program.wait();
    CHECK_MESSAGE(contains(program.output(), expected), program.output());
    return code;
  };
  SUBCASE("a sound job") {
    CHECK(check("job file OK: mnist-cnn on images of 1 x 28 x 28, 10 classes") == 0);
  }
  SUBCASE("a value out of range, at the place in the user's file") {
    program.train["batch"] = 0;
    CHECK(check("dlrun-train: error: job.yaml:9:10: train.batch: ") == 65);
  }
  SUBCASE("data that are not there") {
    program.train["data"] = {{"format", "idx"}, {"dir", "/no/such"}};
    CHECK(check("dlrun-train: error: /no/such/train-images-idx3-ubyte: no such file") == 65);
  }
  SUBCASE("a label out of range") {
    fs::create_directories(program.path / "data");
    std::string labels = idx_labels(20);
    labels[8 + 3] = 77;
    program.write("data/train-images-idx3-ubyte", idx_images(20, 28, 28));
    program.write("data/train-labels-idx1-ubyte", labels);
    program.write("data/t10k-images-idx3-ubyte", idx_images(20, 28, 28));
    program.write("data/t10k-labels-idx1-ubyte", idx_labels(20));
    program.train["data"] = {{"format", "idx"}, {"dir", "data"}};
    CHECK(check("data/train-labels-idx1-ubyte: label 77 at offset 11 is out of range") == 65);
  }
  SUBCASE("a pattern that matches no parameter, at its place") {
    program.train["optimizer"] = {{"no-decay", {"vectors", "frist.*"}}};
    program.sources["/train/optimizer/no-decay/1"] = "job.yaml:7:9";
    CHECK(check("error: job.yaml:7:9: train.optimizer.no-decay: no parameter is named 'frist.*'\n  hint: "
                "mnist-cnn has ") == 65);
    program.train["data"] = {{"format", "idx"}, {"dir", "/no/such"}};  // which plans do without
    program.start({"--check-settings", "--config", "job.json"});
    CHECK(program.wait() == 65);
    CHECK(contains(program.output(), "error: job.yaml:7:9: train.optimizer.no-decay: no parameter"));
  }
  SUBCASE("a model beyond any machine") {
    program.train["model"] = {{"name", "huge"},
                              {"transformer", {{"layers", 12}, {"heads", 16}, {"features", 1048576}}}};
    program.train["data"] = {{"format", "synthetic"}, {"samples", 8}, {"context", 16}, {"vocabulary", 256}};
    CHECK(check("the optimizer's state, each rank needs ") == 65);
    CHECK(contains(program.output(), " TiB, and this machine has "));
    program.start({"--check-settings", "--config", "job.json"});
    CHECK(program.wait() == 65);
  }
  SUBCASE("a config that dlrun did not write") {
    program.write("plain.json", "{\"train\": {}}");
    program.start({"--check", "--config", "plain.json"});
    CHECK(program.wait() == 65);
    CHECK(contains(program.output(), "error: plain.json: is not what dlrun writes of a job file"));
    CHECK(contains(program.output(), "train.json"));
  }
  SUBCASE("a standard output that is full") {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"--check", "--config", "job.json"}, {"--help"}, {"--version"}}) {
      program.output_device = "/dev/full";
      program.start(words);
      CHECK_MESSAGE(program.wait() == 74, words[0]);
      CHECK_MESSAGE(contains(program.output(), "error: cannot write the standard output: "),
                    program.output());
    }
  }
  SUBCASE("a shape that the model cannot take") {
    program.train["data"]["shape"] = {1, 2, 2};
    CHECK(check("dlrun-train: error: ") == 65);
  }
  SUBCASE("a checkpoint folder that cannot be made") {
    program.checkpoint["dir"] = "/proc/no/such";
    CHECK(check("cannot create the folder /proc/no/such") == 74);
  }
  SUBCASE("a config that is not there") {
    fs::remove(program.path / "job.json");
    program.start({"--check", "--config", "absent.json"});
    CHECK(program.wait() == 65);
    CHECK(contains(program.output(), "cannot read absent.json"));
  }
  SUBCASE("usage") {
    program.start({"--chek"});
    CHECK(program.wait() == 64);
  }
}

TEST_CASE("a full disk ends the run with 74, the reason, and the last good checkpoint intact") {
  Program program;
  fs::create_directories(program.path / "ckpt");
  REQUIRE_MESSAGE(::mount("tmpfs", (program.path / "ckpt").c_str(), "tmpfs", 0, "size=40m") == 0,
                  "this test mounts a small tmpfs, which needs root");
  CHECK(program.run() == 74);  // 26 MB fit once
  CHECK(contains(program.output(), "dlrun-train: error: checkpoint of step "));
  CHECK(contains(program.output(), " was not written: cannot write "));
  CHECK(contains(program.output(), "No space left on device"));
  const auto left = program.finished();
  REQUIRE(left.size() == 1);
  CHECK(contains(program.output(), left[0] + " in ckpt is complete"));
  CHECK(program.checkpoints().size() == 2);  // it and the lock
  CHECK(program.run() == 74);
  CHECK(contains(program.output(), "resuming from ckpt/" + left[0]));
  CHECK(::umount((program.path / "ckpt").c_str()) == 0);
}

TEST_CASE("a standard output that is full is told, with 74, by a training that is complete all the same") {
  Program program;
  program.output_device = "/dev/full";
  CHECK(program.run() == 74);
  CHECK(contains(program.output(), "error: cannot write the standard output: No space left on device"));
  CHECK(program.finished().size() == 2);
}

TEST_CASE("a damaged newest checkpoint is named on the way and the one before is used") {
  Program program;
  REQUIRE(program.run() == 0);
  const auto before = program.finished();
  REQUIRE(before.size() == 2);
  fs::resize_file(program.path / "ckpt" / "step-00000040" / "model.safetensors", 1000);
  REQUIRE(program.run() == 0);
  CHECK(
      contains(program.output(), "checkpoint ckpt/step-00000040 refused: model.safetensors has 1000 bytes"));
  CHECK(contains(program.output(), "resuming from ckpt/" + before[0]));
}
