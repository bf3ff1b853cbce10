// A fit of terms to measured times, by least squares, with coefficients that are never negative. Few points
// cannot tell which terms are there: every set of terms that the points allow is a model, weighted by how
// well it explains them, less one unit of log-likelihood per term. A prediction is the mean over the models,
// and their disagreement is its error.
#pragma once

#include <vector>

namespace dlrun::bench::predict {

struct FitPoint {
  std::vector<double> amounts;  // of the terms
  double seconds = 0;
  double noise = 0;  // standard error of the seconds; more than 0
};

struct Model {
  std::vector<double> coefficients;  // of all terms; 0: not in the model
  double weight = 0;                 // the weights add up to 1
};

/// Without points: one model in which all coefficients are 0.
std::vector<Model> fit_models(const std::vector<FitPoint>& points, std::size_t terms);

/// Solves a·x = b for symmetric positive definite a; empty where it is singular.
std::vector<double> solve(std::vector<std::vector<double>> a, std::vector<double> b);

}  // namespace dlrun::bench::predict
