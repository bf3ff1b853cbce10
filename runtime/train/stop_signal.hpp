// SIGTERM and SIGINT as a wish that training looks at between steps. Batch systems and launchers may send
// several; only a Ctrl-C repeated a second later ends the process at once, as it would have without this.
#pragma once

namespace dlrun::runtime {

void watch_stop_signals();
/// The signal that asked to stop; 0 where none did.
int stop_signal();
/// Ends the process as that signal would have.
[[noreturn]] void die_of_signal(int signal);

}  // namespace dlrun::runtime
