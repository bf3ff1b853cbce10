#include "src/cli/bench_request.hpp"

#include "src/cli/request.hpp"

namespace dlrun::cli {

Result<job::Request> bench_request(const JobOptions& options, const std::vector<std::string>& axes,
                                   const Environment& environment) {
  job::Request request = TRY(request_of(options, environment));
  plan::JobSpec spec = TRY(job_spec_of(request));
  plan::BenchSpec bench = spec.bench.value_or(plan::BenchSpec{});
  if (bench.source.empty()) bench.source = options.job_file.empty() ? "the command line" : options.job_file;
  for (const std::string& text : axes) TRY(plan::set_axis(bench, TRY(plan::bench_axis_of(text))));
  spec.tree.set("bench", plan::to_node(bench));
  spec.bench = std::move(bench);
  request.spec = std::move(spec);
  return request;
}

Result<job::Request> resumed_request(JobOptions options, const std::filesystem::path& folder,
                                     const Environment& environment) {
  if (std::error_code problem; !std::filesystem::exists(folder / "bench.json", problem))
    return fail(Error{
        .kind = ErrorKind::usage,
        .what = fmt::format("{} is not the folder of a benchmark: it has no bench.json", folder.string()),
        .where = {},
        .hint = "dlrun bench and dlrun submit --sweep print the folder: runs/bench-NAME-ID, or what "
                "--run-dir named",
        .also = {}});
  options.frozen_job = (folder / "spec.json").string();
  job::Request request = TRY(request_of(options, environment));
  request.spec = TRY(job_spec_of(request));
  return request;
}

}  // namespace dlrun::cli
