// A library that needs MPICH, for mpich_user.cpp.
extern "C" int MPI_Initialized(int* flag);

extern "C" int mpich_is_up() {
  int flag = 0;
  MPI_Initialized(&flag);
  return flag;
}
