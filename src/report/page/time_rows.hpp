// Where the time of a run went, link by link and attempt by attempt, the queue between links included. Pure.
// What is not known is null, never 0: a link that was killed has no exit code, and the wait before the first
// job of a chain is recorded nowhere.
#pragma once

#include "src/base/json_fwd.hpp"
#include "src/report/page/run_files.hpp"

namespace dlrun::report {

/// [{"number", "job", "directory", "began", "ended", "queue", "end", "exit_code", "reason", "time",
/// "attempts": [..]}], times in seconds since 1970.
Json links_json(const RunFiles& run);

/// The sum of links_json(): {"start", "useful", "checkpoint", "lost", "idle", "queue", "total"}; null where
/// no link has its time.
Json total_time_json(const Json& links);

/// Failures of all attempts: [{"link", "attempt", "text", "cause", "last_lines", ...}]
Json failures_json(const RunFiles& run);

}  // namespace dlrun::report
