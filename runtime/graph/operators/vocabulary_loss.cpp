// Vocabulary loss: the scores of the next token and their cross-entropy, the end of a language model.
#include <fmt/format.h>

#include "runtime/graph/init_bound.hpp"
#include "runtime/graph/operators/layer_settings.hpp"
#include "runtime/graph/operators/traits.hpp"

namespace dlrun::runtime {

const OperatorTraits& vocabulary_loss_traits() {
  static const OperatorTraits row{
      .name = "vocabulary loss",
      .shape = shape_by([](op::VocabularyLoss& spec, ShapeContext& in) -> Shape {
        expect_sequence(in);
        if (spec.vocabulary == 0) spec.vocabulary = in.data.classes;
        if (spec.vocabulary < in.data.classes)
          in.refuse(fmt::format("{} has a vocabulary of {} tokens, and the data of {}", in.name,
                                spec.vocabulary, in.data.classes));
        return {1, 1, 1};
      }),
      .parameters = by([](const op::VocabularyLoss& spec, const Shape& from) -> std::vector<ParameterRule> {
        return {{".weight",
                 {spec.vocabulary, from.channels},
                 from.channels,
                 init_bound(spec.init_std, from.channels)}};
      }),
      .products = by([](const op::VocabularyLoss& spec, const Shape& from, const Shape&) {
        return spec.vocabulary * from.elements();
      }),
      .backward_reads_input = true,
      .split = [](const Operation&) { return SplitForm::vocabulary; },
      .divide = divide_vocabulary<op::VocabularyLoss>,
      .loss = LossKind::last};
  return row;
}

}  // namespace dlrun::runtime
