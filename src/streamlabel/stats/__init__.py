"""The Gram matrices the method reads, and the spectral factor that is kept."""
