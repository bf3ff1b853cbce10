// Every backend in a recorded world: what it reads, what it refuses, and what it says about it.
#include <doctest/doctest.h>

#include "schedulers/pbs/path.hpp"
#include "src/base/utc.hpp"
#include "tests/unit/schedulers/world.hpp"

using namespace dlrun;

namespace {

bool says(const std::vector<std::string>& lines, std::string_view word) {
  for (const std::string& line : lines)
    if (line.find(word) != std::string::npos) return true;
  return false;
}

std::string asked_of(const Result<Allocation>& found) {
  std::string out;
  for (const AllocatedNode& node : found.value().nodes)
    out += fmt::format("{} ", node.asked_slots ? std::to_string(*node.asked_slots) : "-");
  return out;
}

}  // namespace

TEST_CASE("Slurm: counts and node list") {
  World world;
  world.set("SLURM_JOB_NODELIST", "n[1-4]");
  world.set("SLURM_TASKS_PER_NODE", "2(x3),1");
  CHECK(text_of(world.find()) == "n1:2 n2:2 n3:2 n4:1");
  world.set("SLURM_TASKS_PER_NODE", "2(x3)");
  const std::string error = text_of(world.find());
  CHECK(error.find("SLURM_JOB_NODELIST=n[1-4]: 4 nodes") != std::string::npos);
  CHECK(error.find("SLURM_TASKS_PER_NODE=2(x3): counts for 3") != std::string::npos);
}

TEST_CASE("slots count as asked for where somebody gave their number, and not where they are cores") {
  World slurm;
  slurm.set("SLURM_JOB_NODELIST", "n[1-2]");
  slurm.set("SLURM_TASKS_PER_NODE", "4(x2)");
  CHECK(asked_of(slurm.find()) == "- - ");  // of salloc -N2 on nodes of four cores
  slurm.set("SLURM_NTASKS_PER_NODE", "4");
  CHECK(asked_of(slurm.find()) == "4 4 ");
  World total;
  total.set("SLURM_JOB_NODELIST", "n[1-2]");
  total.set("SLURM_TASKS_PER_NODE", "2,1");
  total.set("SLURM_NTASKS", "3");
  CHECK(asked_of(total.find()) == "2 1 ");
  World pbs;
  pbs.set("PBS_JOBID", "1.s");
  pbs.set_file("PBS_NODEFILE", "x1\nx2\nx2\nx3\nx2\n");
  CHECK(asked_of(pbs.find()) == "1 3 1 ");
  World torque;
  torque.set("PBS_NUM_PPN", "2");
  torque.set_file("PBS_NODEFILE", "x1\nx1\n");
  CHECK(asked_of(torque.find()) == "- ");
}

TEST_CASE("Slurm: counts that are none are refused with their text") {
  World world;
  world.set("SLURM_JOB_NODELIST", "n[1-2]");
  for (const char* text : {"2(x", "2(x0)", "2(x2),", "x", "-1(x2)", "2(x99999999999)", "2(3)"}) {
    world.set("SLURM_TASKS_PER_NODE", text);
    CHECK_MESSAGE(text_of(world.find()).starts_with("error: SLURM_TASKS_PER_NODE"), text);
  }
}

TEST_CASE("Slurm: the number of nodes contradicts the list") {
  World world;
  world.set("SLURM_JOB_NODELIST", "n[1-2]");
  world.set("SLURM_JOB_NUM_NODES", "3");
  CHECK(text_of(world.find()).find("SLURM_JOB_NUM_NODES=3") != std::string::npos);
}

TEST_CASE("Slurm: in an interactive step the job's nodes count, not the step's") {
  World world;
  world.set("SLURM_JOB_NODELIST", "n[19-20]");
  world.set("SLURM_STEP_NODELIST", "n19");
  world.set("SLURM_JOB_NUM_NODES", "2");
  world.set("SLURM_STEP_NUM_NODES", "1");
  world.set("SLURM_TASKS_PER_NODE", "1");
  world.set("SLURM_JOB_CPUS_PER_NODE", "4(x2)");
  const auto found = world.find();
  CHECK(text_of(found) == "n19:4/4 n20:4/4");
  CHECK(says(found->evidence, "of the step"));
}

