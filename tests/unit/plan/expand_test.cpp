// Variables in the values of a job file: what is expanded, what is left alone, what is refused.
#include "src/plan/expand.hpp"

#include <doctest/doctest.h>

#include "src/plan/config_layers.hpp"
#include "src/plan/script_word.hpp"
#include "src/plan/variables_in_text.hpp"

using namespace dlrun;
using namespace dlrun::plan;

namespace {

const Environment kUser =
    Environment::from_entries({"HOME=/home/ann", "SCRATCH=/scratch/ann", "EMPTY=", "HF_TOKEN=secret",
                               "SLURM_PROCID=0", "TMPDIR=/tmp/7"});

Result<ExpandedTree> expanded(const std::string& job,
                              SchedulerVariables scheduler = SchedulerVariables::must_be_set) {
  return expand_variables(*yaml::parse(job, "job.yaml"), kUser, scheduler);
}

std::string changes(const std::string& job) {
  const auto out = expanded(job);
  if (!out) return out.error().text();
  std::string text;
  for (const Expansion& change : out->changes) text += fmt::format("{}={}\n", change.path, change.value);
  return text;
}

std::string text(const std::string& written) {
  const auto out = expand_text(written, [](const std::string& name) -> Result<std::string> {
    if (const auto value = kUser.find(name)) return *value;
    return fail(ErrorKind::input, "no {}", name);
  });
  return out ? *out : out.error().what;
}

}  // namespace

TEST_CASE("$NAME, ${NAME} and ~/ are expanded, and nothing else of a shell is") {
  CHECK(text("$SCRATCH/ckpt") == "/scratch/ann/ckpt");
  CHECK(text("${SCRATCH}2/$HOME") == "/scratch/ann2//home/ann");
  CHECK(text("~/a~/~") == "/home/ann/a~/~");
  CHECK(text("~") == "/home/ann");
  CHECK(text("~bob/x") == "~bob/x");
  CHECK(text("a$EMPTY.b") == "a.b");
  CHECK(text("$$HOME costs 5$ or $5") == "$HOME costs 5$ or $5");
  CHECK(text("$(id)`id`*") == "$(id)`id`*");
  CHECK(text("$NONE") == "no NONE");
  CHECK(text("${SCRATCH:-x}") == "'${SCRATCH:-x}' is not a variable");
  CHECK(text("${}") == "'${}' is not a variable");
}

TEST_CASE("paths and words are expanded, also from environment.set; other texts are not") {
  CHECK(changes("checkpoint: {dir: $SCRATCH/ckpt}\n"
                "train: {data: {dir: ~/data, list: $D/a.txt}, model: $HOME}\n"
                "environment: {activate: 'venv:~/env', container: {image: $SCRATCH/a.sif, mounts: "
                "['$SCRATCH:/s']},\n"
                "  set: {D: /lists, X: $HOME}, setup: [echo $HOME]}\n"
                "command: [echo, $HOME/data, $$HOME, 'a b']\n") ==
        "checkpoint.dir=/scratch/ann/ckpt\n"
        "environment.activate=venv:/home/ann/env\n"
        "environment.container.image=/scratch/ann/a.sif\n"
        "environment.container.mounts[0]=/scratch/ann:/s\n"
        "train.data.dir=/home/ann/data\n"
        "train.data.list=/lists/a.txt\n"
        "command[1]=/home/ann/data\n"
        "command[2]=$HOME\n");
}

TEST_CASE("a text for an interpreter and the arguments after -- keep their dollar signs") {
  CHECK(changes("command: [bash, -c, 'echo $HOME $RANK']\n").empty());
  CHECK(changes("command: [env, A=1, /bin/bash, -o, pipefail, -lc, 'echo $RANK', $SCRATCH]\n") ==
        "command[7]=/scratch/ann\n");
  CHECK(changes("command: [python3.11, train.py, -c, $SCRATCH/c.yaml]\n") ==
        "command[3]=/scratch/ann/c.yaml\n");
  yaml::Node tree = *yaml::parse("command: [cat, $SCRATCH/a]\n", "job.yaml");
  REQUIRE(append_words(tree, {"$SCRATCH/b"}, kCommandLine));
  const auto out = expand_variables(tree, kUser, SchedulerVariables::must_be_set);
  CHECK(out->tree.find("command")->items[1].scalar == "/scratch/ann/a");
  CHECK(out->tree.find("command")->items[2].scalar == "$SCRATCH/b");
}

