// What a job may ask of parameter servers: those that live on ranks, and those that are processes of their
// own (roles.ps), which have the optimizer's state and so exclude whatever divides or changes it elsewhere.
#pragma once

#include "runtime/train/train_spec.hpp"

namespace dlrun::runtime {

/// With so many servers of their own (0: none), the job has the section train.parameter-server, too. An Error
/// names the key and its place where the two do not go together.
Result<void> use_server_processes(TrainSpec& spec, int servers);

}  // namespace dlrun::runtime
