#include "schedulers/end_time.hpp"

#include "schedulers/flux/flux.hpp"
#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/pbs/job.hpp"
#include "schedulers/slurm/job.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

using End = std::optional<Instant>;

tl::unexpected<Error> untold(std::string_view program, std::string_view job_id) {
  return fail(ErrorKind::allocation, "{} tells no end of job {}", program, job_id);
}

Result<End> read_scontrol(const std::string& answer, const std::string& job_id) {
  const SlurmJob job = TRY(parse_scontrol_job(answer, job_id));
  if (!job.unlimited && !job.end_time) return untold("scontrol", job_id);
  return job.end_time;
}

Result<End> read_libslurm(const std::string& answer) {
  return End(Instant(std::chrono::seconds(TRY(parse_integer(std::string(trim(answer)), 1, kLastSecond)))));
}

Result<End> read_qstat(const std::string& answer, const std::string& job_id) {
  const PbsJob job = TRY(parse_qstat(answer, job_id));
  if (!job.unlimited && !job.end_time) return untold("qstat", job_id);
  return job.end_time;
}

Result<End> read_flux(const std::string& answer) {
  return TRY(flux_allocation(TRY(parse_json(answer, "flux job info")), "flux job info")).end_time;
}

}  // namespace

std::vector<EndQuestion> end_questions(std::string_view scheduler, const std::string& job_id) {
  if (scheduler == "slurm")
    return {{{"scontrol", "show", "job", "-d", job_id},
             [job_id](const std::string& answer) { return read_scontrol(answer, job_id); }},
            {{"/proc/self/exe", "slurm-end", job_id}, read_libslurm}};
  if (scheduler == "pbs")
    return {{{"qstat", "-f", "-F", "json", job_id},
             [job_id](const std::string& answer) { return read_qstat(answer, job_id); },
             [job_id](const std::string& answer) -> std::optional<Seconds> {
               const auto job = parse_qstat(answer, job_id);
               return job ? job->walltime_left : std::nullopt;
             }}};
  if (scheduler == "flux") return {{{"flux", "job", "info", job_id, "R"}, read_flux}};
  return {};
}

}  // namespace dlrun
