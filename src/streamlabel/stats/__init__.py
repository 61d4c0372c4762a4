"""The Gram matrices and sums of rows that the method reads, and the spectral factor that is kept."""
