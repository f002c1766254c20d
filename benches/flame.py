#!/usr/bin/env python3
"""Stacks of `perf script` on standard input: a flame graph as SVG, and what share each part has, as a table.

    perf script -i perf.data --no-inline | benches/flame.py docs/performance/chunk.svg "one chunk"

A sample belongs to the part whose frame is nearest to its leaf; a part's inclusive share counts every sample below it.
"""

import collections
import html
import re
import sys

# What a frame belongs to, by the first expression that its name has. Ours come by module, others by what they do.
PARTS = [
    (r"^switchboard::llm::sse", "llm/sse: events out of bytes"),
    (r"^switchboard::llm::(openai|form)", "llm/openai: chunk to event, request"),
    (r"^switchboard::llm::(answer|watch|router|http|retry|breaker)", "llm: the call, its clocks"),
    (r"^switchboard::llm", "llm: the rest"),
    (r"^switchboard::agent::(turn|language|markers|speech)", "agent: turn, language, markers"),
    (r"^switchboard::agent", "agent: the loop"),
    (r"^switchboard::runs::log", "runs/log: ring and readers"),
    (r"^switchboard::runs", "runs: begin, live, task"),
    (r"^switchboard::dialect", "dialect: frames"),
    (r"^switchboard::http", "http: routes, identity, bodies"),
    (r"^switchboard::store", "store: statements"),
    (r"^switchboard::tools", "tools"),
    (r"^switchboard", "switchboard: the rest"),
    (r"sqlite3|^(vdbe|btree|wal|pager|pcache|unix[A-Z])|sqlx_sqlite", "SQLite and sqlx"),
    (r"sqlx", "SQLite and sqlx"),
    (r"reqwest|hyper_util::client|hyper::client", "reqwest, hyper client"),
    (r"hyper", "hyper (both sides)"),
    (r"tracing", "tracing"),
    (r"serde", "serde_json"),
    (r"aws_lc|jsonwebtoken|AES|sha256|HMAC", "token and digests"),
    (r"axum|tower|matchit", "axum, tower"),
    (r"tokio|mio::|futures", "tokio"),
    (r"mi_|malloc|free|mimalloc", "allocator"),
    (r"\[kernel", "kernel"),
]


def frames(lines):
    """Stacks, root first, with their counts."""
    stacks, stack = collections.Counter(), []
    for line in lines:
        if not line.strip():
            if stack:
                stacks[tuple(reversed(stack))] += 1
            stack = []
        elif line[0] in " \t":
            address, _, rest = line.strip().partition(" ")
            name, _, where = rest.rpartition(" (")
            name = re.sub(r"\+0x[0-9a-f]+$", "", name) or "[unknown]"
            name = re.sub(r"::h[0-9a-f]{16}$", "", name)
            if "kernel" in where or address.startswith("ffffffff"):
                name += " [kernel]"
            stack.append(name)
    if stack:
        stacks[tuple(reversed(stack))] += 1
    return stacks


def plain(name):
    """The name without what generics and closures add."""
    name = re.sub(r"^<+(?:dyn )?", "", name)
    return name.split(" as ")[0] if not name.startswith("switchboard") else name


def part_of(stack):
    if stack and stack[-1].endswith("[kernel]"):
        return "kernel"
    for frame in reversed(stack):
        name = plain(frame)
        for expression, part in PARTS:
            if re.search(expression, name):
                return part
    return "other"


def table(stacks):
    total = sum(stacks.values())
    own, inclusive = collections.Counter(), collections.Counter()
    for stack, count in stacks.items():
        own[part_of(stack)] += count
        parts = set()
        for frame in stack:
            name = plain(frame)
            parts.add(next((part for expression, part in PARTS if re.search(expression, name)), "other"))
        for part in parts:
            inclusive[part] += count
    print(f"{'part':<42}{'own':>8}{'inclusive':>11}")
    for part, count in own.most_common():
        print(f"{part:<42}{100 * count / total:>7.1f}%{100 * inclusive[part] / total:>10.1f}%")


def tree(stacks):
    root = {"count": 0, "below": {}}
    for stack, count in stacks.items():
        node = root
        node["count"] += count
        for frame in stack:
            node = node["below"].setdefault(frame, {"count": 0, "below": {}})
            node["count"] += count
    return root


def colour(name):
    if name.endswith("[kernel]"):
        return "#c9b8e0"
    if "switchboard" in name:
        return "#f0a35e"
    if "sqlite" in name or "sqlx" in name:
        return "#9fc5e8"
    return "#f5d9a8"


def draw(stacks, title, path, width=1400, height=15, least=0.0015):
    root = tree(stacks)
    boxes, deepest = [], 0

    def place(node, name, x, depth):
        nonlocal deepest
        share = node["count"] / root["count"]
        if share < least or depth > 90:
            return
        deepest = max(deepest, depth)
        boxes.append((x, depth, share, name))
        for below_name, below in sorted(node["below"].items()):
            place(below, below_name, x, depth + 1)
            x += below["count"] / root["count"]

    place(root, title, 0, 0)
    total = (deepest + 2) * height
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" '
        'font-family="monospace" font-size="10">',
        f'<rect width="{width}" height="{total}" fill="#fffdf8"/>',
    ]
    for x, depth, share, name in boxes:
        left, size = x * width, share * width
        top = total - (depth + 1) * height
        label = html.escape(name)
        short = html.escape(name[: max(0, int(size / 6.1) - 1)]) if size > 24 else ""
        out.append(
            f'<g><title>{label} {100 * share:.2f}%</title>'
            f'<rect x="{left:.1f}" y="{top}" width="{max(size - 0.3, 0.2):.1f}" height="{height - 1}" fill="{colour(name)}"/>'
            + (f'<text x="{left + 2:.1f}" y="{top + 11}">{short}</text>' if short else "")
            + "</g>"
        )
    out.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out))


def main():
    path, title = sys.argv[1], sys.argv[2]
    stacks = frames(sys.stdin)
    if not stacks:
        sys.exit("no stacks: is the profile empty?")
    sys.setrecursionlimit(10_000)
    draw(stacks, title, path)
    table(stacks)


main()
