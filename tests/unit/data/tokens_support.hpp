// Token files for tests: made to order, and then damaged.
#pragma once

#include <numeric>

#include "runtime/data/data_format.hpp"
#include "runtime/data/tokens/token_file.hpp"
#include "tests/unit/data/support.hpp"

namespace dlrun::test {

/// Tokens first, first + 1, ..., all modulo the vocabulary.
inline std::string counting_tokens(std::uint32_t first, std::size_t count, std::uint32_t vocabulary,
                                   std::uint64_t tokenizer = 0) {
  std::vector<std::uint32_t> tokens(count);
  for (std::size_t i = 0; i < count; ++i) tokens[i] = (first + static_cast<std::uint32_t>(i)) % vocabulary;
  return runtime::token_file(tokens, vocabulary, tokenizer);
}

inline Result<std::shared_ptr<const runtime::DataSource>> token_source(const Folder& folder,
                                                                       const std::string& more) {
  const std::string text = fmt::format("{{format: tokens, dir: {}, {}}}", folder.path.string(), more);
  const yaml::Node node = yaml::parse(text, "job.yaml").value();
  yaml::Fields fields = TRY(yaml::Fields::of(node, "train.data"));
  const runtime::DataSpec spec = TRY(runtime::read_data_source(fields));
  TRY(fields.finish());
  return spec.source;
}

}  // namespace dlrun::test
