// What static libraries of Debian 12 ask for and the tarball's systems do not have, so that one build runs on
// glibc 2.31. It is linked into every program and plug-in of the tarball, hidden in each; nothing else uses
// it. What Debian 12's libdnnl.so lacks there is in beside.c.
//   - g++ 12's static libraries: glibc 2.32's "is there one thread", 2.36's random numbers, 2.35's search of
//   unwind tables
//   - libhwloc's: udev, asked only for the names of disks, of which dlrun has no use; there is none
//   - libssh's: GSSAPI; the tarball's ssh has keys, agents and passwords, but no Kerberos
#define _GNU_SOURCE
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

char __libc_single_threaded = 0;

uint32_t arc4random(void) {
  uint32_t out;
  if (getrandom(&out, sizeof out, 0) != (ssize_t)sizeof out) abort();
  return out;
}

// As in glibc 2.35's dlfcn.h.
struct dl_find_object {
  unsigned long long flags;
  void *map_start, *map_end;
  struct link_map* link_map;
  void* eh_frame;
  unsigned long long reserved[7];
};
struct search {
  uintptr_t address;
  struct dl_find_object* out;
};

static int visit(struct dl_phdr_info* info, size_t size, void* data) {
  (void)size;
  const struct search* search = data;
  uintptr_t start = 0, end = 0, frame = 0;
  int inside = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &info->dlpi_phdr[i];
    const uintptr_t from = info->dlpi_addr + part->p_vaddr, to = from + part->p_memsz;
    if (part->p_type == PT_GNU_EH_FRAME) frame = from;
    if (part->p_type != PT_LOAD) continue;
    if (start == 0 || from < start) start = from;
    if (to > end) end = to;
    if (from <= search->address && search->address < to) inside = 1;
  }
  if (!inside || frame == 0) return inside ? -1 : 0;
  *search->out =
      (struct dl_find_object){.map_start = (void*)start, .map_end = (void*)end, .eh_frame = (void*)frame};
  return 1;
}

int _dl_find_object(void* address, struct dl_find_object* out) {
  struct search search = {(uintptr_t)address, out};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

void* udev_new(void) {
  return NULL;
}
void* udev_unref(void* udev) {
  return udev;
}
void* udev_device_new_from_subsystem_sysname(void) {
  return NULL;
}
void* udev_device_get_property_value(void) {
  return NULL;
}
void* udev_device_unref(void* device) {
  return device;
}

// GSS_S_UNAVAILABLE, for every question; the object identifiers have no value.
void *GSS_C_NT_HOSTBASED_SERVICE, *GSS_C_NT_USER_NAME;
#define ABSENT(name)    \
  unsigned name(void) { \
    return 16u << 16;   \
  }
ABSENT(gss_accept_sec_context)
ABSENT(gss_acquire_cred)
ABSENT(gss_add_oid_set_member)
ABSENT(gss_create_empty_oid_set)
ABSENT(gss_display_name)
ABSENT(gss_display_status)
ABSENT(gss_get_mic)
ABSENT(gss_import_name)
ABSENT(gss_indicate_mechs)
ABSENT(gss_init_sec_context)
ABSENT(gss_inquire_cred)
ABSENT(gss_inquire_cred_by_mech)
ABSENT(gss_release_buffer)
ABSENT(gss_release_cred)
ABSENT(gss_release_name)
ABSENT(gss_release_oid_set)
ABSENT(gss_test_oid_set_member)
ABSENT(gss_verify_mic)
