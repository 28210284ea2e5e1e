"""The random numbers of the simulator.  Seed, kind and number of a stream determine all its numbers."""

MASK = (1 << 64) - 1


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def number(key, n):
    return mix((key + (n + 1) * 0x9E3779B97F4A7C15) & MASK)


def key_of(seed, kind, stream):
    return mix((mix((seed * 3 + kind) & MASK) + (stream + 1) * 0xD1B54A32D192ED03) & MASK)


def fraction(n):
    return (n >> 11) * 2.0**-53
