// An MPI program: a message goes round all processes, its octets are compared where it began, and a
// sum of all ranks has to be right. Its compiler is MPI's own (mpicxx). The first process prints
// "ok", or what is wrong.

#include <mpi.h>

#include <cstdio>
#include <vector>

namespace {

constexpr int kRounds = 10;

/// \return whether a message of `octets` octets comes back as it was sent
bool goes_round(int rank, int size, int octets, unsigned char content) {
  std::vector<unsigned char> message(static_cast<size_t>(octets));
  const auto all = [&](unsigned char value) {
    for (const unsigned char octet : message) {
      if (octet != value) return false;
    }
    return true;
  };
  const int next = (rank + 1) % size;
  const int before = (rank + size - 1) % size;
  if (rank == 0) {
    message.assign(message.size(), content);
    MPI_Send(message.data(), octets, MPI_BYTE, next, 0, MPI_COMM_WORLD);
    message.assign(message.size(), 0);
  }
  MPI_Recv(message.data(), octets, MPI_BYTE, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 0) return all(content);
  MPI_Send(message.data(), octets, MPI_BYTE, next, 0, MPI_COMM_WORLD);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  bool good = true;
  for (const int octets : {1, 4096, 1 << 20}) {
    for (int round = 1; round <= kRounds; ++round) {
      good = goes_round(rank, size, octets, static_cast<unsigned char>(round)) && good;
    }
  }
  int sum = 0;
  const int mine = rank + 1;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    if (!good) std::printf("another message came back\n");
    if (sum != size * (size + 1) / 2) std::printf("the sum of %d ranks is %d\n", size, sum);
    if (good && sum == size * (size + 1) / 2) std::printf("%d processes: ok\n", size);
  }
  MPI_Finalize();
  return 0;
}