TEST_CASE("an empty variable makes another path of a path, and an empty argument of a word") {
  CHECK(changes("environment: {set: {E: ''}}\ncheckpoint: {dir: $E/ckpt}\n")
            .starts_with("job.yaml:2:19: checkpoint.dir: $E is empty\n"));
  CHECK(changes("environment: {set: {E: ''}}\ncommand: [a, 'x$E']\n").find("is empty") == std::string::npos);
}

TEST_CASE("what is unset, differs per rank or is a secret is refused with its place") {
  CHECK(changes("checkpoint: {dir: $WORK/ckpt}\n") ==
        "job.yaml:1:19: checkpoint.dir: $WORK is unset\n"
        "  hint: set it in the environment of dlrun, or in environment.set; $$ is a dollar sign");
  CHECK(changes("command: [a, --rank, $SLURM_PROCID]\n")
            .find("differs between nodes or ranks\n"
                  "  hint: let a shell on the node expand it") != std::string::npos);
  CHECK(changes("command: [a, $DLRUN_RANK]\n").find("differs") != std::string::npos);
  CHECK(changes("checkpoint: {dir: $TMPDIR/c}\n").find("differs") != std::string::npos);
  CHECK(changes("command: [a, --token, $HF_TOKEN]\n").find("$HF_TOKEN is a secret") != std::string::npos);
  CHECK(changes("checkpoint: {dir: ~bob/c}\n").find("'~bob/c' names another user's home") !=
        std::string::npos);
}

TEST_CASE("the folder of what is staged is a path of jobs that stage something") {
  CHECK(changes("stage: [{from: $SCRATCH/a, to: ~/local}]\ncommand: [cat, --in=$DLRUN_STAGE/a]\n"
                "environment: {activate: 'venv:$DLRUN_STAGE/env'}\n") ==
        "stage[0].from=/scratch/ann/a\n"
        "stage[0].to=/home/ann/local\n"
        "environment.activate=venv:/DLRUN_STAGE/env\n"
        "command[1]=--in=/DLRUN_STAGE/a\n");
  CHECK(changes("command: [cat, $DLRUN_STAGE/a]\n") ==
        "job.yaml:1:16: command[1]: $DLRUN_STAGE is set only in jobs that have a section 'stage'\n"
        "  hint: stage: [{from: /project/flowers.tar, to: node-local}]");
}

TEST_CASE("an item of what is staged is a path by the variable that ranks have, too") {
  const std::string stage = "stage: [{from: $SCRATCH/a.tar, unpack: true}, {from: b, as: words-1}]\n";
  CHECK(changes(stage + "command: [cat, $DLRUN_STAGE_A/x, '${DLRUN_STAGE_WORDS_1}']\n") ==
        "stage[0].from=/scratch/ann/a.tar\n"
        "command[1]=/DLRUN_STAGE/a/x\n"
        "command[2]=/DLRUN_STAGE/words-1\n");
  CHECK(changes(stage + "command: [cat, $DLRUN_STAGE_WORD_1]\n") ==
        "job.yaml:2:16: command[1]: $DLRUN_STAGE_WORD_1 names no item of the section 'stage'\n"
        "  hint: did you mean 'DLRUN_STAGE_WORDS_1'?");
}

TEST_CASE("a job that is submitted may name what its scheduler will set") {
  const std::string job = "checkpoint: {dir: $SCRATCH/$SLURM_JOB_ID}\n";
  CHECK_FALSE(expanded(job));
  const auto out = expanded(job, SchedulerVariables::may_come);
  REQUIRE(out);
  CHECK(out->tree.find("checkpoint")->find("dir")->scalar == "/scratch/ann/$SLURM_JOB_ID");
}

TEST_CASE("which word an interpreter reads as a program") {
  CHECK(script_word({"sh", "-c", "x"}) == std::optional<std::size_t>(2));
  CHECK(script_word({"python", "-u", "-c", "x"}) == std::optional<std::size_t>(3));
  CHECK(script_word({"perl", "-ne", "x"}) == std::optional<std::size_t>(2));
  CHECK_FALSE(script_word({"bash", "run.sh", "-c", "x"}));
  CHECK_FALSE(script_word({"pythonic", "-c", "x"}));
  CHECK_FALSE(script_word({"sh", "-c"}));
}
