// A frozen job: the merged job of a submission as one JSON document, which the submitted job reads instead of
// the job file. So neither an edited nor a removed job file changes a job that waits, and no flag is lost on
// the way. Relative paths mean the same, and errors still name the job file's lines. Values of secrets are
// not in it: it says from which file each is read again, and a secret that was typed on the command line is
// an Error, since no file may keep it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/base/yaml.hpp"

namespace dlrun::plan {

struct JobSpec;

struct FrozenJob {
  yaml::Node tree;  // merged: ready for read_job_spec()
  std::filesystem::path base_directory;
  std::optional<std::filesystem::path> job_file;  // that it was made of; unset: flags alone
};

// The document's text. `here`: what relative names of files in the sources are relative to. Pure.
Result<std::string> freeze_job(const JobSpec& spec, const std::optional<std::filesystem::path>& job_file,
                               const std::filesystem::path& here);

// Reads the document, and the values of its secrets from their files.
Result<FrozenJob> read_frozen_job(const std::filesystem::path& file);

}  // namespace dlrun::plan