TEST_CASE("Slurm: NTASKS wins over NTASKS_PER_NODE, with a warning") {
  World world;
  world.set("SLURM_NNODES", "1");
  world.set("SLURMD_NODENAME", "n1");
  world.set("SLURM_NTASKS", "1");
  world.set("SLURM_NTASKS_PER_NODE", "2");
  const auto found = world.find();
  CHECK(text_of(found) == "n1:1");
  CHECK(says(found->warnings, "SLURM_NTASKS (1) and SLURM_NTASKS_PER_NODE (2) disagree"));
}

TEST_CASE("Slurm: GPU variables are those of one node alone") {
  World world;
  world.set("SLURM_JOB_ID", "7");
  world.set("SLURM_JOB_NODELIST", "n[1-2]");
  world.set("SLURMD_NODENAME", "n2");
  world.set("SLURM_JOB_GPUS", "0-3");
  CHECK(text_of(world.find()) == "n1:1 n2:1[0,1,2,3]");
  world.commands.answer(
      "scontrol show job -d 7",
      "JobId=7\n   RunTime=00:00:06 TimeLimit=00:10:00\n"
      "   StartTime=2026-11-27T20:46:37 EndTime=2026-11-27T20:56:37 Deadline=N/A\n"
      "     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0,3)\n     Nodes=n2 CPU_IDs=0 Mem=0 GRES=\n");
  const auto found = world.find();
  CHECK(text_of(found) == "n1:1[0,3] n2:1[]");
  CHECK(format_utc(found->end_time.value()) == "2026-11-27T20:56:37Z");
}

TEST_CASE("Slurm: variables that a job left behind in a shell are no allocation") {
  const auto found = [](const char* state) {
    World world;
    world.set("SLURM_JOB_ID", "7");
    world.set("SLURM_JOB_NODELIST", "n1");
    world.commands.answer("scontrol show job -d 7",
                          fmt::format("JobId=7 JobName=x\n   JobState={} Reason=None\n", state));
    return text_of(world.find());
  };
  CHECK(found("TIMEOUT") ==
        "error: the Slurm variables of this shell are left over: job 7 is over (TIMEOUT)\n  hint: unset the "
        "SLURM_* variables or open a new shell; --scheduler local uses only this machine");
  CHECK(found("RUNNING") == "n1:1");
  CHECK(found("COMPLETING") == "n1:1");
  World world;
  world.set("SLURM_JOB_ID", "7");
  world.set("SLURM_JOB_NODELIST", "n1");
  world.commands.refuse("scontrol", "slurm_load_jobs error: Invalid job id specified");
  CHECK(text_of(world.find()).find("job 7 is not known to Slurm") != std::string::npos);
}

TEST_CASE("Slurm: a job that was submitted from within a heterogeneous one is not that one") {
  World world;
  world.set("SLURM_JOB_ID", "40");
  world.set("SLURM_JOB_NODELIST", "n9");
  world.set("SLURM_HET_SIZE", "2");
  for (const auto& [group, id, list] :
       {std::array<const char*, 3>{"0", "34", "n1"}, std::array<const char*, 3>{"1", "35", "n[2-3]"}}) {
    world.set(std::string("SLURM_JOB_ID_HET_GROUP_") + group, id);
    world.set(std::string("SLURM_JOB_NODELIST_HET_GROUP_") + group, list);
  }
  CHECK(text_of(world.find()) == "n9:1");
  CHECK(says(world.find()->evidence, "left over from another job"));
  world.set("SLURM_JOB_ID", "34");
  CHECK(text_of(world.find()) == "n1:1 n2:1 n3:1");
}

TEST_CASE("Slurm: an absent or busy controller is a line of evidence") {
  World world;
  world.set("SLURM_JOB_ID", "7");
  world.set("SLURM_JOB_NODELIST", "n1");
  world.commands.refuse("scontrol", "slurm_load_jobs error: Unable to contact slurm controller");
  const auto found = world.find();
  REQUIRE(found.has_value());
  CHECK_FALSE(found->end_time.has_value());
  CHECK(says(found->evidence, "Unable to contact slurm controller"));
}

TEST_CASE("Slurm: its library tells the end where its programs do not") {
  World world;
  world.set("SLURM_JOB_ID", "7");
  world.set("SLURM_JOB_NODELIST", "n1");
  world.commands.answer("/proc/self/exe slurm-end 7", "1795800000\n");
  CHECK(format_utc(world.find()->end_time.value()) == "2026-11-27T17:20:00Z");
  CHECK(says(world.find()->evidence, "libslurm: end"));
  world.commands.answer("/proc/self/exe slurm-end 7", "-1\n");
  CHECK_FALSE(world.find()->end_time.has_value());
}

