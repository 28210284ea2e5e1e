"""Damage the bytes of a file, for tests in which a reader gets a damaged file."""

SNIPPETS = [
    *(bytes([c]) for c in b'"#[]{}<>&@=-\n\t\x00\xff'),
    *b"0x -1 NaN 1e999 99999999999999999999 [255] [0] null {} [] \\ud800 lid lmc w=0 e=99 width= do".split(),
    b"\n\n", b"lid 65535 lmc 9", b'include "mixed.net"\n', b'module="m"\n', b'Switch 9 "x"\n',
    b'do Link "a0"[1] "a1"[2]\n', b'do Guid "a0" 0\n',
]  # fmt: skip


def damaged(data, damage):
    kind, where, amount, snippet = damage
    at = int(where * len(data))
    lines = data.split(b"\n")
    row = min(int(where * len(lines)), len(lines) - 1)
    if kind == "cut":
        return data[:at]
    if kind == "drop":
        return data[:at] + data[at + amount :]
    if kind == "double":
        return b"\n".join([*lines[: row + 1], *lines[row : row + amount]])
    if kind == "swap":
        other = (row + amount) % len(lines)
        lines[row], lines[other] = lines[other], lines[row]
        return b"\n".join(lines)
    if kind == "flip":
        return data[:at] + bytes([(data[at] if at < len(data) else 0) ^ amount]) + data[at + 1 :]
    if kind == "number":
        digit = next((k for k in range(at, len(data)) if data[k : k + 1].isdigit()), len(data))
        return data[:digit] + str(amount % 10).encode() + data[digit + 1 :]
    return data[:at] + snippet + data[at:]
