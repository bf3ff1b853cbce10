#include "src/plan/container.hpp"

#include <doctest/doctest.h>

#include "src/base/strings.hpp"
#include "tests/unit/plan/support.hpp"

using namespace dlrun;
using namespace dlrun::test;

namespace {

// The command line of the one rank of a job in a container: what stands before "./train" in it.
std::string line(const std::string& engine, const std::string& image, const std::string& rest = "",
                 plan::MpiProtocol mpi = plan::MpiProtocol::none, std::optional<GpuVendor> vendor = {}) {
  auto in =
      input("command: [./train]\nresources: {gpus-per-node: 1}\nenvironment: {container: {image: " + image +
                ", engine: " + engine + ", mounts: [/scratch, '/data/in:/data:ro']}}\n" + rest,
            machine(2, std::vector<std::string>{"0"}),
            adapter("name: a\nsummary: s\nmpi: auto\nenv: {A: b}\nneeds: {programs: [tool]}\n"));
  in.detected_mpi = mpi;
  in.allocation.nodes[0].gpu_vendor = vendor;
  const auto plan = plan::make_plan(in);
  if (!plan) return plan.error().text();
  CHECK(plan->prolog.needs.front().front() == plan->ranks[0].argv.front());  // looked for inside
  Argv argv = plan->ranks[0].argv;
  CHECK(argv.back() == "./train");
  argv.pop_back();
  return join(argv, " ");
}

// Under shifter and sarus the image's variables win: a shell inside sets the job's again.
const std::string kCopies =
    " sh -c export A=\"$DLRUN_SET_A\" CUDA_VISIBLE_DEVICES=\"$DLRUN_SET_CUDA_VISIBLE_DEVICES\" "
    "HIP_VISIBLE_DEVICES=\"$DLRUN_SET_HIP_VISIBLE_DEVICES\" "
    "ROCR_VISIBLE_DEVICES=\"$DLRUN_SET_ROCR_VISIBLE_DEVICES\" "
    "ZE_AFFINITY_MASK=\"$DLRUN_SET_ZE_AFFINITY_MASK\"; exec \"$0\" "
    "\"$@\"";

}  // namespace

TEST_CASE("variables of the job win over the image's, and secrets are copied nowhere") {
  const std::string text =
      "command: [./train]\nenvironment: {set: {NCCL_DEBUG: INFO, WANDB_API_KEY: hush}, container: {image: "
      "i.sif, engine: ";
  const auto changes = [&](const std::string& engine) {
    const auto plan = plan::make_plan(input(text + engine + "}}\n", machine(2)));
    REQUIRE(plan);
    plan::EnvironmentChanges out = plan->environment;
    out.merge(plan::EnvironmentChanges(plan->ranks[0].environment));
    return out;
  };
  for (const auto& [engine, prefix] :
       {std::pair{"apptainer", "APPTAINERENV_"}, std::pair{"singularity", "SINGULARITYENV_"},
        std::pair{"shifter", "DLRUN_SET_"}, std::pair{"sarus", "DLRUN_SET_"}}) {
    const plan::EnvironmentChanges found = changes(engine);
    CHECK(found.at(std::string(prefix) + "NCCL_DEBUG") == "INFO");
    CHECK_FALSE(found.contains(std::string(prefix) + "DLRUN_RANK"));  // no image has it
    CHECK_FALSE(found.contains(std::string(prefix) + "WANDB_API_KEY"));
    CHECK(found.at("WANDB_API_KEY") == "hush");
  }
  for (const char* engine : {"podman", "enroot", "pyxis", "charliecloud"})
    for (const auto& change : changes(engine))
      CHECK_MESSAGE(!change.first.ends_with("_NCCL_DEBUG"), change.first);
}

TEST_CASE("apptainer and singularity: files are of the job's folder, names are not") {
  const std::string middle =
      " exec --nv --bind /home/ann/jobs:/home/ann/jobs --bind /home/ann/runs/demo-1:/home/ann/runs/demo-1"
      " --bind /scratch:/scratch --bind /data/in:/data:ro --pwd /home/ann/jobs ";
  CHECK(line("apptainer", "tf.sif") == "apptainer" + middle + "/home/ann/jobs/tf.sif");
  CHECK(line("singularity", "docker://tf:2.1") == "singularity" + middle + "docker://tf:2.1");
}

TEST_CASE("GPUs of other vendors come into a container by their own flags") {
  const auto begins = [](const char* engine, GpuVendor vendor, const std::string& words) {
    return line(engine, "tf.sif", "", plan::MpiProtocol::none, vendor).find(words) != std::string::npos;
  };
  CHECK(begins("apptainer", GpuVendor::amd, "apptainer exec --rocm --bind"));
  CHECK(begins("apptainer", GpuVendor::intel, "apptainer exec --bind"));
  CHECK(begins("podman", GpuVendor::amd, " --device=/dev/kfd --device=/dev/dri "));
}

