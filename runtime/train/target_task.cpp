// See target_task.hpp.
#include "runtime/train/target_task.hpp"

#include <array>

namespace dlrun::runtime {
namespace {

Json errors_of(const std::string& set, const Totals& totals) {
  return {{set + "_loss", rounded_figure(totals.loss())},
          {set + "_mae", rounded_figure(totals.mean_absolute_error())},
          {set + "_rmse", rounded_figure(totals.root_mean_square_error())}};
}

Json label_figures(const std::string& set, const Totals& totals) {
  return {{set + "_loss", rounded_figure(totals.loss())},
          {set + "_accuracy", rounded_figure(totals.accuracy())},
          {set + "_f1", rounded_figure(totals.f1())}};
}

}  // namespace

std::span<const LossColumn> Regression::losses() const {
  static constexpr std::array columns = {LossColumn{"loss", "train/loss", &Totals::loss},
                                         LossColumn{"mae", "train/mae", &Totals::mean_absolute_error}};
  return columns;
}

EpochReport Regression::report_of(const Totals& trained, const Totals& evaluated) const {
  const std::string set = evaluated_set();
  EpochReport out;
  out.figures = errors_of("epoch", trained);
  out.figures.update(errors_of(set, evaluated));
  out.scalars = {{set + "/loss", evaluated.loss()},
                 {set + "/mae", evaluated.mean_absolute_error()},
                 {set + "/rmse", evaluated.root_mean_square_error()}};
  out.text = fmt::format("loss {:.6g}  MAE {:.6g}  {} loss {:.6g}  MAE {:.6g}  RMSE {:.6g}", trained.loss(),
                         trained.mean_absolute_error(), set, evaluated.loss(),
                         evaluated.mean_absolute_error(), evaluated.root_mean_square_error());
  return out;
}

RunResult Regression::result_of(const std::string& set, const Totals& totals) const {
  return {.figures = errors_of(set, totals),
          .text = fmt::format("{} loss {:.6g}  MAE {:.6g}  RMSE {:.6g}", set, totals.loss(),
                              totals.mean_absolute_error(), totals.root_mean_square_error())};
}

double MultiLabel::answers_per_row() const {
  return static_cast<double>(parts_.data.train.shape.targets);
}

std::span<const LossColumn> MultiLabel::losses() const {
  static constexpr std::array columns = {LossColumn{"loss", "train/loss", &Totals::loss},
                                         LossColumn{"f1", "train/f1", &Totals::f1}};
  return columns;
}

EpochReport MultiLabel::report_of(const Totals& trained, const Totals& evaluated) const {
  const std::string set = evaluated_set();
  EpochReport out;
  out.figures = label_figures("epoch", trained);
  out.figures.update(label_figures(set, evaluated));
  out.scalars = {{set + "/loss", evaluated.loss()},
                 {set + "/accuracy", evaluated.accuracy()},
                 {set + "/f1", evaluated.f1()}};
  out.text = fmt::format("loss {:.4f}  accuracy {:.2f} %  {} accuracy {:.2f} %  F1 {:.4f}", trained.loss(),
                         100 * trained.accuracy(), set, 100 * evaluated.accuracy(), evaluated.f1());
  out.accuracy = evaluated.accuracy();
  return out;
}

RunResult MultiLabel::result_of(const std::string& set, const Totals& totals) const {
  return {.figures = label_figures(set, totals),
          .text = fmt::format("{} accuracy {:.2f} %  F1 {:.4f}", set, 100 * totals.accuracy(), totals.f1())};
}

}  // namespace dlrun::runtime
