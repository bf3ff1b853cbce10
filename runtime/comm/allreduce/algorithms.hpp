// The table of allreduce algorithms: a name, what runs it and when `auto` takes it. It is the only list of
// them: the job key train.allreduce.algorithm, the variable DLRUN_ALLREDUCE and the choice by size all read
// it. An algorithm is a file with its function and a row in algorithms.cpp. Each one adds in an order that
// depends on the number of ranks and the length alone, and brings the same bits to every rank.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/comm/allreduce/allreduce.hpp"
#include "runtime/engine/device_allreduce.hpp"
#include "src/base/environment.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

struct DeviceWorld;

/// What an allreduce is about: enough to choose its algorithm by.
struct Transfer {
  std::size_t bytes = 0;
  int ranks = 1;
  CommDtype dtype = CommDtype::f32;
};

/// One row: an allreduce among hosts has `run`, one among GPUs has `make`. A row with neither is run by
/// somebody else: the MPI's own allreduce by its plug-in, parameter servers by the loop, which knows the
/// tensors. Hosts have `hierarchical` by NodeSums, which knows the nodes.
struct AllreduceAlgorithm {
  enum class Dtypes { f32_only, all };
  using Run = Result<void>(Transport& link, std::span<float> data, CommDtype dtype, Scratch& scratch);
  using Make = Result<NamedAllreduce>(const DeviceWorld& world);

  std::string_view name;
  std::string_view alias = {};  // what DLRUN_ALLREDUCE called it before
  Dtypes dtypes = Dtypes::f32_only;
  bool (*suits)(const Transfer&) = nullptr;  // auto takes the first row that suits; unset: only on request
  Run* run = nullptr;
  Make* make = nullptr;
};

std::span<const AllreduceAlgorithm> allreduce_algorithms();
/// Finds an algorithm by name or alias; null if the name is unknown.
const AllreduceAlgorithm* find_allreduce(std::string_view name);
/// The names that are valid in a job file, `auto` first.
std::vector<std::string> allreduce_names();

/// Which algorithm a job asks for, and where: unset is `auto`.
struct AllreduceChoice {
  const AllreduceAlgorithm* algorithm = nullptr;
  std::string_view asked_by = "train.allreduce.algorithm";

  bool is(std::string_view name) const { return algorithm != nullptr && algorithm->name == name; }
  bool is_auto() const { return algorithm == nullptr; }
  /// Whether only hosts can run it: what lies on GPUs goes through the host then.
  bool is_of_host() const;
  /// For an Error: "train.allreduce.algorithm is 'ring'".
  std::string text() const;
};

/// DLRUN_ALLREDUCE where it is set, else what the job asks for. An Error for an unknown name.
Result<AllreduceChoice> choose_allreduce(const Environment& environment, const AllreduceChoice& of_job = {});
/// The same for what hosts sum: parameter servers are `auto` there.
Result<AllreduceChoice> choose_host_allreduce(const Environment& environment,
                                              const AllreduceChoice& of_job = {});

/// The algorithm that `auto` selects among hosts: "direct" for large arrays in 16 bits,
/// "recursive-halving-doubling" for small ones, else "ring".
const AllreduceAlgorithm& choose_by_size(const Transfer& transfer);

/// Runs the allreduce with the algorithm that choose_by_size() selects.
Result<void> allreduce_by_size(Transport& link, std::span<float> data, CommDtype dtype, Scratch& scratch);

}  // namespace dlrun::runtime
