/* A parallel program that suffers when anything else takes a core: small pieces of work on all
 * cores, each ended by a barrier, so that all wait for the one that was held up.
 *
 * noise STEPS: does so many, and prints the seconds that it took. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

/* About 30 us of work: well below what the scheduler gives another program at a time. */
enum { PIECE = 20000 };

int main(int argc, char **argv)
{
    long steps = argc > 1 ? atol(argv[1]) : 0;
    double total = 0, start = omp_get_wtime();
#pragma omp parallel reduction(+ : total)
    {
        double value = 1 + omp_get_thread_num();
        for (long step = 0; step < steps; step++) {
            for (int i = 0; i < PIECE; i++)
                value = value * 0.999999 + 0.000001;
#pragma omp barrier
        }
        total += value;
    }
    double seconds = omp_get_wtime() - start;
    /* The sum is used, or the compiler would leave the work out. */
    printf("%.6f\n", total > 0 ? seconds : -1);
    return steps < 1;
}