TEST_CASE("podman is told every variable, and shares the node's network, processes and memory") {
  CHECK(
      line("podman", "localhost/tf:2") ==
      "podman run --rm --network=host --ipc=host --pid=host --userns=keep-id --security-opt=label=disable"
      " --device=nvidia.com/gpu=all"
      " --env=A --env=DLRUN_ATTEMPT --env=DLRUN_JOB_ID --env=DLRUN_NODES --env=DLRUN_RUN_DIR --env=DLRUN_SIZE"
      " --env=CUDA_VISIBLE_DEVICES --env=DLRUN_LOCAL_RANK --env=DLRUN_LOCAL_SIZE --env=DLRUN_NODE"
      " --env=DLRUN_RANK --env=DLRUN_ROLE --env=DLRUN_TASK_INDEX --env=HIP_VISIBLE_DEVICES "
      "--env=ROCR_VISIBLE_DEVICES"
      " --env=ZE_AFFINITY_MASK --env=CUDA_DEVICE_ORDER --env=OMP_NUM_THREADS"
      " --env=DLRUN_CONTROL --env=DLRUN_CHECKPOINT_REQUEST --env=PMIX_* --env=OMPI_*"
      " --volume=/tmp:/tmp --volume=/home/ann/jobs:/home/ann/jobs"
      " --volume=/home/ann/runs/demo-1:/home/ann/runs/demo-1 --volume=/scratch:/scratch"
      " --volume=/data/in:/data:ro --workdir=/home/ann/jobs localhost/tf:2");
  CHECK(line("podman", "tf", "", plan::MpiProtocol::pmi1).find("which podman does not pass on") !=
        std::string::npos);
}

TEST_CASE("charliecloud") {
  const std::string before =
      "ch-run --bind=/home/ann/jobs:/home/ann/jobs --bind=/home/ann/runs/demo-1:/home/ann/runs/demo-1"
      " --bind=/scratch:/scratch --bind=/data/in:/data --cd=/home/ann/jobs ";
  CHECK(line("charliecloud", "images/tf") == before + "/home/ann/jobs/images/tf --");
  CHECK(line("charliecloud", "tf") == before + "tf --");
}

TEST_CASE("enroot starts in the working directory by a shell of the image") {
  const std::string all = line("enroot", "tf.sqsh");
  CHECK(all.starts_with("enroot start --env A --env DLRUN_ATTEMPT "));
  CHECK(
      all.ends_with("--env NVIDIA_VISIBLE_DEVICES=all --mount /tmp:/tmp --mount /home/ann/jobs:/home/ann/jobs"
                    " --mount /home/ann/runs/demo-1:/home/ann/runs/demo-1 --mount /scratch:/scratch"
                    " --mount /data/in:/data /home/ann/jobs/tf.sqsh sh -c cd -- \"$0\" && exec \"$@\""
                    " /home/ann/jobs"));
}

TEST_CASE("pyxis is a step of srun's on the rank's node") {
  CHECK(line("pyxis", "nvcr.io#nvidia/pytorch:23.05-py3") ==
        "srun --overlap --nodes=1 --ntasks=1 --nodelist=laptop --mpi=none --cpu-bind=none --export=ALL"
        " --container-env=A,DLRUN_ATTEMPT,DLRUN_JOB_ID,DLRUN_NODES,DLRUN_RUN_DIR,DLRUN_SIZE,CUDA_VISIBLE_"
        "DEVICES,"
        "DLRUN_LOCAL_RANK,DLRUN_LOCAL_SIZE,DLRUN_NODE,DLRUN_RANK,DLRUN_ROLE,DLRUN_TASK_INDEX,HIP_VISIBLE_"
        "DEVICES,ROCR_VISIBLE_DEVICES,"
        "ZE_AFFINITY_MASK,CUDA_DEVICE_ORDER,"
        "OMP_NUM_THREADS,DLRUN_CONTROL,DLRUN_CHECKPOINT_REQUEST"
        " --container-image=nvcr.io#nvidia/pytorch:23.05-py3 --container-mounts=/tmp:/tmp,"
        "/home/ann/jobs:/home/ann/jobs,/home/ann/runs/demo-1:/home/ann/runs/demo-1,/scratch:/scratch,"
        "/data/in:/data:ro --container-workdir=/home/ann/jobs");
}

TEST_CASE("shifter and sarus") {
  CHECK(line("shifter", "docker:tf:2") ==
        "shifter --image=docker:tf:2 --volume=/home/ann/jobs:/home/ann/jobs"
        " --volume=/home/ann/runs/demo-1:/home/ann/runs/demo-1 --volume=/scratch:/scratch "
        "--volume=/data/in:/data"
        " --workdir=/home/ann/jobs" +
            kCopies);
  CHECK(line("sarus", "tf:2") ==
        "sarus run --mount=type=bind,source=/tmp,destination=/tmp"
        " --mount=type=bind,source=/home/ann/jobs,destination=/home/ann/jobs"
        " --mount=type=bind,source=/home/ann/runs/demo-1,destination=/home/ann/runs/demo-1"
        " --mount=type=bind,source=/scratch,destination=/scratch"
        " --mount=type=bind,source=/data/in,destination=/data,readonly --workdir=/home/ann/jobs tf:2" +
            kCopies);
}
