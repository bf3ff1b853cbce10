#include "src/plan/nested_launcher.hpp"

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

TEST_CASE("which commands are launchers") {
  for (const char* line :
       {"torchrun --nproc_per_node=2 train.py", "/opt/torch/bin/torchrun x", "mpirun -n 2 ./a", "mpiexec ./a",
        "mpirun.openmpi ./a", "mpiexec.hydra ./a", "mpiexec.mpich ./a", "orterun ./a", "srun ./a",
        "aprun ./a", "accelerate launch train.py", "deepspeed train.py", "horovodrun -np 2 python train.py",
        "flux run ./a", "python -m torch.distributed.run train.py",
        "python3.11 -u -W ignore -m torch.distributed.launch x",
        "/usr/bin/python3 -m accelerate.commands.launch train.py", "python -m horovod.runner -np 2 x"})
    CHECK_MESSAGE(!plan::launcher_in(split(line, ' ')).empty(), line);
  for (const char* line :
       {"python train.py -m torch.distributed.run", "python -m train torchrun", "./torchrun.py",
        "accelerate config", "flux jobs", "bash -c torchrun", "python", "python -m", "./srun-me"})
    CHECK_MESSAGE(plan::launcher_in(split(line, ' ')).empty(), line);
  CHECK(plan::launcher_in({"python3", "-m", "torch.distributed.run"}) == "python -m torch.distributed.run");
}

TEST_CASE("a launcher inside a framework's ranks is refused, with the adapter to use") {
  const auto of = [](const std::string& framework, const std::string& process, const std::string& command,
                     int tasks) {
    return error_of(plan::make_plan(
        input(fmt::format("framework: {}\ncommand: [{}]\nresources: {{tasks-per-node: {}}}\n", framework,
                          command, tasks),
              machine(4), adapter(fmt::format("name: {}\nsummary: s\nprocess: {}\n", framework, process)))));
  };
  CHECK(of("pytorch", "per-rank", "torchrun, train.py", 2) ==
        "job.yaml:2:10: the command is the launcher 'torchrun', and framework pytorch would start it once "
        "per rank "
        "(ranks: 2)\n  hint: use framework: pytorch-torchrun (one torchrun per node) or framework: pytorch, "
        "with the command of one process (python train.py)");
  CHECK(
      of("mpi", "per-rank", "mpirun, -n, 2, hostname", 1).find("use framework: mpi and the program alone") !=
      std::string::npos);
  CHECK(of("pytorch-torchrun", "per-node", "torchrun, train.py", 2)
            .starts_with(
                "job.yaml:2:10: the command starts with 'torchrun', and framework pytorch-torchrun starts "
                "its own launcher"));
  // Plain jobs are the user's own arrangement where only one launcher would run.
  CHECK(of("plain", "per-rank", "mpirun, ./a", 1) == "no error");
  CHECK(of("plain", "per-rank", "torchrun, train.py", 1) == "no error");
  CHECK(of("plain", "per-rank", "torchrun, train.py", 2).find("once per rank (ranks: 2)") !=
        std::string::npos);
  CHECK(of("pytorch", "per-rank", "python, train.py", 2) == "no error");
}
