// What CUDA_VISIBLE_DEVICES and Slurm's gres texts say about GPUs.
#include <doctest/doctest.h>

#include "schedulers/gpus/cuda_visible.hpp"
#include "schedulers/slurm/gres.hpp"

using namespace dlrun;
using Names = std::vector<std::string>;

TEST_CASE("a negative index ends the list without a warning") {
  const VisibleGpus seen = read_cuda_visible("0, 1, 2, -1, 3");
  CHECK(seen.names == Names{"0", "1", "2"});
  CHECK_FALSE(seen.warning);
}

TEST_CASE("a bad entry hides itself and what follows, and is named") {
  const auto hidden = [](std::string_view value, const Names& names, std::string_view word) {
    const VisibleGpus seen = read_cuda_visible(value, 4);
    CAPTURE(value);
    CHECK(seen.names == names);
    REQUIRE(seen.warning);
    CHECK(seen.warning->find(word) != std::string::npos);
  };
  hidden("GPU-9e8d35e3,2", {"GPU-9e8d35e3"}, "'2'");
  hidden("1,GPU-9e8d35e3", {"1"}, "GPU-9e8d35e3");
  hidden("0,7,1", {"0"}, "'7'");
  hidden("0,x,1", {"0"}, "'x'");
  hidden("0,,1", {"0"}, "entry 2");
  hidden("0,1,0", {}, "twice");
}

TEST_CASE("empty, -1 and NoDevFiles show no GPU") {
  for (const char* value : {"", " ", "-1", "NoDevFiles"}) CHECK(read_cuda_visible(value).names.empty());
}

TEST_CASE("ids are kept as they are written, in both MIG forms") {
  const Names ids{"GPU-11111111-2222-3333-4444-555555555555", "GPU-1111"};
  CHECK(read_cuda_visible(ids[0] + "," + ids[1]).names == ids);
  const std::string old_form = "MIG-GPU-11111111-2222-3333-4444-555555555555/1/0";
  CHECK(read_cuda_visible(old_form).names == Names{old_form});
  CHECK(read_cuda_visible("MIG-11111111-2222-3333-4444-555555555555").names.size() == 1);
  CHECK_FALSE(is_mig_id("MIG-GPU-1111/1"));
}

TEST_CASE("gres texts") {
  const auto one = [](std::string_view text) { return parse_gres(text).value().at(0); };
  CHECK(one("gpu:(null):4(IDX:0-3)").indices == std::vector<int>{0, 1, 2, 3});
  CHECK(one("gpu:(null):4(IDX:0-3)").type.empty());
  CHECK(one("gpu:a40:1(S:0,2,4,6,8,10)").sockets == std::vector<int>{0, 2, 4, 6, 8, 10});
  CHECK(one("gpu:a40:1(S:0,2,4,6,8,10)").type == "a40");
  CHECK(one("gpu").count == 1);
  const auto two = parse_gres("gpu:tesla:2,shard:4,gpu:kepler:2").value();
  REQUIRE(two.size() == 2);
  CHECK(two[1].type == "kepler");
  CHECK(two[1].count == 2);
  CHECK(parse_gres("(null)").value().empty());
}

TEST_CASE("a gres text that is cut or contradicts itself is refused") {
  for (const char* text :
       {"gpu:4(IDX:0-3", "gpu:a40:x", "gpu:4(IDX:0-2)", "gpu:1,", "gpu:1(IDX:3-1)", "gpu::1"})
    CHECK_MESSAGE(!parse_gres(text), text);
  CHECK(parse_index_list("0-3").value() == std::vector<int>{0, 1, 2, 3});
  for (const char* text : {"", "0,", "a", "3-1", "0-99999999"}) CHECK_MESSAGE(!parse_index_list(text), text);
}
