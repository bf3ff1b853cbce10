// SIGTERM and SIGINT as a request to stop, which training reads between steps. Batch systems and launchers
// may send several signals; only a second Ctrl-C, at least a second later, ends the process at once.
#pragma once

namespace dlrun::runtime {

void watch_stop_signals();
/// The signal that asked to stop; 0 where none did.
int stop_signal();
/// Ends the process as that signal would have.
[[noreturn]] void die_of_signal(int signal);

}  // namespace dlrun::runtime
