// Names of tensors in Hugging Face's files: with and without a prefix, turned, apart; and what errors call
// them.
#include "runtime/train/weight_names.hpp"

#include <fstream>
#include <set>

#include <doctest/doctest.h>

#include "runtime/cpu/cpu_engine.hpp"
#include "runtime/models/transformer.hpp"
#include "runtime/train/init_weights.hpp"
#include "runtime/train/weight_file.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

HasTensor names(std::set<std::string> all) {
  return [all = std::move(all)](const std::string& name) { return all.contains(name); };
}

std::unique_ptr<Engine> small_gpt() {
  const Transformer spec{.layers = 1, .heads = 2, .features = 4};
  return compile(build_transformer("small", spec, token_sequences(3, 5)).value(), {.batch = 1}).value();
}

}  // namespace

TEST_CASE("a file of GPT-2 is told by its positions, under either prefix") {
  const WeightNaming plain = naming_of_file(names({"wte.weight", "wpe.weight"}));
  const WeightNaming prefixed = naming_of_file(names({"transformer.wpe.weight"}));
  CHECK(plain.of == WeightNaming::Of::gpt2);
  CHECK(source_in(plain, "wte.positions").names == std::vector<std::string>{"wpe.weight"});
  CHECK(source_in(prefixed, "wte.positions").names == std::vector<std::string>{"transformer.wpe.weight"});
  CHECK(source_in(prefixed, "lm_head.weight").names == std::vector<std::string>{"lm_head.weight"});
  CHECK(naming_of_file(names({"wte.weight", "wte.positions"})).of == WeightNaming::Of::ours);
}

TEST_CASE("GPT-2's linear layers lie turned, norms and tables do not") {
  const WeightNaming gpt2{WeightNaming::Of::gpt2};
  for (const char* name : {"h.3.attn.c_attn.weight", "h.3.attn.c_proj.weight", "h.11.mlp.c_fc.weight"})
    CHECK(source_in(gpt2, name).order == WeightSource::Order::turned);
  for (const char* name : {"h.3.attn.c_attn.bias", "h.3.ln_1.weight", "wte.weight", "lm_head.weight"})
    CHECK(source_in(gpt2, name).order == WeightSource::Order::as_here);
  CHECK(source_in({}, "h.3.attn.c_attn.weight").order == WeightSource::Order::as_here);
}

TEST_CASE("Llama's queries, keys and values are tensors of their own") {
  const WeightNaming llama = naming_of_file(names({"model.layers.0.self_attn.q_proj.weight"}));
  CHECK(source_in(llama, "model.layers.2.self_attn.qkv_proj.weight").names ==
        std::vector<std::string>{"model.layers.2.self_attn.q_proj.weight",
                                 "model.layers.2.self_attn.k_proj.weight",
                                 "model.layers.2.self_attn.v_proj.weight"});
  CHECK(source_in(llama, "model.norm.weight").names == std::vector<std::string>{"model.norm.weight"});
}

TEST_CASE("masks and angles are not missed; a matrix that lies the other way is told with both names") {
  CHECK(is_bystander("h.0.attn.bias"));
  CHECK(is_bystander("bn1.num_batches_tracked"));
  CHECK_FALSE(is_bystander("h.0.attn.c_attn.bias"));
  const auto engine = small_gpt();
  std::vector<StoredTensor> tensors{{.name = "transformer.wpe.weight", .shape = {3, 4}},
                                    {.name = "transformer.h.0.attn.c_attn.weight", .shape = {12, 4}}};
  const SafetensorsLayout layout = plan_safetensors(tensors);
  const dlrun::test::Folder folder;
  const auto path = folder.path / "model.safetensors";
  std::ofstream(path, std::ios::binary) << layout.head << std::string((12 + 48) * 4, '\0');
  const auto lines = init_weights(*engine, {.file = path});
  REQUIRE_FALSE(lines);
  const std::string text = lines.error().text();
  CHECK(text.find("wte.weight (transformer.wte.weight there) is not in the file") != std::string::npos);
  CHECK(text.find("h.0.attn.c_attn.weight (transformer.h.0.attn.c_attn.weight there) is [12, 4] in the file, "
                  "[4, 12] in the model") != std::string::npos);
}