TEST_CASE("Slurm wins over the PBS variables of its wrapper, and says that it saw them") {
  World world;
  world.set("SLURM_JOB_NODELIST", "n1");
  world.set_file("PBS_NODEFILE", "n9\n");
  world.set("PBS_JOBID", "7");
  CHECK(text_of(world.find()) == "n1:1");
  CHECK(says(world.find()->evidence, "PBS_JOBID=7 too (pbs): ignored"));
  CHECK(text_of(world.find("pbs")) == "n9:1");
}

TEST_CASE("PBS: lines are ranks, runs of a host add up, order is that of first sight") {
  World world;
  world.set("PBS_JOBID", "3.srv");
  world.set_file("PBS_NODEFILE", "node10\nnode9\nnode10\nnode9");
  CHECK(text_of(world.find()) == "node10:2 node9:2");
  world.set_file("PBS_NODEFILE", "");
  CHECK(text_of(world.find()).find("the node file is empty") != std::string::npos);
  world.set_file("PBS_NODEFILE", "n1 n2\n");
  CHECK(text_of(world.find()).find("PBS_NODEFILE:1") != std::string::npos);
}

TEST_CASE("PBS: qstat gives CPUs, GPUs and the end; CUDA_VISIBLE_DEVICES names those of the first host") {
  World world;
  world.set("PBS_JOBID", "3.srv");
  world.set_file("PBS_NODEFILE", "x1.a.test\nx1.a.test\nx2.a.test\n");
  world.commands.answer(
      "qstat -f -F json 3.srv",
      R"json({"Jobs":{"3.srv":{"exec_vnode":"(x1:ncpus=2:ngpus=1)+(x1:ncpus=2:ngpus=1)+(x2:ncpus=4)",
      "stime":"Fri Nov 27 21:03:38 2026","Resource_List":{"walltime":"00:05:00"}}}})json");
  CHECK(text_of(world.find()) == "x1.a.test:2/4[0,1] x2.a.test:1/4[]");
  CHECK(format_utc(world.find()->end_time.value()) == "2026-11-27T21:08:38Z");
  world.set("CUDA_VISIBLE_DEVICES", "GPU-1a,GPU-2b");
  CHECK(text_of(world.find()) == "x1.a.test:2/4[GPU-1a,GPU-2b] x2.a.test:1/4[]");
  world.set_file("PBS_NODEFILE", "x1.a.test\nx3.a.test\n");
  CHECK(text_of(world.find()).find("node file and its exec_vnode disagree") != std::string::npos);
}

TEST_CASE("PBS: a node file that names the service node alone contradicts what was granted") {
  World world;
  world.set("PBS_JOBID", "3.srv");
  world.set_file("PBS_NODEFILE", "mom1\n");
  world.commands.answer("qstat -f -F json 3.srv",
                        R"json({"Jobs":{"3.srv":{"exec_vnode":"(nid1:ncpus=2)+(nid2:ncpus=2)"}}})json");
  const std::string refusal = text_of(world.find());
  CHECK(refusal.find("mom1") != std::string::npos);
  CHECK(refusal.find("exec_vnode: nid1 nid2") != std::string::npos);
}

TEST_CASE("PBS: a variable of the job that is not UTF-8 hides nothing") {
  World world;
  world.set("PBS_JOBID", "3.srv");
  world.set_file("PBS_NODEFILE", "n1\n");
  world.commands.answer(
      "qstat -f -F json 3.srv",
      "{\"Jobs\":{\"3.srv\":{\"exec_vnode\":\"(n1:ncpus=4)\",\"Variable_List\":{\"V\":\"caf\xe9\"},"
      "\"Resource_List\":{\"walltime\":\"01:00:00\"},\"stime\":\"Fri Nov 27 20:00:00 2026\"}}}");
  CHECK(text_of(world.find()) == "n1:1/4");  // no chunk has ngpus: unknown, and not none
  CHECK(format_utc(*world.find()->end_time) == "2026-11-27T21:00:00Z");
}

