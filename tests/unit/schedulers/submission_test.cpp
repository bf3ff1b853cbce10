// Handing jobs in: ids among banners, directives that are exactly what was asked, refusals and their cause.
#include "schedulers/submission.hpp"

#include <random>

#include <doctest/doctest.h>

#include "schedulers/directive.hpp"
#include "schedulers/flux/flux.hpp"
#include "schedulers/gridengine/gridengine.hpp"
#include "schedulers/lsf/lsf.hpp"
#include "schedulers/pbs/pbs.hpp"
#include "schedulers/slurm/slurm.hpp"
#include "schedulers/torque/torque.hpp"
#include "tests/unit/schedulers/world.hpp"

using namespace dlrun;

namespace {

SubmissionRequest small() {
  return {.name = "flowers",
          .directory = "/home/ann",
          .output = "/home/ann/runs/1",
          .walltime = {},
          .queue = {},
          .account = {},
          .extra = {}};
}

std::string lines_of(const Submission& scheduler, const SubmissionRequest& request) {
  const auto directives = scheduler.directives(request);
  if (!directives) return "error: " + directives.error().text();
  std::string out;
  for (const Directive& line : *directives) out += line.text + "\n";
  return out;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::unique_ptr<Submission>> all() {
  std::vector<std::unique_ptr<Submission>> out;
  out.push_back(make_slurm_submission());
  out.push_back(make_pbs_submission());
  out.push_back(make_torque_submission());
  out.push_back(make_gridengine_submission());
  out.push_back(make_lsf_submission());
  out.push_back(make_flux_submission());
  return out;
}

}  // namespace

TEST_CASE("Slurm's job id, bare, with its cluster, and in the sentence") {
  const auto slurm = make_slurm_submission();
  CHECK(slurm->job_id("7787202\n").value() == "7787202");
  CHECK(slurm->job_id("7787202;alpha\n").value() == "7787202");
  CHECK(slurm
            ->job_id("sbatch: no partition specified, using default partition alpha_all_serial\n"
                     "Submitted batch job 7787202\n")
            .value() == "7787202");
  CHECK(slurm->job_id("Submitted batch job 7787202 on cluster alpha").value() == "7787202");
  CHECK(slurm->job_id("welcome to node 12\n").error().text() ==
        "sbatch printed no job id: 'welcome to node 12'");
}

TEST_CASE("a PBS job id is the last line that has the whole shape of one") {
  const auto pbs = make_pbs_submission();
  CHECK(pbs->job_id("123.server\n").value() == "123.server");
  CHECK(pbs->job_id(
               "Modules warning: 3 modules reloaded\nquota: 95% of 100G used\n39352.master.cluster.example\n")
            .value() == "39352.master.cluster.example");
  CHECK(pbs->job_id("29[].pbsxsrv").value() == "29[].pbsxsrv");
  CHECK(make_torque_submission()->job_id("17\n").value() == "17");
  CHECK_FALSE(pbs->job_id("3 modules\n95.\n.server\n"));
}

TEST_CASE("the job ids of LSF, Grid Engine and Flux") {
  CHECK(
      make_lsf_submission()->job_id("warning: <3>\nJob <607844> is submitted to queue <medium>.\n").value() ==
      "607844");
  CHECK(make_lsf_submission()->job_id("Job <1> is submitted to default queue <normal>.").value() == "1");
  CHECK_FALSE(make_lsf_submission()->job_id("Request aborted by esub. Job not submitted.\n"));
  CHECK(make_gridengine_submission()->job_id("Unable to say hello\n88\n").value() == "88");
  CHECK(make_gridengine_submission()->job_id("88.1-10:1\n").value() == "88");
  CHECK(make_flux_submission()->job_id("hello\nƒ2ix9Wv\n").value() == "ƒ2ix9Wv");
  CHECK(make_flux_submission()->job_id("f2ix9Wv\n").value() == "f2ix9Wv");
}

TEST_CASE("a folder with a blank stands in double quotes, which all directive languages understand") {
  SubmissionRequest request = small();
  request.directory = "/data/run dir/r1";
  CHECK(contains(lines_of(*make_slurm_submission(), request), "#SBATCH -D \"/data/run dir/r1\"\n"));
}

TEST_CASE("nothing that is typed becomes a second directive or a second word") {
  std::mt19937 random(7);
  const std::string alphabet = "ab \n\r\t\"'\\#$`;|&<>(){}[]%*?~!=-,\x01\x7f\xc3";
  for (int round = 0; round < 4000; ++round) {
    const auto text = [&] {
      std::string out;
      for (auto left = random() % 8 + 1; left > 0; --left) out += alphabet[random() % alphabet.size()];
      return out;
    };
    SubmissionRequest request = small();
    const std::string plain_lines = lines_of(*make_slurm_submission(), request);
    request.queue = text();
    const std::string value = request.queue;
    for (const auto& scheduler : all()) {
      const auto directives = scheduler->directives(request);
      if (!directives) continue;
      const auto line = std::find_if(directives->begin(), directives->end(),
                                     [](const Directive& d) { return d.key == "resources.queue"; });
      REQUIRE(line != directives->end());
      CAPTURE(line->text);
      CHECK(line->text.find_first_of("\n\r\\") == std::string::npos);
      const std::string quoted = "\"" + value + "\"";
      const bool bare = value.find_first_of(" \"'#$`;|&<>(){}[]*?~!\t") == std::string::npos;
      CHECK(line->text.ends_with(bare && !line->text.ends_with('"') ? value : quoted));
      CHECK(std::count(line->text.begin(), line->text.end(), '"') % 2 == 0);
    }
  }
}

TEST_CASE("Slurm leaves a job that can do without a lost node to itself, and ends any other") {
  const auto slurm = make_slurm_submission();
  SubmissionRequest request = small();
  CHECK_FALSE(contains(lines_of(*slurm, request), "--no-kill"));
  request.outlives_nodes = "elastic";
  CHECK(contains(lines_of(*slurm, request), "#SBATCH --no-kill\n"));
  request.extra = {"--no-kill=off"};
  CHECK_FALSE(contains(lines_of(*slurm, request), "#SBATCH --no-kill\n"));
}

TEST_CASE("what cannot be said in a directive is refused") {
  for (const char* queue : {"a\nb", "a\"b", "a\\b", "\r"}) {
    SubmissionRequest request = small();
    request.queue = queue;
    for (const auto& scheduler : all())
      CHECK(lines_of(*scheduler, request).starts_with("error: resources.queue"));
  }
  SubmissionRequest request = small();
  for (const char* extra : {"#SBATCH --x", "x", "", "--a\n#SBATCH --b"}) {
    request.extra = {extra};
    CHECK(contains(lines_of(*make_slurm_submission(), request), "error: resources.extra"));
  }
}

TEST_CASE("a job that the scheduler would accept and never run is refused; no answer is no refusal") {
  World world;
  SubmissionRequest request = small();
  request.nodes = 4;
  const auto check = [&](const Submission& scheduler) {
    const auto out = scheduler.check_possible(request, world.environment, world.commands);
    return out ? std::string("possible") : out.error().what;
  };
  const auto slurm = make_slurm_submission(), pbs = make_pbs_submission();
  CHECK(check(*slurm) == "possible");
  CHECK(check(*pbs) == "possible");
  world.commands.answer("sinfo", "main* infinite 2\nmain* infinite 1\nshort 2:00 9\n");
  CHECK(check(*slurm) == "partition main has 3 nodes and the job requests 4: the job would wait forever");
  request.queue = "short";
  CHECK(check(*slurm) == "possible");
  request.walltime = std::chrono::seconds(121);
  CHECK(check(*slurm) ==
        "partition short ends jobs after 0:02:00 and the job requests 0:02:01: the job would wait forever");
  world.commands.answer(
      "pbsnodes",
      "pbsx1\n     Mom = pbsx1.pbsx.test\n     resources_available.ncpus = 8\n\npbsx2\n     Mom = x\n");
  CHECK(check(*pbs) == "PBS has 2 nodes and the job requests 4: the job would wait forever");
  request.nodes = 2;
  request.tasks_per_node = 9;
  CHECK(check(*pbs) == "no node of PBS has 9 CPUs; the maximum is 8: the job would wait forever");
}

TEST_CASE("a job that PBS accepted and will never run is cancelled, with PBS's words") {
  World world;
  const auto pbs = make_pbs_submission();
  int pauses = 0;
  const auto check = [&](const Submission& scheduler) {
    const auto out =
        check_taken(scheduler, "7.srv", world.environment, world.commands, [&](Seconds) { ++pauses; });
    return out ? std::string("taken") : out.error().text();
  };
  CHECK(check(*pbs) == "taken");  // nobody answers
  world.commands.answer(
      "qstat -f 7.srv",
      "Job Id: 7.srv\n    job_state = Q\n    comment = Can Never Run: Not enough total nodes av"
      "\n\tailable\n    etime = now\n");
  CHECK(contains(check(*pbs), "the job could not be cancelled"));
  world.commands.answer("qdel 7.srv", "");
  CHECK(check(*pbs) ==
        "pbs accepted job 7.srv but will never run it: Can Never Run: Not enough total nodes available\n"
        "  hint: the job is cancelled; request what the cluster has");
  CHECK(pauses == 0);
  world.commands.answer("qstat -f 7.srv",
                        "Job Id: 7.srv\n    job_state = Q\n    comment = Not Running: busy\n");
  CHECK(check(*pbs) == "taken");
  CHECK(pauses == 0);
  world.commands.answer("qstat -f 7.srv", "Job Id: 7.srv\n    job_state = Q\n");
  CHECK(check(*pbs) == "taken");
  CHECK(pauses == 5);  // its scheduler had not looked at it yet
  world.commands.answer("qstat -f 7.srv", "Job Id: 7.srv\n    job_state = R\n");
  CHECK(check(*pbs) == "taken");
  CHECK(check(*make_slurm_submission()) == "taken");
  CHECK(pauses == 5);
}

TEST_CASE("an array of jobs is told from other options, however it is written") {
  const auto slurm = make_slurm_submission(), lsf = make_lsf_submission(), pbs = make_pbs_submission();
  for (const char* option : {"-a 1-9", "-a1-9", "--array=1-9", "--array 1-9", "--arr=1-9", "--mem=1G -a 3"})
    CHECK(slurm->array_list(option).has_value());
  for (const char* option : {"--account=a", "-A a", "-J name[1-9]", "--comment=--array", "--mail-user=-a"})
    CHECK_FALSE(slurm->array_list(option));
  CHECK(slurm->array_list("--mem=1G -a 3,5-7") == "3,5-7");
  CHECK(slurm->array_list("-a1-9%2") == "1-9%2");
  CHECK(slurm->array_list("--array") == "");
  CHECK(pbs->array_list("-J 0-9") == "0-9");
  CHECK_FALSE(pbs->array_list("-j oe"));
  CHECK(make_torque_submission()->array_list("-t 1-9") == "1-9");
  CHECK(make_gridengine_submission()->array_list("-t 1-9:2") == "1-9:2");
  CHECK(lsf->array_list("-J \"name[1-9]%3\"") == "1-9%3");
  CHECK_FALSE(lsf->array_list("-R span[ptile=4]"));
  CHECK_FALSE(lsf->array_list("-J name"));
  CHECK(make_flux_submission()->array_list("--cc=1-9") == "1-9");
}

TEST_CASE("whether a job waits, runs or is gone; no answer is no answer") {
  const auto slurm = make_slurm_submission(), pbs = make_pbs_submission();
  const auto said = [](const Submission& scheduler, int code, const std::string& out,
                       const std::string& err) {
    const auto known = scheduler.is_pending_or_alive({.status = {.exit_code = code}, .out = out, .err = err});
    return !known ? "silence" : *known ? "there" : "gone";
  };
  CHECK(said(*slurm, 0, "PENDING\n", "") == std::string("there"));
  CHECK(said(*slurm, 0, "REQUEUED\n", "") == std::string("there"));
  CHECK(said(*slurm, 0, "COMPLETED\n", "") == std::string("gone"));
  CHECK(said(*slurm, 0, "", "") == std::string("gone"));
  CHECK(said(*slurm, 1, "", "slurm_load_jobs error: Invalid job id specified") == std::string("gone"));
  CHECK(said(*slurm, 1, "", "Unable to contact slurm controller") == std::string("silence"));
  CHECK(said(*pbs, 0, "Job Id: 1.s\n    job_state = Q\n", "") == std::string("there"));
  CHECK(said(*pbs, 0, "Job Id: 1.s\n    job_state = F\n", "") == std::string("gone"));
  CHECK(said(*pbs, 153, "", "qstat: Unknown Job Id 1.s") == std::string("gone"));
  CHECK(said(*pbs, 255, "", "Connection refused") == std::string("silence"));
  const auto lsf = make_lsf_submission(), flux = make_flux_submission();
  for (const char* state : {"PEND\n", "PSUSP\n", "RUN\n", "USUSP\n"})
    CHECK(said(*lsf, 0, state, "") == std::string("there"));
  for (const char* state : {"DONE\n", "EXIT\n"}) CHECK(said(*lsf, 0, state, "") == std::string("gone"));
  CHECK(said(*lsf, 255, "", "Job <7> is not found") == std::string("gone"));
  CHECK(said(*lsf, 255, "", "LSF is down. Please wait ...") == std::string("silence"));
  CHECK(lsf->is_alive({.status = {}, .out = "PSUSP\n", .err = {}}) == false);  // it has not begun
  CHECK(lsf->why_held({.status = {}, .out = "PSUSP\n", .err = {}}) == "PSUSP");
  for (const char* state : {"DEPEND\n", "SCHED\n", "RUN\n", "CLEANUP\n"})
    CHECK(said(*flux, 0, state, "") == std::string("there"));
  CHECK(said(*flux, 0, "INACTIVE\n", "") == std::string("gone"));
  CHECK(said(*flux, 1, "", "flux-jobs: ERROR: [Errno 2]") == std::string("silence"));
}

TEST_CASE("a job on hold is told from one that waits for its turn") {
  const auto slurm = make_slurm_submission(), pbs = make_pbs_submission();
  const auto held = [](const Submission& scheduler, const std::string& out) {
    return scheduler.why_held({.status = {}, .out = out, .err = {}});
  };
  CHECK(held(*slurm, "JobHeldUser\n") == "JobHeldUser");
  CHECK(held(*slurm, "Dependency\n").empty());
  CHECK(held(*slurm, "Priority\n").empty());
  CHECK(held(*pbs, "    job_state = H\n    Hold_Types = u\n") == "Hold_Types = u");
  CHECK(held(*pbs, "    job_state = H\n    Hold_Types = s\n    depend = afterany:6.srv@srv\n").empty());
  CHECK(held(*pbs,
             "    job_state = H\n    Hold_Types = s\n    comment = job held, too many failed att\n\tempts to "
             "run\n") == "job held, too many failed attempts to run");
  CHECK(held(*pbs, "    job_state = Q\n    Hold_Types = n\n").empty());
}

TEST_CASE("Grid Engine's parallel environment and GPUs are the site's, and not guessed") {
  SubmissionRequest request = small();
  request.nodes = 4;
  CHECK(
      contains(lines_of(*make_gridengine_submission(), request), "needs a parallel environment for 4 slots"));
  request.extra = {"-pe mpi 4"};
  CHECK(contains(lines_of(*make_gridengine_submission(), request), "#$ -pe mpi 4\n"));
  request.gpus_per_node = 2;
  CHECK(contains(lines_of(*make_gridengine_submission(), request), "no common name for GPUs"));
}

TEST_CASE("Grid Engine's waiting and running jobs are there, and one it does not know is gone") {
  const auto scheduler = make_gridengine_submission();
  const auto said = [&](int code, const std::string& out, const std::string& err) {
    return scheduler->is_pending_or_alive({.status = {.exit_code = code}, .out = out, .err = err});
  };
  CHECK(said(0, "job_number:                 7\n", "") == std::optional(true));
  CHECK(said(1, "", "Following jobs do not exist: \n7\n") == std::optional(false));
  CHECK(said(1, "", "error: commlib error: got select error (Connection refused)\n") == std::nullopt);
}

TEST_CASE("Grid Engine is asked whether it could ever run the job; its silence is no refusal") {
  World world;
  SubmissionRequest request = small();
  request.nodes = 4;
  request.queue = "all.q";
  request.extra = {"-pe fill 99"};
  const auto check = [&] {
    const auto out = make_gridengine_submission()->check_possible(request, world.environment, world.commands);
    return out ? std::string("possible") : out.error().text();
  };
  const std::string question = "qsub -w v -b y -q all.q -pe fill 99 true";
  CHECK(check() == "possible");
  world.commands.answer(question, "verification: found suitable queue(s)\n");
  CHECK(check() == "possible");
  world.commands.refuse(
      question,
      "Unable to run job: Job 32 cannot run in PE \"fill\" because it only offers 16 slots\n"
      "verification: no suitable queues\nExiting.\n");
  CHECK(contains(check(), "it would wait forever\n  Unable to run job: Job 32 cannot run in PE \"fill\""));
  world.commands.refuse(question, "Unable to run job: unknown resource \"gpu\"\nExiting.\n");
  CHECK(check() == "possible");  // the refusal is shown with its directive when the job is submitted
}

TEST_CASE("a refusal that only repeats a word is about the directive that has it") {
  const auto scheduler = make_gridengine_submission();
  SubmissionRequest request = small();
  request.extra = {"-pe two 6", "-l gpu=2"};
  const auto directives = scheduler->directives(request).value();
  const auto refused_line = [&](const std::string& said) {
    const Directive* directive = refused_directive(*scheduler, directives, said).line;
    return directive == nullptr ? std::string() : directive->text;
  };
  CHECK(refused_line("Unable to run job: unknown resource \"gpu\"\nExiting.") == "#$ -l gpu=2");
  CHECK(refused_line("Unable to run job: unknown resource \"disk\"\nExiting.").empty());
  CHECK(refused_line("Unable to run job: the \"gp\" of \"\" is 6").empty());
}

TEST_CASE("a usage text is about no directive, and a key that shares a line is named") {
  const auto pbs = make_pbs_submission();
  SubmissionRequest request = small();
  request.queue = "nosuch";
  request.gpus_per_node = 2;
  const auto directives = pbs->directives(request).value();
  const auto refused_line = [&](const std::string& said) {
    const RefusedDirective out = refused_directive(*pbs, directives, said);
    return out.line == nullptr ? std::string() : out.line->text + " of " + out.key;
  };
  CHECK(refused_line("qsub: illegal -o value\nusage: qsub [-a date_time] [-A account_string]\n\t[-q queue]")
            .empty());
  CHECK(refused_line("qsub: Unknown resource: ngpus") ==
        "#PBS -l select=1:ncpus=1:mpiprocs=1:ngpus=2 of resources.gpus-per-node");
  CHECK(refused_line("qsub: Unknown queue") == "#PBS -q nosuch of resources.queue");
}

TEST_CASE("too much memory is told of the directive that asked for it") {
  const auto slurm = make_slurm_submission();
  SubmissionRequest request = small();
  request.extra = {"--mem=999G"};
  const std::string said =
      "sbatch: error: Memory specification can not be satisfied\nsbatch: error: Batch job submission failed: "
      "Requested node configuration is not available";
  CHECK(refused_directive(*slurm, slurm->directives(request).value(), said).line->text ==
        "#SBATCH --mem=999G");
  request.extra.clear();
  request.memory = std::uint64_t(999) << 30;
  CHECK(refused_directive(*slurm, slurm->directives(request).value(), said).key == "resources.memory");
}

TEST_CASE("a job's name is one that the scheduler takes, and an element keeps its index") {
  SubmissionRequest request = small();
  request.name = "3dunet";
  CHECK(contains(lines_of(*make_gridengine_submission(), request), "#$ -N j3dunet\n"));
  CHECK(contains(lines_of(*make_pbs_submission(), request), "#PBS -N j3dunet\n"));
  CHECK(contains(lines_of(*make_torque_submission(), request), "#PBS -N j3dunet\n"));
  CHECK(contains(lines_of(*make_slurm_submission(), request), "#SBATCH --job-name=3dunet\n"));
  request.name = "a-training-with-a-long-name.12";
  CHECK(contains(lines_of(*make_torque_submission(), request), "#PBS -N a-training-w.12\n"));
  CHECK(contains(lines_of(*make_pbs_submission(), request), "#PBS -N a-training-with-a-long-name.12\n"));
  request.name = "a-training-with-a-long-name";
  CHECK(contains(lines_of(*make_torque_submission(), request), "#PBS -N a-training-with\n"));
}

TEST_CASE(
    "memory, GPU type, constraint, quality of service, whole nodes and mail, each in the scheduler's words") {
  SubmissionRequest request = small();
  request.nodes = 2;
  request.gpus_per_node = 4;
  request.memory = std::uint64_t(64) << 30;
  request.exclusive = true;
  request.mail = "ann@example.org";
  request.mail_events = {"end", "fail"};
  const std::string pbs = lines_of(*make_pbs_submission(), request);
  CHECK(
      contains(pbs, "#PBS -l select=2:ncpus=1:mpiprocs=1:ngpus=4:mem=65536mb\n#PBS -l place=scatter:excl\n"));
  CHECK(contains(pbs, "#PBS -M ann@example.org\n#PBS -m ae\n"));
  request.constraint = "v100";
  request.qos = "high";
  const std::string torque = lines_of(*make_torque_submission(), request);
  CHECK(contains(torque,
                 "#PBS -l nodes=2:ppn=1:gpus=4:v100\n#PBS -l mem=131072mb\n#PBS -n\n#PBS -l qos=high\n"));
  request.constraint = "ib&a100";
  request.gpu_type = "a100";
  const std::string slurm = lines_of(*make_slurm_submission(), request);
  for (const char* line : {"--gres=gpu:a100:4", "--mem=65536M", "--exclusive", "--qos=high",
                           "--constraint=\"ib&a100\"", "--mail-user=ann@example.org", "--mail-type=END,FAIL"})
    CHECK(contains(slurm, std::string("#SBATCH ") + line + "\n"));
  const std::string lsf = lines_of(*make_lsf_submission(), request);
  for (const char* line : {"-gpu \"num=4:gmodel=a100\"", "-R \"rusage[mem=65536MB/host]\"",
                           "-R \"select[ib&a100]\"", "-x", "-u ann@example.org", "-N"})
    CHECK(contains(lsf, std::string("#BSUB ") + line + "\n"));
  const std::string flux = lines_of(*make_flux_submission(), request);
  for (const char* line : {"--requires=\"ib&a100\"", "--exclusive"})
    CHECK(contains(flux, std::string("#flux: ") + line + "\n"));
}

TEST_CASE("unlike nodes are chunks of one select, or are refused") {
  SubmissionRequest request = small();
  request.nodes = 3;
  request.chunks = {{.nodes = 1, .cpus = 2, .gpus = 0, .memory = std::uint64_t(256) << 30},
                    {.nodes = 2, .cpus = 8, .gpus = 4}};
  CHECK(contains(lines_of(*make_pbs_submission(), request),
                 "-l select=1:ncpus=2:mpiprocs=1:mem=262144mb+2:ncpus=8:mpiprocs=1:ngpus=4\n"));
  CHECK(contains(lines_of(*make_torque_submission(), request),
                 "-l nodes=1:ppn=2+2:ppn=8:gpus=4\n#PBS -l mem=262144mb\n"));
  for (const auto& scheduler : all())
    CHECK(inexpressible_key(*scheduler, request).has_value() == (scheduler->marker() != "#PBS"));
}

TEST_CASE("what a scheduler has no directive for is named; what it can be told is not") {
  SubmissionRequest request = small();
  for (const auto& scheduler : all()) CHECK_FALSE(inexpressible_key(*scheduler, request));
  request.memory = 1 << 30;
  CHECK_FALSE(inexpressible_key(*make_pbs_submission(), request));
  CHECK(inexpressible_key(*make_gridengine_submission(), request)->key == "resources.memory");
  CHECK(inexpressible_key(*make_flux_submission(), request)->key == "resources.memory");
  request.memory.reset();
  request.unlimited = true;
  for (const auto& scheduler : all())
    CHECK(inexpressible_key(*scheduler, request).has_value() !=
          (contains(lines_of(*scheduler, request), "UNLIMITED") ||
           contains(lines_of(*scheduler, request), "INFINITY") ||
           contains(lines_of(*scheduler, request), "--time-limit=0")));
}

TEST_CASE("a directive of the user replaces the one that sets the same") {
  SubmissionRequest request = small();
  request.nodes = 2;
  request.gpus_per_node = 4;
  request.walltime = std::chrono::seconds(60);
  request.extra = {"-l select=2:ncpus=16:mpiprocs=4:ngpus=4:mem=200gb,walltime=2:00:00",
                   "-lplace=scatter:excl"};
  std::string lines = lines_of(*make_pbs_submission(), request);
  CHECK(contains(lines, "mem=200gb,walltime=2:00:00\n#PBS -lplace=scatter:excl\n"));
  CHECK_FALSE(contains(lines, "-l walltime=0:01:00"));
  CHECK_FALSE(contains(lines, "ncpus=1:"));
  CHECK_FALSE(contains(lines, "-l place=scatter\n"));
  request.extra = {"-l nodes=2:ppn=4"};
  lines = lines_of(*make_pbs_submission(), request);
  CHECK_FALSE(contains(lines, "select="));
  CHECK_FALSE(contains(lines, "place="));
  request.extra = {"-N 3", "--tim=5:00", "--gpus-per-node=a100:4", "-A other --mem-per-cpu=2G"};
  request.memory = 1 << 30;
  lines = lines_of(*make_slurm_submission(), request);
  for (const char* gone : {"--nodes=2", "--time=0:01:00", "--gres=", "--mem=1024M"})
    CHECK_FALSE(contains(lines, gone));
  request.extra = {"--ntasks=8", "--nodelist=n1,n2", "--mem-bind=local"};
  lines = lines_of(*make_slurm_submission(), request);
  for (const char* kept : {"--nodes=2", "--ntasks-per-node=1", "--mem=1024M"}) CHECK(contains(lines, kept));
  request.memory.reset();
  request.extra = {"-W 9:00", "-R \"span[hosts=1]\"", "-J \"x[1-9]\""};
  lines = lines_of(*make_lsf_submission(), request);
  for (const char* gone : {"-W 0:01", "span[ptile", "-J flowers"}) CHECK_FALSE(contains(lines, gone));
  request.extra = {"-pe mpi 2", "-l h_rt=99,gpu=4"};
  lines = lines_of(*make_gridengine_submission(), request);
  CHECK_FALSE(contains(lines, "h_rt=60"));
  request.extra = {"-N 2", "-t 5m"};
  lines = lines_of(*make_flux_submission(), request);
  for (const char* gone : {"--nodes=", "--time-limit="}) CHECK_FALSE(contains(lines, gone));
}

TEST_CASE("two directives that set the same are refused") {
  SubmissionRequest request = small();
  request.extra = {"-l select=2", "-l select=3"};
  CHECK(contains(lines_of(*make_pbs_submission(), request),
                 "resources.extra sets -l select twice: '#PBS -l select=2' and '#PBS -l select=3'"));
  request.extra = {"--gres=lscratch:100"};
  CHECK(contains(lines_of(*make_slurm_submission(), request), "#SBATCH --gres=lscratch:100\n"));
  request.gpus_per_node = 2;
  CHECK(contains(lines_of(*make_slurm_submission(), request),
                 "hint: write both in one: --gres=gpu:2,lscratch:100"));
}

TEST_CASE("PBS is not given an output folder that its qsub refuses") {
  SubmissionRequest request = small();
  request.output = "/home/ann/d\xc3\xbcnn/runs/1";
  CHECK(contains(lines_of(*make_pbs_submission(), request), "qsub accepts only ASCII"));
  CHECK(contains(lines_of(*make_slurm_submission(), request), "d\xc3\xbcnn"));
}

TEST_CASE("an id that is read back from a file is one of the scheduler's, or goes into no command") {
  for (const auto& scheduler : all())
    for (const char* bad : {"", "--user=root -f", "-u", "7 8", "7;id", "$(id)", "7\n8", "all"})
      if (scheduler->name() != "flux" || std::string(bad) != "all") CHECK_FALSE(scheduler->is_job_id(bad));
  CHECK(make_slurm_submission()->is_job_id("7787202"));
  CHECK(make_pbs_submission()->is_job_id("123.pbs-server.example"));
  CHECK(make_pbs_submission()->is_job_id("123[].srv"));
  CHECK(make_pbs_submission()->is_job_id("123[4].srv"));
  CHECK_FALSE(make_pbs_submission()->is_job_id("123[x].srv"));
  CHECK(make_torque_submission()->is_job_id("17"));
  CHECK(make_gridengine_submission()->is_job_id("88"));
  CHECK(make_lsf_submission()->is_job_id("607844"));
  CHECK(
      make_flux_submission()->is_job_id("\xc6\x92"
                                        "2ix9Wv"));
}

TEST_CASE("a job that is submitted from inside another does not inherit its variables") {
  Environment inside;
  for (const char* name :
       {"SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE", "SBATCH_TIMELIMIT", "SRUN_CPUS_PER_TASK"})
    inside.set(name, "1");
  inside.set("SLURM_CONF", "/etc/slurm.conf");
  inside.set("HOME", "/home/ann");
  const Environment outside = make_slurm_submission()->environment(inside);
  CHECK(outside.entries() == std::vector<std::string>{"HOME=/home/ann", "SLURM_CONF=/etc/slurm.conf"});
}

TEST_CASE("the variables of another scheduler's job reach no scheduler's commands") {
  const std::map<std::string, std::vector<std::string>> jobs{
      {"slurm", {"SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURMD_NODENAME", "SBATCH_TIMELIMIT"}},
      {"pbs torque", {"PBS_JOBID", "PBS_NODEFILE", "PBS_O_WORKDIR"}},
      {"gridengine", {"PE_HOSTFILE", "NSLOTS", "SGE_TASK_ID", "SGE_JOB_SPOOL_DIR"}},
      {"lsf", {"LSB_JOBID", "LSB_DJOB_HOSTFILE"}},
      {"flux", {"FLUX_URI", "FLUX_JOB_ID"}},
      {"oar", {"OAR_NODEFILE"}},
      {"cobalt", {"COBALT_NODEFILE"}}};
  Environment inside;
  for (const auto& [owner, names] : jobs)
    for (const std::string& name : names) inside.set(name, "1");
  const std::vector<std::string> kept{"HOME",   "LSF_ENVDIR", "PBS_CONF_FILE", "PBS_DEFAULT",
                                      "PE_ENV", "SGE_ROOT",   "SLURM_CONF"};
  for (const std::string& name : kept) inside.set(name, "1");
  for (const auto& scheduler : all()) {
    const Environment outside = scheduler->environment(inside);
    for (const std::string& name : kept) CHECK(outside.find(name));
    for (const auto& [owner, names] : jobs)
      for (const std::string& name : names)
        if (owner.find(scheduler->name()) == std::string::npos)
          CHECK_MESSAGE(!outside.find(name), std::string(scheduler->name()), " has ", name);
  }
  CHECK(make_pbs_submission()->environment(inside).find("PBS_JOBID"));
  CHECK(make_flux_submission()->environment(inside).find("FLUX_URI"));
}

TEST_CASE(
    "values go into the script and never through qsub -v or sbatch --export, which split them at commas") {
  for (const auto& scheduler : all())
    for (const std::string& word : scheduler->submit_command("/s.sh", "7")) {
      CHECK(word != "-v");
      CHECK_FALSE(word.starts_with("--export"));
    }
}

TEST_CASE("a job is kept off nodes, where the scheduler can be told so") {
  const std::vector<HostName> nodes{HostName("n3"), HostName("n4")};
  const auto slurm = make_slurm_submission();
  CHECK(submit_command(*slurm, "/s.sh", "7", nodes) ==
        Argv{"sbatch", "--exclude=n[3-4]", "--parsable", "--dependency=afterany:7", "/s.sh"});
  CHECK(submit_command(*slurm, "/s.sh", "", {}) == Argv{"sbatch", "--parsable", "/s.sh"});
  CHECK(slurm->exclude_command("9", nodes) == Argv{"scontrol", "update", "JobId=9", "ExcNodeList=n[3-4]"});
  CHECK(slurm->names_nodes("#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH -x n1\n"));
  CHECK(slurm->names_nodes("#SBATCH --exclude=n1\n"));
  CHECK_FALSE(slurm->names_nodes("#!/bin/bash\n#SBATCH --nodes=2\necho --exclude=n1\n"));
  for (const auto& scheduler : all()) {
    if (scheduler->name() == "gridengine")
      CHECK(submit_command(*scheduler, "/s.sh", "", nodes) ==
            Argv{"qsub", "-l", "hostname=!(n3|n4)", "-terse", "/s.sh"});
    if (scheduler->exclude_options(nodes).empty())
      CHECK(submit_command(*scheduler, "/s.sh", "", nodes) == scheduler->submit_command("/s.sh", ""));
  }
}

TEST_CASE("excluded nodes count against what a partition has") {
  World world;
  world.commands.answer("sinfo", "main* infinite 4\n");
  const auto slurm = make_slurm_submission();
  SubmissionRequest request;
  request.nodes = 3;
  request.excluded = {HostName("n3")};
  CHECK(slurm->check_possible(request, world.environment, world.commands));
  request.nodes = 4;
  CHECK_FALSE(slurm->check_possible(request, world.environment, world.commands));
}

TEST_CASE("a refusal is shown with the directive that it means") {
  World world;
  const auto slurm = make_slurm_submission();
  SubmissionRequest request = small();
  request.queue = "nosuch";
  request.extra = {"--frobnicate=3"};
  auto directives = slurm->directives(request).value();
  for (Directive& line : directives)
    if (line.key == "resources.queue") line.place = "job.yaml:3:12";
  const auto refused = [&](const std::string& said) {
    world.commands.refuse("sbatch --parsable /s.sh", said);
    return submit_job(*slurm, directives, "/s.sh", "", world.environment, world.commands).error().text();
  };
  CHECK(
      refused(
          "sbatch: error: invalid partition specified: nosuch\nsbatch: error: Batch job submission failed") ==
      "slurm refused the job (exit code 1)\n  sbatch: error: invalid partition specified: nosuch\n"
      "  sbatch: error: Batch job submission failed\n  directive: #SBATCH --partition=nosuch\n"
      "  hint: it comes from resources.queue at job.yaml:3:12");
  CHECK(contains(refused("sbatch: unrecognized option '--frobnicate=3'"),
                 "directive: #SBATCH --frobnicate=3\n"));
  CHECK(contains(refused("sbatch: error: the moon is full"), "hint: see the whole script with --dry-run"));
}

TEST_CASE("the scheduler is the one whose submit command is on PATH, and qsub is asked whose it is") {
  World world;
  const auto found = [&](std::string_view wanted = "auto") {
    const auto out = find_submission(wanted, world.environment, world.commands);
    return out ? std::string((*out)->name()) : "error: " + out.error().text();
  };
  world.set("PATH", "/nowhere");
  CHECK(contains(found(), "no scheduler's submit command is on PATH"));
  CHECK(found("lsf") == "lsf");
  CHECK(contains(found("slurn"), "did you mean 'slurm'?"));
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / fmt::format("dlrun-submission-{}", ::getpid());
  REQUIRE(make_directories(folder, Access::shared));
  const auto add_program = [&](const char* name) {
    REQUIRE(replace_file(folder / name, "#!/bin/sh\n", Durability::none));
    std::filesystem::permissions(folder / name, std::filesystem::perms::owner_all);
  };
  world.set("PATH", folder.string());
  add_program("qsub");
  world.commands.answer("qsub --version", "pbs_version = 23.06.06\n");
  CHECK(found() == "pbs");
  world.commands.answer("qsub --version",
                        "Version: 6.1.2\nCommit: 661e092552de43a785c15d39a3634a541d86898e\n");
  CHECK(found() == "torque");
  world.commands.refuse("qsub --version", "qsub: Unknown option: --version");
  world.commands.answer("qsub -help", "SGE 8.1.9\nusage: qsub [options]\n");
  CHECK(found() == "gridengine");
  world.commands.answer("qsub -help", "Usage: qsub of Slurm\n");
  add_program("sbatch");
  CHECK(found() == "slurm");
  world.commands.answer("qsub --version", "pbs_version = 23.06.06\n");
  CHECK(contains(found(), "several schedulers are on PATH: sbatch (slurm), qsub (pbs)"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a range of nodes: in the scheduler's own form, else no job at all") {
  SubmissionRequest request = small();
  request.nodes = 8, request.min_nodes = 2;
  request.tasks_per_node = 4;
  const std::string slurm = lines_of(*make_slurm_submission(), request);
  CHECK(contains(slurm, "#SBATCH --nodes=2-8\n#SBATCH --cpus-per-task=4\n"));
  CHECK_FALSE(contains(slurm, "ntasks"));  // Slurm would grant the fewest nodes alone
  request.tasks_per_node = 1;
  CHECK(contains(lines_of(*make_lsf_submission(), request), "#BSUB -n 2,8\n"));
  CHECK(contains(lines_of(*make_gridengine_submission(), request), "add \"-pe NAME 2-8\""));
  request.cpus_per_task = 4;
  CHECK(contains(lines_of(*make_lsf_submission(), request), "resources.nodes is 2-8, and LSF grants ranges"));
  for (const auto& scheduler : {make_pbs_submission(), make_torque_submission(), make_flux_submission()})
    CHECK(inexpressible_key(*scheduler, request)->key == "resources.nodes");
}
