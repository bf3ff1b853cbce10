// The plug-in that reads native stacks: libdwfl over call frame information and symbol tables of the files
// themselves. It looks for no separate debug information: that may be large, or on a server far away.
#include <cstring>

#include <elfutils/libdwfl.h>

#include "src/agent/stacks/unwind_table.h"

namespace {

constexpr int kMaxFrames = 96;

int no_debug_information(Dwfl_Module*, void**, const char*, Dwarf_Addr, const char*, const char*, GElf_Word,
                         char**) {
  return -1;
}

const Dwfl_Callbacks kCallbacks{.find_elf = dwfl_linux_proc_find_elf,
                                .find_debuginfo = no_debug_information,
                                .section_address = nullptr,
                                .debuginfo_path = nullptr};

struct Walk {
  Dwfl* dwfl;
  DlrunFrameFunction frame;
  void* context;
  int count = 0;
};

// A return address is behind its call, which may be the last instruction of the function.
int on_frame(Dwfl_Frame* state, void* context) {
  auto& walk = *static_cast<Walk*>(context);
  Dwarf_Addr pc = 0;
  bool is_activation = false;
  if (!dwfl_frame_pc(state, &pc, &is_activation)) return DWARF_CB_ABORT;
  const Dwarf_Addr at = is_activation ? pc : pc - 1;
  Dwfl_Module* module = dwfl_addrmodule(walk.dwfl, at);
  const char* function = module != nullptr ? dwfl_module_addrname(module, at) : nullptr;
  const char* file = module != nullptr ? dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr,
                                                          nullptr, nullptr)
                                       : nullptr;
  walk.frame(walk.context, function != nullptr ? function : "", file != nullptr ? file : "");
  return ++walk.count < kMaxFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
}

const char* last_problem() {
  const char* text = dwfl_errmsg(-1);
  return text != nullptr ? text : "unknown reason";
}

void* open_process(pid_t process, const char** problem) {
  Dwfl* dwfl = dwfl_begin(&kCallbacks);
  // A positive number is an errno.
  int result = dwfl != nullptr ? dwfl_linux_proc_report(dwfl, process) : -1;
  if (result == 0) result = dwfl_report_end(dwfl, nullptr, nullptr);
  if (result == 0) result = dwfl_linux_proc_attach(dwfl, process, true);
  if (result == 0) return dwfl;
  *problem = result > 0 ? std::strerror(result) : last_problem();
  if (dwfl != nullptr) dwfl_end(dwfl);
  return nullptr;
}

// Frames that were seen before the unwinding failed are worth more than its reason.
const char* frames_of(void* handle, pid_t thread, DlrunFrameFunction frame, void* context) {
  auto* dwfl = static_cast<Dwfl*>(handle);
  Walk walk{dwfl, frame, context};
  const int result = dwfl_getthread_frames(dwfl, thread, on_frame, &walk);
  return result == -1 && walk.count == 0 ? last_problem() : nullptr;
}

void close_process(void* handle) {
  dwfl_end(static_cast<Dwfl*>(handle));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const DlrunUnwindTable dlrun_unwind_table;
const DlrunUnwindTable dlrun_unwind_table{DLRUN_UNWIND_VERSION, open_process, frames_of, close_process};
