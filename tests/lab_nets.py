"""Write small fabrics as ibsim net files, for tests of the lab."""


def net_text(switches, links, cas=1, *, ports=12):
    """Return the text of a net file with switches sw0, sw1, ... and CAs h0, h1, ...

    Each switch has ``cas`` CAs at its first ports.  Links are pairs of switch numbers, and take the next free ports.
    """
    used = [cas] * switches
    lines = {s: [f'[{1 + c}] "h{s * cas + c}"[1]' for c in range(cas)] for s in range(switches)}
    for a, b in links:
        used[a] += 1
        used[b] += 1
        lines[a].append(f'[{used[a]}] "sw{b}"[{used[b]}]')
        lines[b].append(f'[{used[b]}] "sw{a}"[{used[a]}]')
    text = []
    for s in range(switches):
        text += [f'Switch {ports} "sw{s}"', *lines[s], ""]
    for h in range(switches * cas):
        text += [f'Hca 1 "h{h}"', f'[1] "sw{h // cas}"[{1 + h % cas}]', ""]
    return "\n".join(text)


def ring(n):
    return [(i, (i + 1) % n) for i in range(n)]


def torus(x, y, z):
    number = {c: i for i, c in enumerate((a, b, c) for a in range(x) for b in range(y) for c in range(z))}
    links = []
    for (a, b, c), i in number.items():
        links += [(i, number[(a + 1) % x, b, c]), (i, number[a, (b + 1) % y, c]), (i, number[a, b, (c + 1) % z])]
    return links
