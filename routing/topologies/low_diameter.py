"""Topologies of low diameter: dragonfly, Slim Fly and Kautz graph."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from routing.errors import OptionError
from routing.fabric import Fabric
from routing.topologies.galois import GaloisField
from routing.topologies.options import DEFAULTS, TopologyOptions
from routing.topologies.plan import Cable, Label, Plan, build_fabric, check_size


def fabric_of_graph(
    name: str, labels: Sequence[Label], pairs: Iterable[tuple[int, int]], cas: int, options: TopologyOptions
) -> Fabric:
    """Make a fabric from pairs of linked switches.

    ``pairs`` has the row numbers of linked switches, and ``cas`` is the number of CAs on each switch.  Each pair takes
    the next free slot (position of a link) of both its switches.
    """
    taken = [0] * len(labels)
    cables: list[Cable] = []
    for a, b in pairs:
        cables.append((a, taken[a], b, taken[b]))
        taken[a] += 1
        taken[b] += 1
    return build_fabric(Plan(name, labels, cables, slots=taken, cas=[cas] * len(labels)), options)


def dragonfly(a: int, p: int, h: int, g: int | None = None, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a dragonfly (Kim et al., ISCA 2008): ``g`` groups of ``a`` switches, with ``h`` global links per switch.

    All switches of a group are linked to each other.  A global link joins two groups.  The paper does not say which
    switches the global links connect.  This function visits all pairs of groups in a fixed order, and repeats the
    visits until no more link is possible.  In each visit a pair gets one link, unless one of its groups has no free
    global port.  The links of a group are assigned to its switches in turn.  With g = a h + 1, any two groups have
    exactly one link; with fewer groups, two groups have several links.  A global port that is left over stays empty.

    Parameters
    ----------
    a, p, h
        Number of switches per group, of CAs per switch, and of global links per switch.
    g
        Number of groups, 1 to a h + 1; None: a h + 1.
    options
        Options: ``cas`` replaces p; redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        A number is out of range, or the fabric needs more LIDs than a subnet has.
    """
    if min(a, h + 1, p + 1) < 1:
        raise OptionError(f"a dragonfly of a={a} p={p} h={h}", remedy="take a of at least 1, p and h of at least 0")
    groups = a * h + 1 if g is None else g
    if not 1 <= groups <= a * h + 1:
        raise OptionError(
            f"{groups} groups cannot all be linked by {a * h} global ports each", remedy=f"take 1 to {a * h + 1} groups"
        )
    cas = options.cas_or(p)
    check_size(a * groups, a * groups * cas, options)
    labels = list(itertools.product(range(groups), range(a)))
    local = [(group * a + i, group * a + j) for group in range(groups) for i, j in itertools.combinations(range(a), 2)]
    name = f"dragonfly-a{a}-p{cas}-h{h}-g{groups}"
    return fabric_of_graph(name, labels, itertools.chain(local, global_pairs(a, h, groups)), cas, options)


def global_pairs(a: int, h: int, groups: int) -> Iterator[tuple[int, int]]:
    """Yield the links between groups of ``a`` switches with ``h`` global links each, as :func:`dragonfly` assigns
    them.
    """
    dealt = [0] * groups
    progress = groups > 1
    while progress:
        progress = False
        for i, j in itertools.combinations(range(groups), 2):
            if dealt[i] < a * h and dealt[j] < a * h:
                yield i * a + dealt[i] % a, j * a + dealt[j] % a
                dealt[i] += 1
                dealt[j] += 1
                progress = True


