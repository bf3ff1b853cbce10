// The optimizers, by name. An optimizer X is optim/X.hpp (its factors, for both devices), optim/X.cpp (its
// traits, with the CPU's kernel), cuda/plugin/optimizers/X.cu and its name here: both devices' tables are
// made of this list.
#pragma once

#define DLRUN_OPTIMIZERS(ROW) \
  ROW(sgd)                    \
  ROW(adam)                   \
  ROW(adamw)                  \
  ROW(lars)                   \
  ROW(lamb)
