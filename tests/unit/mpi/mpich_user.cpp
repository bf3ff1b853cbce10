// A program that names no MPI itself: only its library does.
extern "C" int mpich_is_up();

int main() {
  return mpich_is_up();
}
