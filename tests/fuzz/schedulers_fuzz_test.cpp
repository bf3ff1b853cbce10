// Whatever schedulers write into variables, files and answers, their readers give a value or an Error that
// has words. DLRUN_FUZZ_SECONDS asks for a longer run than the texts of every test run.
#include <doctest/doctest.h>

#include "schedulers/flux/flux.hpp"
#include "schedulers/gpus/cuda_visible.hpp"
#include "schedulers/hostfile/hostfile.hpp"
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/pbs/job.hpp"
#include "schedulers/slurm/gres.hpp"
#include "schedulers/slurm/job.hpp"
#include "schedulers/walltime.hpp"
#include "src/base/json.hpp"
#include "src/base/units.hpp"
#include "tests/fuzz/mutate.hpp"

using namespace dlrun;
using test::Mutator;

namespace {

const std::vector<std::string> kTokens{"(",    ")",           "[",  "]", "-", ",",  ":", "(x",
                                       "IDX:", "99999999999", "\n", "+", "=", "\"", " "};

template <class R>
bool is_sound(const R& result) {
  return result.has_value() || !result.error().text().empty();
}

template <class Read>
void fuzz(std::vector<std::string> seeds, Read read) {
  Mutator mutator(std::move(seeds), kTokens);
  for (test::Texts texts; texts.next();) {
    const std::string text = mutator.next();
    CAPTURE(text);
    REQUIRE(read(text));
  }
}

}  // namespace

TEST_CASE("gres texts") {
  fuzz({"gpu:a40:1(S:0,2)", "gpu:(null):4(IDX:0-3)", "gpu:tesla:2,gpu:kepler:2"},
       [](const std::string& text) { return is_sound(parse_gres(text)); });
}

TEST_CASE("counts") {
  fuzz({"2(x3),1", "12(x2),9", "4"},
       [](const std::string& text) { return is_sound(expand_counts(text, "here")); });
}

TEST_CASE("exec_vnode") {
  fuzz({"(n1:ncpus=2:ngpus=4)+(n2:ncpus=4:ngpus=1)", "(n[0]:ncpus=1+n[1]:ncpus=1)"},
       [](const std::string& text) { return is_sound(parse_exec_vnode(text)); });
}

TEST_CASE("qstat's JSON") {
  fuzz(
      {R"json({"Jobs":{"1.s":{"exec_vnode":"(a:ncpus=1)","stime":"Fri Nov 27 21:03:38 2026","Resource_List":{"walltime":"00:05:00"}}}})json"},
      [](const std::string& text) { return is_sound(parse_qstat(text, "1.s")); });
}

TEST_CASE("scontrol's account of a job") {
  fuzz({"JobId=7 JobName=x\n   RunTime=0 TimeLimit=00:10:00\n   StartTime=x EndTime=2026-11-27T20:56:37\n"
        "     Nodes=c[1-2] CPU_IDs=0,2 Mem=4 GRES=gpu:2(IDX:0-1)\n"},
       [](const std::string& text) { return is_sound(parse_scontrol_job(text, "7")); });
}

TEST_CASE("R of Flux") {
  fuzz(
      {R"({"version":1,"execution":{"R_lite":[{"rank":"0-1","children":{"core":"0-7","gpu":"0-1"}}],"nodelist":["n[1-2]"],"expiration":1.5e9}})"},
      [](const std::string& text) {
        const auto json = parse_json(text, "r");
        return !json || is_sound(flux_allocation(*json, "r"));
      });
}

TEST_CASE("node files") {
  fuzz({"n1.a\nn1.a\nn2.a\n", "10.0.0.1\nn\n"},
       [](const std::string& text) { return is_sound(nodes_of_lines(text, "file")); });
}

// What is taken must come back from its short form, and be counted the same.
TEST_CASE("host lists") {
  fuzz({"rack[0-1]node[2-3]-ib[0-1]", "n[008-011],n[1,01,001]", "1.2.3.[089,100-110]", "a,b1,b02"},
       [](const std::string& text) {
         const auto names = expand_hostlist(text, 5000);
         if (!names) return is_sound(names);
         return expand_hostlist(compress_hostlist(*names)).value() == *names &&
                count_hostlist(text, 5000).value() == names->size();
       });
}

TEST_CASE("host files") {
  fuzz({"n[1-3] slots = 4 max_slots=8 // spare\nn4:2 # x\n", "203.0.113.1 10.0.0.1 slots=2\nfe80::1 3\n",
        "a:2,[fe80::1]:2", "n1 slots=2\nn1.a max-slots=2\nlocalhost\n"},
       [](const std::string& text) {
         auto entries = read_hostfile(text, "hosts");
         if (entries) {
           const auto found = merge_entries(*entries);
           return is_sound(found) && is_sound(add_addresses(*entries, *entries));
         }
         return is_sound(entries) && is_sound(read_host_words(text));
       });
}

TEST_CASE("times and visible devices") {
  fuzz({"2-12:30:15", "1:30", "UNLIMITED", "0,1,GPU-1a,MIG-GPU-1a/1/0"}, [](const std::string& text) {
    return is_sound(parse_slurm_walltime(text)) && is_sound(parse_pbs_walltime(text)) &&
           read_cuda_visible(text, 4).names.size() <= text.size();
  });
}
