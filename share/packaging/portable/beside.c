// libdlrun-beside.so: what Debian 12's oneDNN asks for and older systems do not have (lower_versions.py lists
// it). It is loaded with dlrun-train, before the C library, on newer systems too.
//   - glibc 2.32's "is there one thread": never said to be so, which is always right
//   - g++ 11's libstdc++: a bad length of an array is reported as the bad allocation that it is; an
//   exception_ptr counts its
//     references by its copy constructor and destructor, which older ones have
char __libc_single_threaded = 0;

void _ZSt17__throw_bad_allocv(void);
void _ZSt28__throw_bad_array_new_lengthv(void) {
  _ZSt17__throw_bad_allocv();
}

typedef struct {
  void* exception;
} exception_ptr;
void _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(exception_ptr* self, const exception_ptr* from);
void _ZNSt15__exception_ptr13exception_ptrD1Ev(exception_ptr* self);

void _ZNSt15__exception_ptr13exception_ptr9_M_addrefEv(const exception_ptr* self) {
  exception_ptr copy;  // not destroyed: its reference is the one that is added
  if (self->exception) _ZNSt15__exception_ptr13exception_ptrC1ERKS0_(&copy, self);
}

void _ZNSt15__exception_ptr13exception_ptr10_M_releaseEv(exception_ptr* self) {
  if (self->exception) _ZNSt15__exception_ptr13exception_ptrD1Ev(self);
  self->exception = 0;
}