def slimfly(q: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a Slim Fly (Besta and Hoefler, SC 2014): 2 q^2 switches with diameter 2, the McKay-Miller-Siran graphs.

    Let q = 4 w + d with d one of -1, 0, 1.  Each switch then has (3 q - d) / 2 links to other switches.

    Parameters
    ----------
    q
        Size parameter: a prime power from 3 to 127, such as 3, 4, 5, 7, 8, 9, 11, 13, 16 or 17.
    options
        Options: CAs per switch (default: half the links between switches, rounded up), redundancy, link width and
        speed, LMC.

    Raises
    ------
    OptionError
        q is not allowed, or the fabric needs more LIDs than a subnet has.
    """
    if not 3 <= q <= 127 or not GaloisField.is_prime_power(q):
        raise OptionError(
            f"there is no Slim Fly of q = {q}", remedy="take a prime power from 3 to 127: 3, 4, 5, 7, 8, 9, 11, 13, ..."
        )
    delta = {1: 1, 3: -1, 0: 0}[q % 4]
    cas = options.cas_or(((3 * q - delta) // 2 + 1) // 2)
    check_size(2 * q * q, 2 * q * q * cas, options)
    field = GaloisField(q)
    steps = _slimfly_steps(field, delta)

    def pairs() -> Iterator[tuple[int, int]]:
        for half, column in itertools.product((0, 1), range(q)):
            base = (half * q + column) * q
            for y, z in itertools.combinations(range(q), 2):
                if field.subtract(y, z) in steps[half]:
                    yield base + y, base + z
        for x, m, c in itertools.product(range(q), repeat=3):
            yield x * q + field.add(field.multiply(m, x), c), (q + m) * q + c

    labels = list(itertools.product((0, 1), range(q), range(q)))
    return fabric_of_graph(f"slimfly-{q}", labels, pairs(), cas, options)


def _slimfly_steps(field: GaloisField, delta: int) -> tuple[frozenset[int], frozenset[int]]:
    """Return the generator sets of the two halves of a Slim Fly.

    ``delta`` is d in q = 4 w + d (see :func:`slimfly`).  Each half has q columns.  Each of the q switches of a column
    stands for one element of the finite field.  Two switches of a column are linked if the difference of their elements
    is in the set of their half.  If a set contains x, it also contains -x, so the order of the two switches does not
    matter.
    """
    q = field.order
    if delta == -1:
        w = (q + 1) // 4
        even = [*range(0, 2 * w - 1, 2), *range(2 * w - 1, 4 * w - 2, 2)]
        odd = [*range(1, 2 * w, 2), *range(2 * w, 4 * w - 1, 2)]
    else:
        even, odd = [*range(0, q - 1, 2)], [*range(1, q, 2)]
    return frozenset(map(field.power, even)), frozenset(map(field.power, odd))


def kautz(d: int, k: int, options: TopologyOptions = DEFAULTS) -> Fabric:
    """Make a fabric with one link for each arc of a Kautz graph: (d + 1) d^(k-1) switches, d times as many links.

    The diameter is at most k.  Each switch stands for a word of k letters, out of d + 1 letters, in which neighbouring
    letters differ.  To find the words to which arcs lead from a word, drop its first letter, and append a letter that
    differs from its last letter.  So d arcs begin and d arcs end at each word, and each switch has 2 d links.  Two
    words that alternate between the same two letters have two links.

    Parameters
    ----------
    d, k
        Out-degree of each switch in the directed graph, and length of the words, at least 1.
    options
        Options: CAs per switch (default 1), redundancy, link width and speed, LMC.

    Raises
    ------
    OptionError
        d or k is under 1, or the fabric needs more LIDs than a subnet has.
    """
    if min(d, k) < 1 or max(d, k) > 126:
        raise OptionError(f"a Kautz graph of d = {d}, k = {k}", remedy="take both from 1 to 126")
    cas = options.cas_or(1)
    check_size((d + 1) * d ** (k - 1), (d + 1) * d ** (k - 1) * cas, options)
    words: list[Label] = [(letter,) for letter in range(d + 1)]
    for _ in range(k - 1):
        words = [(*word, letter) for word in words for letter in range(d + 1) if letter != word[-1]]
    row = {word: number for number, word in enumerate(words)}
    pairs = ((row[word], row[(*word[1:], letter)]) for word in words for letter in range(d + 1) if letter != word[-1])
    return fabric_of_graph(f"kautz-{d}-{k}", words, pairs, cas, options)
