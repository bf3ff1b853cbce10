// Whose names a file of weights has, and where a tensor of ours is in it: Hugging Face's files of GPT-2 call
// some tensors otherwise and have the matrices of linear layers turned (its Conv1D), those of Llama have
// queries, keys and values apart. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace dlrun::runtime {

struct WeightNaming {
  enum class Of { ours, gpt2, llama };
  Of of = Of::ours;
  std::string prefix = {};  // of all tensors but the head's
};

/// The tensors of the file that are the rows of one of ours, one behind the other.
struct WeightSource {
  std::vector<std::string> names;
  enum class Order { as_here, turned } order = Order::as_here;
};

using HasTensor = std::function<bool(const std::string&)>;

/// Told by a tensor that only such files have.
WeightNaming naming_of_file(const HasTensor& has);
/// The naming in which a model with these tensors of ours goes out.
WeightNaming naming_of_model(const HasTensor& has);
WeightSource source_in(const WeightNaming& naming, const std::string& tensor);
/// Whether a file may have it and nothing here asks for it: masks, angles, counters.
bool is_bystander(const std::string& name);

}  // namespace dlrun::runtime