TEST_CASE("PBS: its programs are found where no login shell has set PATH") {
  World world;
  world.set("PATH", "/usr/bin:/bin");
  world.set("PBS_O_PATH", "/opt/pbs/bin:/usr/bin:relative");
  world.set_file("PBS_CONF_FILE", "PBS_SERVER=srv\n PBS_EXEC=/opt/openpbs\n");
  CHECK(with_pbs_path(world.environment).get("PATH") == "/usr/bin:/bin:/opt/openpbs/bin:/opt/pbs/bin");
  world.set("PBS_EXEC", "/sw/pbs");
  CHECK(with_pbs_path(world.environment).get("PATH") == "/usr/bin:/bin:/sw/pbs/bin:/opt/pbs/bin");
}

TEST_CASE("PBS: a job without ranks is warned of before it runs") {
  World world;
  world.set("PBS_JOBID", "3.srv");
  world.set_file("PBS_NODEFILE", "");
  world.commands.answer("qstat -f -F json 3.srv", "{\"Jobs\":{\"3.srv\":{\"exec_vnode\":\"(n1:ncpus=4)\"}}}");
  CHECK(text_of(world.find()) == "n1:4/4");
  CHECK(world.find()->warnings.front().find("the job has mpiprocs=0") == 0);
}

TEST_CASE("PBS: a qstat that is Slurm's wrapper leaves GPUs and end unknown") {
  World world;
  world.set("PBS_JOBID", "3");
  world.set_file("PBS_NODEFILE", "n1\n");
  world.commands.answer("qstat", "Usage: qstat [-f]\n");
  CHECK(text_of(world.find()) == "n1:1");
  CHECK(says(world.find()->evidence, "GPUs and end unknown"));
}

TEST_CASE("Torque: GPUs from its GPU file") {
  World world;
  world.set_file("PBS_NODEFILE", "n1\nn1\nn2\nn2\n");
  world.set("PBS_NUM_PPN", "2");
  world.set_file("PBS_GPUFILE", "n1-gpu1\nn2-gpu0\nn2-gpu1\n");
  CHECK(text_of(world.find()) == "n1:2[1] n2:2[0,1]");
  world.set("PBS_NP", "5");
  CHECK(text_of(world.find()).find("PBS_NP=5") != std::string::npos);
}

TEST_CASE("Grid Engine: a line without a count is named and left out") {
  World world;
  world.set_file("PE_HOSTFILE", "node01\n\nnode02 4 all.q@node02 UNDEFINED\nnode03 2 q 0,0:0,1\n");
  const auto found = world.find();
  CHECK(text_of(found) == "node02:4 node03:2");
  CHECK(says(found->warnings, "PE_HOSTFILE:1: node node01"));
  world.set("NSLOTS", "7");
  CHECK(text_of(world.find()).find("NSLOTS=7") != std::string::npos);
}

TEST_CASE("Grid Engine: one node of several is not taken for all") {
  World world;
  world.set("JOB_ID", "7");
  world.set("SGE_JOB_SPOOL_DIR", "/var/spool/7.1");
  world.set("NHOSTS", "1");
  CHECK(world.find().has_value());
  world.set("NHOSTS", "2");
  CHECK(text_of(world.find()).find("NHOSTS and PE_HOSTFILE disagree") != std::string::npos);
}

TEST_CASE("Grid Engine: the end is the start and the soonest limit of the job and its queue") {
  World world;
  world.set_file("PE_HOSTFILE", "n1 1 all.q@n1 UNDEFINED\nn2 1 all.q@n2 UNDEFINED\n");
  for (const auto& [name, value] : {std::pair("JOB_ID", "7"), std::pair("QUEUE", "all.q")})
    world.set(name, value);
  CHECK_FALSE(world.find()->end_time);
  CHECK(says(world.find()->evidence, "the end is unknown: qstat is not there"));
  const std::string job =
      "<JB_job_number>7</JB_job_number><JB_hard_resource_list><qstat_l_requests><CE_name>h_rt</CE_name>"
      "<CE_doubleval>300.000000</CE_doubleval></qstat_l_requests></JB_hard_resource_list><JB_ja_tasks>"
      "<JAT_task_number>1</JAT_task_number><JAT_start_time>1795852800</JAT_start_time></JB_ja_tasks>";
  const auto seconds = [&](const std::string& answer) {
    world.commands.answer("qstat -xml -j 7", answer);
    const auto found = world.find();
    return found->end_time
               ? (*found->end_time - Instant(std::chrono::seconds(1795852800))) / std::chrono::seconds(1)
               : -1;
  };
  CHECK(seconds(job) == 300);  // qconf is not there
  world.commands.answer("qconf -sq all.q@n1", "qname  all.q\ns_rt   INFINITY\nh_rt   24:00:00\n");
  CHECK(seconds(job) == 300);
  world.commands.answer("qconf -sq all.q@n1", "s_rt   0:1:0\nh_rt   24:00:00\n");
  CHECK(seconds(job) == 60);
  const std::string asked_nothing = std::string(job).replace(job.find(">h_rt<"), 6, ">arch<");
  CHECK(seconds(asked_nothing) == 60);
  world.commands.answer("qconf -sq all.q@n1", "s_rt   INFINITY\nh_rt   INFINITY\n");
  CHECK(seconds(asked_nothing) == -1);
  CHECK(says(world.find()->evidence, "no limit"));
  world.commands.answer("qconf -sq all.q@n1", "s_rt   INFINITY\n");
  CHECK(seconds(asked_nothing) == -1);
  CHECK(says(world.find()->evidence,
             "the end is unknown: qconf does not report the h_rt and s_rt of the queue"));
  CHECK(seconds(std::string(job).replace(job.find(">7<"), 3, ">8<")) == -1);
  CHECK(seconds("<AN_text>denied: host &quot;n1&quot; is neither submit nor admin host</AN_text>") == -1);
  CHECK(says(world.find()->evidence, "qstat: denied: host \"n1\" is neither submit nor admin host"));
  world.set("SGE_TASK_ID", "2");  // a chain for an array's element: no array to Grid Engine
  CHECK(seconds(asked_nothing) == -1);
  CHECK(seconds(job) == 300);
}

TEST_CASE("Grid Engine: a job outside of a parallel environment is this machine, with an id") {
  World world;
  for (const auto& [name, value] :
       {std::pair("JOB_ID", "7"), std::pair("SGE_JOB_SPOOL_DIR", "/var/spool/7.1")})
    world.set(name, value);
  const auto found = world.find();
  REQUIRE(found);
  CHECK(found->scheduler == "gridengine");
  CHECK(found->job_id == "7");
  CHECK(found->nodes.size() == 1);
}

TEST_CASE("LSF: pairs, host file, launch node, contradiction") {
  World world;
  world.set("LSB_MCPU_HOSTS", "hostA 2 hostB 3");
  CHECK(text_of(world.find()) == "hostA:2 hostB:3");
  world.set_file("LSB_DJOB_HOSTFILE", "hostA\nhostA\nhostB\n");
  CHECK(text_of(world.find()).find("LSB_MCPU_HOSTS=hostA 2 hostB 3: hostA:2 hostB:3") != std::string::npos);
  world.environment.unset("LSB_MCPU_HOSTS");
  world.set_file("LSB_DJOB_HOSTFILE", "batch5\nd05n01\nd05n01\nd05n02\nd05n02\n");
  CHECK(text_of(world.find()) == "d05n01:2 d05n02:2");
  CHECK(says(world.find()->evidence, "launch node batch5"));
}

TEST_CASE("Flux: R") {
  World world;
  world.set("FLUX_JOB_ID", "f1");
  world.commands.answer(
      "flux job info f1 R",
      R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-7","gpu":"0-1"}},
      {"rank":"2","children":{"core":"0-3"}}],"nodelist":["n[1-2]","m5"],"expiration":1795813422.0}})");
  CHECK(text_of(world.find()) == "n1:8/8[0,1] n2:8/8[0,1] m5:4/4[]");
  CHECK(world.find()->end_time.has_value());
  world.commands.answer("flux job info f1 R", R"({"execution":{"R_lite":[],"nodelist":["n1"]}})");
  CHECK(text_of(world.find()).find("n1 has no entry") != std::string::npos);
  world.commands.answer("flux job info f1 R", "{}");
  CHECK(text_of(world.find()).starts_with("error: flux job info f1 R"));
}

TEST_CASE("OAR and Cobalt: repeated names") {
  World world;
  world.set_file("OAR_NODEFILE", "nodeA\nnodeA\nnodeB\n");
  CHECK(text_of(world.find()) == "nodeA:2 nodeB:1");
  World other;
  other.set_file("COBALT_NODEFILE", "nodeA\n");
  CHECK(other.find()->scheduler == "cobalt");
}
